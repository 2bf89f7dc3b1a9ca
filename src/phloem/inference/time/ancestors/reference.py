"""The same in NumPy, as it is written: what the compiled code is held against."""

from __future__ import annotations

import numpy as np

from phloem.errors import NumericalError
from phloem.inference.time.ancestors.sequences import Memory, unpacked
from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices

LARGEST_DIFFERENCE = 1e-9  # relative, of two ways to add up the same numbers


def log_joint(
    masks: np.ndarray, category: np.ndarray, parent: np.ndarray, lengths: np.ndarray, model: SiteModel
) -> float:
    """Log probability of the tips' sequences, those of all ancestors and the categories of sites together.

    masks: (N, S) possible states of tips, of ancestors one each, as bits; category: (S,); parent: (N,), root
    last; lengths: (N,) in substitutions."""
    sets = (np.arange(16)[:, None] >> np.arange(4)) & 1
    states = np.array([0, 0, 1, 1, 2, 2, 2, 2, *[3] * 8], np.uint8)[
        masks
    ]  # of an ancestor's mask the only one
    total = np.log(model.weights[category]).sum()
    total += np.log(model.processes[0].root_frequencies[states[-1]]).sum()
    p = transition_matrices(lengths[:-1], model) @ sets.T  # (N - 1, C, 4, 16)
    for x in range(len(parent) - 1):
        kind = (category.astype(np.int64) * 4 + states[parent[x]]) * 16 + masks[x]
        n = np.bincount(kind, minlength=p[x].size)
        total += (n[n > 0] * np.log(p[x].reshape(-1)[n > 0])).sum()
    return float(total)


def check_memory(
    memory: Memory, parent: np.ndarray, lengths: np.ndarray, model: SiteModel, value: float
) -> None:
    """NumericalError where a chain's log-likelihood, which it carries along, is not that of its sequences."""
    masks = unpacked(memory.words, len(memory.category))
    expected = log_joint(masks, memory.category, parent, lengths, model)
    if not abs(value - expected) <= LARGEST_DIFFERENCE * max(abs(expected), 1.0):
        raise NumericalError(
            "this is an error in phloem, and the run was stopped: the log-likelihood with ancestors is not "
            f"that of the reference ({value!r}, {expected!r}). Samples up to the last checkpoint are kept."
        )
