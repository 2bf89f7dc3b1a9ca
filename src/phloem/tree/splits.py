"""Splits and clades as packed bits, tip x in bit x % 64 of word x // 64.

A rooted tree's branch stands for its clade, the tips below it. An unrooted tree's branch stands for a split
of the taxa in two, written as the side without tip 0.
"""

from __future__ import annotations

import numpy as np

from phloem.tree.sample import TreeSample, sample_of_trees
from phloem.tree.tree import Tree

_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def tip_bits(n_tips: int) -> np.ndarray:
    """(T, W) uint64, one bit each; W = ceil(T / 64)."""
    bits = np.zeros((n_tips, (n_tips + 63) // 64), np.uint64)
    tips = np.arange(n_tips)
    bits[tips, tips // 64] = np.uint64(1) << (tips % 64).astype(np.uint64)
    return bits


def sample_clades(sample: TreeSample) -> np.ndarray:
    """(n, N, W) uint64: the tips below every node of every tree; 0 at absent nodes."""
    n, n_nodes = sample.parent.shape
    tips = tip_bits(sample.n_tips)
    bits = np.zeros((n_nodes, n, tips.shape[1]), np.uint64)
    bits[: sample.n_tips] = tips[:, None, :]
    rows = np.arange(n)
    for x in range(n_nodes - 1):
        above = sample.parent[:, x]
        bits[np.where(above < 0, n_nodes - 1, above), rows] |= bits[x]
    return np.ascontiguousarray(bits.transpose(1, 0, 2))


def sample_splits(sample: TreeSample) -> np.ndarray:
    """(n, N, W) uint64: each branch's clade (rooted) or side without tip 0 (unrooted); 0 at the root."""
    bits = sample_clades(sample)
    if not sample.rooted:
        everything = np.bitwise_or.reduce(tip_bits(sample.n_tips), axis=0)
        has_first = (bits[..., 0] & np.uint64(1)).astype(bool)
        bits = np.where(has_first[..., None], everything & ~bits, bits)
        bits[:, -1] = 0
    return bits


def split_sizes(splits: np.ndarray) -> np.ndarray:
    """Number of tips of each split, splits (…, W)."""
    return _BITS_OF_BYTE[np.ascontiguousarray(splits).view(np.uint8)].sum(axis=-1, dtype=np.int64)


def is_trivial(splits: np.ndarray, n_tips: int, rooted: bool) -> np.ndarray:
    """True where a split is part of every tree: a single tip, all tips (or all but tip 0), or nothing."""
    size = split_sizes(splits)
    return (size <= 1) | (size >= n_tips - (0 if rooted else 1))


def tree_splits(tree: Tree) -> np.ndarray:
    """(k, W) uint64: the distinct informative splits (clades, if rooted) of one tree, sorted."""
    sample = sample_of_trees([tree])
    splits = sample_splits(sample)[0]
    return unique_splits(splits[~is_trivial(splits, tree.n_tips, tree.rooted)])[0]


def unique_splits(splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of (m, W) in ascending order, and (m,) the number of the distinct row of each."""
    if splits.shape[1] == 1:
        distinct, inverse = np.unique(splits[:, 0], return_inverse=True)
        return distinct[:, None], inverse
    order = np.lexsort(splits.T)
    ordered = splits[order]
    new = np.ones(len(splits), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(splits), np.int64)
    inverse[order] = np.cumsum(new) - 1
    return ordered[new], inverse


def split_members(splits: np.ndarray, n_tips: int) -> np.ndarray:
    """(…, T) bool: which tips each split of (…, W) holds."""
    tips = np.arange(n_tips)
    return ((splits[..., tips // 64] >> (tips % 64).astype(np.uint64)) & np.uint64(1)).astype(bool)


def robinson_foulds(a: Tree, b: Tree) -> int:
    """Number of informative splits (clades, if rooted) in exactly one of two trees of the same taxa.

    Robinson and Foulds 1981, Math. Biosci. 53:131.
    """
    sample = sample_of_trees([a, b])
    splits = sample_splits(sample)
    own = []
    for row in splits:
        distinct = unique_splits(row[~is_trivial(row, sample.n_tips, sample.rooted)])[0]
        own.append(set(map(bytes, distinct)))
    return len(own[0] ^ own[1])
