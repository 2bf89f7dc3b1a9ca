"""At the root: site likelihoods and their sum (reference/root.py specifies it)."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import compiled

_NO_POWER = -(1 << 30)


@compiled
def root_sites(x, begin, end, nodes, messages, model, sites, shape):
    """Site log-likelihood of the root's rows begin:end, and the likelihood as mantissa · 2**power."""
    n = shape.exponents  # categories of a block, innermost in its rows
    out = messages.start[nodes.messages_at[x]]
    part, power = np.empty(shape.categories + 1), np.empty(shape.categories + 1, np.int64)
    for k in range(begin, end):
        top = _NO_POWER
        for c in range(shape.categories):
            block, at = c // n, (out + k) * shape.width + c % n
            total = 0.0
            for s in range(shape.states):
                total += model.root_frequencies[s] * messages.values[block, at + s * n]
            part[c] = model.weights[c] * total
            power[c] = messages.exponents[c // n, (out + k) * n + c % n]
            if part[c] > 0:
                top = max(top, power[c])
        part[shape.categories], power[shape.categories] = 0.0, 0
        if model.invariant > 0:
            part[shape.categories] = model.invariant * constant_part(k, model, sites, shape)
            if part[shape.categories] > 0:
                top = max(top, 0)
        total = 0.0
        for c in range(shape.categories + 1):
            if part[c] > 0:
                total += part[c] if power[c] == top else math.ldexp(part[c], max(power[c] - top, -2000))
            elif part[c] != 0:
                total = np.nan
        sites.mantissa[k], sites.power[k] = total, top
        sites.site_log[k] = math.log(total) + top * math.log(2.0) if total != 0 else -np.inf


@compiled
def constant_part(k, model, sites, shape):
    """Σ_s π_s [all tips allow state s at root column k]."""
    total = 0.0
    for s in range(shape.states):
        if sites.invariant_states[k * shape.states + s]:
            total += model.root_frequencies[s]
    return total


@compiled
def compensated_sum(values):
    """Sum with compensation (Neumaier 1974), exact to the last place or so, in the order given."""
    total, lost = 0.0, 0.0
    for value in values:
        new = total + value
        lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
        total = new
    return total + lost if math.isfinite(total) else total


@compiled
def total_log_likelihood(site_log, column_weights, ascertained, any_ascertained, weights):
    """As reference/root.py; weights: out, the derivative in every site log-likelihood."""
    terms = np.empty(len(site_log) + 1)
    for k in range(len(site_log)):
        weights[k] = column_weights[k]
        terms[k] = weights[k] * site_log[k] if weights[k] != 0 else 0.0
    terms[-1] = 0.0
    if any_ascertained:
        hidden, total = 0.0, 0.0
        for k in range(len(site_log)):
            total += column_weights[k]
            if ascertained[k]:
                hidden += math.exp(site_log[k])
        terms[-1] = -total * math.log1p(-hidden)
        for k in range(len(site_log)):
            if ascertained[k]:
                weights[k] += total * math.exp(site_log[k]) / (1 - hidden)
    return compensated_sum(terms)


@compiled
def root_down(x, begin, end, block, nodes, columns, messages, model, sites, site_weights, q, q_row, shape):
    """What the root passes down: d log L / d p_root = weight / L · w_c π_s of its rows begin:end, into the
    rows of q from q_row.

    Scaled by 2**(exponents of its children's messages), that is with the root's own shift taken out already.
    """
    n = shape.exponents  # categories of a block, innermost in its rows
    exponents = messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        left_at, right_at = (left_row + columns.left[row + k]) * n, (right_row + columns.right[row + k]) * n
        whole = site_weights[k] / sites.mantissa[k] if site_weights[k] != 0 else 0.0
        for lane in range(n):
            at, scale = (q_row + k - begin) * shape.width + lane, 0.0
            if block * n + lane < shape.categories:
                scale = whole * model.weights[block * n + lane]
                e = exponents[left_at + lane] + exponents[right_at + lane] - sites.power[k]
                if e != 0:
                    scale = math.ldexp(scale, max(min(e, 1000), -2000))
            for s in range(shape.padded):
                q[at + s * n] = scale * model.root_frequencies[s] if s < shape.states else 0.0


@compiled
def root_gradient(x, nodes, messages, model, sites, site_weights, shape, d_frequencies, d_weights):
    """What only the root sees: adds to d_frequencies (2, S), those of variable and of invariable sites, and
    to d_weights (C,); returns d invariant."""
    n = shape.exponents  # categories of a block, innermost in its rows
    out = messages.start[nodes.messages_at[x]]
    d_invariant = 0.0
    for k in range(nodes.size[x]):
        scale = site_weights[k] / sites.mantissa[k] if site_weights[k] != 0 else 0.0
        for c in range(shape.categories):
            block, at = c // n, (out + k) * shape.width + c % n
            e = messages.exponents[c // n, (out + k) * n + c % n] - sites.power[k]
            factor = math.ldexp(scale, max(min(e, 1000), -2000))
            for s in range(shape.states):
                value = factor * messages.values[block, at + s * n]
                d_frequencies[0, s] += model.weights[c] * value
                d_weights[c] += model.root_frequencies[s] * value
        constant = site_weights[k] * math.exp(-sites.site_log[k]) if site_weights[k] != 0 else 0.0
        for s in range(shape.states):
            if sites.invariant_states[k * shape.states + s]:
                if model.invariant > 0:
                    d_frequencies[1, s] += model.invariant * constant
                d_invariant += constant * model.root_frequencies[s]
    return d_invariant
