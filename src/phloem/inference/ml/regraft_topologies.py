"""Which topologies regrafts lead to, as numbers, without doing them.

A regraft changes only the branches between where a subtree is and where it goes: each has the subtree on its
other side then.
"""

from __future__ import annotations

import numpy as np

from phloem.inference.ml.surroundings import stirred
from phloem.pruning.cpu.directed_regrafts import BEFORE, BEHIND, OUT, PRUNED
from phloem.tree.half_edges import nexts, preorder


def topology_number(back: np.ndarray) -> int:
    """Less than 2⁶⁴; trees of one topology share it, and others hardly ever do: a sum over branches of a
    number of the tips on either side. back: half_edges.HalfEdges."""
    beyond, ends = _beyond(back), np.flatnonzero(back > np.arange(len(back)))
    return int(_either_side(beyond[ends], beyond[:1] + beyond[back[:1]]).sum())


def regraft_numbers(back: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """(n,) uint64, topology_number after each regraft alone. steps: directed_messages.Regrafts.steps, all of
    them: walks lead through others' rows."""
    beyond = _beyond(back)
    everything = beyond[:1] + beyond[back[:1]]
    a, b = nexts(steps[:, PRUNED], (len(back) + 6) // 4)
    joined = np.where(steps[:, BEHIND] == b, a, b)  # its branch and the one behind become one
    nearer = _either_side(beyond[steps[:, OUT]] + beyond[steps[:, PRUNED]], everything)
    passed = nearer - _either_side(beyond[steps[:, OUT]], everything)
    numbers = nearer - _either_side(beyond[joined], everything) + np.uint64(topology_number(back))
    rows, at = np.arange(len(steps)), steps[:, BEFORE]
    while len(rows):
        rows, at = rows[at >= 0], at[at >= 0]
        numbers[rows] += passed[at]  # the subtree is the same all along a walk
        at = steps[at, BEFORE]
    return numbers


def _either_side(side: np.ndarray, everything: np.ndarray) -> np.ndarray:
    """The same number of both sides of a split. Sums run over at 2⁶⁴."""
    return stirred(side) + stirred(everything - side)


def _beyond(back: np.ndarray) -> np.ndarray:
    """(4T-6,) uint64, of every half-edge the sum of random numbers of the tips on the other side."""
    n, order, other = (len(back) + 6) // 4, preorder(back), back.tolist()
    behind = np.random.default_rng(n).integers(0, 1 << 63, n).tolist() + [0] * (3 * n - 6)
    whole = sum(behind)
    for h in order[::-1].tolist():
        if h >= n:
            a, b = nexts(h, n)
            behind[h] = behind[other[a]] + behind[other[b]]
    beyond = np.zeros(len(back), np.uint64)
    beyond[back[order]] = np.array([behind[h] % (1 << 64) for h in order.tolist()], np.uint64)
    beyond[order] = np.array([(whole - behind[h]) % (1 << 64) for h in order.tolist()], np.uint64)
    return beyond
