"""Traces of samplers, those that still run too, read from the files that they write."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.analysis.json_record import plain
from phloem.analysis.trace_file import Columns, read_columns, told_of_words
from phloem.errors import InputError, InputWarning
from phloem.inference.mcmc.samples import choices_of
from phloem.io.tree_table import RUN
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
    the first sample. Words among the numbers are NaN, and a warning tells of them."""
    found: list[Columns] = []
    while (path := _trace_file(prefix, len(found) + 1)) is not None:
        one = read_columns(str(path))
        if one is None:
            break
        if one.words:
            told = told_of_words([name for name in one.names if name in one.words], one.words)
            warnings.warn(
                f"{path}: in a column of numbers is what is none: {told}", InputWarning, stacklevel=3
            )
        found.append(one)
    if not found:
        return None
    for run, one in enumerate(found[1:], 2):
        if one.names != found[0].names:
            raise InputError(
                "this trace has other columns than that of run 1",
                file=str(_trace_file(prefix, run)),
                hint="Remove what another analysis left, or name the files that belong together.",
            )
    return Traces(found[-1].names, tuple(x.generations for x in found), tuple(x.table for x in found))


def read_trace_files(files: Sequence[str]) -> Traces:
    """Traces of MrBayes, BEAST 1 and 2, RevBayes and phloem, a file a run, or one with several runs that
    RevBayes' Replicate_ID tells apart: the columns that all of them have and that hold numbers.

    Numbers that are not finite, and words among numbers, stay NaN or infinite. InputError for a file that is
    no trace, and for files without a common column of numbers; warnings name columns that not all have, and
    those without a number.
    """
    found: list[Columns] = []
    for file in files:
        one = read_columns(file)
        if one is None or not len(one.generations):
            raise InputError("this trace has no sample yet", file=file, hint="Wait for the first ones.")
        runs = _runs_of(one)
        for run in runs:
            _tell_falling(file, run.generations)
        found += runs
    common = [name for name in found[0].names if all(name in run.names for run in found)]
    if not common:
        told = f"{files[0]} and {files[-1]} have no column in common"
        raise InputError(told, hint="Give runs of one analysis.")
    _tell_left_out([run.names for run in found], common)
    values = [run.table[:, [run.names.index(name) for name in common]] for run in found]
    numbers = [k for k in range(len(common)) if all(np.isfinite(table[:, k]).any() for table in values)]
    if wordy := [name for k, name in enumerate(common) if k not in numbers]:
        _tell_of_words(wordy, found, files[0], bool(numbers))
    return Traces(
        tuple(common[k] for k in numbers),
        tuple(run.generations for run in found),
        tuple(np.ascontiguousarray(table[:, numbers]) for table in values),
    )


def _runs_of(one: Columns) -> list[Columns]:
    """The runs that RevBayes has put into one file, without the column that tells them apart."""
    if RUN not in one.names:
        return [one]
    k = one.names.index(RUN)
    others = [i for i in range(len(one.names)) if i != k]
    kept = tuple(one.names[i] for i in others)
    rows = [one.table[:, k] == run for run in dict.fromkeys(one.table[:, k].tolist())]
    return [Columns(kept, one.generations[row], one.table[row][:, others], one.words) for row in rows]


def _tell_of_words(names: Sequence[str], runs: Sequence[Columns], file: str, others: bool) -> None:
    """A warning that columns without a number are left out; InputError where there are no others."""
    told = told_of_words(names, {name: word for run in reversed(runs) for name, word in run.words.items()})
    if not others:
        hint = "Name a file with numbers; histories of characters and sets are not summarised."
        raise InputError(f"no column of this trace holds numbers: {told}", file=file, hint=hint)
    warnings.warn(f"columns that hold no number are left out: {told}", InputWarning, stacklevel=4)


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
