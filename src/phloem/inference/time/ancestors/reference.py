"""The same in NumPy, as it is written: what the compiled code is held against."""

from __future__ import annotations

import numpy as np

from phloem.inference.mcmc.guard import differs, stopped
from phloem.inference.time.ancestors.larger.branches import FLOOR
from phloem.inference.time.ancestors.larger.memory import UNKNOWN, CodedMemory
from phloem.inference.time.ancestors.sequences import Memory, unpacked
from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices

LARGEST_DIFFERENCE = 1e-9  # relative, of two ways to add up the same numbers
ROUNDING = 1e-14  # of an entry of P: what is said of rare changes on short branches is no more exact

_OF_NUCLEOTIDES = (np.arange(16)[:, None] >> np.arange(4)) & 1 == 1


def log_joint(
    codes: np.ndarray,
    sets: np.ndarray,
    category: np.ndarray,
    tree: tuple[np.ndarray, np.ndarray],
    model: SiteModel,
) -> tuple[float, float]:
    """Log probability of the tips' sequences, those of all ancestors and the categories of sites together;
    and how exact that can be.

    codes: (N, S) of tips, of ancestors such as have one state; sets: (n, A) bool, states of codes; category:
    (S,); tree: parent (N,), root last, and lengths (N,) in substitutions."""
    parent, lengths = tree
    states = sets.argmax(axis=1)[codes]
    total, slack = np.log(model.weights[category]).sum(), 0.0
    total += np.log(model.processes[0].root_frequencies[states[-1]]).sum()
    for x in range(len(parent) - 1):
        p = np.maximum(transition_matrices(lengths[x : x + 1], model)[0], FLOOR) @ sets.T  # (C, A, n)
        kind = np.ravel_multi_index((category, states[parent[x]], codes[x]), p.shape)
        n = np.bincount(kind, minlength=p.size)
        there, p = n > 0, p.reshape(-1)
        total += (n[there] * np.log(p[there])).sum()
        slack += ROUNDING * (n[there] / p[there]).sum()
    return float(total), float(slack)


def codes_and_sets(memory: Memory | CodedMemory) -> tuple[np.ndarray, np.ndarray]:
    """Of a chain's memory, as log_joint has them."""
    n_sites = len(memory.category)
    if isinstance(memory, Memory):
        return unpacked(memory.words, n_sites), _OF_NUCLEOTIDES
    sets = np.ones((UNKNOWN + 1, memory.sets.shape[1]), bool)
    sets[: memory.sets.shape[1]] = np.eye(memory.sets.shape[1], dtype=bool)
    sets[memory.sets.shape[1] : memory.sets.shape[1] + len(memory.sets)] = memory.sets
    return memory.codes[:, :n_sites], sets


def check_memory(
    memory: Memory | CodedMemory, tree: tuple[np.ndarray, np.ndarray], model: SiteModel, value: float
) -> None:
    """NumericalError where a chain's log-likelihood, which it carries along, is not that of its sequences on
    a tree: parent (N,) and lengths (N,)."""
    expected, slack = log_joint(*codes_and_sets(memory), memory.category, tree, model)
    if differs(value, expected, LARGEST_DIFFERENCE, slack):
        what = "the log-likelihood with ancestors is not that of the reference"
        raise stopped(f"{what} ({value!r}, {expected!r})")
