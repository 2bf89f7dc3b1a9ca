"""What one thread does in a pass over the tree, any number of states (see run_four.py)."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.branch import branch_derivative_padded
from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.postorder_padded import BATCH, node_messages_padded, tip_messages_padded
from phloem.kernels.numba.preorder_padded import node_down_padded, tip_down_padded
from phloem.kernels.numba.root import root_down, root_sites
from phloem.kernels.numba.schedule import finish, next_task, wait_for
from phloem.kernels.numba.transition import transition_padded


@compiled
def run_up_padded(tasks, counter, done, nodes, columns, messages, matrices, model, sets, sites, shape):
    """Transition matrices, branch messages and the root's site likelihoods. done: (2N,), columns then
    matrices."""
    n_nodes = len(nodes.left)
    scratch = np.empty(BATCH * shape.padded + 64, messages.values.dtype)
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end = tasks[task, 0], tasks[task, 1], tasks[task, 2]
        if begin < 0:
            transition_padded(x, nodes, matrices, model, shape)
            finish(done, n_nodes + x, 1)
            continue
        wait_for(done, n_nodes + x, 1)
        if nodes.left[x] < 0:
            tip_messages_padded(x, nodes, columns, messages, matrices, sets, shape)
        else:
            wait_for(done, nodes.left[x], nodes.size[nodes.left[x]])
            wait_for(done, nodes.right[x], nodes.size[nodes.right[x]])
            node_messages_padded(x, begin, end, nodes, columns, messages, matrices, shape, scratch)
            if nodes.parent[x] < 0:
                root_sites(x, begin, end, nodes, messages, model, sites, shape)
        finish(done, x, end - begin)


@compiled
def run_down_padded(
    tasks, counter, done, thread, nodes, columns, messages, matrices, model, sets, sites, shape, down
):
    """Pre-order vectors, and every task's share of the branch derivatives (and of d log L / d P if kept)."""
    size = matrices.size
    u = np.empty(BATCH * shape.padded + 64, messages.values.dtype)
    p = np.empty(BATCH * shape.padded + 64, messages.values.dtype)
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end = tasks[task, 0], tasks[task, 1], tasks[task, 2]
        parent = nodes.parent[x]
        if parent < 0:
            root_down(x, begin, end, nodes, columns, messages, model, sites, down.site_weights, down.q, shape)
            finish(done, x, end - begin)
            continue
        wait_for(done, parent, nodes.size[parent])
        at = task * size if down.keep_adjoint else thread * size
        if nodes.left[x] < 0:
            tip_down_padded(x, nodes, columns, messages, sets, shape, down.q, down.adjoint, at, u)
        else:
            node_down_padded(
                x, begin, end, nodes, columns, messages, matrices, shape, down.q, down.adjoint, at, u, p
            )
            finish(done, x, end - begin)
        branch_derivative_padded(
            nodes.matrix_at[x], matrices, down.rate_columns, down.adjoint, at, shape, down.derivative[task]
        )
