"""What one thread does in a pass over the tree, four states."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.branch import branch_derivative_four, message_derivative_four
from phloem.pruning.cpu.postorder_four import node_messages_four, tip_messages_four
from phloem.pruning.cpu.preorder_four import node_down_four, tip_down_four
from phloem.pruning.cpu.root import root_down, root_sites
from phloem.pruning.cpu.schedule import finish, next_task, wait_for
from phloem.pruning.cpu.transition import transition_four


@uncounted
def run_up_four(tasks, counter, done, nodes, columns, messages, matrices, model, sets, sites, shape, scratch):
    """Transition matrices, branch messages and the root's site likelihoods."""
    n_nodes = len(nodes.left)
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end, block = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        if block < 0:
            for other in range(shape.blocks):
                wait_for(done, other * 2 * n_nodes + x, nodes.size[x])
            root_sites(x, begin, end, nodes, messages, model, sites, shape, scratch)
            continue
        at = block * 2 * n_nodes
        if begin < 0:
            transition_four(x, block, nodes, matrices, model, shape, scratch)
            finish(done, at + n_nodes + x, 1)
            continue
        wait_for(done, at + n_nodes + x, 1)
        if nodes.left[x] < 0:
            tip_messages_four(x, block, nodes, columns, messages, matrices, sets, shape)
        else:
            wait_for(done, at + nodes.left[x], nodes.size[nodes.left[x]])
            wait_for(done, at + nodes.right[x], nodes.size[nodes.right[x]])
            node_messages_four(x, begin, end, block, nodes, columns, messages, matrices, shape)
        finish(done, at + x, end - begin)


@uncounted
def run_down_four(
    tasks, counter, done, thread, nodes, columns, messages, matrices, model, sets, sites, shape, scratch, down
):
    """Pre-order vectors, and every task's share of the branch derivatives (and of d log L / d P if kept)."""
    n_nodes, adjoint = len(nodes.left), down.adjoint
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end, block = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        parent, ready, q = nodes.parent[x], block * 2 * n_nodes, down.q[block]
        if parent < 0:
            row = messages.start[nodes.messages_at[x]] + begin
            root_down(
                x, begin, end, block, nodes, columns, messages, model, sites, down.site_weights, q, row, shape
            )
            finish(done, ready + x, end - begin)
            continue
        wait_for(done, ready + parent, nodes.size[parent])
        at = (task if down.keep_adjoint else thread) * shape.matrix
        matrix, share, keep = nodes.matrix_at[x] * shape.matrix, down.derivative[task], down.keep_adjoint
        tip = nodes.left[x] < 0
        if tip:
            tip_down_four(x, block, nodes, columns, messages, sets, shape, q, adjoint, at)
        else:
            node_down_four(
                x, begin, end, block, nodes, columns, messages, matrices, shape, q, adjoint, at, keep, scratch
            )
            finish(done, ready + x, end - begin)
        if tip or keep:
            branch_derivative_four(
                matrix, block, matrices.down[block], down.rate_columns, adjoint, at, shape, share
            )
        else:
            message_derivative_four(block, down.rate_columns, adjoint, at, shape, share)
