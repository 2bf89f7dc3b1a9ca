"""The records of one run at its start: streams of random words, trees, constants, cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from phloem.density.terms.compiled.dispatch import block_table, length_table
from phloem.errors import InputError
from phloem.inference.mcmc.constraints import allowed_tree, has_splits, split_rules
from phloem.inference.mcmc.heating import first_powers
from phloem.inference.mcmc.learning import joint_blocks
from phloem.inference.mcmc.move_table import ChainMove, move_arrays
from phloem.inference.mcmc.priors import length_bounds, number_priors, start_values
from phloem.inference.mcmc.recipes import recipes_of
from phloem.inference.mcmc.records import (
    ChainData,
    ChainScratch,
    ChainShared,
    ChainState,
    ParsimonyRoom,
)
from phloem.inference.mcmc.settings import ChainSettings, Constraints
from phloem.inference.mcmc.split_memory import no_splits
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.mcmc.weights import cumulative_shares, nothing_seen
from phloem.inference.mcmc.working_table import working_table
from phloem.pruning.cpu.cell_loops import GRADIENT, PROPOSE
from phloem.pruning.cpu.cell_memory import Part, down_arrays, down_scratch, pre_order_vectors
from phloem.pruning.cpu.cell_records import DownArrays, DownScratch
from phloem.pruning.cpu.column_classes import tip_keys
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.cpu.storage import address_of
from phloem.tree.layout import resolve
from phloem.tree.tree import Tree

# Streams of random words for every chain of every run, from one seed.

SWAPS = 1_000_000  # chain number of a run's swap stream
START = 1_000_001  # of its starting trees
OF_PROPOSALS = "tried", "accepted", "batch_tried", "batch_accepted", "undefined"  # counts, by move


def stream(seed: int, run: int, chain: int) -> np.ndarray:
    """(4,) uint64 state of xoshiro256++ for one chain: numpy's SeedSequence mixes (seed, run, chain) so
    that no two streams are alike (O'Neill's seed_seq, as numpy documents it)."""
    words = np.random.SeedSequence(entropy=seed, spawn_key=(run, chain)).generate_state(4, np.uint64)
    words[0] |= np.uint64(1)  # never all zero
    return words


# Trees that chains start from: rooted binary arrays, the root on the branch of tip 0.

START_LENGTH = 0.1  # of random trees, and of branches without a length in a tree given
TIPS_AN_INTERCHANGE = 5  # a tree given is perturbed by one interchange for so many tips


class StartTree(NamedTuple):
    """A tree as ChainState has it, (N,) each of N = 2T - 1 nodes: parent, left, right, order int64, and one
    set of lengths."""

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    lengths: np.ndarray


def rooted_beside_tip(tree: Tree, bounds: tuple[float, float]) -> StartTree:
    """A tree of T >= 3 tips with its root on the branch of tip 0; multifurcations are resolved.

    Lengths outside bounds, negative ones among them, become the bound; missing ones START_LENGTH.
    """
    binary, _ = resolve(tree, multifurcations=True)
    root = binary.n_nodes - 1
    lengths = np.where(np.isfinite(binary.lengths), binary.lengths, START_LENGTH)
    first, second = binary.children(root).tolist()
    edges = [(x, int(binary.parent[x]), lengths[x]) for x in range(root) if x not in (first, second)]
    neighbours: list[list[tuple[int, float]]] = [[] for _ in range(root)]
    for a, b, length in [*edges, (first, second, lengths[first] + lengths[second])]:
        neighbours[a].append((b, length))
        neighbours[b].append((a, length))
    parent, left, right = (np.full(root + 1, -1, np.int64) for _ in range(3))
    above = np.zeros(root + 1)
    [(beside, above[0])] = neighbours[0]
    parent[[0, beside]], left[root], right[root] = root, beside, 0
    stack = [(beside, 0)]
    while stack:
        x, came = stack.pop()
        below = [(y, length) for y, length in neighbours[x] if y != came]
        for side, (y, length) in zip((left, right), below):
            side[x], parent[y], above[y] = y, x, length
            stack.append((y, x))
    own = np.delete(np.arange(root), beside)
    above[own] = np.clip(above[own], *bounds)
    return StartTree(parent, left, right, _order(left, right), above)


def n_interchanges(n_tips: int) -> int:
    """How many random nearest-neighbour interchanges perturb a tree that chains start from."""
    return -(-n_tips // TIPS_AN_INTERCHANGE) if n_tips > 3 else 0


def perturbed(
    tree: StartTree, rng: np.random.Generator, splits: np.ndarray | None = None, fixed: bool = False
) -> StartTree:
    """The tree after n_interchanges random interchanges, so that chains do not start at one point.

    At a uniformly drawn internal branch a child of its lower end changes places with the sibling; both keep
    the lengths of their branches. An interchange to a tree that does not obey splits is undone. fixed:
    only lengths are perturbed.
    """
    if fixed:
        return tree._replace(lengths=tree.lengths * np.exp(rng.normal(0, 0.5, len(tree.lengths))))
    parent, left, right = tree.parent.copy(), tree.left.copy(), tree.right.copy()
    root = len(parent) - 1
    n_tips = root // 2 + 1
    for _ in range(n_interchanges(n_tips)):
        lower = rng.choice(np.flatnonzero(parent[n_tips:root] != root)) + n_tips
        upper = parent[lower]
        sides = (left, right) if rng.random() < 0.5 else (right, left)
        aside = right if left[upper] == lower else left
        child, sibling = sides[0][lower], aside[upper]
        sides[0][lower], aside[upper] = sibling, child
        parent[child], parent[sibling] = upper, lower
        if splits is not None and not has_splits(splits, left, right, _order(left, right)):
            sides[0][lower], aside[upper] = child, sibling
            parent[child], parent[sibling] = lower, upper
    return StartTree(parent, left, right, _order(left, right), tree.lengths)


def random_tree(n_tips: int, rng: np.random.Generator, asked: Constraints | None = None) -> StartTree:
    """A tree grown by attaching tips to branches chosen uniformly; or one that obeys constraints."""
    if asked is not None and any(asked):
        return _at_start(*allowed_tree(n_tips, rng, asked))
    root, first = 2 * n_tips - 2, n_tips
    parent, left, right = (np.full(root + 1, -1, np.int64) for _ in range(3))
    parent[[0, first]], left[root], right[root] = root, first, 0
    parent[[1, 2]], left[first], right[first] = first, 1, 2
    for tip in range(3, n_tips):
        node = n_tips + tip - 2
        below = rng.choice(np.concatenate([np.arange(1, tip), np.arange(n_tips, node)]))
        above = parent[below]
        if left[above] == below:
            left[above] = node
        else:
            right[above] = node
        parent[node], parent[below], parent[tip] = above, node, node
        left[node], right[node] = below, tip
    return _at_start(parent, left, right)


def _at_start(parent: np.ndarray, left: np.ndarray, right: np.ndarray) -> StartTree:
    lengths = np.full(len(parent), START_LENGTH)
    lengths[[-1, left[-1]]] = 0.0
    return StartTree(parent, left, right, _order(left, right), lengths)


def _order(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Children before parents, tip 0 and the root last."""
    order, stack, root = [], [int(left[-1])], len(left) - 1
    while stack:
        x = stack.pop()
        order.append(x)
        if left[x] >= 0:
            stack += [int(left[x]), int(right[x])]
    return np.array([*order[::-1], 0, root], np.int64)


