"""The records of one run at its start: constants, trees, empty caches."""

from __future__ import annotations

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.moves import Move
from phloem.inference.mcmc.records import (
    EXPONENTIAL,
    GAMMA_DIRICHLET,
    LANES,
    ChainData,
    ChainState,
    ChainWork,
)
from phloem.inference.mcmc.seeds import START, SWAPS, stream
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior
from phloem.inference.mcmc.starting_trees import hanging_from_tip, perturbed, random_tree
from phloem.inference.mcmc.structure import ModelStructure
from phloem.tree.tree import Tree

UNSCALED_TIPS = 24  # up to here no product of messages can leave double precision (docs/mcmc.md)
BLOCK_BOUNDS = np.array([[1e-6, 1.0], [1e-6, 1.0], [1e-6, 1.0], [1e-3, 200.0], [0.0, 0.9999]])


def message_width(structure: ModelStructure) -> int:
    """Doubles of one message column: four states take whole blocks of LANES categories."""
    if structure.n_states == 4:
        return 4 * LANES * -(-structure.n_categories // LANES)
    return structure.n_states * structure.n_categories


def chain_data(
    codes, code_sets, weights, n_hidden, structure, settings, moves: tuple[Move, ...]
) -> ChainData:
    """Constants of a run. codes: (T, P) rows of code_sets (n_codes, S); the first n_hidden patterns are
    unobservable."""
    n_tips = len(codes)
    if n_tips < 3:
        raise InputError(f"an unrooted tree needs at least three taxa, got {n_tips}")
    blocks = structure.blocks
    sizes = np.array([b.size for b in blocks])
    cumulative = np.cumsum([m.weight for m in moves])
    cumulative = cumulative / cumulative[-1]
    cumulative[-1] = 1.0
    factor = settings.hastings_factor or {}
    return ChainData(
        tip_codes=np.ascontiguousarray(codes, np.int32),
        code_sets=np.ascontiguousarray(code_sets, np.float64),
        weights=np.ascontiguousarray(weights, np.float64),
        constant_sets=np.ascontiguousarray(np.all(np.asarray(code_sets, bool)[codes], axis=0), np.float64),
        n_hidden=n_hidden,
        n_categories=structure.n_categories,
        width=message_width(structure),
        use_data=int(settings.use_data),
        repeats=int(settings.repeats),
        rescale=int(n_tips > UNSCALED_TIPS),
        base=np.ascontiguousarray(structure.base, np.float64),
        class_a=np.ascontiguousarray(structure.class_a, np.int32),
        class_b=np.ascontiguousarray(structure.class_b, np.int32),
        block_start=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        block_size=sizes.astype(np.int64),
        gamma=int(structure.alpha is not None),
        gamma_median=int(not structure.gamma_mean),
        sites_per_character=structure.sites_per_character,
        fixed_rates=np.ascontiguousarray(structure.rates, np.float64),
        fixed_weights=np.ascontiguousarray(structure.weights, np.float64),
        **_prior_fields(settings, structure),
        move_kind=np.array([m.kind for m in moves], np.int64),
        move_block=np.array([m.block for m in moves], np.int64),
        move_cumulative=cumulative,
        move_target=np.array([m.target for m in moves]),
        move_bounds=np.array([m.bounds for m in moves]),
        hastings_factor=np.array([factor.get(m.name, 1.0) for m in moves]),
        p_extend=settings.p_extend,
        heat=1.0 / (1.0 + settings.heating * np.arange(settings.n_chains)),
    )


def _prior_fields(settings: ChainSettings, structure: ModelStructure) -> dict:
    priors = settings.priors
    lengths = priors.branch_lengths
    exponential = isinstance(lengths, ExponentialPrior)
    if isinstance(lengths, ExponentialPrior):
        numbers = [lengths.rate, 0.0, 0.0, 0.0]
    else:
        numbers = [lengths.shape, lengths.rate, lengths.tips, lengths.ratio]
    free = [b.free for b in structure.blocks]
    concentration = [priors.exchangeability, priors.omega, priors.frequency]
    return {
        "length_prior_kind": EXPONENTIAL if exponential else GAMMA_DIRICHLET,
        "length_prior": np.array(numbers),
        "length_bounds": np.array(settings.branch_length_bounds),
        "block_bounds": BLOCK_BOUNDS.copy(),
        "alpha_prior_rate": priors.alpha_rate if free[3] else 0.0,
        "concentration": np.array([a if f else 0.0 for a, f in zip(concentration, free)]),
    }


def chain_state(
    data: ChainData,
    structure: ModelStructure,
    moves,
    settings: ChainSettings,
    run: int,
    start_tree: Tree | None = None,
) -> ChainState:
    """Trees and the parameters' starting values, for every chain of one run.

    start_tree: None for random trees, else each chain starts at its own perturbation of this one (perturbed).
    """
    n_tips, n_chains, n_moves = data.tip_codes.shape[0], settings.n_chains, len(moves)
    n = 2 * n_tips - 2
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(run, START)))
    integers = [np.full((n_chains, 2, n), -1, np.int32) for _ in range(3)]
    length = np.zeros((n_chains, 2, n))
    postorder = np.zeros((n_chains, 2, n - 1), np.int32)
    given = None if start_tree is None else hanging_from_tip(start_tree, settings.branch_length_bounds)
    for h in range(n_chains):
        tree = random_tree(n_tips, rng) if given is None else perturbed(given, rng)
        for array, row in zip([*integers, length, postorder], tree):
            array[h, :] = row
    values = np.concatenate([b.start for b in structure.blocks])
    counts = [np.zeros((n_chains, n_moves), np.int64) for _ in range(4)]
    swaps = [np.zeros((n_chains, n_chains), np.int64) for _ in range(2)]
    return ChainState(
        parent=integers[0],
        left=integers[1],
        right=integers[2],
        length=length,
        postorder=postorder,
        slot=np.zeros(n_chains, np.int64),
        parameters=np.tile(values, (n_chains, 2, 1)),
        log_likelihood=np.zeros(n_chains),
        log_prior=np.zeros(n_chains),
        rank=np.arange(n_chains),
        rng=np.stack([stream(settings.seed, run, h) for h in range(n_chains)]),
        swap_rng=stream(settings.seed, run, SWAPS),
        tuning=np.tile(np.array([m.tuning for m in moves]), (n_chains, 1)),
        tried=counts[0],
        accepted=counts[1],
        batch_tried=counts[2],
        batch_accepted=counts[3],
        swaps_tried=swaps[0],
        swaps_accepted=swaps[1],
        generation=np.zeros(1, np.int64),
    )


