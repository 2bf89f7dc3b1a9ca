"""Node heights: distance in time before the most recent tip."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phloem.errors import InputError
from phloem.tree.lengths import require_lengths
from phloem.tree.tree import Tree


def node_depths(tree: Tree) -> np.ndarray:
    """(N,) sum of branch lengths from the root down to each node."""
    lengths = require_lengths(tree)
    depth = np.zeros(tree.n_nodes)
    for x in range(tree.n_nodes - 2, -1, -1):
        depth[x] = depth[tree.parent[x]] + lengths[x]
    return depth


def node_heights(tree: Tree) -> np.ndarray:
    """(N,) distance above the deepest tip (which has 0), in the unit of the branch lengths."""
    depth = node_depths(tree)
    return depth[: tree.n_tips].max() - depth


def is_ultrametric(tree: Tree, tolerance: float = 1e-6) -> bool:
    """True if all tips stand at one height, to a tolerance relative to the tree's height."""
    heights = node_heights(tree)
    return bool(heights[: tree.n_tips].max() <= tolerance * heights.max())


def tip_heights(taxa: tuple[str, ...], dates: Mapping[str, float]) -> np.ndarray:
    """(T,) years before the latest sampling date. dates: taxon → decimal year."""
    missing = [name for name in taxa if name not in dates]
    if missing:
        message = f"{len(missing)} taxa have no date, among them '{missing[0]}'"
        raise InputError(message, taxon=missing[0], hint="Give a date for every tip.")
    years = np.array([dates[name] for name in taxa], np.float64)
    if not np.isfinite(years).all():
        name = taxa[int(np.argmin(np.isfinite(years)))]
        raise InputError("a date is not a number", taxon=name, hint="Write dates as decimal years.")
    return years.max() - years


def lengths_of_heights(parent: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Branch lengths (…, N) of node heights (…, N): parent's height minus the node's own; root 0."""
    above = np.take_along_axis(heights, np.maximum(parent, 0).astype(np.int64), axis=-1)
    return np.where(parent < 0, 0.0, above - heights)
