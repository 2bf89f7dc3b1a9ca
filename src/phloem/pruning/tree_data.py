"""What the trees of a device are over: a problem each, of one layout, and one table of their state sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.pruning.interface import ColumnClasses, Problem


@dataclass(frozen=True)
class TreeData:
    """What the trees of a device are over: one problem a tree, of one layout but over patterns of their own
    (a part of an alignment each), or the same for all.

    state_sets: (codes, S) of all problems; first_code: of each tree, where its own begin.
    """

    problems: tuple[Problem, ...]
    state_sets: np.ndarray
    first_code: tuple[int, ...]

    @staticmethod
    def of(problems: Sequence[Problem]) -> TreeData:
        """ValueError where problems differ in what kernels are compiled and launched for (layout_key)."""
        if len({layout_key(problem) for problem in set_of(problems)}) > 1:
            raise ValueError("trees of one launch want problems of one layout")
        known: dict[bytes, int] = {}
        sets: list[np.ndarray] = []
        at: dict[int, int] = {}
        for problem in set_of(problems):
            key = problem.state_sets.tobytes()
            if key not in known:
                known[key] = sum(map(len, sets))
                sets.append(problem.state_sets)
            at[id(problem)] = known[key]
        return TreeData(tuple(problems), np.concatenate(sets), tuple(at[id(p)] for p in problems))

    def classes(self, tree: int, classes: ColumnClasses) -> ColumnClasses:
        """Columns of a tree, its tips' codes counted in state_sets."""
        if self.first_code[tree] == 0:
            return classes
        left, end = classes.left_class.copy(), classes.offset[classes.n_tips]
        left[:end] += self.first_code[tree]
        return replace(classes, left_class=left)

    @property
    def are_ascertained(self) -> bool:
        return any(problem.ascertained.any() for problem in set_of(self.problems))


def set_of(problems: Sequence[Problem]) -> list[Problem]:
    """The different ones, in order."""
    return list({id(problem): problem for problem in problems}.values())


def layout_key(problem: Problem) -> tuple:
    """What is alike in problems whose trees share launches."""
    n_states = problem.state_sets.shape[1]
    return len(problem.tip_codes), n_states, problem.n_categories, problem.precision, problem.repeats
