"""Traces of samplers, those that still run too, read from the files that they write."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.analysis.json_record import plain
from phloem.errors import InputError, InputWarning
from phloem.inference.mcmc.samples import choices_of
from phloem.inference.mcmc.stones import NO_POSTERIOR
from phloem.io.input_file import first_bytes, input_stream
from phloem.io.tree_table import RUN, tree_table
from phloem.io.trees import HEAD
from phloem.summary.spread import evenly_spread, first_used
from phloem.summary.trace import trace_summary

LEAST_DRAWS = 4  # a run, for a summary


@dataclass(frozen=True, eq=False)
class Traces:
    """names: of the columns besides the generation. generations: of every run (n,). values: of every run
    (n, k). Runs may be of unequal length while they run."""

    names: tuple[str, ...]
    generations: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]


def read_traces(prefix: str) -> Traces | None:
    """PREFIX.run1.p or PREFIX.run1.log, and so on; a last line that is not whole is left out. None before
    the first sample."""
    found: list[tuple[tuple[str, ...], np.ndarray, np.ndarray]] = []
    while (path := _trace_file(prefix, len(found) + 1)) is not None:
        one = _read_columns(str(path))
        if one is None:
            break
        found.append(one)
    if not found:
        return None
    for run, (names, _, _) in enumerate(found[1:], 2):
        if names != found[0][0]:
            raise InputError(
                "this trace has other columns than that of run 1",
                file=str(_trace_file(prefix, run)),
                hint="Remove what another analysis left, or name the files that belong together.",
            )
    return Traces(found[-1][0], tuple(g for _, g, _ in found), tuple(v for _, _, v in found))


def read_trace_files(files: Sequence[str]) -> Traces:
    """Traces of MrBayes, BEAST 1 and 2, RevBayes and phloem, a file a run, or one with several runs that
    RevBayes' Replicate_ID tells apart: the columns that all of them have and that hold numbers.

    Numbers that are not finite, and words among numbers, stay NaN or infinite. InputError for a file that is
    no trace, and for files without a common column of numbers; a warning names columns that not all have.
    """
    found = []
    for file in files:
        one = _read_columns(file)
        if one is None or not len(one[1]):
            raise InputError("this trace has no sample yet", file=file, hint="Wait for the first ones.")
        runs = _runs_of(*one)
        for _, generations, _ in runs:
            _tell_falling(file, generations)
        found += runs
    common = [name for name in found[0][0] if all(name in names for names, _, _ in found)]
    if not common:
        told = f"{files[0]} and {files[-1]} have no column in common"
        raise InputError(told, hint="Give runs of one analysis.")
    _tell_left_out([names for names, _, _ in found], common)
    values = [table[:, [names.index(name) for name in common]] for names, _, table in found]
    numbers = [k for k in range(len(common)) if all(np.isfinite(table[:, k]).any() for table in values)]
    if not numbers:
        hint = "Name a file with numbers; histories of characters and sets are not summarised."
        raise InputError("no column of this trace holds numbers", file=files[0], hint=hint)
    return Traces(
        tuple(common[k] for k in numbers),
        tuple(generations for _, generations, _ in found),
        tuple(np.ascontiguousarray(table[:, numbers]) for table in values),
    )


Columns = tuple[tuple[str, ...], np.ndarray, np.ndarray]


def _runs_of(names: tuple[str, ...], generations: np.ndarray, table: np.ndarray) -> list[Columns]:
    """The runs that RevBayes has put into one file, without the column that tells them apart."""
    if RUN not in names:
        return [(names, generations, table)]
    k = names.index(RUN)
    others = [i for i in range(len(names)) if i != k]
    kept = tuple(names[i] for i in others)
    rows = [table[:, k] == run for run in dict.fromkeys(table[:, k].tolist())]
    return [(kept, generations[row], table[row][:, others]) for row in rows]


def _tell_falling(file: str, generations: np.ndarray) -> None:
    """A warning where a run begins again in the middle: burn-in is left out where the file begins."""
    falls = np.flatnonzero(np.diff(generations) < 0)
    if len(falls):
        before, after = generations[falls[0] : falls[0] + 2]
        told = (
            f"{file}: after {before:,.0f} the generation is {after:,.0f}, as where files are put behind each "
            "other; it is read as one run, of which only the beginning is left out as burn-in"
        )
        warnings.warn(told, InputWarning, stacklevel=4)


def _tell_left_out(all_names: Sequence[tuple[str, ...]], common: Sequence[str]) -> None:
    some = [name for name in dict.fromkeys(sum(all_names, ())) if name not in common]
    if some:
        rest = f" and {len(some) - 6:,} more" if len(some) > 6 else ""
        told = f"columns that not every run has are left out: {', '.join(some[:6])}{rest}"
        warnings.warn(told, InputWarning, stacklevel=4)


def is_trace(file: str) -> bool:
    """Whether a file begins as a trace does: comments, then names with tabs between, no tree."""
    head = first_bytes(file, HEAD).decode("utf-8", "replace")
    if tree_table(head, file) is not None:
        return False
    lines = head.splitlines()
    if lines and lines[0].strip().upper() == "#NEXUS":
        return False
    first = next((line for line in lines if line.strip() and line[:1] not in "[#"), "")
    return "\t" in first and "(" not in first.split("\t")[0]


def refuse_powers(file: str) -> None:
    """InputError for a trace or trees of stepping stones, which no burn-in makes samples of a posterior."""
    if NO_POSTERIOR.encode() in first_bytes(file, HEAD):
        raise InputError(
            "these samples are of power posteriors, at every stepping stone of another, and of no posterior",
            file=file,
            hint="Run the same command without --stepping-stone; phloem bayes-factors reads PREFIX.ss.json.",
        )


def _read_columns(file: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray] | None:
    """Names, generations and the values of the other columns, NaN where a text is no number; None without a
    row of names."""
    names: tuple[str, ...] = ()
    rows = array("d")
    with input_stream(file) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip() or line[:1] in b"[#":
                continue
            if not line.endswith(b"\n") and names:
                break  # not whole yet
            fields = line.rstrip(b"\r\n\t ").split(b"\t")
            if not names:
                names = _names_of(fields, file)
            elif len(fields) == len(names):
                rows.extend(map(_number, fields))
            elif names:
                raise InputError(
                    f"this row has {len(fields)} columns of {len(names)}",
                    file=file,
                    line=number,
                    hint="Take it off, or name another file.",
                )
    if len(names) < 2:
        return None
    table = np.array(rows).reshape(-1, len(names))
    return names[1:], table[:, 0].copy(), table[:, 1:]


def _names_of(fields: Sequence[bytes], file: str) -> tuple[str, ...]:
    """Those of a trace's columns; the second of two of one name is told from the first by its number."""
    read = [field.decode("utf-8", "replace").strip() for field in fields]
    names: dict[str, None] = {}
    for name in read:
        own, n = name, 1
        while own in names:
            n += 1
            own = f"{name} ({n})"
        names[own] = None
    twice = [own for own, name in zip(names, read) if own != name]
    if twice:
        told = f"{file}: columns of one name are numbered: {', '.join(twice[:6])}"
        warnings.warn(told, InputWarning, stacklevel=4)
    return tuple(names)


