"""The log-likelihood of one chain's copy of one partition, changed in place by a proposal.

A proposal is written to the region of a node's columns, messages and matrix that the accepted state does not
use; to accept is to take over the numbers of the regions, to reject is to forget them. The functions take a
cell's rows of the two tables and make themselves the arrays they need: small functions compile fast.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.pruning.cpu.cell_records import (
    CLASS_OF,
    COLUMNS,
    INVARIANT_STATES,
    LOG_LIKELIHOOD,
    MATRICES,
    MESSAGES,
    OTHER_TIPS,
    SITE_LOG,
    SIZE,
    SLOT,
    TIP_CODES,
    UNOBSERVABLE,
    VERSION,
    WEIGHTS,
    cell_at,
    cell_columns,
    cell_matrices,
    cell_messages,
    cell_model,
    cell_numbers,
    cell_sets,
)
from phloem.pruning.cpu.column_classes import number_pairs
from phloem.pruning.cpu.lanes import load, multiply, multiply_add, sum_lanes, zeros
from phloem.pruning.cpu.matrix_product import VECTOR_BYTES
from phloem.pruning.cpu.passes import node_messages, tip_messages
from phloem.pruning.cpu.records import ANY, FOUR, Nodes, RootSites, Shape, Sweep
from phloem.pruning.cpu.root import (
    constant_part,
    root_sites,
    scaled_site,
    set_root_row,
    total_log_likelihood,
)
from phloem.pruning.cpu.storage import float64_at, int32_at, int64_at, uint8_at
from phloem.pruning.cpu.transition import logarithms, transition

FOUR_STATES, ANY_STATES = ((0,) * 4, FOUR), ((0,) * (VECTOR_BYTES // 8), ANY)
"""What types say of a cell: the lanes and the layout of its Shape."""


@uncounted
def propose(numbers, addresses, tree, model_changed, everything, kind, scratch):
    """cell_calls.propose_cell. kind: FOUR_STATES or ANY_STATES."""
    slot = int64_at(addresses[SLOT], (2,))
    slot[1] = 1 - slot[0] if model_changed else slot[0]
    count = list_changes(numbers, addresses, tree, model_changed, everything, scratch)
    pass_up(numbers, addresses, tree, count, kind, scratch)
    value = sites_at_tip(numbers, addresses, tree, kind, scratch)
    float64_at(addresses[LOG_LIKELIHOOD], (2,))[1] = value
    return value


@uncounted
def evaluate(numbers, addresses, tree, model_changed, everything, kind, scratch):
    """cell_calls.evaluate_cell."""
    slot, n = int64_at(addresses[SLOT], (2,)), cell_numbers(numbers)
    slot[1] = 1 - slot[0] if model_changed else slot[0]
    count = list_changes(numbers, addresses, tree, model_changed, everything, scratch)
    pass_up(numbers, addresses, tree, count, kind, scratch)
    messages_at = cell_at(n, addresses)[1, MESSAGES]
    value = sites_at_root(numbers, addresses, tree, messages_at, np.int64(1), kind, scratch)
    kept = float64_at(addresses[SITE_LOG], (n.patterns,))
    for p in range(len(kept)):
        kept[p] = scratch.site_log[p]
    float64_at(addresses[LOG_LIKELIHOOD], (2,))[1] = value
    return value


@uncounted
def settle_cell(numbers, addresses):
    """Take the proposal over; one that is not is simply forgotten."""
    n = cell_numbers(numbers)
    at = cell_at(n, addresses)
    for kind in range(3):
        for x in range(at.shape[2]):
            at[0, kind, x] = at[1, kind, x]
    slot, value = int64_at(addresses[SLOT], (2,)), float64_at(addresses[LOG_LIKELIHOOD], (2,))
    slot[0], value[0] = slot[1], value[1]


@uncounted
def list_changes(numbers, addresses, tree, model_changed, everything, scratch):
    """Fill scratch.todo and the proposal's regions; number the columns of nodes with other tips below.
    Returns how many nodes have something to do."""
    n = cell_numbers(numbers)
    at, n_nodes = cell_at(n, addresses), 2 * n.tips - 1
    root, todo, dirty = n_nodes - 1, scratch.todo, scratch.dirty
    whole, count = n.hangs == 0, 0
    beside = root if whole else node_beside_tip(tree, root)
    for x in tree.order:
        region, message, matrix = at[0, COLUMNS, x], at[0, MESSAGES, x], at[0, MATRICES, x]
        changed = model_changed or everything
        for k in range(n.first_lengths, n.first_lengths + n.length_classes):
            changed = changed or tree.lengths[k, x] != tree.old_lengths[k, x]
        changed = changed and x != root
        fresh = changed or everything
        if x >= n.tips:
            moved = tree.moved[x] if tree.reordered else 0
            fresh = fresh or moved != 0 or dirty[tree.left[x]] or dirty[tree.right[x]]
            if (moved != 0 or everything) and (x != root or whole):
                old = region
                region = region + n_nodes if region < n_nodes else region - n_nodes
                number_node(
                    numbers, addresses, tree, x, old, region, moved & OTHER_TIPS or everything, scratch
                )
        if changed:
            matrix = matrix + n_nodes if matrix < n_nodes else matrix - n_nodes
        if fresh and (whole or (x != root and x != beside)):
            message = message + n_nodes if message < n_nodes else message - n_nodes
            todo[count, 0], todo[count, 1] = x, changed
            count += 1
        dirty[x] = fresh
        at[1, COLUMNS, x], at[1, MESSAGES, x], at[1, MATRICES, x] = region, message, matrix
    return count


@uncounted(forceinline=True)
def node_beside_tip(tree, root):
    """The root's other child where one is tip 0."""
    return tree.right[root] if tree.left[root] == 0 else tree.left[root]


