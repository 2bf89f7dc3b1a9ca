"""What a run has drawn: the columns of its trace, and one draw of a state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phloem.density import clocks
from phloem.density.traits import Lineage, Trait
from phloem.density.tree_priors.birth_death_skyline import REPRODUCTION
from phloem.density.tree_priors.epochs import places_of_first
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.working import LN_WORKING
from phloem.inference.time.calibrated_start import ancestor_of
from phloem.inference.time.records import TimeState
from phloem.inference.time.structure import TimeModel, of_clocks
from phloem.inference.time.traits import TRAIT_LIKELIHOOD, drawn_history
from phloem.summary.through_time import ThroughTime, ages_of, grid_sizes, skyline_sizes, through_time
from phloem.tree.dated import DatedTree
from phloem.tree.tree import lengths_of_heights

# rows of Samples.sets: heights; rates of branches by the first clock, then the others; and, only with a
# trait, the state of every node in a history drawn given the tips
HEIGHTS, RATES, STATES = 0, 1, -1


ANCESTORS = "sampled_ancestors"
"""How many samples are ancestors of others, in the trace."""


def ancestral(lengths: np.ndarray) -> np.ndarray:
    """Which tips are, by what their branches last."""
    return lengths == 0.0


def lengths_by_clock(model: TimeModel, parent: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """(K, 2T - 1) branch lengths of a draw, in expected changes by every clock. parent: (2T - 1,); sets: rows
    of Samples.sets."""
    heights, rates = sets[HEIGHTS], sets[RATES : RATES + model.n_clocks]
    lengths = np.zeros((model.n_clocks, len(parent)))
    lengths[:, :-1] = (heights[parent[:-1]] - heights[:-1]) * rates[:, :-1]
    return lengths


@dataclass(frozen=True, eq=False)
class Columns:
    """names: of the columns after LnL and LnPr. trait: as compiled code has it. has_working: whether the log
    working density is the last one."""

    names: tuple[str, ...]
    model: TimeModel
    trait: Trait | None = None
    has_working: bool = False

    @property
    def n_sets(self) -> int:
        """Rows of Samples.sets."""
        return 1 + self.model.n_clocks + (self.trait is not None)


def trace_columns(model: TimeModel, has_working: bool = False) -> Columns:
    """The tree's density, its root and length, ages of clades, rates, every free number, group sizes; and,
    where there is a working distribution, its log density."""
    names = ["tree_prior", "root_height", "tree_length"] + [ANCESTORS] * model.samples_ancestors
    if np.isfinite(model.youngest):
        names.insert(2, "root_date")
    names += [f"age({clade.name})" for clade in model.clades if not clade.of_tip]
    names += [f"date({model.taxa[x]})" for x in _moving(model)]
    if model.clock != clocks.STRICT:
        of_rates = ["mean_rate", "rate_cv"] + ["rate_changes"] * (model.clock == clocks.RANDOM)
        names += [of_clocks(own, (clock,))[0] for clock in model.clock_names for own in of_rates]
    names += model.printed_names
    names += [f"group_size_{k + 1}" for k in range(model.parameters.n_groups)]
    if model.trait is None:
        names += [LN_WORKING] * has_working
        return Columns(tuple(names), model, None, has_working)
    names += model.trait.columns
    return Columns(tuple(names), model, model.trait.record(model.space, model.trait_reference))


def _moving(model: TimeModel) -> np.ndarray:
    return np.flatnonzero(model.tip_bounds[:, 0] < model.tip_bounds[:, 1])


def draw(state: TimeState, columns: Columns, power: float = 1.0) -> Samples:
    """The present state: trees rooted, lengths in time, sets their heights and branch rates. power: of the
    trait's likelihood, which is in the prior that the state carries along."""
    model, s = columns.model, int(state.slot[0])
    tree = DatedTree(state.parent[s], state.left[s], state.right[s], state.heights[s], state.order[s])
    parent, heights, own = tree.sorted()
    lengths = lengths_of_heights(parent, heights)
    substitutions = state.lengths[s][:, own]
    rates = np.divide(substitutions, lengths, out=np.zeros_like(substitutions), where=lengths > 0)
    total = lengths.sum()
    numbers = [state.log_likelihood[0], state.log_prior[0], state.log_tree[0], heights[-1]]
    if np.isfinite(model.youngest):
        numbers.append(model.youngest - heights[-1])
    numbers.append(total)
    if model.samples_ancestors:
        numbers.append(ancestral(lengths[: model.n_tips]).sum())
    of_several = [clade for clade in model.clades if not clade.of_tip]
    for clade in of_several:
        age = tree.heights[ancestor_of(tree, clade, model.taxa)]
        numbers.append(age + model.above(clade, state.values[s]))
    numbers += [model.youngest - heights[x] for x in _moving(model)]
    for k, of_branches in enumerate(rates[:, lengths > 0] if model.clock != clocks.STRICT else ()):
        mean = of_branches.mean()  # 0 without data, where gamma rates are below all numbers
        numbers += [substitutions[k].sum() / total, of_branches.std() / mean if mean > 0.0 else 0.0]
        if model.clock == clocks.RANDOM:
            numbers += [np.count_nonzero(state.deviations[s, k, :-1])]
    numbers += [*model.printed(state.values[s]), *state.groups[s]]
    sets = [heights, *rates]
    if model.trait is not None and columns.trait is not None:
        lineage = Lineage(tree.parent, tree.left, tree.right, tree.order, tree.heights)
        drawn = drawn_history(model.trait, columns.trait, lineage, state.values[s], state.rng)
        numbers += drawn.columns.tolist()
        numbers[1] -= power * drawn.columns[0]
        sets.append(drawn.states[own])
    if columns.has_working:
        numbers.append(state.log_working[0])
    return Samples(
        state.generation.copy(),
        np.array(numbers)[None],
        parent.astype(np.int32)[None],
        lengths[None],
        np.stack(sets)[None],
    )