def _number(field: bytes) -> float:
    try:
        return float(field)
    except ValueError:
        return np.nan


def _trace_file(prefix: str, number: int) -> Path | None:
    """That of `phloem mcmc` or of `phloem time`."""
    both = (Path(f"{prefix}.run{number}.{ending}") for ending in ("p", "log"))
    return next((path for path in both if path.exists()), None)


def thinned_trace(traces: Traces, column: int, most: int) -> list[dict[str, list[float]]]:
    """For every run generations and values of a column, at most so many, evenly chosen."""
    found = []
    for generations, values in zip(traces.generations, traces.values):
        chosen = evenly_spread(0, len(generations), most)
        found.append({"x": generations[chosen].tolist(), "y": values[chosen, column].tolist()})
    return found


def running_means(
    traces: Traces, column: int, burn_in: float, most: int, tuning: int = -1
) -> list[dict[str, list[float]]]:
    """For every run the mean of a column over all samples that summaries use, at most so many points."""
    found = []
    for generations, values in zip(traces.generations, traces.values):
        first = first_used(generations, burn_in, tuning)
        means = np.cumsum(values[first:, column]) / np.arange(1, len(values) - first + 1)
        chosen = evenly_spread(0, len(means), most)
        found.append({"x": generations[first:][chosen].tolist(), "y": means[chosen].tolist()})
    return found


def running_summary(traces: Traces, burn_in: float, tuning: int = -1) -> list[dict[str, object]]:
    """A row for every number: mean, sd, 95% HPD, ESS and R-hat of the samples that summaries use; no rows
    while there are too few. NaN becomes None."""
    n = min(len(values) for values in traces.values)
    first = first_used(traces.generations[0][:n], burn_in, tuning)
    if n - first < LEAST_DRAWS:
        return []
    numbers = [i for i, name in enumerate(traces.names) if not choices_of(name)]
    draws = np.stack([values[first:n, numbers] for values in traces.values])
    p = trace_summary(tuple(traces.names[i] for i in numbers), draws)
    columns = ("mean", "sd", "hpd_low", "hpd_high", "ess", "r_hat")
    return [
        {"name": name} | {column: plain(getattr(p, column)[i]) for column in columns}
        for i, name in enumerate(p.names)
    ]