@uncounted
def class_row(region, tips):
    """Row of class_of that an internal node's region has."""
    n_nodes = 2 * tips - 1
    return region - tips if region < n_nodes else region - n_nodes - 1


@uncounted
def number_node(numbers, addresses, tree, x, old, region, anew, scratch):
    """Classes of node x from those of its children: numbered anew, or, where the tips below are the same, as
    they were, with other pairs. old, region: where they are, and where they go. The root's are the patterns,
    one each: site likelihoods are by pattern then."""
    n = cell_numbers(numbers)
    at, columns = cell_at(n, addresses), cell_columns(n, addresses)
    tip_codes = int32_at(addresses[TIP_CODES], (n.tips, n.patterns))
    class_of = int32_at(addresses[CLASS_OF], (2 * n.tips - 2, n.patterns))
    size = int64_at(addresses[SIZE], (4 * n.tips - 2,))
    a, b = tree.left[x], tree.right[x]
    first = tip_codes[a] if a < n.tips else class_of[class_row(at[1, COLUMNS, a], n.tips)]
    second = tip_codes[b] if b < n.tips else class_of[class_row(at[1, COLUMNS, b], n.tips)]
    counts = size[at[1, COLUMNS, a]], size[at[1, COLUMNS, b]]
    own = class_of[class_row(region, n.tips)]
    start = columns.start[region]
    left, right = columns.left[start:], columns.right[start:]
    int64_at(addresses[VERSION], (4 * n.tips - 2,))[region] += 1
    if anew:
        distinct = n.repeats == 1 and tree.parent[x] >= 0
        found = number_pairs(
            first, second, counts, distinct, scratch.table, scratch.base[0], own, left, right
        )
        scratch.base[0] += found
        size[region] = found
        return
    known = class_of[class_row(old, n.tips)]
    for p in range(n.patterns):
        k = known[p]
        own[p], left[k], right[k] = k, first[p], second[p]
    size[region] = size[old]


@merged
def _nodes(n, addresses, tree):
    at, size = cell_at(n, addresses), int64_at(addresses[SIZE], (4 * n.tips - 2,))
    return Nodes(tree.left, tree.right, tree.parent, at[1, COLUMNS], at[1, MESSAGES], at[1, MATRICES], size)