def of_all_data(columns: Columns, samples: Samples) -> Samples:
    """Samples whose log-likelihoods are those of the alignment and of the trait, if there is one."""
    if columns.trait is None:
        return samples
    numbers = samples.numbers.copy()
    numbers[:, 0] += numbers[:, 2 + columns.names.index(TRAIT_LIKELIHOOD)]
    return replace(samples, numbers=numbers)


def dates_along(model: TimeModel, draws: list[Samples], first: int) -> tuple[np.ndarray | None, float | None]:
    """(D, 2T - 1) dates of the nodes of all draws from a sample on, where their youngest tip is not of one
    date, so that heights above it do not say them; and the median date of the youngest tip. None of ages."""
    if not np.isfinite(model.youngest):
        return None, None
    dates = model.youngest - np.concatenate([samples.sets[first:, HEIGHTS] for samples in draws])
    latest = dates[:, : model.n_tips].max(axis=1)
    return dates if np.ptp(latest) > 0 else None, float(np.median(latest))


def past(columns: Columns, draws: list[Samples], first: int, n: int = 200) -> ThroughTime:
    """Lineages, and population sizes or reproductive numbers where the tree prior has them, of all runs from
    a sample on."""
    model, names = columns.model, ("LnL", "LnPr", *columns.names)
    heights = np.concatenate([samples.sets[first:, HEIGHTS] for samples in draws])
    numbers = np.concatenate([samples.numbers[first:] for samples in draws])
    ages, prior = ages_of(heights, n), model.tree_prior.name

    def of(beginning: str) -> np.ndarray:
        return numbers[:, [i for i, name in enumerate(names) if name.startswith(beginning)]]

    sizes = None
    if prior in ("constant", "exponential"):
        growth = of("growth_rate") if prior == "exponential" else 0.0
        sizes = of("pop_size") * np.exp(-growth * ages)
    elif prior in ("skyline", "skyride"):  # a skyride's groups have a joining each
        own = of("pop_size")
        groups = of("group_size") if prior == "skyline" else np.ones_like(own)
        sizes = skyline_sizes(heights, own, groups, ages)
    elif prior in ("skygrid", "skygrid-linear"):
        spacing = float(model.parameters.settings[0])
        sizes = grid_sizes(of("pop_size"), spacing, ages, prior == "skygrid-linear")
    elif prior == "bdsky":
        places = places_of_first(model.parameters.settings, ages)
        return through_time(heights, of(REPRODUCTION)[:, places], n, sizes_are=REPRODUCTION.replace("_", " "))
    return through_time(heights, sizes, n)
