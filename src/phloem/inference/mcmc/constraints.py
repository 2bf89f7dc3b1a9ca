"""Splits that every tree must have, or that none may have: their keys, and random trees that obey.

The prior is then uniform over the topologies that obey all of them: a proposal that does not has density 0,
so every move stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.settings import Constraints
from phloem.pruning.cpu.column_classes import tip_keys

Splits = Sequence[Sequence[int]]  # numbers of the tips on one side
TRIES = 1000  # random trees until one obeys all


def sides_without_tip_0(constraints: Splits, n_tips: int) -> list[frozenset[int]]:
    """Of every split the side that lies below a node of a tree rooted beside tip 0, small ones first.

    Splits that every tree has are left out. Errors: InputError for two that no tree has both of.
    """
    found = set()
    for tips in constraints:
        side = frozenset(tips) if 0 not in tips else frozenset(range(n_tips)) - frozenset(tips)
        if 1 < len(side) < n_tips - 1:
            found.add(side)
    sides = sorted(found, key=lambda side: (len(side), sorted(side)))
    for i, small in enumerate(sides):
        for large in sides[i + 1 :]:
            if small & large and not small <= large:
                raise InputError(
                    "two constraints contradict each other: no tree has both splits",
                    hint="Make one contain the other, or have no taxon in common.",
                )
    return sides


def split_rules(asked: Constraints, n_tips: int) -> np.ndarray:
    """(R, T + 3) uint64, what compiled code tests a tree for: weights of the tips, and two sums of them, one
    of which must be found below some node, or, where the last column is 1, may not. Errors: InputError for
    what no tree can obey."""
    keys, rules = tip_keys(n_tips), list[np.ndarray]()

    def add(weights: np.ndarray, one: int, other: int, forbidden: bool) -> None:
        rules.append(np.concatenate([weights, np.array([one, other, forbidden], np.uint64)]))

    forbidden = [side for tips in asked.negative for side in sides_without_tip_0([tips], n_tips)]
    if len(forbidden) < len(asked.negative):
        raise InputError(
            "a negative constraint is of a split that every tree has", hint="Name at least two taxa of four."
        )
    for sides, none in ((sides_without_tip_0(asked.hard, n_tips), False), (forbidden, True)):
        for side in sides:
            key = int(keys[sorted(side)].sum(dtype=np.uint64))
            add(keys, key, key, none)
    for one, other in asked.partial:
        if set(one) & set(other):
            raise InputError("a partial constraint has a taxon on both sides", hint="Name it once.")
        if len(one) > 1 and len(other) > 1:  # every tree separates one tip from others
            weights = np.zeros(n_tips, np.uint64)
            weights[list(one)], weights[list(other)] = _ONE_SIDE, 1
            add(weights, len(one) * _ONE_SIDE, len(other), False)
    return np.array(rules, np.uint64).reshape(-1, n_tips + 3)


_ONE_SIDE = 1 << 32  # what a tip of the first set counts, one of the second counts 1


def has_splits(rules: np.ndarray, left: np.ndarray, right: np.ndarray, order: np.ndarray) -> bool:
    """Whether a tree (N,) obeys."""
    n_tips = len(left) // 2 + 1
    for *weights, one, other, forbidden in rules.tolist():
        sums = [*weights, *(0 for _ in range(n_tips - 1))]
        for x in order:
            if x >= n_tips:
                sums[x] = (sums[left[x]] + sums[right[x]]) % 2**64
        if bool({one, other} & set(sums[n_tips:])) == bool(forbidden):
            return False
    return True


def allowed_tree(
    n_tips: int, rng: np.random.Generator, asked: Constraints
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """constrained_tree of what is asked for; every partial constraint as a split of all tips, at random.
    InputError where none is found."""
    rules = split_rules(asked, n_tips)
    for _ in range(TRIES):
        splits = [*asked.hard, *(_whole(one, other, n_tips, rng) for one, other in asked.partial)]
        try:
            parent, left, right = constrained_tree(n_tips, rng, splits)
        except InputError:
            if not asked.partial:
                raise
            continue
        if has_splits(rules, left, right, np.arange(len(parent))):
            return parent, left, right
    raise InputError(
        "no tree was found that obeys all constraints", hint="See whether they contradict each other."
    )


def _whole(one: Sequence[int], other: Sequence[int], n_tips: int, rng: np.random.Generator) -> list[int]:
    """A split that separates two sets of tips: one of them alone, or every other tip on either side."""
    free, kind = set(range(n_tips)) - set(one) - set(other), rng.integers(3)
    if kind < 2:
        return sorted(one if kind == 0 else other)
    return sorted({*one, *(tip for tip in sorted(free) if rng.random() < 0.5)})


def constrained_tree(
    n_tips: int, rng: np.random.Generator, constraints: Splits
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parent, left and right (N,) of a random tree that has the splits: pairs inside of each, at random."""
    root = 2 * n_tips - 2
    parent, left, right = (np.full(root + 1, -1, np.int64) for _ in range(3))
    tops: dict[int, frozenset[int]] = {tip: frozenset([tip]) for tip in range(1, n_tips)}
    node = n_tips
    for side in [*sides_without_tip_0(constraints, n_tips), frozenset(range(1, n_tips))]:
        inside = [top for top, tips in tops.items() if tips <= side]
        while len(inside) > 1:
            a, b = (inside.pop(int(rng.integers(len(inside)))) for _ in range(2))
            left[node], right[node], parent[a], parent[b] = a, b, node, node
            tops[node] = tops.pop(a) | tops.pop(b)
            inside.append(node)
            node += 1
    left[root], right[root] = node - 1, 0
    parent[[0, node - 1]] = root
    return parent, left, right