@merged
def cell_sweep(n, addresses, tree, nodes, columns, kind):
    """What passes over a cell's tree work on. kind: FOUR_STATES or ANY_STATES."""
    return Sweep(
        nodes, columns, cell_messages(n, addresses), cell_matrices(n, addresses, tree.lengths),
        cell_sets(n, addresses), cell_shape(n, kind),
    )  # fmt: skip


@merged
def cell_shape(n, kind):
    """The layout of a cell."""
    smallest = 2.0**-257 if n.guarded else 0.0
    return Shape(
        n.states, n.categories, n.padded, n.blocks, n.width, n.exponents, n.matrix, kind[0], smallest, kind[1]
    )


@uncounted
def pass_up(numbers, addresses, tree, count, kind, scratch):
    """Matrices and messages of the first `count` nodes of scratch.todo."""
    n = cell_numbers(numbers)
    nodes = _nodes(n, addresses, tree)
    sweep = cell_sweep(n, addresses, tree, nodes, cell_columns(n, addresses), kind)
    model, todo = cell_model(n, addresses, int64_at(addresses[SLOT], (2,))[1]), scratch.todo
    for block in range(n.blocks):
        for i in range(count):
            x = todo[i, 0]
            if todo[i, 1]:
                transition(x, block, nodes, sweep.matrices, model, sweep.shape, scratch.kernel)
            sweep.messages.rescaled[block, nodes.messages_at[x]] = 0
            if nodes.left[x] < 0:
                tip_messages(x, block, sweep)
            else:
                size = nodes.size[nodes.columns_at[x]]
                node_messages(x, 0, size, block, sweep, scratch.kernel.rows)


@uncounted
def sites_at_root(numbers, addresses, tree, messages_at, which, kind, scratch):
    """Log-likelihood from the root's messages, a column a pattern; messages_at: (N,) where they are; which:
    0 of the accepted state, 1 of the proposal. Site likelihoods and weights stay in scratch."""
    n = cell_numbers(numbers)
    at, room, root = cell_at(n, addresses), scratch.kernel, 2 * n.tips - 2
    model = cell_model(n, addresses, int64_at(addresses[SLOT], (2,))[which])
    nodes = Nodes(
        tree.left, tree.right, tree.parent, at[which, COLUMNS], messages_at, at[which, MATRICES], messages_at
    )
    states = uint8_at(addresses[INVARIANT_STATES], (n.patterns * n.states,))
    sites = RootSites(scratch.site_log, scratch.mantissa, scratch.power, states)
    sweep = cell_sweep(n, addresses, tree, nodes, cell_columns(n, addresses), kind)
    set_root_row(model, sweep.shape, room.root)
    root_sites(root, 0, n.patterns, sweep, model, sites, room)
    return total_log_likelihood(
        scratch.site_log[: n.patterns],
        float64_at(addresses[WEIGHTS], (n.patterns,)),
        uint8_at(addresses[UNOBSERVABLE], (n.patterns,)),
        n.ascertained == 1,
        scratch.site_weights[: n.patterns],
    )


