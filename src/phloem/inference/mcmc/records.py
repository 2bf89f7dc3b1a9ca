"""Flat records that the compiled Metropolis-coupled sampler works on: one of each for every run.

H chains, T tips, N = 2T-2 nodes, S states, C rate categories. An unrooted tree hangs from tip 0: tip 0 has
one child, every internal node T … N-1 has two; the branch above a node belongs to it; tip 0 has none. All are
NamedTuples of arrays, because numba reads those without conversion and they save as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LANES = 4  # categories a block of the four-state kernel holds

# kinds of moves (ChainData.move_kind)
BRANCH_MULTIPLIER, TREE_MULTIPLIER, NODE_SLIDER, NNI, SPR, TBR = range(6)
SIMPLEX_DIRICHLET, SIMPLEX_SLIDER, POSITIVE_MULTIPLIER, UNIT_SLIDER = range(6, 10)

# branch length priors (ChainData.length_prior_kind)
GAMMA_DIRICHLET, EXPONENTIAL = range(2)

# blocks of ChainState.parameters (ChainData.block_start): three simplexes and two numbers
EXCHANGEABILITY, OMEGA, FREQUENCY, ALPHA, P_INVARIABLE = range(5)


class ChainData(NamedTuple):
    """What never changes during a run.

    tip_codes: (T, P) int32, rows of code_sets. code_sets: (n_codes, S) 0/1. weights: (P,) pattern weights.
    constant_sets: (P, S) 1 where every tip allows the state. n_hidden: the first n_hidden patterns have
    weight 0 and stand for what cannot be observed (Lewis 2001, Mkv). n_categories: C. width: doubles a column
    of messages takes. use_data: 0 samples the prior. repeats: 1 works on distinct columns, 0 on all patterns.
    rescale: 1 guards long products against underflow. base: (S, S) fixed symmetric factor of the
    exchangeabilities; class_a, class_b: (S, S) which entry of the blocks EXCHANGEABILITY and OMEGA multiplies
    it. block_start, block_size: (5,) where each block lies. gamma: 1 if rates follow a discrete gamma;
    gamma_median: 1 for medians. fixed_rates, fixed_weights: (C,) used if gamma is 0 (weights in any case).
    sites_per_character: multiplies all rates, see ModelStructure.
    length_prior_kind, length_prior: see compiled/prior.py. length_bounds: (2,). block_bounds: (5,
    2). alpha_prior_rate: of the exponential prior on alpha. concentration: (3,) of the Dirichlet priors.
    move_kind, move_block: (M,). move_cumulative: (M,) ends at 1. move_target: (M,) acceptance aimed at while
    tuning (0: not tuned). move_bounds: (M, 2) of the tuning parameter. hastings_factor: (M,) multiplies the
    log Hastings ratio: 1, except where a test plants an error. p_extend: of extending SPR and TBR. heat: (H,)
    inverse temperatures by rank.
    """

    tip_codes: np.ndarray
    code_sets: np.ndarray
    weights: np.ndarray
    constant_sets: np.ndarray
    n_hidden: int
    n_categories: int
    width: int
    use_data: int
    repeats: int
    rescale: int
    base: np.ndarray
    class_a: np.ndarray
    class_b: np.ndarray
    block_start: np.ndarray
    block_size: np.ndarray
    gamma: int
    gamma_median: int
    sites_per_character: int
    fixed_rates: np.ndarray
    fixed_weights: np.ndarray
    length_prior_kind: int
    length_prior: np.ndarray
    length_bounds: np.ndarray
    block_bounds: np.ndarray
    alpha_prior_rate: float
    concentration: np.ndarray
    move_kind: np.ndarray
    move_block: np.ndarray
    move_cumulative: np.ndarray
    move_target: np.ndarray
    move_bounds: np.ndarray
    hastings_factor: np.ndarray
    p_extend: float
    heat: np.ndarray


class ChainState(NamedTuple):
    """Everything a run needs to go on: the checkpoint is this record.

    Trees have two slots for each chain: slot[h] is the accepted one, the other the proposal's. parent, left,
    right: (H, 2, N) int32. length: (H, 2, N). postorder: (H, 2, N-1) int32, tip 0 left out. parameters: (H,
    2, n) all blocks. log_likelihood, log_prior: (H,). rank: (H,) place in the heat ladder. rng: (H, 4) uint64
    and swap_rng: (4,) uint64, states of xoshiro256++. tuning: (H, M) by rank and move. tried, accepted: (H,
    M) since the start; batch_tried, batch_accepted: since the last tuning. swaps_tried, swaps_accepted: (H,
    H) by rank. generation: (1,).
    """

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    length: np.ndarray
    postorder: np.ndarray
    slot: np.ndarray
    parameters: np.ndarray
    log_likelihood: np.ndarray
    log_prior: np.ndarray
    rank: np.ndarray
    rng: np.ndarray
    swap_rng: np.ndarray
    tuning: np.ndarray
    tried: np.ndarray
    accepted: np.ndarray
    batch_tried: np.ndarray
    batch_accepted: np.ndarray
    swaps_tried: np.ndarray
    swaps_accepted: np.ndarray
    generation: np.ndarray


class ChainWork(NamedTuple):
    """Caches that follow from data and state, and scratch. Double-buffered ones keep the slot in use in
    *_slot.

    messages: (H, total) columns of width doubles; layout in compiled/layout.py. exponents: (H, 2,
    T-2, P) int32, powers of two taken out of internal messages (one column unless rescale). matrices: (H, 2,
    N, C S S) transition matrices in the order their kernel reads. class_of: (H, T + 2 (T-2), P) int32,
    representative: (H, 2 (T-2), P) int32, n_classes: (H, 2 (T-2)) int32, tip_sets: (H, T + 2 (T-2), words)
    uint64. eigenvalues: (H, 2, S), right, left: (H, 2, S, S), Q = right Λ left; rates, category_weights: (H,
    2, C). message_slot, matrix_slot, class_slot: (H, N) int8; model_slot: (H,) int8. new_*: the proposal's
    slots, not of any chain in particular. adjacency, edge: (N, 3) scratch of topology moves. dirty: (N,) 0
    nothing, 1 the message, 2 the classes changed too. site, site_exponent: (P,). root_tip: (n_codes width,).
    every: (P,) 0, 1, 2 …
    """

    messages: np.ndarray
    exponents: np.ndarray
    matrices: np.ndarray
    class_of: np.ndarray
    representative: np.ndarray
    n_classes: np.ndarray
    tip_sets: np.ndarray
    eigenvalues: np.ndarray
    right: np.ndarray
    left: np.ndarray
    rates: np.ndarray
    category_weights: np.ndarray
    message_slot: np.ndarray
    matrix_slot: np.ndarray
    class_slot: np.ndarray
    model_slot: np.ndarray
    new_message_slot: np.ndarray
    new_matrix_slot: np.ndarray
    new_class_slot: np.ndarray
    new_model_slot: np.ndarray
    dirty: np.ndarray
    site: np.ndarray
    site_exponent: np.ndarray
    root_tip: np.ndarray
    every: np.ndarray
    hash_key: np.ndarray
    hash_value: np.ndarray
    adjacency: np.ndarray
    edge: np.ndarray
    stack: np.ndarray
    shares: np.ndarray
    scratch: np.ndarray