# The records of one run at its start: constants, trees, cells.


def chain_forest(
    cells: Sequence[Part], own: range, n_chains: int, evaluates: bool, hangs: bool = True
) -> Forest:
    """Of n_chains chains those of the cells that are here. evaluates: compiled loops ask for likelihoods.
    hangs: as of Forest."""
    first, parts = dict[int, int](), list[Part]()  # of cells that share a model the first one here
    for i, cell in enumerate(cells[own.start : own.stop]):
        known = first.setdefault(cell.model_of if cell.model_of >= 0 else own.start + i, i)
        parts.append(replace(cell, model_of=known if known < i else -1))
    forest = Forest(parts, n_chains, hangs)
    forest.part_of += sum(cell.model_of < 0 for cell in cells[: own.start + 1]) - 1
    if evaluates:
        forest.provide(PROPOSE)
    return forest


def chain_data(
    forest: Forest,
    structure: ChainModel,
    settings: ChainSettings,
    moves: Sequence[ChainMove],
    first_cell: int = 0,
) -> ChainData:
    """Constants of a run. first_cell: of those here."""
    n_tips = len(forest.parts[0].tip_codes)
    if n_tips < 3:
        raise InputError(f"an unrooted tree needs at least three taxa, got {n_tips}")
    space = structure.space
    return ChainData(
        n_tips=n_tips,
        use_data=int(settings.use_data),
        numbers=forest.numbers,
        addresses=forest.addresses,
        part_of=forest.part_of,
        recipes=recipes_of(structure),
        number_priors=block_table(space, number_priors(structure, settings.priors)),
        length_priors=length_table(settings.priors.branch_lengths, 2 * n_tips - 3, n_tips),
        length_bounds=np.array(length_bounds(settings)),
        block_first=space.offsets[:-1].copy(),
        block_size=np.diff(space.offsets),
        block_bounds=np.array([[b.lower, b.upper] for b in space.blocks]).reshape(-1, 2),
        moves=move_arrays(moves),
        p_extend=settings.p_extend,
        heat=first_powers(settings)[:, None] * [1.0, 1.0, 0.0],
        working=working_table(settings.working, n_tips, structure.n_sets),
        splits=split_rules(settings.topologies, n_tips),
        joint=joint_blocks(space, n_tips),
        first_cell=first_cell,
    )


