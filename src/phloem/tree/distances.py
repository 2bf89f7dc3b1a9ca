"""How far two unrooted trees of the same taxa are apart, beside Robinson and Foulds (splits.py)."""

from __future__ import annotations

import numpy as np

from phloem.errors import InputError
from phloem.tree.match import match_taxa
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits, tip_bits
from phloem.tree.tree import Tree


def branch_score(a: Tree, b: Tree) -> float:
    """Root of the sum over all branches, those of tips too, of squared differences of their lengths; a branch
    that a tree lacks has length 0 there (Kuhner and Felsenstein 1994, Mol. Biol. Evol. 11:459).

    Errors: InputError for trees of other taxa, and for missing lengths.
    """
    one, other = _lengths(a), _lengths(match_taxa(b, a.taxa))
    return float(np.sqrt(sum((one.get(x, 0.0) - other.get(x, 0.0)) ** 2 for x in one.keys() | other.keys())))


def _lengths(tree: Tree) -> dict[bytes, float]:
    """By split without the first taxon; both branches at a root of degree two are one."""
    lengths = np.asarray(tree.lengths[:-1], np.float64)
    if not np.isfinite(lengths).all():
        raise InputError("a branch has no length", hint="Give all, or compare topologies alone.")
    found: dict[bytes, float] = {}
    for key, length in zip(_keys(tree), lengths.tolist()):
        found[key] = found.get(key, 0.0) + length
    return found


def _keys(tree: Tree) -> list[bytes]:
    splits = sample_splits(sample_of_trees([tree]))[0][:-1]
    if tree.rooted:  # clades, some with the first tip
        everything = np.bitwise_or.reduce(tip_bits(tree.n_tips), axis=0)
        with_first = (splits[:, 0] & np.uint64(1)).astype(bool)
        splits = np.where(with_first[:, None], everything & ~splits, splits)
    return [row.tobytes() for row in splits]


def quartet_distance(a: Tree, b: Tree) -> float:
    """Quartets of taxa that the trees resolve differently, and half of those that only one resolves.

    Estabrook et al. 1985, Syst. Zool. 34:193; the half as Bansal et al. 2011, Theor. Comput. Sci. 412:6634.
    Memory grows with the square of the number of taxa, time with its cube. Errors: InputError for other taxa.
    """
    one, other = _around_nodes(a), _around_nodes(match_taxa(b, a.taxa))
    both = _shared(one, other)
    return 0.5 * (_shared(one, one) + _shared(other, other)) - both


def _around_nodes(tree: Tree) -> list[np.ndarray]:
    """Of every inner node (d, T): which tips each of the d subtrees around it has."""
    n, root = tree.n_tips, tree.n_nodes - 1
    below = np.zeros((tree.n_nodes, n))
    below[np.arange(n), np.arange(n)] = 1.0
    for x in range(root):
        below[tree.parent[x]] += below[x]
    found = []
    for x in range(n, tree.n_nodes):
        parts = below[tree.children(x)]
        if x < root:
            parts = np.vstack([parts, 1.0 - below[x]])
        if len(parts) > 2:
            found.append(parts)
    return found


def _shared(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """Quartets ab|cd that both trees have. A tree has one at two nodes: where a, b and the two others are in
    three subtrees, and likewise where c and d part. Of two nodes with numbers I (d, e) of tips that subtrees
    share, c and d are a pair of one I_ij; a and b are in other rows and other columns, different ones.
    """
    total = 0.0
    wide = max((len(parts) for parts in other), default=0)
    padded = np.zeros((len(other), wide, one[0].shape[1] if one else 0))
    for k, parts in enumerate(other):
        padded[k, : len(parts)] = parts
    for parts in one:
        i = np.einsum("dt,wet->wde", parts, padded)
        pairs = i * (i - 1.0) / 2.0
        rows, columns = i.sum(2, keepdims=True), i.sum(1, keepdims=True)
        whole = i.sum((1, 2), keepdims=True)
        # the numbers without row i and column j: their sum, and the sums of squares of rows, columns, entries
        left = whole - rows - columns + i
        squares = i * i
        by_row = (rows - i) ** 2  # of row k without column j, then summed over the other rows
        by_row = by_row.sum(1, keepdims=True) - by_row
        by_column = (columns - i) ** 2
        by_column = by_column.sum(2, keepdims=True) - by_column
        entries = squares.sum((1, 2), keepdims=True) - squares.sum(2, keepdims=True)
        entries = entries - squares.sum(1, keepdims=True) + squares
        total += float((pairs * (left**2 - by_row - by_column + entries)).sum()) / 2.0
    return total / 2.0
