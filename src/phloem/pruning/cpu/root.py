"""At the root: site likelihoods and their sum (reference/recursion.py specifies it)."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import (
    add,
    any_nonzero,
    fill,
    lane_of,
    load,
    multiply_add,
    product_or_zero,
    subtract,
    sum_lanes,
    to_double,
    zeros,
)
from phloem.pruning.cpu.transition import logarithms

_NO_POWER = -(1 << 30)


@uncounted
def set_root_row(model, shape, row):
    """row (blocks · width) = weight × root frequency of every entry of a root column, zeros for padding."""
    n = shape.exponents  # categories of a block, innermost in its rows
    for block in range(shape.blocks):
        for s in range(shape.padded):
            for lane in range(n):
                c, value = block * n + lane, 0.0
                if c < shape.categories and s < shape.states:
                    value = model.weights[c] * model.root_frequencies[model.process[c], s]
                row[block * shape.width + s * n + lane] = value


@uncounted
def root_sites(x, begin, end, sweep, model, sites, scratch):
    """Likelihood of the root's rows begin:end as mantissa · 2**power, and its logarithm.

    scratch.root: set_root_row's.
    """
    nodes, messages, shape = sweep.nodes, sweep.messages, sweep.shape
    lanes, n, values, row = shape.lanes, shape.exponents, messages.values, scratch.root
    out = messages.start[nodes.messages_at[x]]
    for k in range(begin, end):
        taken = False
        for block in range(shape.blocks):
            if n == 1:
                taken = taken or messages.exponents[block, out + k] != 0
            else:
                taken = taken or any_nonzero(load(messages.exponents[block], (out + k) * n, lanes))
        if taken:
            for block in range(shape.blocks):
                for i in range(shape.width):
                    here = messages.values[block, (out + k) * shape.width + i]
                    scratch.rows[block * shape.width + i] = here * row[block * shape.width + i]
                for lane in range(n):
                    if block * n + lane < shape.categories:
                        scratch.powers[block * n + lane] = messages.exponents[block, (out + k) * n + lane]
            scaled_site(k, model, sites, shape, scratch)
            continue
        total = 0.0
        for block in range(shape.blocks):
            column, at, first = values[block], (out + k) * shape.width, block * shape.width
            share = zeros(row, lanes)
            for i in range(0, shape.width, len(lanes)):
                share = multiply_add(to_double(column, at + i, lanes), load(row, first + i, lanes), share)
            total += sum_lanes(share)
        if model.invariant > 0:
            total += model.invariant * constant_part(k, model, sites, shape)
        sites.mantissa[k], sites.power[k] = total, 0
    logarithms(sites.mantissa, sites.power, begin, end, sites.site_log)


@uncounted
def scaled_site(k, model, sites, shape, scratch):
    """Mantissa and power of site k where powers of two were taken out of its categories.

    scratch.rows: its entries, weighted, all blocks one after the other; scratch.powers: of every category.
    """
    n, part, power = shape.exponents, scratch.parts, scratch.powers
    top = np.int64(_NO_POWER)
    for c in range(shape.categories):
        total = 0.0
        for s in range(shape.states):
            total += scratch.rows[c // n * shape.width + s * n + c % n]
        part[c] = total
        if total > 0:
            top = max(top, power[c])
    part[shape.categories], power[shape.categories] = 0.0, 0
    if model.invariant > 0:
        part[shape.categories] = model.invariant * constant_part(k, model, sites, shape)
        if part[shape.categories] > 0:
            top = max(top, np.int64(0))
    total = 0.0
    for c in range(shape.categories + 1):
        if part[c] > 0:
            total += part[c] if power[c] == top else math.ldexp(part[c], max(power[c] - top, -2000))
        elif part[c] != 0:
            total = np.nan
    sites.mantissa[k], sites.power[k] = total, top


@uncounted
def constant_part(k, model, sites, shape):
    """Σ_s π_s [all tips allow state s at root column k]."""
    total = 0.0
    for s in range(shape.states):
        if sites.invariant_states[k * shape.states + s]:
            total += model.invariant_frequencies[s]
    return total


_EIGHT = (0,) * 8


@uncounted
def weighted_sum(values, weights):
    """Σ weights · values, each product in double, with compensation (Knuth's two-sum) in eight interleaved
    sums that are then added in order: the result depends on nothing but the numbers. 0 · -inf counts 0."""
    n = len(values)
    total, lost = zeros(values, _EIGHT), zeros(values, _EIGHT)
    whole = n - n % 8
    for k in range(0, whole, 8):
        term = product_or_zero(load(weights, k, _EIGHT), load(values, k, _EIGHT))
        total, lost = two_sum(total, lost, term)
    result, rest = 0.0, 0.0
    for lane in range(8):
        result, rest = scalar_two_sum(result, rest, lane_of(total, lane))
        rest += lane_of(lost, lane)
    for k in range(whole, n):
        if weights[k] != 0.0:
            result, rest = scalar_two_sum(result, rest, weights[k] * values[k])
    return result + rest if math.isfinite(result) else result


@uncounted(forceinline=True)
def two_sum(total, lost, term):
    """total + term, and lost with what the addition rounded away."""
    new = add(total, term)
    part = subtract(new, total)
    return new, add(lost, add(subtract(total, subtract(new, part)), subtract(term, part)))


@uncounted(forceinline=True)
def scalar_two_sum(total, lost, term):
    """The same for one number."""
    new = total + term
    part = new - total
    return new, lost + ((total - (new - part)) + (term - part))


@uncounted
def total_log_likelihood(site_log, column_weights, ascertained, any_ascertained, weights):
    """As reference/recursion.py; weights (K,): out, the derivative in every site log-likelihood."""
    total = weighted_sum(site_log, column_weights)
    for k in range(len(site_log)):
        weights[k] = column_weights[k]
    if any_ascertained:
        hidden, seen = 0.0, 0.0
        for k in range(len(site_log)):
            seen += column_weights[k]
            if ascertained[k]:
                hidden += math.exp(site_log[k])
        total -= seen * math.log1p(-hidden)
        for k in range(len(site_log)):
            if ascertained[k]:
                weights[k] += seen * math.exp(site_log[k]) / (1 - hidden)
    return total


@uncounted
def root_down(begin, end, block, sweep, model, sites, site_weights, q, q_row):
    """What the root passes down: d log L / d p_root = weight / L · w_c π_s of its rows begin:end, into the
    rows of q from q_row.

    Scaled by 2**(exponents of its children's messages), that is with the root's own shift taken out already.
    """
    nodes, columns, messages, _, _, shape = sweep
    x = len(nodes.left) - 1
    n = shape.exponents  # categories of a block, innermost in its rows
    exponents = messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        left_at, right_at = (left_row + columns.left[row + k]) * n, (right_row + columns.right[row + k]) * n
        whole = site_weights[k] / sites.mantissa[k] if site_weights[k] != 0 else 0.0
        for lane in range(n):
            c, at, scale = block * n + lane, (q_row + k - begin) * shape.width + lane, 0.0
            if c >= shape.categories:
                for s in range(shape.padded):
                    q[at + s * n] = 0.0
                continue
            scale = whole * model.weights[c]
            e = exponents[left_at + lane] + exponents[right_at + lane] - sites.power[k]
            if e != 0:
                scale = math.ldexp(scale, max(min(e, 1000), -2000))
            frequencies = model.root_frequencies[model.process[c]]
            for s in range(shape.padded):
                q[at + s * n] = scale * frequencies[s] if s < shape.states else 0.0


@uncounted
def root_gradient(x, sweep, model, sites, site_weights, d_frequencies, d_weights, d_invariant):
    """What only the root sees: adds to d_frequencies (M, S), d_weights (C,), and d_invariant (S + 1,), the
    derivatives of the frequencies of invariable sites and then of their weight."""
    nodes, messages, shape = sweep.nodes, sweep.messages, sweep.shape
    lanes, n, width = shape.lanes, shape.exponents, shape.width  # n categories, innermost in a block's rows
    out, size = messages.start[nodes.messages_at[x]], nodes.size[x]
    for block in range(shape.blocks):
        values, exponents = messages.values[block], messages.exponents[block]
        for first in range(0, width, len(lanes)):
            total = zeros(site_weights, lanes)
            for k in range(size):
                scale, taken = site_weights[k] / sites.mantissa[k] if site_weights[k] != 0 else 0.0, False
                for lane in range(n):
                    taken = taken or exponents[(out + k) * n + lane] != sites.power[k]
                column = to_double(values, (out + k) * width + first, lanes)
                if not taken:
                    total = multiply_add(column, fill(site_weights, scale, lanes), total)
                    continue
                for i in range(len(lanes)):
                    e = exponents[(out + k) * n + (first + i) % n] - sites.power[k]
                    value = math.ldexp(scale, max(min(e, 1000), -2000)) * lane_of(column, i)
                    _add_at_root(block, first + i, value, model, shape, d_frequencies, d_weights)
            for i in range(len(lanes)):
                _add_at_root(block, first + i, lane_of(total, i), model, shape, d_frequencies, d_weights)
    for k in range(size):
        if site_weights[k] == 0:
            continue
        constant = math.ldexp(site_weights[k] / sites.mantissa[k], max(min(-sites.power[k], 1000), -2000))
        for s in range(shape.states):
            if sites.invariant_states[k * shape.states + s]:
                d_invariant[s] += model.invariant * constant
                d_invariant[shape.states] += constant * model.invariant_frequencies[s]


@uncounted
def _add_at_root(block, entry, value, model, shape, d_frequencies, d_weights):
    """Add entry `entry` of a block's row, Σ weight / L · p, to the derivatives that it belongs to."""
    s, c = entry // shape.exponents, block * shape.exponents + entry % shape.exponents
    if c < shape.categories and s < shape.states:
        m = model.process[c]
        d_frequencies[m, s] += model.weights[c] * value
        d_weights[c] += model.root_frequencies[m, s] * value
