"""The records of one run at its start: cells, constants, a tree with dates, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phloem.density import clocks, deviations, local_clocks
from phloem.density.autocorrelated_clock import pull_back_autocorrelated, set_lengths_autocorrelated
from phloem.density.space import Space
from phloem.density.terms.compiled.dispatch import block_table
from phloem.density.traits import trait_density, trait_memory
from phloem.errors import InputError
from phloem.inference.mcmc.device_forest import layouts_of
from phloem.inference.mcmc.recipes import Observations, recipes_of
from phloem.inference.mcmc.records import COMPILED, KIND, ParsimonyRoom, Recipes
from phloem.inference.mcmc.start import OF_PROPOSALS, START, chain_forest, stream
from phloem.inference.time.ancestors.larger.memory import CodedMemory
from phloem.inference.time.ancestors.sequences import Memory
from phloem.inference.time.ancestors.start import table_of
from phloem.inference.time.calibrated_start import starting_tree, starting_values
from phloem.inference.time.clades import calibrations
from phloem.inference.time.compiled import by_address
from phloem.inference.time.field import Field
from phloem.inference.time.move_table import ChainMove, Costs, move_arrays
from phloem.inference.time.records import (
    CENTRE,
    FIXED,
    INTERVAL,
    LOG_MEAN,
    LOG_STEP,
    POSITIVE,
    REAL,
    SIMPLEX,
    UNIT,
    WITHIN,
    Blocks,
    Clock,
    TimeData,
    TimeScratch,
    TimeState,
)
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.traits import NO_TRAIT
from phloem.inference.time.working_table import dated_table
from phloem.likelihood.problem import refuse_along_sites
from phloem.pruning.cpu.cell_loops import EVALUATE, GRADIENT
from phloem.pruning.cpu.cell_memory import (
    Part,
    column_ranges,
    down_arrays,
    down_scratch,
    pre_order_vectors,
)
from phloem.pruning.cpu.cell_records import DownArrays
from phloem.pruning.cpu.chain_tables import ROW
from phloem.pruning.cpu.column_classes import tip_keys
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.cpu.storage import address_of
from phloem.tree.dated import DatedTree

SUPPORT = {"positive": POSITIVE, "unit": UNIT, "interval": INTERVAL, "real": REAL, "simplex": SIMPLEX}
START_STEP, START_SCALE = 0.1, 0.1
ENTRIES_A_NODE, PLACES_A_NODE = 512, 256  # of the tables of clades, and of where they are
MANY_NUMBERS = 16  # coordinates of a substitution model that has Hamiltonian moves of its own


@dataclass(frozen=True, eq=False)
class Origin:
    """What chains start from: a tree, and the rate of its clock."""

    tree: DatedTree
    rate: float


@dataclass(frozen=True, eq=False)
class Cells:
    """The likelihood of a chain: its forest, and memory of the way down, which the tables point to; recipes:
    of its model. apart: whether that has so many numbers that they are not in the joint Hamiltonian move.
    first: number of the first cell here among all; clock_of: (L',) of all cells."""

    recipes: Recipes
    apart: bool
    forest: Forest
    downs: np.ndarray
    memory: list[DownArrays]
    first: int
    clock_of: np.ndarray


def dated_cells(observed: Sequence[Observations], model: TimeModel, on_device: bool = False) -> list[Part]:
    """The cells of a chain, whoever has them, their models those of the starting numbers. on_device: where
    devices evaluate them."""
    parts = list[Part]()
    for i, data in enumerate(observed):
        refuse_along_sites(model.engine.parts[i].model, "phloem time")
        site_model = model.engine.site_model(i, model.engine.space.start())
        hidden = np.zeros(data.codes.shape[1], bool)
        hidden[: data.n_hidden] = True
        sets = np.asarray(data.code_sets, bool)[:, model.engine.parts[i].model.observed_state]
        part = Part(
            data.codes, sets, data.weights, hidden, site_model.process, site_model.length_class,
            first_lengths=model.engine.sets[i].start,
        )  # fmt: skip
        if int(site_model.length_class.max()) > 0:
            raise InputError(
                "classes of sites with branch lengths of their own have no dates", hint="Leave +H out."
            )
        parts += column_ranges(part, len(parts), on_device)
    return parts


def time_cells(parts: Sequence[Part], own: range, model: TimeModel) -> Cells:
    """Of all cells those that are here."""
    forest = chain_forest(parts, own, 1, evaluates=False, hangs=False)
    memory = [down_arrays(own, pre_order_vectors([own])) for own in forest.parts]
    downs = np.array([[address_of(array) for array in own] for own in memory], np.int64)
    recipes = recipes_of(model.engine)
    free = sum(b.n_coordinates for b in model.space.blocks if b.name in model.of_substitution - model.fixed)
    apart = bool((recipes.rows[:, KIND] == COMPILED).all()) and free >= MANY_NUMBERS
    first_lengths = np.array([part.first_lengths for part in parts], np.int64)
    return Cells(recipes, apart, forest, downs, memory, own.start, first_lengths)


def likelihood_costs(parts: Sequence[Part], on_device: bool, ancestors: bool = False) -> Costs:
    """ancestors: whether they are sampled. From sizes alone, so that a chain's moves are the same on every
    machine. A third of the patterns are taken to be distinct below a node, and the path of a proposal to be
    that of a random tree."""
    n_tips = len(parts[0].tip_codes)
    path, likelihood, gradient = 2.0 + 1.5 * np.log2(n_tips), 0.0, 0.0
    for part in parts:
        s, c = part.state_sets.shape[1], len(part.process)
        node = part.tip_codes.shape[1] / 3 * c * (2.0 + 0.04 * s * s) / 1000.0
        likelihood += path * node
        gradient += n_tips * (3.0 * node + 6e-5 * c * s**3)
    if on_device:
        likelihood, gradient = 100.0, 250.0 + gradient / 150.0
    if ancestors:
        # a branch has tables where states are many
        table = 0.0 if s == 4 else 0.1 * c * s
        likelihood, gradient = 10.0 + 0.02 * n_tips + table, (1.0 + 0.5 * table) * n_tips
    return Costs(likelihood, gradient, 1.0 + 0.12 * n_tips)


def time_data(
    cells: Cells,
    model: TimeModel,
    settings: TimeSettings,
    chosen: tuple[list[ChainMove], list[float]],
    on_device: bool,
    ancestors: Mapping[str, int],
) -> TimeData:
    """Constants of a run. chosen: moves and their weights. on_device: likelihoods are found elsewhere, and no
    kernels compiled for them; nor where ancestors are sampled, by what is at these addresses."""
    space, recipes = model.space, cells.recipes
    compiled = bool((recipes.rows[:, KIND] == COMPILED).all())
    of_model = np.array([b.name in model.of_substitution for b in space.blocks])
    held = model.fixed | model.of_trait
    free = np.array([b.name not in held and b.support in SUPPORT for b in space.blocks])
    known, ages = calibrations(model)
    own = model.parameters.blocks
    first = space.place(own[0].name).start if own else 0
    if settings.use_data and not on_device and not ancestors["ancestors"]:
        cells.forest.provide(EVALUATE, GRADIENT)
    joint = free & (~of_model | (compiled and not cells.apart))
    taken = np.stack([joint, free & ~of_model, free & of_model & cells.apart])
    return TimeData(
        n_tips=model.n_tips,
        use_data=int(settings.use_data),
        on_device=int(on_device),
        numbers=cells.forest.numbers[0],
        addresses=cells.forest.addresses[0],
        downs=cells.downs,
        part_of=np.asarray(cells.forest.part_of, np.int64),
        first_cell=cells.first,
        clock_of=cells.clock_of,
        recipes=recipes,
        model_from=model.model_from,
        model_moves=(taken & of_model).any(axis=1).astype(np.uint8),
        blocks=_blocks(space, free, taken),
        priors=block_table(space, model.priors),
        clock=_clock(model),
        tree_density=by_address.TREE_PRIOR.address(model.tree_prior.density),
        tree_first=first,
        tree_size=sum(b.size for b in own),
        tree_settings=np.append(model.parameters.settings, 0.0),
        calibrations=known,
        ages=ages,
        tip_bounds=np.ascontiguousarray(model.tip_bounds, np.float64),
        moving=np.flatnonzero(model.tip_bounds[:, 0] < model.tip_bounds[:, 1]).astype(np.int64),
        moves=move_arrays(*chosen, model.clock),
        path=settings.path,
        most_steps=settings.most_steps,
        trait=model.trait.record(space, model.trait_reference) if model.trait else NO_TRAIT,
        trait_density=by_address.TRAIT.address(trait_density) if model.trait else 0,
        ancestral_tips=model.n_tips if model.samples_ancestors else 0,
        working=dated_table(settings.working, model.n_tips, model.n_clocks),
        **ancestors,
    )


def _blocks(space: Space, free: np.ndarray, taken: np.ndarray) -> Blocks:
    """free: (b,) whether each is not fixed; taken as Blocks has it."""
    support = np.where(free, [SUPPORT.get(b.support, FIXED) for b in space.blocks], FIXED)
    return Blocks(
        first=space.offsets[:-1].copy(),
        size=np.diff(space.offsets),
        coordinate=space.coordinate_offsets[:-1].copy(),
        support=support.astype(np.int64),
        low=np.array([b.lower for b in space.blocks], np.float64),
        high=np.array([np.inf if b.support == "tied" else b.upper for b in space.blocks], np.float64),
        taken=taken.astype(np.uint8),
    )


DEVIATIONS = {
    clocks.GAMMA: deviations.log_gamma,
    clocks.RANDOM: deviations.spike_and_slab,
    clocks.SHRINKAGE: deviations.bridge,
    clocks.WHITE_NOISE: deviations.white_noise,
}
"""Densities of deviations that are not standard normal."""
_LOCALLY = local_clocks.set_lengths_along, local_clocks.pull_back_along
ALONG = dict.fromkeys((*clocks.OF_CLADES, clocks.RANDOM, clocks.SHRINKAGE), _LOCALLY)
_FROM_PARENTS = set_lengths_autocorrelated, pull_back_autocorrelated
ALONG |= dict.fromkeys(clocks.FROM_PARENTS, _FROM_PARENTS)
"""Lengths of clocks whose rates are handed down the tree, and their derivatives."""


def _clock(model: TimeModel) -> Clock:
    """The clocks as compiled code knows them; what only some have is compiled here if these have it."""

    def places(names: Sequence[str]) -> np.ndarray:
        return np.array([model.space.place(name).start for name in names], np.int64)

    kind, spreads = model.clock, model.spread_names
    along, pull_back = ALONG.get(kind, (None, None))
    own, density = model.own_clocks, DEVIATIONS.get(kind)
    return Clock(
        kind=kind,
        rate=places(model.rate_names),
        spread=places(spreads) if spreads else np.full(model.n_clocks, -1, np.int64),
        free=np.array([name not in model.fixed for name in model.rate_names], np.uint8),
        reference=np.array(model.reference, np.uint8),
        size=1 + bool(spreads) + len(own),
        smooth=int(kind in clocks.SMOOTH),
        density=by_address.DEVIATIONS.address(density) if density else 0,
        along=by_address.LENGTHS_ALONG.address(along) if along else 0,
        pull_back=by_address.PULL_BACK_ALONG.address(pull_back) if pull_back else 0,
        member=np.array([model.members(c) for c in own], np.uint8).reshape(-1, model.n_tips),
    )


def time_state(
    model: TimeModel, settings: TimeSettings, moves: list[ChainMove], which: tuple[int, int],
    origin: Origin | None,
) -> TimeState:  # fmt: skip
    """A tree and the clock's rate of the origin, or a random tree; the numbers' starting values. which: the
    numbers of run and chain."""
    run, chain = which
    own = (run, START) + which[1:] * (chain > 0)
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=own))
    tree = starting_tree(model, rng) if origin is None else origin.tree
    n, m = 2 * model.n_tips - 1, model.space.n_coordinates
    entries, rows = ENTRIES_A_NODE * n, 1 + model.n_clocks
    values = starting_values(model, tree, None if origin is None else origin.rate)
    deviations, lengths = _strict_branches(model, tree, values)
    k, parts = model.parameters.n_groups, np.zeros(0, np.int64)
    if k:
        parts = np.diff(np.round(np.linspace(0, model.n_tips - 1, k + 1))).astype(np.int64)
    steps = np.zeros((3, 5))
    steps[:, [LOG_STEP, LOG_MEAN]], steps[:, CENTRE] = np.log(START_STEP), np.log(10 * START_STEP)
    counts = {name: np.zeros(len(moves), np.int64) for name in OF_PROPOSALS}
    return TimeState(
        parent=np.tile(tree.parent, (2, 1)),
        left=np.tile(tree.left, (2, 1)),
        right=np.tile(tree.right, (2, 1)),
        order=np.tile(tree.order, (2, 1)),
        heights=np.tile(tree.heights, (2, 1)),
        deviations=deviations,
        lengths=lengths,
        values=np.tile(values, (2, 1)),
        groups=np.tile(parts, (2, 1)),
        slot=np.zeros(1, np.int64),
        log_likelihood=np.zeros(1),
        log_prior=np.zeros(1),
        log_working=np.zeros(1),
        log_tree=np.zeros(1),
        rng=stream(settings.seed, run, chain),
        tuning=_tunings(model, moves),
        **counts,
        undefined_last=np.zeros(4 + len(values)),
        generation=np.zeros(1, np.int64),
        steps=steps,
        clade=np.zeros(entries, np.uint64),
        seen=np.zeros(entries),
        mean=np.zeros((rows, entries)),
        square=np.zeros((rows, entries)),
        variance=np.zeros((rows, entries)),
        usual=np.array([START_SCALE**2] + [1.0] * model.n_clocks),
        place=np.zeros(PLACES_A_NODE * n, np.uint64),
        place_ages=np.zeros((PLACES_A_NODE * n, 3)),
        place_looks=np.zeros(1),
        number_seen=np.zeros(1),
        number_mean=np.zeros(m),
        number_square=np.zeros(m),
        number_variance=np.full(m, START_SCALE**2),
        diverged=np.zeros(3, np.int64),
        diverged_at=np.zeros(n, np.int64),
        sequences=np.zeros((0, 0), np.uint64),
        category=np.zeros(0, np.uint8),
    )


