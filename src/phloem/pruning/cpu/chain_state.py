"""What the host knows of chains whose messages lie on a device: two versions of every tree, two places of
all.

Records of arrays that compiled code takes. H chains, N nodes, K sets of branch lengths, C categories. A
version is 0 or 1: one is accepted, a proposal writes the other one. Columns, messages and matrices of a node
lie in one of two places each, also 0 or 1; a proposal uses the place that the accepted version does not, and
shares what it does not change.

Numbers of a node lie side by side, under the names below: taking many small arrays apart costs compiled code
more than the work that it does with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.pruning.cpu.column_classes import column_classes, table_entries
from phloem.pruning.tree_data import TreeData

# Of a node in a version (Trees.node). CLADE is a key of the set of tips below; three are places in use.
# STALE: its message lies in the columns of a node above (see ListShape.lazy), and is to be made anew.
LEFT, RIGHT, PARENT, CLADE, COLUMNS_IN, MESSAGE_IN, MATRIX_IN, STALE = range(8)
# Of a node in a place (Places.of): columns, where its class rows begin and the room there; likewise its
# messages; and how often its class rows were written. Of the root, in place 0: where its columns begin among
# the root columns of all chains, which may be over data of their own (build_state).
SIZE, ROWS, ROWS_ROOM, MESSAGE, MESSAGE_ROOM, ROWS_WRITTEN, FIRST_ROOT = range(7)


class Trees(NamedTuple):
    """Both versions of every chain.

    accepted: (H,) the accepted version; pending: (H,) 1 while a proposal waits. node: (2, H, N, 8) int64;
    tips come first, the root is N-1, other nodes may have any number; -1 where there is no child or parent.
    lengths: (2, H, K, N) effective branch lengths. model_in: (2, H) place in use. rates, length_set: (2, H,
    C) of every category. value: (2, H) log-likelihoods. stale: (2, H) how many nodes are STALE.
    """

    accepted: np.ndarray
    pending: np.ndarray
    node: np.ndarray
    lengths: np.ndarray
    model_in: np.ndarray
    rates: np.ndarray
    length_set: np.ndarray
    value: np.ndarray
    stale: np.ndarray


class Places(NamedTuple):
    """Where everything lies. of: (H, 2, N, 8) int64 by chain, place and node; rows: class rows of all nodes,
    left class + 2**32 · right class (ColumnClasses); used: (3,) class rows and message columns that are
    taken, and class rows that settling may take."""

    of: np.ndarray
    rows: np.ndarray
    used: np.ndarray


class Scratch(NamedTuple):
    """Of every chain's proposal. order: (H, N), n_order: (H,) nodes to evaluate anew, the root first; want:
    (H, N) bits of the node marks below; depth: (H, N); top: (H, N) of renumbered nodes the lowest node above
    that keeps its tips. at_depth, tiles_at: (H, N + 1) by edges from the root: how many nodes and tiles, and
    then where the next one goes. part: (H, 9) what the chain's part of the list holds, and where it lies.
    fresh: (H, 2 N), n_fresh: (H, 2) class rows that the device does not have yet, 2 · node + place: of what
    was accepted, and with what is proposed."""

    order: np.ndarray
    n_order: np.ndarray
    want: np.ndarray
    depth: np.ndarray
    top: np.ndarray
    at_depth: np.ndarray
    tiles_at: np.ndarray
    part: np.ndarray
    fresh: np.ndarray
    n_fresh: np.ndarray


class Numbering(NamedTuple):
    """What columns are numbered in. slot: (N,) row of a node in cells: (T + 3, columns of the root)
    int32; hops: (N,). table, base: see column_classes.number_pairs."""

    slot: np.ndarray
    cells: np.ndarray
    hops: np.ndarray
    table: np.ndarray
    base: np.ndarray


# Marks of a node (Scratch.want): its branch wants a matrix; it has other children; its class rows are new;
# they are numbered otherwise, so that those above it are new too; it is to be evaluated anew.
BRANCH, EDITED, MOVED, RENUMBERED, DIRTY = 1, 2, 4, 8, 16


class ListShape(NamedTuple):
    """What kernels and lists agree on. post_tile, root_tile: columns of a step on the device; parts: programs
    that share one; repeats: distinct columns are used; lazy: columns of other topologies are numbered when
    these are accepted, and evaluated in those of a node above till then."""

    post_tile: int
    root_tile: int
    parts: int
    repeats: bool
    lazy: bool = False


class Chains(NamedTuple):
    """All of it. blocks: (F, 3) of a model's numbers: first word in Change.numbers, words, and place of the
    first model's on the device, which each model's follow."""

    trees: Trees
    places: Places
    scratch: Scratch
    shape: ListShape
    blocks: np.ndarray
    numbering: Numbering


class Change(NamedTuple):
    """A proposal of every chain; a chain that has none keeps its state and takes no part.

    counts: (H, 3) int64, how many branch lengths are others (N_BRANCHES), how many nodes have other children
    (N_EDITS), and 1 where the model is another (MODEL). branches: (H, N) those nodes, their lengths in
    lengths (H, K, N). edits: (H, N, 3) node, left and right child; a child of nobody any more is somebody
    else's. rates, length_set: (H, C), numbers: (H, words) of the model, laid out as the device wants them.
    """

    counts: np.ndarray
    branches: np.ndarray
    lengths: np.ndarray
    edits: np.ndarray
    rates: np.ndarray
    length_set: np.ndarray
    numbers: np.ndarray


N_BRANCHES, N_EDITS, MODEL = range(3)


class Device(NamedTuple):
    """What compiled code needs to have a list done (chain_steps.evaluate).

    words: the list, and found: (H,) values as int64, both in memory that device and host share. active: (H,)
    chains that take part. limits: (4,) message columns, class rows, rows of steps and matrices there is room
    for. graphs: (32, 32, 32) captured launches by the sizes of graph_key, 0 where there is none; driver:
    address of cuGraphLaunch, and the stream. launching: (1,) 1 while a thread of the process launches.
    """

    words: np.ndarray
    found: np.ndarray
    active: np.ndarray
    limits: np.ndarray
    graphs: np.ndarray
    driver: np.ndarray
    launching: np.ndarray


def no_change(n_chains: int, n_nodes: int, n_sets: int, n_categories: int, n_numbers: int) -> Change:
    """Room for a proposal of every chain, empty."""
    h, n, c = n_chains, n_nodes, n_categories
    return Change(
        np.zeros((h, 3), np.int64),
        np.zeros((h, n), np.int64),
        np.zeros((h, n_sets, n)),
        np.zeros((h, n, 3), np.int64),
        np.zeros((h, c)),
        np.zeros((h, c), np.int64),
        np.zeros((h, n_numbers)),
    )


def make_scratch(n_chains: int, n_nodes: int) -> Scratch:
    """See Scratch."""
    h, n = n_chains, n_nodes

    def whole(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    return Scratch(
        order=whole(h, n),
        n_order=whole(h),
        want=whole(h, n),
        depth=whole(h, n),
        top=whole(h, n),
        at_depth=whole(h, n + 1),
        tiles_at=whole(h, n + 1),
        part=whole(h, 9),
        fresh=whole(h, 2 * n),
        n_fresh=whole(h, 2),
    )


def make_numbering(n_nodes: int, n_root: int) -> Numbering:
    """See Numbering. n_root: columns of the root, of the chain that has most."""
    return Numbering(
        slot=np.zeros(n_nodes, np.int64),
        cells=np.zeros((n_nodes // 2 + 4, n_root), np.int32),
        hops=np.zeros(n_nodes, np.int64),
        table=np.full(table_entries(n_root), -1, np.int64),
        base=np.zeros(1, np.int64),
    )


def tip_keys(n_tips: int) -> np.ndarray:
    """Random 64-bit numbers, the same in every run: a set of tips is known by their sum."""
    return np.random.default_rng(20260711).integers(1, 1 << 62, n_tips, np.int64)


def build_state(
    data: TreeData, left: np.ndarray, right: np.ndarray, n_sets: int
) -> tuple[Trees, Places, list[np.ndarray]]:
    """Trees (lengths and rates still 0), places, and of every chain the (P,) root column of its patterns.

    left, right: (H, T-1), children of every chain's internal nodes, children below parents (else ValueError).
    """
    problem = data.problems[0]
    n_chains, n_tips = len(left), len(problem.tip_codes)
    n_nodes, n_categories = 2 * n_tips - 1, problem.n_categories
    if (np.maximum(left, right) >= np.arange(n_tips, n_nodes)).any():
        raise ValueError("children must have lower numbers than their parents")
    node = np.zeros((2, n_chains, n_nodes, 8), np.int64)
    node[..., : PARENT + 1] = -1  # no child, no parent
    node[:, :, n_tips:, LEFT], node[:, :, n_tips:, RIGHT] = left, right
    node[:, :, :n_tips, CLADE] = tip_keys(n_tips)
    every = np.arange(n_chains)
    with np.errstate(over="ignore"):
        for k in range(n_tips - 1):
            for child in (left[:, k], right[:, k]):
                node[:, every, child, PARENT] = n_tips + k
                node[:, :, n_tips + k, CLADE] += node[:, every, child, CLADE]
    place = np.zeros((n_chains, 2, n_nodes, 8), np.int64)
    rows, used, n_root, root_columns = [], 0, 0, []
    for h, own in enumerate(data.problems):
        classes = data.classes(h, column_classes(left[h], right[h], own.tip_codes, own.repeats))
        size, start = np.diff(classes.offset), used + classes.offset[:-1]
        place[h, 0, :, :5] = np.stack([size, start, size, start, size], 1)
        place[h, :, -1, SIZE], place[h, :, -1, FIRST_ROOT] = size[-1], n_root
        used, n_root = used + int(classes.offset[-1]), n_root + int(size[-1])
        rows.append(classes.left_class.astype(np.int64) | (classes.right_class.astype(np.int64) << 32))
        root_columns.append(classes.pattern_column)
    trees = Trees(
        np.zeros(n_chains, np.int64),
        np.zeros(n_chains, np.int64),
        node,
        np.zeros((2, n_chains, n_sets, n_nodes)),
        np.zeros((2, n_chains), np.int64),
        np.zeros((2, n_chains, n_categories)),
        np.zeros((2, n_chains, n_categories), np.int64),
        np.full((2, n_chains), np.nan),
        np.zeros((2, n_chains), np.int64),
    )
    return trees, Places(place, np.concatenate(rows), np.array([used, used, 0])), root_columns


def ordered_tree(trees: Trees, chain: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The accepted tree under numbers with children below parents: left, right (T-1,) int32, and the (N,) new
    number of every node."""
    left, right = trees.node[trees.accepted[chain], chain, :, [LEFT, RIGHT]]
    order = [len(left) - 1]
    for x in order:
        order += [int(child) for child in (left[x], right[x]) if left[child] >= 0]
    nodes, number = np.array(order[::-1]), np.arange(len(left))
    number[nodes] = np.arange(len(left) - len(nodes), len(left))
    return number[left[nodes]].astype(np.int32), number[right[nodes]].astype(np.int32), number
