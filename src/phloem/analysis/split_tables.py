"""Splits of sampled trees as MrBayes' sumt tabulates them: PREFIX.parts, PREFIX.tstat and PREFIX.vstat.

Columns, their order and their form are MrBayes 3.2.7a's, so that whoever reads its files reads these. Splits
that some run has in at least a tenth of its trees have numbers: those of single taxa first, in the order of
the taxa, then the others by falling frequency.
"""

from __future__ import annotations

import numpy as np

from phloem.io.output_file import write_file
from phloem.summary.splits import SplitTable
from phloem.summary.trace import hpd_interval
from phloem.summary.trees import grouped
from phloem.tree.splits import split_members

SPLIT_TABLES = {
    "parts": "splits by number: dots and stars",
    "tstat": "frequencies of splits, and how runs agree on them",
    "vstat": "branch lengths by split",
}
"""Ending of the file → what it holds."""

LEAST_FREQUENCY = 0.1  # in some run, as MrBayes' minpartfreq


def write_split_tables(prefix: str, table: SplitTable, head: str = "", kept: str | None = None) -> None:
    """The three files of a sample of trees. head: a first line, such as MrBayes' [ID: …]. kept: what is left
    of former files where one cannot be written, as of write_file."""
    chosen = numbered_splits(table)
    first = f"{head}\n" if head else ""
    for ending, text in zip(SPLIT_TABLES, (parts_text, tstat_text, vstat_text)):
        write_file(f"{prefix}.{ending}", first + text(table, chosen), kept)


def numbered_splits(table: SplitTable) -> np.ndarray:
    """Which splits of the table have the numbers 1, 2, …: those of tip 0, 1, …, then the informative ones."""
    tips = table.which[0, : table.sample.n_tips]
    common = table.frequency.max(axis=0) >= LEAST_FREQUENCY - 1e-12
    others = np.flatnonzero(~table.trivial & common)
    order = np.lexsort([others, -table.sizes[others], -table.probability[others]])
    return np.concatenate([tips, others[order]])


def parts_text(table: SplitTable, chosen: np.ndarray) -> str:
    """Number and taxa of every split: * on its side, without the first taxon where trees are unrooted."""
    members = split_members(table.splits[chosen], table.sample.n_tips)
    rows = ["".join("*" if x else "." for x in row) for row in members.tolist()]
    return "ID\tPartition\n" + "".join(f"{i}\t{row}\n" for i, row in enumerate(rows, 1))


def tstat_text(table: SplitTable, chosen: np.ndarray) -> str:
    """How often informative splits were sampled, and standard deviation and range between runs."""
    several = "\tStddev(s)\tMin(s)\tMax(s)\tNruns" if table.n_runs > 1 else ""
    lines = [f"ID\t#obs\tProbability(=s){several}"]
    for number, split in enumerate(chosen.tolist(), 1):
        if table.trivial[split]:
            continue
        p, of_runs = table.probability[split], table.frequency[:, split]
        numbers = [p, of_runs.std(ddof=1), of_runs.min(), of_runs.max()] if several else [p]
        runs = [str(table.n_runs)] if several else []
        count = str(round(p * table.counted.sum()))
        lines.append("\t".join([f"{number}\t", count, *(f"{x:.6e}" for x in numbers), *runs]))
    return "\n".join(lines) + "\n"


def vstat_text(table: SplitTable, chosen: np.ndarray) -> str:
    """Mean, variance, 95% HPD, median of branch lengths over the trees that have the split, and how far runs
    differ."""
    several = "\tPSRF\tNruns" if table.n_runs > 1 else ""
    lines = [f"Parameter\tMean\tVariance\tCredInt_Lower\tCredInt_Upper\tMedian{several}"]
    number = np.full(table.n_splits, -1)
    number[chosen] = np.arange(len(chosen))
    group = np.where(table.which >= 0, number[table.which], -1).ravel()
    lengths = grouped(table.sample.lengths.ravel(), group, len(chosen))
    runs = grouped(np.repeat(table.run, table.which.shape[1]), group, len(chosen))
    for i, (own, run) in enumerate(zip(lengths, runs), 1):
        variance = own.var(ddof=1) if len(own) > 1 else np.nan
        numbers = [own.mean(), variance, *hpd_interval(own), np.median(own)]
        more = [_number(scale_reduction(own, run, table.n_runs)), str(table.n_runs)] if several else []
        lines.append("\t".join([f"length[{i}]", *map(_number, numbers), *more]))
    return "\n".join(lines) + "\n"


def scale_reduction(values: np.ndarray, run: np.ndarray, n_runs: int) -> float:
    """PSRF = √[((n−1)/n W + B)/W], n the mean number of values a run, W the variance inside runs, B that of
    their means (Gelman and Rubin 1992, Stat. Sci. 7:457); NaN where a run has fewer than two values."""
    counts = np.bincount(run, minlength=n_runs)
    if counts.min() < 2:
        return np.nan
    means = np.bincount(run, values, n_runs) / counts
    inside = float(((values - means[run]) ** 2).sum()) / (len(values) - n_runs)
    n = len(values) / n_runs
    return float(np.sqrt((n - 1) / n + means.var(ddof=1) / inside)) if inside > 0 else np.nan


def _number(value: float) -> str:
    return "NA" if np.isnan(value) else f"{value:.6e}"
