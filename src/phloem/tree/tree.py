"""The tree record: flat arrays, tips 0…T−1, root last, every parent's number above its children's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
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
