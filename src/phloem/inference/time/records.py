"""Flat records that the compiled sampler of dated trees works on: one of each for every run, a chain.

T tips, N = 2T-1 nodes, root last (tree/dated.py), n numbers, m coordinates of them, K clocks, each of some
parts of the data, L cells (ranges of the columns of a part), M moves, C sets of taxa that something is known
of, E entries of the table of clades. D = (1 + K) N + m coordinates of Hamiltonian dynamics: z of heights
(density/heights.py, tip_heights.py; 0 of tips that stay), ε of branches, one clock's after the other's
(density/clocks.py; of the root unused), numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.density.calibrations import Calibrations
from phloem.density.terms.compiled.dispatch import PriorTable
from phloem.density.traits import Trait, TraitMemory
from phloem.inference.mcmc.records import ParsimonyRoom, Recipes
from phloem.inference.time.field import Field
from phloem.pruning.cpu.cell_records import CellScratch, DownScratch

# what a move is of (MoveTable.on)
OF_TREE, OF_NUMBERS, OF_HAMILTON, OF_DATES, OF_MODEL, OF_ANCESTORS = range(6)
STATES, SITE_RATES, WALKS = range(3)  # kinds of moves of ancestors
# supports of blocks; FIXED: whatever their support is, they stay as they are
POSITIVE, UNIT, INTERVAL, REAL, SIMPLEX, FIXED = range(6)
# rows of TimeState.steps: which Hamiltonian moves, in the order of OF_HAMILTON, …; and its columns
JOINT, DATES, MODEL = range(3)
LOG_STEP, LOG_MEAN, SHORTFALL, COUNT, CENTRE = range(5)
# what was evaluated last (TimeScratch.last): the tree's part of the prior, the prior, the likelihood, the
# working distribution
LAST_TREE, LAST_PRIOR, LAST_LIKELIHOOD, LAST_WORKING = range(4)
# TimeScratch.done: moves done in this call, the one under way (-1: none), what the caller is waited for,
# whether moves adapt;
# pending: its log Hastings ratio (then that of acceptance), whether branches and topology changed; of a
# trajectory which step of how many is done, how many of them make one of the likelihood's, how long one is,
# the energy at the start, and the log Jacobian where it is; whether nobody can judge what was proposed;
# of a trajectory what its last point with a density has won of energy, -inf before there is one
MOVES, MOVE, WAITING, ADAPTS = range(4)
NOTHING, FOR_MODEL, FOR_LIKELIHOOD = range(3)
RATIO, TOUCHED, TOPOLOGY, STEP, STEPS, INNER, LENGTH, ENERGY, JACOBIAN, UNDEFINED, WITHIN = range(11)
# TimeScratch.asked, of a device: a value of the proposal, with another model, another topology, of
# everything; slopes, by the model's numbers, too; and whether what it proposes since is to be taken over
PROPOSED, OTHER_MODEL, REORDERED, EVERYTHING, SLOPES, PARAMETERS, TAKEN = range(7)
CALLER = 1  # TimeData.on_device
# TimeScratch.power: what the chain samples is the product of these powers of the likelihood, of the prior and
# of the working distribution
OF_LIKELIHOOD, OF_PRIOR, OF_WORKING = range(3)
# rows of the scales that a table of clades holds; OF_RATE: the first clock's, others follow
OF_HEIGHT, OF_RATE = range(2)


class KnownPlaces(NamedTuple):
    """What moves know of where subtrees were (compiled/known_places.py). keys: (N,) uint64 of the sets of
    tips below nodes, of which those of tips are read; below: (N,) uint64, to work in. table, ages, looks:
    TimeState.place, place_ages, place_looks."""

    keys: np.ndarray
    below: np.ndarray
    table: np.ndarray
    ages: np.ndarray
    looks: np.ndarray


class Blocks(NamedTuple):
    """first, size: (b,) int64 of the numbers; coordinate: (b,) int64 first of the coordinates; support: (b,)
    int64; low, high: (b,) bounds; taken: (3, b) uint8, 1 where a Hamiltonian move changes them: JOINT all
    that compiled code knows the slope of (but for MODEL's where that is a move of its own), DATES those of
    the clock and of the tree prior, MODEL those of the substitution model."""

    first: np.ndarray
    size: np.ndarray
    coordinate: np.ndarray
    support: np.ndarray
    low: np.ndarray
    high: np.ndarray
    taken: np.ndarray


class Clock(NamedTuple):
    """All clocks, which are of one kind. kind: density.clocks.STRICT, …. Of every clock (K,): rate, spread,
    which numbers they are, -1 without; free: uint8, 1 where the rate is not fixed; reference: uint8, 1 where
    its prior is the CTMC reference, which reads the tree's length. size: how many numbers a clock has, the
    rate first. smooth: 1 where deviations are coordinates of the joint Hamiltonian move. Addresses
    (compiled/by_address.py), 0 without: density of deviations that are not standard normal; along and
    pull_back, of rates that are handed down the tree. member: (C', T) uint8 tips of clades with own rates."""

    kind: int
    rate: np.ndarray
    spread: np.ndarray
    free: np.ndarray
    reference: np.ndarray
    size: int
    smooth: int
    density: int
    along: int
    pull_back: int
    member: np.ndarray


class MoveTable(NamedTuple):
    """kind, on: (M,) int64; block: (M,) int64 of numbers, of a move of the tree the clock whose rates it
    changes; cumulative: (M,) of the weights; target: (M,) acceptance aimed at while
    tuning, 0: not tuned; bounds: (M, 2) of the tuning parameter; narrows: (M,) uint8, 1 where a larger one
    makes smaller steps; held: (M,) probability that distances are held (compiled/run.py);
    pins: (M,) uint8, 1 where it changes which tips are ancestors."""

    kind: np.ndarray
    on: np.ndarray
    block: np.ndarray
    cumulative: np.ndarray
    target: np.ndarray
    bounds: np.ndarray
    narrows: np.ndarray
    held: np.ndarray
    pins: np.ndarray


class DatedTable(NamedTuple):
    """A working distribution (working_table.py): numbers, constant, clades, rows, splits, of_split as in
    mcmc.records.WorkingTable. root: (3,) location, 1 / scale, constant of the log-normal density of its
    height above the oldest tip. shares: (R, 3) of nodes' heights, a - 1, b - 1 and constant of beta
    densities; deviations: (R, K, 3) of branches' rates, mean, 1 / sd and constant of normal ones, or as
    working.LogGamma has them. Row 0: of clades that few draws had; R = 0: there is no working
    distribution."""

    numbers: PriorTable
    constant: float
    root: np.ndarray
    clades: np.ndarray
    rows: np.ndarray
    shares: np.ndarray
    deviations: np.ndarray
    splits: np.ndarray
    of_split: np.ndarray


class TimeData(NamedTuple):
    """What never changes during a run.

    use_data: 0 samples the prior. on_device: 1 where the caller finds likelihoods (device.py), or the
    address of what finds those that it can and leaves others to the caller (by_address.ANSWER); 0: cells.
    numbers, addresses, downs: (L, ·) tables of the cells (pruning/cpu/cell_records.py), part_of: (L,) of
    which part; first_cell: the first one's number among all (L'), clock_of: (L',) int64 of all, more than
    L where other processes have some. recipes: of the substitution model, from its own numbers (e,);
    model_from: (e,) int64 which of the chain's numbers each is, -1: a reference rate of 1; model_moves:
    (3,) uint8, which Hamiltonian moves change some of them. tree_density: address of the tree prior's;
    tree_first, tree_size: its numbers; tree_settings. tip_bounds: (T, 2) of heights; moving: int64, tips
    whose dates are sampled. path: length of a trajectory; most_steps: of the likelihood in one. trait:
    that changes along the tree; trait_density: address of its density, or 0. joining, walk: addresses of
    TreePrior.joining and of ancestors/walk.py, or 0. ancestral_tips: T where samples may be ancestors of
    others, their branches lasting no time, else 0. ancestors: address of the likelihood with sequences
    of ancestors (by_address.ANCESTORS), 0: these are summed over. working: where stepping stones begin, if
    not at the prior."""

    n_tips: int
    use_data: int
    on_device: int
    numbers: np.ndarray
    addresses: np.ndarray
    downs: np.ndarray
    part_of: np.ndarray
    first_cell: int
    clock_of: np.ndarray
    recipes: Recipes
    model_from: np.ndarray
    model_moves: np.ndarray
    blocks: Blocks
    priors: PriorTable
    clock: Clock
    tree_density: int
    tree_first: int
    tree_size: int
    tree_settings: np.ndarray
    calibrations: Calibrations
    ages: PriorTable
    tip_bounds: np.ndarray
    moving: np.ndarray
    moves: MoveTable
    path: float
    most_steps: int
    trait: Trait
    trait_density: int
    ancestors: int
    joining: int
    walk: int
    ancestral_tips: int
    working: DatedTable


class TimeState(NamedTuple):
    """Everything a run needs to go on: the checkpoint is this record.

    Two slots: slot[0] is the accepted one, the other the proposal's. parent, left, right, order (2, N) int64;
    heights (2, N); deviations, and lengths in substitutions, by every clock (2, K, N); values (2, n); groups
    (2, K) int64. log_likelihood, log_prior, log_working, log_tree: (1,), the latter a part of the prior. rng:
    (4,). tuning, tried, accepted, batch_tried, batch_accepted: (M,); undefined: (M,) of tried those that
    nobody can judge, undefined_last: (4 + n,) the last one (inference/mcmc/undefined.py). generation: (1,).
    steps: (3, 5) of the Hamiltonian moves, see above. clade: (E,) uint64 keys, 0: free. seen (E,), mean,
    square (1 + K, E): since the last window began; variance (1 + K, E): in use, 0: not known; usual (1 + K,):
    where it is not. place: (P,) uint64 keys of subtrees beside others, 0: free; place_ages (P, 3),
    place_looks (1,): at how many looks of how many one was there, mean and sum of squares of the age of both,
    in the warm-up after its first window. number_seen (1,), number_mean, number_square, number_variance (m,).
    diverged: (3,) int64 trajectories that left their range, and diverged_at (N,) at which node the slope was
    largest then. sequences: (T-1, W) of ancestors, and category: (S,) of every site's rate, where these are
    sampled; log_likelihood is then with them (ancestors/sequences.py)."""

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    heights: np.ndarray
    deviations: np.ndarray
    lengths: np.ndarray
    values: np.ndarray
    groups: np.ndarray
    slot: np.ndarray
    log_likelihood: np.ndarray
    log_prior: np.ndarray
    log_working: np.ndarray
    log_tree: np.ndarray
    rng: np.ndarray
    tuning: np.ndarray
    tried: np.ndarray
    accepted: np.ndarray
    batch_tried: np.ndarray
    batch_accepted: np.ndarray
    undefined: np.ndarray
    undefined_last: np.ndarray
    generation: np.ndarray
    steps: np.ndarray
    clade: np.ndarray
    seen: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    variance: np.ndarray
    usual: np.ndarray
    place: np.ndarray
    place_ages: np.ndarray
    place_looks: np.ndarray
    number_seen: np.ndarray
    number_mean: np.ndarray
    number_square: np.ndarray
    number_variance: np.ndarray
    diverged: np.ndarray
    diverged_at: np.ndarray
    sequences: np.ndarray
    category: np.ndarray


class TimeScratch(NamedTuple):
    """What a run works in. cell, down: of the likelihood. keys, new_keys: (N,) uint64 of sets of tips
    below; moved: (N,) uint8; engine: (2, e) the model's numbers, accepted and proposed. anchors, tops:
    (N,), tip_limits (T, 2), oldest (N,) int64, (0,) where all dates are known: of density/heights.py and
    tip_heights.py. y, momentum, slope, kick, scale: (D,) of a trajectory: slope that of the prior, kick the
    likelihood's. of_cells (L', 1 + N + e): log-likelihoods and derivatives by the lengths of their clock
    and by the model's numbers, as last asked for. by_length (K, N): the likelihood's derivatives. by_height
    (N,), by_value (n,), by_deviation (K, N): derivatives. counts (2, N), ancestors (C,) int64; ages (C,):
    of calibrations. dated (C,), pieces (3N,) int64: as Genealogy has them. edges, stack (N,) int64, spots
    (N,): of moves. lows, caps (N,), below (N,) uint64: of the working distribution. room: (max(n, 8),); rates
    (C',), by_engine (e,): of the model. square, vectors: of its eigensystem. last: (4,) what was evaluated
    last: LAST_TREE, LAST_PRIOR, LAST_LIKELIHOOD, LAST_WORKING. done, pending: what is under way, asked: what
    the caller is to find, see above. power: (3,) of the likelihood, 1 but for stepping stones and heated
    chains, of the prior, 1 but for these, and of the working distribution. parsimony: the characters, for
    moves that it guides. trait: messages of the trait, by state.slot. there: (F, ROW) int64 rows of the
    device's forests (pruning/cpu/chain_tables.py), fields: (P, 13) of the parts (run_device.write_model),
    others: (P,) whether the model of the proposal asked for last is another than the accepted one. ancestral:
    table of ancestors/sequences.py, where they are sampled; walk (4, 8) int64, gained (2, 8): of walks
    (sequences.Walk). field: of the tree prior's sizes."""

    cell: CellScratch
    down: DownScratch
    keys: np.ndarray
    new_keys: np.ndarray
    moved: np.ndarray
    engine: np.ndarray
    anchors: np.ndarray
    tops: np.ndarray
    tip_limits: np.ndarray
    oldest: np.ndarray
    y: np.ndarray
    momentum: np.ndarray
    slope: np.ndarray
    kick: np.ndarray
    scale: np.ndarray
    of_cells: np.ndarray
    by_length: np.ndarray
    by_height: np.ndarray
    by_deviation: np.ndarray
    by_value: np.ndarray
    counts: np.ndarray
    ancestors: np.ndarray
    dated: np.ndarray
    pieces: np.ndarray
    ages: np.ndarray
    edges: np.ndarray
    stack: np.ndarray
    spots: np.ndarray
    lows: np.ndarray
    caps: np.ndarray
    below: np.ndarray
    room: np.ndarray
    rates: np.ndarray
    by_engine: np.ndarray
    square: np.ndarray
    vectors: np.ndarray
    last: np.ndarray
    done: np.ndarray
    pending: np.ndarray
    asked: np.ndarray
    power: np.ndarray
    parsimony: ParsimonyRoom
    trait: TraitMemory
    there: np.ndarray
    fields: np.ndarray
    others: np.ndarray
    ancestral: np.ndarray
    walk: np.ndarray
    gained: np.ndarray
    field: Field