def chain_state(
    data: ChainData,
    structure: ChainModel,
    moves: Sequence[ChainMove],
    settings: ChainSettings,
    run: int,
    start_tree: Tree | None = None,
) -> ChainState:
    """Trees and the numbers' starting values, for every chain of one run.

    start_tree: None for random trees, else each chain starts at its own perturbation of this one (perturbed).
    """
    n_chains, n_moves, n = settings.n_chains, len(moves), 2 * data.n_tips - 1
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(run, START)))
    parent, left, right, order = (np.full((n_chains, 2, n), -1, np.int64) for _ in range(4))
    lengths = np.zeros((n_chains, 2, structure.n_sets, n))
    bounds = length_bounds(settings)
    given = None if start_tree is None else rooted_beside_tip(start_tree, bounds)
    if given is not None and not has_splits(data.splits, *given[1:4]):
        raise InputError("the starting tree does not obey the constraints", hint="Start from random trees.")
    for h in range(n_chains):
        if given is None:
            tree = random_tree(data.n_tips, rng, settings.topologies)
        else:
            tree = perturbed(given, rng, data.splits, settings.fixed_topology)
        parent[h], left[h], right[h], order[h] = tree[:4]
        lengths[h] = np.where(tree.lengths > 0, np.clip(tree.lengths, *bounds), 0.0)
    counts = {name: np.zeros((n_chains, n_moves), np.int64) for name in OF_PROPOSALS}
    swaps = [np.zeros((n_chains, n_chains), np.int64) for _ in range(2)]
    return ChainState(
        parent=parent,
        left=left,
        right=right,
        order=order,
        lengths=lengths,
        slot=np.zeros(n_chains, np.int64),
        values=np.tile(start_values(structure, settings.priors), (n_chains, 2, 1)),
        log_likelihood=np.zeros(n_chains),
        log_prior=np.zeros(n_chains),
        log_working=np.zeros(n_chains),
        rank=np.arange(n_chains),
        powers=first_powers(settings),
        rng=np.stack([stream(settings.seed, run, h) for h in range(n_chains)]),
        swap_rng=stream(settings.seed if settings.swap_seed is None else settings.swap_seed, run, SWAPS),
        tuning=np.tile(np.array([m.move.tuning for m in moves]), (n_chains, 1)),
        **counts,
        undefined_last=np.zeros((n_chains, 4 + structure.space.size)),
        swaps_tried=swaps[0],
        swaps_accepted=swaps[1],
        generation=np.zeros(1, np.int64),
        looks=np.zeros(1, np.int64),
        mean=np.zeros((n_chains, len(data.joint.factor))),
        covariance=np.zeros_like(data.joint.factor),
        factor=data.joint.factor.copy(),
        wander=data.joint.wander.copy(),
        **no_splits(data.n_tips, structure.n_sets),
        cumulative=cumulative_shares(np.array([m.weight for m in moves])),
        **nothing_seen(n_moves, data.n_tips, structure.space.n_coordinates + 1)._asdict(),
    )