def chain_work(data: ChainData, n_chains: int) -> ChainWork:
    """Caches of one run. Memory is taken as columns are first written, so it follows their number, not P."""
    n_tips, p = data.tip_codes.shape
    n_codes, s = data.code_sets.shape
    h, n, inner, c = n_chains, 2 * n_tips - 2, n_tips - 2, data.n_categories
    total = data.width * (n_codes + 1 + 2 * n_tips * n_codes + 2 * inner * p)
    messages = aligned(h, total)
    columns = code_columns(data)
    messages[:, : columns.size] = columns.ravel()
    messages[:, columns.size : columns.size + data.width] = 1.0
    class_of = np.empty((h, n_tips + 2 * inner, p), np.int32)
    class_of[:, :n_tips] = data.tip_codes
    words = -(-n_tips // 64)
    tip_sets = np.zeros((h, n_tips + 2 * inner, words), np.uint64)
    for t in range(n_tips):
        tip_sets[:, t, t // 64] = np.uint64(1) << np.uint64(t % 64)
    slots = [np.zeros((h, n), np.int8) for _ in range(3)]
    new_slots = [np.zeros(n, np.int8) for _ in range(3)]
    table = 1 << int(2 * p - 1).bit_length()
    matrix = s * data.width if s == 4 else c * s * s
    return ChainWork(
        messages=messages,
        exponents=np.zeros((h, 2, inner, p if data.rescale else 1), np.int32),
        matrices=aligned(h, 2, n, matrix),
        class_of=class_of,
        representative=np.zeros((h, 2 * inner, p), np.int32),
        n_classes=np.zeros((h, 2 * inner), np.int32),
        tip_sets=tip_sets,
        eigenvalues=np.zeros((h, 2, s)),
        right=np.zeros((h, 2, s, s)),
        left=np.zeros((h, 2, s, s)),
        rates=np.zeros((h, 2, c)),
        category_weights=np.zeros((h, 2, c)),
        message_slot=slots[0],
        matrix_slot=slots[1],
        class_slot=slots[2],
        model_slot=np.zeros(h, np.int8),
        new_message_slot=new_slots[0],
        new_matrix_slot=new_slots[1],
        new_class_slot=new_slots[2],
        new_model_slot=np.zeros(1, np.int8),
        dirty=np.zeros(n, np.int8),
        site=np.zeros(p),
        site_exponent=np.zeros(p, np.int32),
        root_tip=aligned(n_codes * data.width),
        every=np.arange(p, dtype=np.int32),
        hash_key=np.zeros(table, np.int64),
        hash_value=np.zeros(table, np.int32),
        adjacency=np.zeros((n, 3), np.int32),
        edge=np.zeros((n, 3)),
        stack=np.zeros(n, np.int32),
        shares=np.zeros(max(3, int(data.block_size.max()))),
        scratch=np.zeros((s, s)),
    )


def aligned(*shape: int) -> np.ndarray:
    """Uninitialised float64 that starts at a cache line: columns of 128 bytes then touch two lines, not
    three, which halves the time of the four-state kernels."""
    size = int(np.prod(shape))
    whole = np.empty(size + 7)
    first = -(whole.ctypes.data // 8) % 8
    return whole[first : first + size].reshape(shape)


def code_columns(data: ChainData) -> np.ndarray:
    """(n_codes, width): the states every character code allows, laid out as message columns."""
    if data.code_sets.shape[1] != 4:
        return np.tile(data.code_sets, (1, data.n_categories))
    block = np.repeat(data.code_sets, LANES, axis=1)
    return np.tile(block, (1, data.width // block.shape[1]))
