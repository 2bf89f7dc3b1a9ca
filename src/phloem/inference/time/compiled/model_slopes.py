"""From derivatives of a cell's likelihood by matrices and rates to those by the numbers of its model."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.model import category_rates
from phloem.inference.mcmc.records import (
    ALPHA,
    FREQUENCIES,
    INVARIABLE,
    MATRIX,
    MORE_SHARES,
    RATE,
    SHARES,
)
from phloem.pruning.cpu.cell_records import (
    D_FREQUENCIES,
    D_INVARIANT,
    D_RATE_MATRIX,
    D_RATES,
    D_WEIGHTS,
    INVARIANT,
    RATES,
    SLOT,
    cell_numbers,
)
from phloem.pruning.cpu.storage import float64_at, int64_at

ALPHA_STEP = 1e-4  # relative, of differences of a gamma's category rates


@uncounted
def add_model_slopes(data, part, numbers, addresses, down, scratch, proposed, out):
    """From derivatives by a part's matrices and rates to those by its numbers, added to out (e,)."""
    row, n = data.recipes.rows[part], cell_numbers(numbers)
    slot = int64_at(addresses[SLOT], (2,))[proposed]
    if row[SHARES] >= 0 or row[FREQUENCIES] >= 0:
        by_q = float64_at(down[D_RATE_MATRIX], (n.states, n.padded))
        add_process_slopes(data, part, n, down, scratch, by_q, out)
    by_rate = float64_at(down[D_RATES], (n.categories,))
    rates = float64_at(addresses[RATES], (2, n.categories))[slot]
    if row[ALPHA] >= 0:
        add_alpha_slope(data, part, n.categories, by_rate, rates, scratch, out)
    if row[RATE] >= 0:
        total = 0.0
        for c in range(n.categories):
            total += by_rate[c] * rates[c]
        out[row[RATE]] += total / scratch.engine[1, row[RATE]]
    if row[INVARIABLE] >= 0:
        p = float64_at(addresses[INVARIANT], (2,))[slot]
        by_weight, total = float64_at(down[D_WEIGHTS], (n.categories,)), 0.0
        for c in range(n.categories):
            total += by_rate[c] * rates[c] / (1.0 - p) - by_weight[c] * data.recipes.weights[part, c]
        by_p = float64_at(down[D_INVARIANT], (n.states + 1,))[n.states]
        out[row[INVARIABLE]] += total + by_p


@uncounted
def add_process_slopes(data, part, n, down, scratch, by_q, out):
    """Q_ij = base_ij · shares_ij π_j / μ, μ = Σ_{i≠j} π_i base_ij · shares_ij π_j. With A_ij = dL/dQ_ij -
    dL/dQ_ii: dL = Σ A_ij d(Q_ij μ) / μ - Σ A_ij Q_ij dμ / μ."""
    recipes, row, s = data.recipes, data.recipes.rows[part], n.states
    values, base, share_of = scratch.engine[1], recipes.base[row[MATRIX]], recipes.share_of[part]
    first, one, two = row[FREQUENCIES], row[SHARES], row[MORE_SHARES]
    pi = values[first : first + s] if first >= 0 else recipes.frequencies[row[MATRIX], :s]
    mean, level = 0.0, 0.0
    for i in range(s):
        for j in range(s):
            if i != j and base[i, j] > 0.0:
                rate = base[i, j] * (values[one + share_of[0, i, j]] if one >= 0 else 1.0)
                rate *= values[two + share_of[1, i, j]] if two >= 0 else 1.0
                mean += pi[i] * rate * pi[j]
                level += (by_q[i, j] - by_q[i, i]) * rate * pi[j]
    level /= mean
    for i in range(s):
        for j in range(s):
            if i == j or base[i, j] <= 0.0:
                continue
            a = values[one + share_of[0, i, j]] if one >= 0 else 1.0
            b = values[two + share_of[1, i, j]] if two >= 0 else 1.0
            slope = (by_q[i, j] - by_q[i, i] - level * pi[i]) / mean
            if one >= 0:
                out[one + share_of[0, i, j]] += base[i, j] * b * pi[j] * slope
            if two >= 0:
                out[two + share_of[1, i, j]] += base[i, j] * a * pi[j] * slope
            if first >= 0:
                rate = base[i, j] * a * b
                out[first + j] += rate * slope
                out[first + i] -= level * rate * pi[j] / mean
    if first >= 0:
        at_root = float64_at(down[D_FREQUENCIES], (n.processes, s))[0]
        constant = float64_at(down[D_INVARIANT], (s + 1,))
        for i in range(s):
            out[first + i] += at_root[i] + constant[i]


@uncounted
def add_alpha_slope(data, part, n_categories, by_rate, rates, scratch, out):
    """By the shape of the rates: differences of the categories' rates, which cost no likelihood."""
    recipes, row, total = data.recipes, data.recipes.rows[part], 0.0
    alpha = scratch.engine[1, row[ALPHA]]
    category_rates(recipes, part, alpha, n_categories, scratch.rates)
    factor = 0.0
    for c in range(n_categories):
        if scratch.rates[c] > 1e-3:
            factor = max(factor, rates[c] / scratch.rates[c])
    for sign in (1.0, -1.0):
        category_rates(recipes, part, alpha * math.exp(sign * ALPHA_STEP), n_categories, scratch.rates)
        for c in range(n_categories):
            total += sign * by_rate[c] * factor * scratch.rates[c]
    out[row[ALPHA]] += total / (2.0 * ALPHA_STEP * alpha)