@uncounted
def sites_at_tip(numbers, addresses, tree, kind, scratch):
    """Log-likelihood at a root whose one child is tip 0: no column of the root itself is formed, nor of the
    node beside the tip, whose branch has no length.

    L_p = Σ weight π m_tip0 m_left m_right over a row's entries; a tip's message has no exponents.
    """
    n = cell_numbers(numbers)
    at, shape, room, root = cell_at(n, addresses), cell_shape(n, kind), scratch.kernel, 2 * n.tips - 2
    messages = cell_messages(n, addresses)
    model = cell_model(n, addresses, int64_at(addresses[SLOT], (2,))[1])
    beside = node_beside_tip(tree, root)
    a, b = tree.left[beside], tree.right[beside]
    set_root_row(model, shape, room.root)
    tip_row = messages.start[at[1, MESSAGES, 0]]
    for block in range(n.blocks):
        for k in range(n.codes):
            here, out = (tip_row + k) * n.width, (block * n.codes + k) * n.width
            for i in range(n.width):
                scratch.tip[out + i] = room.root[block * n.width + i] * messages.values[block, here + i]
    tip_codes = int32_at(addresses[TIP_CODES], (n.tips, n.patterns))
    class_of = int32_at(addresses[CLASS_OF], (2 * n.tips - 2, n.patterns))
    first = tip_codes[a] if a < n.tips else class_of[class_row(at[1, COLUMNS, a], n.tips)]
    second = tip_codes[b] if b < n.tips else class_of[class_row(at[1, COLUMNS, b], n.tips)]
    rows = messages.start[at[1, MESSAGES, a]], messages.start[at[1, MESSAGES, b]]
    site = scratch.mantissa[: n.patterns]
    for block in range(n.blocks):
        weights = scratch.tip[block * n.codes * n.width :]
        products_at_tip(
            messages.values[block], rows, (first, second, tip_codes[0]), weights, shape, block > 0, site
        )
    for p in range(n.patterns):
        scratch.power[p] = 0
    states = uint8_at(addresses[INVARIANT_STATES], (n.patterns * n.states,))
    sites = RootSites(scratch.site_log, scratch.mantissa, scratch.power, states)
    if model.invariant > 0:
        for p in range(n.patterns):
            site[p] += model.invariant * constant_part(p, model, sites, shape)
    if n.guarded:
        classes = first, second, tip_codes[0]
        scale_sites_at_tip(n, rows, classes, messages, model, sites, shape, room, scratch.tip)
    logarithms(scratch.mantissa, scratch.power, 0, n.patterns, scratch.site_log)
    return total_log_likelihood(
        scratch.site_log[: n.patterns],
        float64_at(addresses[WEIGHTS], (n.patterns,)),
        uint8_at(addresses[UNOBSERVABLE], (n.patterns,)),
        n.ascertained == 1,
        scratch.site_weights[: n.patterns],
    )


@uncounted
def products_at_tip(values, rows, classes, weights, shape, add, site):
    """site[p] (+)= Σ over a row's entries of two rows of values and one of weights. rows: where those of the
    two nodes begin; classes: three (P,), of the nodes and of the tip."""
    lanes, wide, width = shape.lanes, shape.lanes + shape.lanes, shape.width
    first, second, codes = classes
    two = 2 * len(lanes)
    if width == 2 * two:
        for p in range(len(site)):
            a, b, c = (rows[0] + first[p]) * width, (rows[1] + second[p]) * width, codes[p] * width
            low = multiply(load(values, a, wide), load(values, b, wide))
            high = multiply(load(values, a + two, wide), load(values, b + two, wide))
            total = multiply(low, load(weights, c, wide))
            total = multiply_add(high, load(weights, c + two, wide), total)
            site[p] = sum_lanes(total) + (site[p] if add else 0.0)
        return
    for p in range(len(site)):
        a, b, c = (rows[0] + first[p]) * width, (rows[1] + second[p]) * width, codes[p] * width
        total = zeros(values, lanes)
        for i in range(0, width, len(lanes)):
            both = multiply(load(values, a + i, lanes), load(values, b + i, lanes))
            total = multiply_add(both, load(weights, c + i, lanes), total)
        site[p] = sum_lanes(total) + (site[p] if add else 0.0)


@uncounted
def scale_sites_at_tip(n, rows, classes, messages, model, sites, shape, room, tip):
    """Redo the sites in whose columns powers of two were taken out."""
    lanes = n.exponents
    for p in range(n.patterns):
        a, b, taken = rows[0] + classes[0][p], rows[1] + classes[1][p], False
        for c in range(n.categories):
            block, lane = c // lanes, c % lanes
            power = messages.exponents[block, a * lanes + lane] + messages.exponents[block, b * lanes + lane]
            room.powers[c] = power
            taken = taken or power != 0
        if taken:
            for block in range(n.blocks):
                weights = (block * n.codes + classes[2][p]) * n.width
                for i in range(n.width):
                    both = messages.values[block, a * n.width + i] * messages.values[block, b * n.width + i]
                    room.rows[block * n.width + i] = both * tip[weights + i]
            scaled_site(p, model, sites, shape, room)
