"""Numbers, trees and ages to start from that priors, constraints and calibrations do not exclude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phloem.density.calibrations import age_limits, likely_age, set_ancestors
from phloem.errors import InputError
from phloem.inference.mcmc.priors import possible_numbers
from phloem.inference.time.clades import calibrations
from phloem.inference.time.settings import Clade
from phloem.inference.time.structure import TimeModel
from phloem.tree.dated import DatedTree, dated_tree, random_dated_tree

NEARER = 0.8  # of the way up to the node above, of nodes without ages of their own
TRIES = 1000  # random trees until one obeys all constraints
TRIES_OF_AGES = 100  # such until one has ages that all densities allow


def starting_tree(model: TimeModel, rng: np.random.Generator) -> DatedTree:
    """A random tree that obeys all constraints: tips as starting_tips has them, joining as in a population of
    the typical size. A partial constraint is a clade drawn from those that it allows.
    InputError where none is found, or none in which ages are possible."""
    tips, size = starting_tips(model), model.scale.time
    held = [c for c in model.clades if c.together or c.clock]
    errors: list[InputError] = []
    for _ in range(TRIES):
        together = [_whole(model, clade, rng) for clade in held]
        if not _nested(together):
            continue
        tree = random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(size / pairs), together)
        if not any(c.apart for c in model.clades) or _allowed(model, tree):
            try:
                return with_possible_ages(tree, model.clades, model.taxa)
            except InputError as error:  # of sets that need be no clades, others may be in each other next
                errors.append(error)
                if len(errors) == TRIES_OF_AGES:
                    break
    if errors:
        raise errors[0]
    raise InputError(
        "no tree was found that has all clades which must be and none that may not",
        hint="See whether they contradict each other: "
        + ", ".join(text for c in model.clades if (text := c.constraint_text)),
    )


def starting_tips(model: TimeModel) -> np.ndarray:
    """(T,) heights in the middle of the tips' ranges, or lower, of what is below the most that clades around
    them and the beginning may be. InputError where a tip is too old for one of these."""
    low, high = model.tip_bounds.T
    heights = 0.5 * (low + high)
    for clade in model.clades:
        if clade.age is None or clade.of_tip:
            continue
        most = clade.offset + age_limits(clade.age)[1]
        own = model.members(clade)
        if (wrong := np.flatnonzero(own & (low >= most))).size:
            tip = wrong[np.argmax(low[wrong])]
            raise InputError(
                f"no age of '{clade.name}' ({clade.age_text}) is possible: it can be {most:g} at most, and "
                f"'{model.taxa[tip]}', which is in it, is {low[tip]:g} old at least",
                hint="Correct the age of the one or of the other.",
            )
        heights = np.where(own & (heights >= most), 0.5 * (low + most), heights)
    return heights


def _whole(model: TimeModel, clade: Clade, rng: np.random.Generator) -> np.ndarray:
    """(T,) bool, a clade with all that must be in it and none that may not: of a partial constraint the
    least, the largest or one between."""
    inside = model.members(clade)
    if not clade.outside:
        return inside
    largest = ~np.isin(np.array(model.taxa), clade.outside)
    between = inside | (largest & (rng.random(len(inside)) < 0.5))
    return (inside, largest, between)[rng.integers(3)]


def _nested(clades: Sequence[np.ndarray]) -> bool:
    """Whether a tree can have them all."""
    sets = [frozenset(np.flatnonzero(clade).tolist()) for clade in clades]
    return all(a <= b or b <= a or not a & b for i, a in enumerate(sets) for b in sets[:i])


def _allowed(model: TimeModel, tree: DatedTree) -> bool:
    counts, ancestors = np.zeros((2, len(tree.parent)), np.int64), np.zeros(len(model.clades), np.int64)
    known = calibrations(model)[0]
    return set_ancestors(tree.left, tree.right, tree.order, known, model.n_tips, counts, ancestors)


def starting_values(model: TimeModel, tree: DatedTree, rate: float | None) -> np.ndarray:
    """(n,) numbers, rate (if there is one) that of all clocks that have none that is held; the gap between
    the root and a beginning whose age has a density such that it is a likely one."""
    values = model.space.start()
    for name in model.rate_names:
        if rate is not None and name not in model.fixed:
            values[model.space.place(name)] = rate
    for prior in model.priors:
        here = model.space.place(prior.block)
        values[here] = possible_numbers(prior.family, values[here])
    root, oldest = tree.heights[tree.order[-1]], float(tree.heights[: model.n_tips].max())
    for clade in model.clades:
        if clade.above and (gap := likely_beginning([clade], max(oldest, root)) - root) > 0:
            values[model.space.place(clade.above)] = gap
    return values


def likely_beginning(clades: Sequence[Clade], oldest: float) -> float:
    """A likely age of the beginning of the process, or one that is possible and above the oldest of what must
    be younger; infinite where it has no density."""
    found = [_likely_above(clade, oldest) for clade in clades if clade.above and clade.age is not None]
    return min(found, default=np.inf)


def _likely_above(clade: Clade, oldest: float) -> float:
    assert clade.age is not None
    likely, most = clade.offset + likely_age(clade.age), clade.offset + age_limits(clade.age)[1]
    if likely > oldest or most <= oldest:
        return likely
    return 0.5 * (oldest + most) if most < np.inf else 1.3 * oldest


def with_possible_ages(tree: DatedTree, clades: Sequence[Clade], taxa: Sequence[str]) -> DatedTree:
    """The tree as it is where the ages of all calibrated clades have densities above 0. Else with other ages:
    calibrated ancestors have likely ones, or others that fit between those above and below; other nodes lie
    between the calibrated or tips below and the node above, the root below a beginning that has a density.
    Tips stay. InputError where no ages are possible."""
    known = [clade for clade in clades if clade.age is not None and not clade.above]
    nodes = {clade: ancestor_of(tree, clade, taxa) for clade in known}
    least = [clade.offset + age_limits(clade.age)[0] for clade in known if clade.age is not None]
    begins = likely_beginning(clades, max([float(tree.heights[: len(taxa)].max()), *least]))
    possible = all(clade.log_density(tree.heights[node]) > -np.inf for clade, node in nodes.items())
    if possible and tree.heights[tree.order[-1]] < begins:
        return tree
    wanted, floor = _calibrated_ages(tree, nodes, begins)
    heights, n_tips = tree.heights.copy(), len(taxa)
    root = tree.order[-1]
    for x in tree.order[::-1]:
        if x < n_tips or x in wanted:
            heights[x] = floor[x]
        elif x == root:
            heights[x] = max(tree.heights[x], 1.3 * floor[x])
            if floor[x] < begins <= heights[x]:
                heights[x] = floor[x] + NEARER * (begins - floor[x])
        else:
            heights[x] = floor[x] + NEARER * (heights[tree.parent[x]] - floor[x])
    return dated_tree(tree.parent, heights)


def _calibrated_ages(
    tree: DatedTree, nodes: Mapping[Clade, int], begins: float
) -> tuple[dict[int, float], np.ndarray]:
    """Ages of the calibrated nodes: likely ones, or between the oldest node below and the least age that one
    above may have; and (N,) the oldest of these at or below every node, or tip. InputError where there is
    nothing between."""
    least, most = np.zeros(len(tree.heights)), np.full(len(tree.heights), begins)
    wanted: dict[int, float] = {}
    for clade, node in nodes.items():
        assert clade.age is not None
        low, high = age_limits(clade.age)
        least[node] = max(least[node], clade.offset + low)
        most[node] = min(most[node], clade.offset + high)
        wanted[node] = clade.offset + likely_age(clade.age)
    for x in tree.order[::-1]:
        if tree.parent[x] >= 0:
            most[x] = min(most[x], most[tree.parent[x]])
    floor = tree.heights.copy()
    for x in tree.order:
        if tree.left[x] < 0:
            continue
        floor[x] = max(floor[tree.left[x]], floor[tree.right[x]])
        if x in wanted:
            low = max(floor[x], least[x])
            high = most[x] if most[x] < np.inf else 1.1 * max(low, 1e-6)
            if low > high or floor[x] >= most[x]:
                raise _impossible([clade for clade, node in nodes.items() if node == x], floor[x], most[x])
            if not (floor[x] < wanted[x] and low <= wanted[x] < most[x]):
                wanted[x] = low + 0.5 * (high - low)
            floor[x] = wanted[x]
    return wanted, floor


def _impossible(clades: Sequence[Clade], below: float, above: float) -> InputError:
    told = " and ".join(f"'{clade.name}' ({clade.age_text})" for clade in clades)
    younger = f", and what holds it can be {above:g} at most" if above < np.inf else ""
    return InputError(
        f"no age of {told} is possible: what is in it is {below:g} old{younger}",
        hint="See its age, those of its tips and of the clades in it and around it.",
    )


def ancestor_of(tree: DatedTree, clade: Clade, taxa: Sequence[str]) -> int:
    """The node of the most recent common ancestor of a clade's taxa, or of a stem the one above."""
    missing = np.zeros(len(tree.heights), np.int64)
    missing[: len(taxa)] = np.isin(np.array(taxa), clade.taxa)
    for x in tree.order:
        if missing[x] == len(clade.taxa):
            return int(tree.parent[x] if clade.stem and tree.parent[x] >= 0 else x)
        if tree.parent[x] >= 0:
            missing[tree.parent[x]] += missing[x]
    raise AssertionError("taxa of a clade are tips")
