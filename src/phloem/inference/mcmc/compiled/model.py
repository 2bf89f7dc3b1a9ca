"""From the numbers of a chain to those a cell needs: eigensystem, category rates and weights."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.mcmc.compiled.eigen import jacobi, symmetric_rates
from phloem.inference.mcmc.compiled.gamma_rates import discrete_gamma
from phloem.inference.mcmc.records import (
    ALPHA,
    FREQUENCIES,
    INVARIABLE,
    MEDIAN,
    N_SHARES,
    RATE,
    SHARES,
)
from phloem.pruning.cpu.addresses import float64_at, int64_at
from phloem.pruning.cpu.cell_records import INVARIANT, SLOT, cell_model, cell_numbers


@uncounted
def model_differs(recipes, part, a, b):
    """Whether a partition's model reads a number in which a and b differ."""
    differs = False
    for i in range(len(a)):
        differs = differs or (a[i] != b[i] and recipes.reads[part, i] != 0)
    return differs


@uncounted
def set_model(recipes, part, values, numbers, addresses, scratch):
    """Write the model of a partition whose recipe is COMPILED into the slot of its cell that is not in use.

    values: (n,) the chain's numbers; numbers, addresses: the cell's rows of the tables.
    """
    n = cell_numbers(numbers)
    row, used = recipes.rows[part], int64_at(addresses[SLOT], (2,))[0]
    old, new = cell_model(n, addresses, used), cell_model(n, addresses, 1 - used)
    if row[SHARES] >= 0 or row[FREQUENCIES] >= 0:
        _set_process(recipes, part, row, values, n, new, scratch)
    else:
        for m in range(n.processes):
            for i in range(n.states):
                new.values[m, i] = old.values[m, i]
                new.root_frequencies[m, i] = old.root_frequencies[m, i]
                for j in range(new.right.shape[2]):
                    new.right[m, i, j] = old.right[m, i, j]
                for j in range(new.left.shape[2]):
                    new.left[m, i, j] = old.left[m, i, j]
        for i in range(n.states):
            new.invariant_frequencies[i] = old.invariant_frequencies[i]
    proportion = _set_rates(recipes, part, row, values, n, new)
    float64_at(addresses[INVARIANT], (2,))[1 - used] = proportion


@merged
def _set_process(recipes, part, row, values, n, model, scratch):
    s = n.states
    if row[FREQUENCIES] >= 0:
        pi = values[row[FREQUENCIES] : row[FREQUENCIES] + s]
    else:
        pi = recipes.frequencies[part, :s]
    shares = values[row[SHARES] : row[SHARES] + row[N_SHARES]]
    a, v = scratch.square[: s * s].reshape((s, s)), scratch.vectors[: s * s].reshape((s, s))
    symmetric_rates(recipes.base[part], recipes.share_of[part], shares, row[SHARES] >= 0, pi, a)
    jacobi(a, v)
    right, left = model.right[0], model.left[0]
    for k in range(s):
        model.values[0, k] = a[k, k]
        model.root_frequencies[0, k] = pi[k]
        model.invariant_frequencies[k] = pi[k]
        for i in range(s):
            root = math.sqrt(pi[i])
            left[k, i] = v[i, k] * root
            if n.padded == 4:
                right[i, k] = v[i, k] / root
            else:
                right[k, i] = v[i, k] / root


@merged
def _set_rates(recipes, part, row, values, n, model):
    rates, weights = model.rates, model.weights
    proportion = values[row[INVARIABLE]] if row[INVARIABLE] >= 0 else recipes.invariable[part]
    factor = recipes.unit[part] / (1.0 - proportion)
    if row[RATE] >= 0:
        factor *= values[row[RATE]] / recipes.site_share[part]
    if row[ALPHA] >= 0:
        discrete_gamma(values[row[ALPHA]], row[MEDIAN] == 1, n.categories, rates)
    for c in range(n.categories):
        rates[c] = factor * (rates[c] if row[ALPHA] >= 0 else recipes.rates[part, c])
        weights[c] = recipes.weights[part, c] * (1.0 - proportion)
    return proportion
