"""Where a node looks on the way down: its parent's columns, sorted by its own classes, and its sibling."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted


@uncounted(forceinline=True)
def beside(x, nodes, columns, messages):
    """(order, sibling class, first row of the parent's classes, parent's messages, sibling's messages) of
    node x."""
    parent = nodes.parent[x]
    parent_row = columns.start[nodes.columns_at[parent]]
    above = messages.start[nodes.messages_at[parent]]
    left, right = nodes.left[parent], nodes.right[parent]
    if left == x:
        return (
            columns.left_order,
            columns.left_sibling,
            parent_row,
            above,
            messages.start[nodes.messages_at[right]],
        )
    return (
        columns.right_order,
        columns.right_sibling,
        parent_row,
        above,
        messages.start[nodes.messages_at[left]],
    )
