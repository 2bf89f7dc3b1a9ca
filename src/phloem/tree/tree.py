"""The tree record: flat arrays, tips 0…T−1, root last, every parent's number above its children's.

Its lengths as they are needed (present, not negative), and the heights of its nodes: distance in time before
the most recent tip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phloem.errors import InputError, first_names


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted or unrooted tree (an unrooted one has a basal node of degree three as its root).

    taxa: T tip names; tip x is node x.
    parent: (N,) int32; parent[x] > x; parent[N-1] = -1.
    lengths: (N,) float64, length of the branch above each node in the file's unit
        (expected substitutions per site, or time); NaN where the file gave none; lengths[N-1] is 0
        or the root edge the file gave.
    labels: N internal labels (support values, names) or None; tips carry None here.
    annotations: node number → {key: value} from [&key=value] comments.
    rooted: False if the root's position carries no information.
    name: the tree's name in its file, if any.
    """

    taxa: tuple[str, ...]
    parent: np.ndarray
    lengths: np.ndarray
    labels: tuple[str | None, ...] | None = None
    annotations: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    rooted: bool = True
    name: str | None = None

    def __repr__(self) -> str:
        root, timed = "rooted" if self.rooted else "unrooted", not np.isnan(self.lengths[:-1]).any()
        kind = f"{root}, {self.n_nodes - 1:,} branches with{'' if timed else 'out'} lengths"
        return f"Tree({self.n_tips:,} taxa: {first_names(self.taxa)}; {kind})"

    @property
    def n_tips(self) -> int:
        return len(self.taxa)

    @property
    def n_nodes(self) -> int:
        return len(self.parent)

    @cached_property
    def child_offsets(self) -> np.ndarray:
        """(N+1,) int64: the children of x are child_index[child_offsets[x]:child_offsets[x+1]]."""
        counts = np.bincount(self.parent[:-1], minlength=self.n_nodes)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def child_index(self) -> np.ndarray:
        """(N-1,) int32 child numbers grouped by parent, ascending within a parent."""
        return np.argsort(self.parent[:-1], kind="stable").astype(np.int32)

    def children(self, node: int) -> np.ndarray:
        return self.child_index[self.child_offsets[node] : self.child_offsets[node + 1]]

    @property
    def is_binary(self) -> bool:
        """True if every internal node has two children."""
        degrees = np.diff(self.child_offsets)[self.n_tips :]
        return bool(np.all(degrees == 2))


def require_lengths(tree: Tree, *, file: str | None = None) -> np.ndarray:
    """The branch lengths (N,), or an InputError that names the first missing or negative one."""
    above = tree.lengths[:-1]
    for wrong, what, hint in (
        (
            ~np.isfinite(above),
            "has no length",
            "Give every branch a length (':0.1' after the name), or fit them (--optimize).",
        ),
        (above < 0, "has a negative length", "Branch lengths are expected substitutions: zero or more."),
    ):
        found = np.flatnonzero(wrong)
        if len(found):
            node = int(found[0])
            message = f"the branch above {branch_name(tree, node)} {what} ({len(found)} such)"
            raise InputError(message, file=file, taxon=_first_tip(tree, node), hint=hint)
    return tree.lengths


def _first_tip(tree: Tree, node: int) -> str:
    while node >= tree.n_tips:
        node = int(tree.children(node)[0])
    return tree.taxa[node]


def branch_name(tree: Tree, node: int) -> str:
    """A tip's name, or "the ancestor of 'first' and 'last'" for an internal node."""
    if node < tree.n_tips:
        return f"'{tree.taxa[node]}'"
    last = node
    while last >= tree.n_tips:
        last = int(tree.children(last)[-1])
    return f"the ancestor of '{_first_tip(tree, node)}' and '{tree.taxa[last]}'"


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
