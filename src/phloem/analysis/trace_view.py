"""Traces of a sampler that still runs, read from the files that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.analysis.json_record import plain
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
    names: tuple[str, ...] = ()
    generations: list[np.ndarray] = []
    values: list[np.ndarray] = []
    while (path := _trace_file(prefix, len(values) + 1)) is not None:
        lines = [line for line in path.read_text(encoding="utf-8").split("\n")[:-1] if line[:1] not in "[#"]
        if not lines:
            break
        names = tuple(lines[0].split("\t"))
        rows = [line.split("\t") for line in lines[1:]]
        table = np.array([row for row in rows if len(row) == len(names)], np.float64).reshape(-1, len(names))
        generations.append(table[:, 0])
        values.append(table[:, 1:])
    if not values:
        return None
    return Traces(names[1:], tuple(generations), tuple(values))


def _trace_file(prefix: str, number: int) -> Path | None:
    """That of `phloem mcmc` or of `phloem time`."""
    both = (Path(f"{prefix}.run{number}.{ending}") for ending in ("p", "log"))
    return next((path for path in both if path.exists()), None)


def thinned_trace(traces: Traces, column: int, most: int) -> list[dict[str, list[float]]]:
    """For every run generations and values of a column, at most so many, evenly chosen."""
    found = []
    for generations, values in zip(traces.generations, traces.values):
        chosen = _chosen(len(generations), most)
        found.append({"x": generations[chosen].tolist(), "y": values[chosen, column].tolist()})
    return found


def running_means(traces: Traces, column: int, burn_in: float, most: int) -> list[dict[str, list[float]]]:
    """For every run the mean of a column over all samples since its burn-in, at most so many points."""
    found = []
    for generations, values in zip(traces.generations, traces.values):
        first = int(burn_in * len(generations))
        means = np.cumsum(values[first:, column]) / np.arange(1, len(values) - first + 1)
        chosen = _chosen(len(means), most)
        found.append({"x": generations[first:][chosen].tolist(), "y": means[chosen].tolist()})
    return found


def _chosen(n: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).round().astype(np.int64))


def running_summary(traces: Traces, burn_in: float) -> list[dict[str, object]]:
    """A row for every number: mean, sd, 95% HPD, ESS and R-hat without the first share of the samples; no
    rows while there are too few. NaN becomes None."""
    n = min(len(values) for values in traces.values)
    first = int(burn_in * n)
    if n - first < LEAST_DRAWS:
        return []
    p = trace_summary(traces.names, np.stack([values[first:n] for values in traces.values]))
    columns = ("mean", "sd", "hpd_low", "hpd_high", "ess", "r_hat")
    return [
        {"name": name} | {column: plain(getattr(p, column)[i]) for column in columns}
        for i, name in enumerate(p.names)
    ]