def _strict_branches(model: TimeModel, tree: DatedTree, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deviations and branch lengths by every clock (2, K, N), its branches' rates all alike."""
    n, place = len(tree.parent), model.space.place
    deviations, lengths = np.zeros((2, 2, model.n_clocks, n))
    for k, name in enumerate(model.rate_names):
        rate = float(values[place(name)][0])
        clocks.set_lengths(clocks.STRICT, rate, 0.0, tree.parent, tree.heights, np.zeros(n), lengths[0, k])
        if model.clock in clocks.OF_MEAN_RATE:
            spread = float(values[place(model.spread_names[k])][0])
            deviations[:, k] = 0.5 * clocks.log_spread(model.clock, spread)
    return deviations, lengths


def _tunings(model: TimeModel, moves: list[ChainMove]) -> np.ndarray:
    """Widths in time begin as a share of the tree's typical age."""
    return np.array(
        [m.move.tuning * (0.1 * model.scale.time if m.move.bounds[1] == 1e9 else 1.0) for m in moves]
    )


def time_scratch(
    cells: Cells, data: TimeData, state: TimeState, characters: ParsimonyRoom,
    ancestral: Memory | CodedMemory | None, field: Field,
) -> TimeScratch:  # fmt: skip
    """What a run works in."""
    n, m, e, k = state.parent.shape[1], state.number_mean.shape[0], len(data.model_from), len(data.clock.rate)
    keys = np.append(tip_keys(data.n_tips), np.zeros(n - data.n_tips, np.uint64))
    square, vectors = data.recipes.base.shape[1] ** 2, [np.zeros((1 + k) * n + m) for _ in range(5)]
    return TimeScratch(
        cell=cells.forest.scratch(),
        down=down_scratch(cells.forest.parts),
        keys=keys,
        new_keys=keys.copy(),
        moved=np.zeros(n, np.uint8),
        engine=np.ones((2, e)),
        anchors=np.zeros(n),
        tops=np.zeros(n),
        tip_limits=np.zeros((data.n_tips, 2)),
        oldest=np.zeros(n if len(data.moving) else 0, np.int64),
        y=vectors[0],
        momentum=vectors[1],
        slope=vectors[2],
        kick=vectors[3],
        scale=vectors[4],
        of_cells=np.zeros((len(data.clock_of), 1 + n + e)),
        by_length=np.zeros((k, n)),
        by_height=np.zeros(n),
        by_deviation=np.zeros((k, n)),
        by_value=np.zeros(state.values.shape[1]),
        counts=np.zeros((2, n), np.int64),
        ancestors=np.zeros(len(data.calibrations.size), np.int64),
        dated=np.full(len(data.calibrations.size), -1),
        pieces=np.zeros(3 * n, np.int64),
        ages=np.zeros(len(data.calibrations.size)),
        edges=np.zeros(2 * n, np.int64),
        stack=np.zeros(2 * n, np.int64),
        spots=np.zeros(2 * n),
        lows=np.zeros(n),
        caps=np.zeros(n),
        below=keys.copy(),
        room=np.zeros(max(8, 3 * state.values.shape[1])),
        rates=np.zeros(max(8, data.recipes.rates.shape[1])),
        by_engine=np.zeros(e),
        square=np.zeros(square),
        vectors=np.zeros(square),
        last=np.zeros(4),
        done=np.array([0, -1, 0, 0]),
        pending=np.zeros(WITHIN + 1),
        asked=np.zeros(7, np.int64),
        power=np.array([1.0, 1.0, 0.0]) if ancestral is None else ancestral.near.power,
        parsimony=characters,
        trait=trait_memory(n if data.trait_density else 0, data.trait.tips.shape[1]),
        there=np.zeros((len(layouts_of(cells.forest.parts)), ROW), np.int64),
        fields=np.zeros((len(cells.forest.parts), 13), np.int64),
        others=np.zeros(len(cells.forest.parts), np.int64),
        ancestral=table_of(ancestral),
        walk=np.zeros((4, 8), np.int64),
        gained=np.zeros((2, 8)),
        field=field,
    )
