"""A thread's part of a pass over the tree: it takes the next task, waits for what that needs, and does it."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.adjoint import branch_derivative, message_derivative
from phloem.pruning.cpu.eigenbasis import enter_block, needs_partials, project_node
from phloem.pruning.cpu.four_states import (
    node_down_four,
    node_messages_four,
    tip_down_four,
    tip_messages_four,
)
from phloem.pruning.cpu.padded import (
    node_down_padded,
    node_messages_padded,
    tip_down_padded,
    tip_messages_padded,
)
from phloem.pruning.cpu.records import Outer, by_layout
from phloem.pruning.cpu.root import root_down, root_sites
from phloem.pruning.cpu.schedule import fetch_add, finish, next_task, wait_for
from phloem.pruning.cpu.transition import transition

tip_messages = by_layout(tip_messages_four, tip_messages_padded)
node_messages = by_layout(node_messages_four, node_messages_padded)
tip_down = by_layout(tip_down_four, tip_down_padded)
node_down = by_layout(node_down_four, node_down_padded)


@uncounted
def run_up(tasks, counter, done, sweep, model, sites, scratch):
    """Transition matrices, branch messages and the root's site likelihoods."""
    nodes, shape, n_nodes = sweep.nodes, sweep.shape, len(sweep.nodes.left)
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end, block = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        if block < 0:
            for other in range(shape.blocks):
                wait_for(done, other * 2 * n_nodes + x, nodes.size[x])
            root_sites(x, begin, end, sweep, model, sites, scratch)
            continue
        at = block * 2 * n_nodes
        if begin < 0:
            transition(x, block, nodes, sweep.matrices, model, shape, scratch)
            finish(done, at + n_nodes + x, 1)
            continue
        wait_for(done, at + n_nodes + x, 1)
        if nodes.left[x] < 0:
            tip_messages(x, block, sweep)
        else:
            wait_for(done, at + nodes.left[x], nodes.size[nodes.left[x]])
            wait_for(done, at + nodes.right[x], nodes.size[nodes.right[x]])
            node_messages(x, begin, end, block, sweep, scratch.rows)
        finish(done, at + x, end - begin)


@uncounted
def run_down(tasks, counter, done, sweep, model, sites, scratch, room, down):
    """Pre-order vectors, and every task's share of the branch derivatives (and of d log L / d P if kept; who
    completes a node projects that into the eigenbasis, unless down.whole). room: EigenScratch."""
    nodes, matrices, shape, n_nodes = sweep.nodes, sweep.matrices, sweep.shape, len(sweep.nodes.left)
    four, keep, entered = shape.states == 4, down.keep_adjoint, -1
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end, block = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        parent, ready, q = nodes.parent[x], block * 2 * n_nodes, down.q[block]
        if parent < 0:
            row = sweep.messages.start[nodes.messages_at[x]] + begin
            root_down(begin, end, block, sweep, model, sites, down.site_weights, q, row)
            finish(done, ready + x, end - begin)
            continue
        wait_for(done, ready + parent, nodes.size[parent])
        at, matrix = (task if keep else down.slot) * shape.matrix, nodes.matrix_at[x] * shape.matrix
        tip = nodes.left[x] < 0
        partials = (tip and four) or (
            keep and (tip or down.whole or needs_partials(x, block, matrices.lengths, model, shape))
        )
        turned = matrices.down[block] if four else matrices.up[block]
        outer = Outer(q, down.adjoint, at, partials, turned, matrix)
        if tip:
            tip_down(x, block, sweep, outer, scratch.rows)
        else:
            node_down(x, begin, end, block, sweep, outer, scratch)
            finish(done, ready + x, end - begin)
        share, adjoint, rates = down.derivative[task], down.adjoint, down.rate_columns
        if keep and not down.whole:
            if fetch_add(done, ready + n_nodes + x, end - begin) + end - begin == nodes.size[x]:
                if block != entered:
                    enter_block(block, model, shape, room)
                    entered = block
                first = project_node(tasks, task, adjoint, matrices.lengths, model, shape, room, not partials)
                for lane in range(shape.exponents):
                    down.derivative[first, lane] = room.share[lane]
        elif partials:
            branch_derivative(matrix, block, matrices.down[block], rates, adjoint, at, shape, share)
        else:
            message_derivative(block, rates, adjoint, at, shape, share)