def chain_shared(data: ChainData, n_chains: int, n_sets: int, n_cells: int, n_swaps: int = 0) -> ChainShared:
    """What the threads of a run share, at its start; n_cells: on all processes; n_swaps: that there is to be
    room for."""
    keys = np.zeros((n_chains, 2 * data.n_tips - 1), np.uint64)
    keys[:, : data.n_tips] = tip_keys(data.n_tips)
    whole = [np.zeros(n_chains, np.int64) for _ in range(3)]
    return ChainShared(
        keys=keys,
        new_keys=keys.copy(),
        lock=whole[0],
        done=whole[1],
        swapped=whole[2],
        move=np.full(n_chains, -1, np.int64),
        ratio=np.zeros(n_chains),
        pair=np.zeros((n_swaps, 2), np.int64),
        log_uniform=np.zeros(n_swaps),
        prior=np.zeros(n_chains),
        waits=np.zeros(n_chains, np.int64),
        taken=np.zeros(n_chains, np.int64),
        status=np.zeros(n_chains, np.int64),
        fields=np.zeros((data.numbers.shape[1], 13), np.int64),
        crew=np.zeros(8 * (n_chains + 6), np.int64),
        stop=np.zeros(1, np.int64),
        moved=np.zeros((n_chains, 2 * data.n_tips - 1), np.uint8),
        reordered=np.zeros(n_chains, np.int64),
        everything=np.zeros(n_chains, np.int64),
        next_cell=np.full(n_chains, data.numbers.shape[1], np.int64),
        cells_done=np.zeros(n_chains, np.int64),
        cell_values=np.zeros((n_chains, n_cells)),
        asks=np.zeros(n_chains, np.int64),
        turn=np.zeros(n_chains, np.int64),
        slope=np.zeros((n_chains, n_sets, 2 * data.n_tips - 1)),
        momentum=np.zeros((n_chains, n_sets, 2 * data.n_tips - 1)),
    )


@dataclass(frozen=True, eq=False)
class Downs:
    """What moves that ask for gradients need. table: (H, L, ·) addresses of the cells' ways down, which
    memory holds; rooms: one a thread."""

    table: np.ndarray
    memory: list[list[DownArrays]]
    rooms: list[DownScratch]


def chain_downs(forest: Forest, n_threads: int) -> Downs:
    """Ways down of all cells, each with memory of its own: threads have different chains at one time."""
    memory = [[down_arrays(part, pre_order_vectors([part])) for part in forest.parts] for _ in forest.cells]
    forest.provide(GRADIENT)
    table = np.array([[[address_of(array) for array in own] for own in chain] for chain in memory], np.int64)
    return Downs(table, memory, [down_scratch(forest.parts) for _ in range(n_threads)])


def chain_scratch(forest: Forest, data: ChainData, n_sets: int, characters: ParsimonyRoom) -> ChainScratch:
    """What a thread works in. characters: of all columns, wherever they are."""
    n, square = 2 * data.n_tips - 1, data.recipes.base.shape[1] ** 2
    return ChainScratch(
        cell=forest.scratch(),
        adjacency=np.zeros((n, 3), np.int64),
        edge=np.zeros((n, 3), np.int64),
        stack=np.zeros(n, np.int64),
        branch=np.zeros(n, np.int64),
        kept=np.zeros((n_sets, n)),
        shares=np.zeros(2 * len(data.joint.factor) + 3 * int(data.block_size.sum() + 1)),  # of all, of one
        square=np.zeros(square),
        vectors=np.zeros(square),
        parsimony=ParsimonyRoom(*(array.copy() for array in characters)),
        keys=np.tile(np.append(tip_keys(data.n_tips), np.zeros(data.n_tips - 1, np.uint64)), (2, 1)),
        weights=np.zeros((2, n, 2)),
        places=np.zeros((n, 3), np.int64),
    )
