"""What lies above nodes of a tree."""

from __future__ import annotations

from phloem.hardware.numba_compile import compiled


@compiled
def mark_ancestors(parent, marked):
    """Mark everything above marked nodes. parent: (N,) int64, parents after their children, -1 at the root;
    marked: (N,) bool, changed."""
    for x in range(len(parent) - 1):
        if marked[x]:
            marked[parent[x]] = True
