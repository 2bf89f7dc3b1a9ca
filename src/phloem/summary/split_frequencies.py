"""Agreement of runs: the average standard deviation of split frequencies (ASDSF)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.summary.split_table import SplitTable, split_table
from phloem.tree.sample import TreeSample


@dataclass(frozen=True)
class SplitFrequencyDeviation:
    """average (the ASDSF) and largest standard deviation of n_splits split frequencies across n_runs runs."""

    average: float
    largest: float
    n_splits: int
    n_runs: int


def split_frequency_deviation(
    runs: SplitTable | Sequence[TreeSample], minimum: float = 0.1
) -> SplitFrequencyDeviation:
    """Standard deviations of split frequencies between runs, as MrBayes reports them.

    Counts informative splits whose frequency is at least minimum in at least one run; the deviation has the
    denominator n_runs - 1. No such split: the runs agree and both numbers are 0.
    Source: Lakner et al. 2008, Syst. Biol. 57:86; MrBayes 3.2 (diagnfreq, minpartfreq).
    """
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    if table.n_runs < 2:
        raise InputError("split frequencies need two runs to compare", hint="Run the analysis with --runs 2.")
    counted = table.frequency[:, ~table.trivial & (table.frequency.max(axis=0) >= minimum - 1e-12)]
    deviation = counted.std(axis=0, ddof=1) if counted.shape[1] else np.zeros(1)
    return SplitFrequencyDeviation(
        float(deviation.mean()), float(deviation.max()), counted.shape[1], table.n_runs
    )
