"""Moves and chains that never accept anything: a sign of a stuck analysis, or of a broken one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.inference.mcmc.run import Run

ENOUGH_TRIES = 2000


def frozen_warnings(runs: Sequence[Run]) -> list[str]:
    """One sentence for each move that the cold chain tried often and never saw accepted, each rank of the
    heat ladder where nothing is, and each run whose cold chain never swapped."""
    warnings = []
    for run in runs:
        tried, accepted = run.state.tried, run.state.accepted
        label = f"run {run.number + 1}"
        for m in np.flatnonzero((tried[0] >= ENOUGH_TRIES) & (accepted[0] == 0)):
            warnings.append(
                f"{label}: move {run.moves[m].name} was tried {tried[0, m]:,} times and never accepted"
            )
        for rank in np.flatnonzero((tried.sum(axis=1) >= ENOUGH_TRIES) & (accepted.sum(axis=1) == 0)):
            warnings.append(f"{label}: the chain of heat rank {rank} accepted nothing")
        swaps = run.state.swaps_tried[0].sum(), run.state.swaps_accepted[0].sum()
        if swaps[0] >= ENOUGH_TRIES and swaps[1] == 0:
            warnings.append(f"{label}: the cold chain never swapped; lower the heating")
    return warnings
