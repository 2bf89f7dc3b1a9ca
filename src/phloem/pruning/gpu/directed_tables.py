"""What kernels of directed messages walk over: tables of tasks, branches and moves, from half-edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.cpu.directed import beside
from phloem.pruning.cpu.directed_order import message_order
from phloem.pruning.cpu.directed_regrafts import (
    BEFORE,
    BEHIND,
    GOES_ON,
    LEVEL,
    OUT,
    PRUNED,
    SIBLING,
    list_steps,
)

nexts = beside.py_func  # of many half-edges as of one


@dataclass(frozen=True, eq=False)
class Laid:
    """A topology at a seat. order: half_edges.preorder; branch (4T-6,): of every half-edge its branch's place
    in order. edges (4T-6,) and pairs (4T-6, 2): of every half-edge its number over all seats, and the entries
    of its own column (kernels/directed.py)."""

    seat: int
    back: np.ndarray
    order: np.ndarray
    branch: np.ndarray
    edges: np.ndarray
    pairs: np.ndarray

    @property
    def tips(self) -> int:
        return (len(self.back) + 6) // 4

    def tasks(self) -> np.ndarray:
        """(4T-6, 8) int32: the messages of all half-edges over their branches."""
        places = message_order(self.order, self.back)
        rows = np.zeros((len(places), 8), np.int32)
        rows[:, 0], rows[:, 1:3], rows[:, 3] = self.edges[places], self.pairs[places], self.branch[places]
        rows[:, 5] = rows[:, 6] = self.pairs[places, 0] >= 0
        return rows

    def end(self) -> np.ndarray:
        """(4,) int32: the branch where the likelihood is read off."""
        root = int(self.order[0])
        return np.array([*self.pairs[self.back[root]], self.edges[root], 0], np.int32)

    def branches(self, wanted: np.ndarray) -> np.ndarray:
        """(n, 8) int32: branches to be fitted, by their places in order."""
        h = self.order[wanted]
        rows = np.zeros((len(h), 8), np.int32)
        rows[:, :2], rows[:, 2:4], rows[:, 4] = self.pairs[h], self.pairs[self.back[h]], wanted
        rows[:, 5] = self.seat
        return rows

    def corners(self, h: np.ndarray) -> list[np.ndarray]:
        """The half-edges beside inner branches, at their own ends and at the others."""
        return [*nexts(h, self.tips), *nexts(self.back[h], self.tips)]

    def quartets(self, h: np.ndarray) -> np.ndarray:
        """(3 n, 16) int32: three resolutions of every branch of these half-edges."""
        rows = np.zeros((len(h), 3, 16), np.int32)
        for k, corner in enumerate(self.corners(h)):
            rows[:, :, 2 * k : 2 * k + 2] = self.pairs[self.back[corner]][:, None]
        rows[:, :, 8], rows[:, :, 9] = [1, 2, 3], self.seat
        return rows.reshape(-1, 16)


def laid(order: np.ndarray, back: np.ndarray, seat: int = 0) -> Laid:
    tips = (len(back) + 6) // 4
    branch = np.zeros(len(back), np.int64)
    branch[order] = branch[back[order]] = np.arange(len(order))
    edges = np.arange(len(back)) + seat * len(back)
    pairs = np.zeros((len(back), 2), np.int64)
    pairs[:tips, 0] = -1 - seat * tips - np.arange(tips)
    a, b = nexts(np.arange(tips, len(back)), tips)
    pairs[tips:, 0], pairs[tips:, 1] = edges[back[a]], edges[back[b]]
    return Laid(seat, back.copy(), order, branch, edges, pairs)


def listed_steps(pruned: np.ndarray, back: np.ndarray, radius: int) -> np.ndarray:
    """(n, 7) int64: directed_regrafts.list_steps."""
    tips, stack = (len(back) + 6) // 4, np.zeros((2 * radius + 4, 4), np.int64)
    count = list_steps(pruned, back, tips, radius, np.zeros((0, 7), np.int64), stack)
    steps = np.zeros((count, 7), np.int64)
    list_steps(pruned, back, tips, radius, steps, stack)
    return steps


def walk_tables(steps: np.ndarray, tree: Laid) -> tuple[np.ndarray, np.ndarray]:
    """(walks, 4) and (steps, 8) int32 of kernels/directed_scores.py."""
    back, rows = tree.edges[tree.back], np.zeros((len(steps), 8), np.int32)
    new = np.diff(steps[:, PRUNED], prepend=-1) != 0
    rows[:, 0], rows[:, 1] = back[steps[:, SIBLING]], back[steps[:, OUT]]
    rows[:, 2], rows[:, 3], rows[:, 4] = tree.branch[steps[:, OUT]], steps[:, LEVEL], steps[:, GOES_ON]
    rows[:, 5] = new | (np.diff(steps[:, BEHIND], prepend=-1) != 0)
    rows[:, 6], rows[:, 7] = back[steps[:, BEHIND]], tree.branch[_crossed(steps, tree.tips)]
    firsts = np.flatnonzero(new)
    walks = np.zeros((len(firsts), 4), np.int32)
    walks[:, 0], walks[:, 1] = firsts, np.append(firsts[1:], len(steps))
    walks[:, 2], walks[:, 3] = back[steps[firsts, PRUNED]], tree.seat
    return walks, rows


def _crossed(steps: np.ndarray, tips: int) -> np.ndarray:
    """The half-edge at the gap that is neither the subtree's nor the one behind."""
    first = tips + 3 * ((steps[:, PRUNED] - tips) // 3)
    return 3 * first + 3 - steps[:, PRUNED] - steps[:, BEHIND]


def look_table(rows: np.ndarray, steps: np.ndarray, tree: Laid) -> np.ndarray:
    """(n, 8 + 2 · longest way) int32 of kernels/directed_stars.py."""
    last, back, far = steps[rows], tree.back, tree.edges[tree.back]
    longest = int(last[:, LEVEL].max(initial=1))
    looks = np.zeros((len(rows), 8 + 2 * longest), np.int32)
    looks[:, 0], looks[:, 1] = last[:, LEVEL], far[last[:, BEHIND]]
    looks[:, 2], looks[:, 7] = tree.branch[_crossed(last, tree.tips)], tree.seat
    looks[:, 3:5], looks[:, 5:7] = tree.pairs[back[last[:, OUT]]], tree.pairs[back[last[:, PRUNED]]]
    some, at = np.arange(len(rows)), rows.copy()
    while len(some):
        step = steps[at]
        place = 8 + 2 * (step[:, LEVEL] - 1)
        looks[some, place], looks[some, place + 1] = far[step[:, SIBLING]], tree.branch[step[:, OUT]]
        some, at = some[step[:, BEFORE] >= 0], step[step[:, BEFORE] >= 0, BEFORE]
    return looks
