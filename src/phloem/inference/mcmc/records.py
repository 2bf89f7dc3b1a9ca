"""Flat records that the compiled Metropolis-coupled sampler works on: one of each for every run.

H chains, T tips, N = 2T-1 nodes, G sets of branch lengths, L partitions, n numbers, M moves. An unrooted tree
is a rooted one whose root, the last node, sits on the branch of tip 0: the root's children are tip 0, which
has the length of that branch, and the node beside it, whose branch has length 0. All are NamedTuples of
arrays, because numba reads those without conversion and they save as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.density.terms.compiled.dispatch import PriorTable
from phloem.pruning.cpu.cell_records import CellScratch

# columns of ChainData.heat
PRIOR, LIKELIHOOD, WORKING = range(3)

# what a move is of (MoveTable.on)
OF_LENGTHS, OF_TOPOLOGY, OF_NUMBERS, OF_ALL_NUMBERS = range(4)

# where the numbers of a block lie (Joint.support)
OF_SIMPLEX, OF_POSITIVE, OF_REAL, OF_INTERVAL, OF_OTHERS, OF_MANY = range(6)

# first columns of ChainState.jumps, and rows of ChainState.seen
PROPOSALS, WORK, STATISTICS = range(3)
LOOKS, MEAN, SQUARES = range(3)
JUMP_UNIT = 2.0**-20  # of squared jumps: whole numbers of it add up alike in every order

# what the compiled loop can do itself when numbers of a partition's model change (Recipes.kind)
BY_MODEL, COMPILED = range(2)
# columns of Recipes.rows
(
    KIND, SHARES, MORE_SHARES, FREQUENCIES, ALPHA, INVARIABLE, RATE, FORM, MATRIX, CHOICE,
    RHO,
) = range(11)  # fmt: skip
GAMMA_MEANS, GAMMA_MEDIANS, LOG_NORMAL = range(3)  # of rates (FORM)


class Recipes(NamedTuple):
    """How a partition's model follows from the numbers. rows: (L, 11) int64: KIND; SHARES, MORE_SHARES,
    the first of up to two blocks of shares of relative rates, -1 where there are none; FREQUENCIES, the first
    of its S frequencies, -1 where they are fixed; ALPHA, of the shape of rates, -1 where they are fixed;
    INVARIABLE, -1: fixed; RATE, of the partition's share of the rate, -1: none; FORM: of the rates;
    MATRIX, its row of base and frequencies, to which the number CHOICE is added, -1: none; RHO, of the
    correlation of neighbours' rates, -1: there is none, or it is fixed.
    reads: (L, n) uint8, which numbers the partition's model reads.
    base: (R, S', S') fixed exchangeabilities, S' the most states, R one a partition or as many as it chooses
    among; share_of: (L, 2, S', S') which share of each block multiplies them; frequencies: (R, S') fixed
    ones. rates, weights: (L, C') fixed ones (of LOG_NORMAL, normal quantiles),
    before invariable sites and the partition's rate; invariable: (L,) fixed proportion.
    site_share, unit: (L,) the share of sites of those with the partition's rate, and sites of a character:
    rates are multiplied by unit and by number[RATE] / site_share."""

    rows: np.ndarray
    reads: np.ndarray
    base: np.ndarray
    share_of: np.ndarray
    frequencies: np.ndarray
    rates: np.ndarray
    weights: np.ndarray
    invariable: np.ndarray
    site_share: np.ndarray
    unit: np.ndarray


class MoveTable(NamedTuple):
    """The moves of a model's chains. kind: (M,) number among the registered moves (compiled/dispatch.py). on:
    (M,) OF_LENGTHS, OF_TOPOLOGY, OF_NUMBERS or OF_ALL_NUMBERS. block: (M,) the block of numbers it is of.
    target: (M,) acceptance aimed at while tuning (0: not tuned).
    bounds: (M, 2) of the tuning parameter. narrows: (M,) uint8, 1 where a larger one makes smaller steps.
    gradients: (M,) how many it asks for. parsimony, splits: (M,) int64, 1 where it reads the characters, or
    what is known of splits."""

    kind: np.ndarray
    on: np.ndarray
    block: np.ndarray
    target: np.ndarray
    bounds: np.ndarray
    narrows: np.ndarray
    gradients: np.ndarray
    parsimony: np.ndarray
    splits: np.ndarray


class Joint(NamedTuple):
    """The blocks of numbers, for the move of all of them, which leaves OF_OTHERS as they are. first, size,
    support: (blocks,) int64; bounds: (blocks, 2); factor: (d, d), the lower one of the covariance learnt, and
    wander: (blocks,), of large simplexes (OF_MANY) how far the log of what they add up to wanders, those of
    ChainState; mean: (d,) of the chain's rank; spread: of that rank's standard deviations, over those of the
    cold chain. group: (N,) int64, to which sum of lengths the branch of a node belongs."""

    first: np.ndarray
    size: np.ndarray
    support: np.ndarray
    bounds: np.ndarray
    factor: np.ndarray
    wander: np.ndarray
    mean: np.ndarray
    spread: float
    group: np.ndarray


class KnownSplits(NamedTuple):
    """What chains have learnt of their splits (split_memory.py). keys: (C,) uint64, a table in which a key
    stands in the first free place from key mod C on, 0: free. It is of a split and a branch beside it, or its
    own (compiled/known_splits.beside); sums: (C, 1 + 2G) in how many looks they were, and the sums of the
    branch's log lengths and of their squares, by sets; looks: (1,) at a chain. below: (N,) uint64, keys of
    the nodes, those of the tips given, up: (N,) their parents; weight, least: (N, 2), place: (N, 3) int64,
    what moves note. left, right: (N,) of the tree that a move changes."""

    keys: np.ndarray
    sums: np.ndarray
    looks: np.ndarray
    below: np.ndarray
    up: np.ndarray
    weight: np.ndarray
    least: np.ndarray
    place: np.ndarray
    left: np.ndarray
    right: np.ndarray


class WorkingTable(NamedTuple):
    """The working distribution of generalised stepping stones (working_table.py): its density of the numbers
    (n,), and what is added to its logarithm. clades, rows: (C,) uint64 and int64, a table in which the key of
    a clade stands in the first free place from key mod C on, 0: free, with its row of lengths: (R, G, 3),
    shape - 1, rate and constant of the gamma density of its branch, of others row 0; R = 0: there is none.
    is_free: 1 where topologies have a density; splits, of_split: (S,) uint64 and float64, a like table, of a
    clade beside one of its halves (compiled/known_splits.beside), or beside itself for all others."""

    numbers: PriorTable
    constant: float
    clades: np.ndarray
    rows: np.ndarray
    lengths: np.ndarray
    is_free: int
    splits: np.ndarray
    of_split: np.ndarray


class ChainData(NamedTuple):
    """What never changes during a run.

    n_tips: T. use_data: 0 samples the prior. numbers, addresses: (H, L, ·) tables of the cells
    (pruning/cpu/cell_records.py). recipes. number_priors, length_priors: of the numbers (n,), and of every
    set of branch lengths, tips' branches first. length_bounds: (2,). block_first, block_size: (blocks,) int64
    where each lies in the numbers; block_bounds: (blocks, 2). moves. p_extend: of extending SPR and TBR.
    heat: (H, 3) by rank, the powers of PRIOR, LIKELIHOOD and WORKING: the inverse temperature, that and 0,
    but for chains that sample a power posterior; PRIOR and WORKING add up to it. working: where stepping
    stones begin, if not at the prior. splits: what trees must obey (constraints.split_rules). joint: of the
    move of all numbers; its factor is replaced by that of the state. first_cell: number of the first cell
    here among those of all processes that share the chains.
    """

    n_tips: int
    use_data: int
    numbers: np.ndarray
    addresses: np.ndarray
    part_of: np.ndarray
    recipes: Recipes
    number_priors: PriorTable
    length_priors: PriorTable
    length_bounds: np.ndarray
    block_first: np.ndarray
    block_size: np.ndarray
    block_bounds: np.ndarray
    moves: MoveTable
    p_extend: float
    heat: np.ndarray
    working: WorkingTable
    splits: np.ndarray
    joint: Joint
    first_cell: int


class ChainState(NamedTuple):
    """Everything a run needs to go on: the checkpoint is this record.

    Trees have two slots for each chain: slot[h] is the accepted one, the other the proposal's. parent, left,
    right: (H, 2, N) int64, -1 where there is none. order: (H, 2, N) int64, children before parents, root
    last. lengths: (H, 2, G, N). values: (H, 2, n) the numbers. log_likelihood, log_prior, log_working:
    (H,). rank: (H,) place in the heat ladder. powers: (H,) by rank the inverse temperatures (heating.py).
    rng: (H, 4) uint64 and swap_rng: (4,) uint64, states of xoshiro256++. tuning: (H, M) by rank and move.
    tried, accepted: (H, M) since the start; batch_tried, batch_accepted: since the last tuning. undefined:
    (H, M) of tried those that nobody can judge, undefined_last: (H, 4 + n) of every chain the last one
    (undefined.py). swaps_tried, swaps_accepted: (H, H) by rank. generation: (1,). looks: (1,), mean: (H, d)
    by rank, covariance, factor: (d, d), wander: (blocks,): what was learnt (learning.py). split_keys,
    split_sums, split_looks: KnownSplits, also learnt (split_memory.py). cumulative: (M,) of the moves' shares
    of proposals, ends at 1. What decides them, of the cold chain while moves adapt (weights.py): jumps: (M, 2
    + K + S) whole numbers, of every move its proposals, their work, the squared jumps of K statistics and the
    changes of S splits; watched: (S,) uint64, keys of those splits, 0: none; seen: (3, K + S), of statistics
    and splits the number of looks, means, and sums of squared deviations from them.
    """

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    lengths: np.ndarray
    slot: np.ndarray
    values: np.ndarray
    log_likelihood: np.ndarray
    log_prior: np.ndarray
    log_working: np.ndarray
    rank: np.ndarray
    powers: np.ndarray
    rng: np.ndarray
    swap_rng: np.ndarray
    tuning: np.ndarray
    tried: np.ndarray
    accepted: np.ndarray
    batch_tried: np.ndarray
    batch_accepted: np.ndarray
    undefined: np.ndarray
    undefined_last: np.ndarray
    swaps_tried: np.ndarray
    swaps_accepted: np.ndarray
    generation: np.ndarray
    looks: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    factor: np.ndarray
    wander: np.ndarray
    split_keys: np.ndarray
    split_sums: np.ndarray
    split_looks: np.ndarray
    cumulative: np.ndarray
    jumps: np.ndarray
    watched: np.ndarray
    seen: np.ndarray


class ChainShared(NamedTuple):
    """What the threads of a run share. keys, new_keys: (H, N) uint64, one for each set of tips below a node,
    of the accepted tree and of a proposed topology. lock: (H,) int64, 1
    while a thread has the chain. done, swapped: (H,) generations that a chain has stepped, and swapped, since
    `advance` began. move, ratio: (H,) the proposal that waits for its models, move -1: none. pair: (n, 2)
    int64 and log_uniform (n,): chains of every generation's swap, and the number that decides it.
    Of chains on a device: prior (H,) of the proposals; waits, taken (H,) int64, whether the model of one must
    be set, and whether it was accepted; status (H,) int64, of preparing it; fields (L, 13) int64, see
    run_device.write_model and cell_of; crew: int64, of the threads that share them (run_device.py). stop:
    (1,) int64, 1: another thread has failed. Of a proposal under way: moved (H, N) uint8, reordered,
    everything (H,): see cell_records.ProposedTree and cell_loops.propose_cell; next_cell (H,) that no thread
    has taken, cells_done (H,) and cell_values (H, cells of all processes); asks (H,), whether those of other
    processes are wanted. Of moves that ask for gradients: turn (H,)
    int64, slope, momentum (H, G, N), as in dispatch.Proposal."""

    keys: np.ndarray
    new_keys: np.ndarray
    lock: np.ndarray
    done: np.ndarray
    swapped: np.ndarray
    move: np.ndarray
    ratio: np.ndarray
    pair: np.ndarray
    log_uniform: np.ndarray
    prior: np.ndarray
    waits: np.ndarray
    taken: np.ndarray
    status: np.ndarray
    fields: np.ndarray
    crew: np.ndarray
    stop: np.ndarray
    moved: np.ndarray
    reordered: np.ndarray
    everything: np.ndarray
    next_cell: np.ndarray
    cells_done: np.ndarray
    cell_values: np.ndarray
    asks: np.ndarray
    turn: np.ndarray
    slope: np.ndarray
    momentum: np.ndarray


class ParsimonyRoom(NamedTuple):
    """The characters in bits, for moves that parsimony guides, and room to count in (compiled/parsimony.py).

    X words hold the planes of all blocks of characters, those of one number of states; blocks (n, 3) int64:
    first word, words a plane, states. price: (n,) what a change costs, in log units of a proposal's
    probability; copies: (n,) int64 columns that a character stands for. singles: (N,) int64 changes that
    every tree has on a tip's branch; per_length: (1,) columns, so changes expected of a branch of length 1.
    sets: (2N, X) uint64; rows of the tips are the data. common: (most words,) uint64. node, above: (N,)
    int64, a walk and where it came from, cost, price_of: (N,), what moves note of places."""

    blocks: np.ndarray
    price: np.ndarray
    copies: np.ndarray
    singles: np.ndarray
    per_length: np.ndarray
    sets: np.ndarray
    common: np.ndarray
    node: np.ndarray
    above: np.ndarray
    cost: np.ndarray
    price_of: np.ndarray


class ChainScratch(NamedTuple):
    """What one thread works in. cell: of the likelihood. adjacency, edge: (N, 3) int64, stack, branch: (N,)
    int64, of topology moves; kept: (G, N). shares: of simplex moves. square,
    vectors: (S' · S',). keys: (2, N) uint64, with those of the tips; weights: (2, N, 2) and places: (N,
    3), of KnownSplits."""

    cell: CellScratch
    adjacency: np.ndarray
    edge: np.ndarray
    stack: np.ndarray
    branch: np.ndarray
    kept: np.ndarray
    shares: np.ndarray
    square: np.ndarray
    vectors: np.ndarray
    parsimony: ParsimonyRoom
    keys: np.ndarray
    weights: np.ndarray
    places: np.ndarray
