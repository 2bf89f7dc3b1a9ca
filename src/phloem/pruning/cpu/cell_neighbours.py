"""The log-likelihood of a cell whose sites depend on their neighbours: cell.propose, with the sum over the
sequences of categories (reference/neighbours.py) at its end."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.cell import (
    cell_shape,
    class_row,
    list_changes,
    node_beside_tip,
    pass_up,
)
from phloem.pruning.cpu.cell_records import (
    CLASS_OF,
    COLUMNS,
    LOG_LIKELIHOOD,
    MESSAGES,
    NEIGHBOURS,
    SITE_PATTERN,
    SITE_STEP,
    SLOT,
    TIP_CODES,
    WEIGHTS,
    cell_at,
    cell_messages,
    cell_model,
    cell_numbers,
)
from phloem.pruning.cpu.root import scalar_two_sum, set_root_row, weighted_sum
from phloem.pruning.cpu.storage import float64_at, int32_at, int64_at

_NO_POWER = -(1 << 30)
_SMALL = 1e-250  # products of the sums over sites are not let below


@uncounted
def propose_along(numbers, addresses, tree, model_changed, everything, kind, scratch):
    """cell_calls.propose_cell, of a cell of this kind."""
    slot, n = int64_at(addresses[SLOT], (2,)), cell_numbers(numbers)
    slot[1] = 1 - slot[0] if model_changed else slot[0]
    count = list_changes(numbers, addresses, tree, model_changed, everything, scratch)
    pass_up(numbers, addresses, tree, count, kind, scratch)
    categories_at_tip(numbers, addresses, tree, kind, scratch)
    value = weighted_sum(scratch.site_log[: n.patterns], float64_at(addresses[WEIGHTS], (n.patterns,)))
    value += along_sites(n, addresses, slot[1], scratch)
    float64_at(addresses[LOG_LIKELIHOOD], (2,))[1] = value
    return value


@uncounted
def categories_at_tip(numbers, addresses, tree, kind, scratch):
    """Likelihoods of every pattern's categories over the largest of them, whose logarithm is
    scratch.site_log, into scratch.relative (P, C). Messages as cell.sites_at_tip has them."""
    n = cell_numbers(numbers)
    at, shape, root, row = cell_at(n, addresses), cell_shape(n, kind), 2 * n.tips - 2, scratch.kernel.root
    messages, lanes, power = cell_messages(n, addresses), n.exponents, scratch.kernel.powers
    model = cell_model(n, addresses, int64_at(addresses[SLOT], (2,))[1])
    beside = node_beside_tip(tree, root)
    a, b = tree.left[beside], tree.right[beside]
    set_root_row(model, shape, row)
    tip_codes = int32_at(addresses[TIP_CODES], (n.tips, n.patterns))
    class_of = int32_at(addresses[CLASS_OF], (2 * n.tips - 2, n.patterns))
    first = tip_codes[a] if a < n.tips else class_of[class_row(at[1, COLUMNS, a], n.tips)]
    second = tip_codes[b] if b < n.tips else class_of[class_row(at[1, COLUMNS, b], n.tips)]
    rows = messages.start[at[1, MESSAGES, a]], messages.start[at[1, MESSAGES, b]]
    tip_row = messages.start[at[1, MESSAGES, 0]]
    for p in range(n.patterns):
        i, j, k = rows[0] + first[p], rows[1] + second[p], tip_row + tip_codes[0][p]
        top, own = _NO_POWER, scratch.relative[p * n.categories : (p + 1) * n.categories]
        for c in range(n.categories):
            block, lane, total = c // lanes, c % lanes, 0.0
            values, exponents = messages.values[block], messages.exponents[block]
            for s in range(n.states):
                e = s * lanes + lane
                both = values[i * n.width + e] * values[j * n.width + e]
                total += both * values[k * n.width + e] * row[block * n.width + e]
            own[c], power[c] = total / model.weights[c], 0
            if n.guarded:
                power[c] = exponents[i * lanes + lane] + exponents[j * lanes + lane]
            if own[c] > 0.0:
                top = max(top, power[c])
        scratch.site_log[p] = over_largest(own, power, top)


@uncounted
def over_largest(own, powers, top):
    """The logarithm of the largest of own[c] · 2**powers[c], by which all are divided; none for none."""
    largest, whole = 0.0, 0.0
    for c in range(len(own)):
        if powers[c] != top and own[c] > 0.0:
            own[c] = math.ldexp(own[c], max(powers[c] - top, -2000))
        largest, whole = max(largest, own[c]), whole + own[c]
    if not whole > 0.0:
        return -math.inf if whole == 0.0 else math.nan
    for c in range(len(own)):
        own[c] /= largest
    return math.log(largest) + top * math.log(2.0)


@uncounted
def along_sites(n, addresses, slot, scratch):
    """What the sum over the sequences of categories adds to that over sites of the largest likelihoods."""
    c_all, size = n.categories, n.distances * n.categories
    pattern, step = int64_at(addresses[SITE_PATTERN], (n.sites,)), int64_at(addresses[SITE_STEP], (n.sites,))
    matrices = float64_at(addresses[NEIGHBOURS], (2, size * c_all))[slot]
    weights = cell_model(n, addresses, slot).weights
    here, ahead = scratch.along[:c_all], scratch.along[c_all : 2 * c_all]
    total, lost, product = 0.0, 0.0, 1.0
    for i in range(n.sites):
        own, norm, at = pattern[i] * c_all, 0.0, step[i] * c_all * c_all
        for b in range(c_all):
            into = 0.0
            if i == 0:
                into = weights[b]
            else:
                for a in range(c_all):
                    into += here[a] * matrices[at + a * c_all + b]
            ahead[b] = into * scratch.relative[own + b]
            norm += ahead[b]
        if norm == 0.0:
            return -math.inf
        for b in range(c_all):
            here[b] = ahead[b] / norm
        product *= norm
        if product < _SMALL:
            total, lost = scalar_two_sum(total, lost, math.log(product))
            product = 1.0
    return total + lost + math.log(product)
