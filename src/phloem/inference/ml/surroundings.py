"""What a subtree is surrounded by, as a number: where it was moved in vain before, it is not tried again."""

from __future__ import annotations

import numpy as np

from phloem.tree.half_edges import nexts, tips_beyond

_INSIDE = 2  # nodes into the subtree, up to which its own branches count
# set branches apart from those of the rest of the tree
_ITSELF, _WITHIN = np.uint64(1), np.uint64(2)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def surroundings(back: np.ndarray, subtrees: np.ndarray, radius: int) -> np.ndarray:
    """(n,) uint64: of the subtrees beyond these half-edges of inner nodes a number that two share, of one
    tree or of two, where all branches within radius nodes of where they hang part the tips alike, and those
    within two nodes of their own beginning; others hardly ever do.

    What lies farther off may be resolved otherwise: the messages from there are hardly another.
    """
    n = (len(back) + 6) // 4
    parts, each = _parts(back), np.arange(len(subtrees))
    found = stirred(parts[subtrees] ^ _ITSELF)
    a, b = nexts(subtrees, n)
    _add_branches(found, np.concatenate([back[a], back[b]]), np.tile(each, 2), (back, parts, radius))
    _add_branches(found, back[subtrees], each, (back, stirred(parts ^ _WITHIN), _INSIDE))
    return found


def _add_branches(
    found: np.ndarray, at: np.ndarray, owner: np.ndarray, far: tuple[np.ndarray, np.ndarray, int]
) -> None:
    """Add to found[owner] the branches that half-edges `at` look back over, and those up to so many nodes on.
    far: back, numbers of branches, nodes."""
    back, parts, reach = far
    n = (len(back) + 6) // 4
    for level in range(reach + 1):
        np.add.at(found, owner, stirred(parts[at]))
        inner = at >= n
        if level < reach:
            a, b = nexts(at[inner], n)
            at, owner = np.concatenate([back[a], back[b]]), np.tile(owner[inner], 2)


def _parts(back: np.ndarray) -> np.ndarray:
    """(4T-6,) uint64, of every branch at both ends what half_edges.tips_beyond has."""
    order, beyond = tips_beyond(back)
    parts = np.array(beyond, np.uint64)
    parts[back[order]] = parts[order]
    return parts


def stirred(x: np.ndarray) -> np.ndarray:
    """(n,) uint64: other bits (the end of SplitMix64), so that sums of few tell sets apart."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
