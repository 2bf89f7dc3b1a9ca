"""Rates of sites are drawn given all sequences: a category for every site.

What a site says of a category is what it would say with the state of the root everywhere, and what each
change along the tree adds to that: its own branch, and all branches below, which have another state from
there on. So the work is that of the changes, and of sites without any there are four kinds.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.ancestors.branches import count, count_rest, mask_at, matrix, sites_of, state_of
from phloem.inference.time.ancestors.sequences import MISSING, SITES

_FOUR, _FIFTEEN = np.uint64(4), np.uint64(MISSING)


@merged
def draw_categories(rng, memory, n_tips, model, tree):
    """Categories of all sites from their conditional distribution; counts are to be made anew."""
    n_categories, below = memory.shares.shape[1], memory.below
    set_below(memory, model, tree)
    root = tree.parent.shape[0] - 1
    logs = memory.by_site
    for s in range(memory.category.shape[0]):
        i = state_of(mask_at(memory.words[root], s))
        for c in range(n_categories):
            logs[s, c] = math.log(model.weights[c]) + below[root, c, i]
    for x in range(root):
        add_changes(memory, n_tips, x, memory.words[tree.parent[x]], memory.words[x])
    for s in range(memory.category.shape[0]):
        memory.category[s] = drawn_category(rng, logs[s])


@merged
def set_below(memory, model, tree):
    """p of all branches, and Σ log P_ii over the branches below every node, by category and state i."""
    below = memory.below
    for x in tree.order:
        below[x] = 0.0
        for child in (tree.left[x], tree.right[x]):
            if child < 0:
                continue
            for c in range(below.shape[1]):
                p, t = memory.near.p[0, child, c], tree.lengths[child] * model.rates[c]
                matrix(model.right[0], model.left[0], model.values[0], t, p)
                for i in range(4):
                    below[x, c, i] += below[child, c, i] + math.log(p[i, i])


@merged
def add_changes(memory, n_tips, x, one, other):
    """What the sites that change on the branch above x, or are not known below, say besides."""
    logs, below, inner = memory.by_site, memory.below, x >= n_tips
    for w in range(one.shape[0]):
        differs, s = one[w] ^ other[w], w * SITES
        if differs == 0:
            continue
        a, b = one[w], other[w]
        while differs != 0:
            if differs & _FIFTEEN != 0:
                i, mask = state_of(np.int64(a & _FIFTEEN)), np.int64(b & _FIFTEEN)
                for c in range(logs.shape[1]):
                    p, chance = memory.near.p[0, x, c], 0.0
                    for j in range(4):
                        chance += p[i, j] if (mask >> j) & 1 else 0.0
                    logs[s, c] += math.log(chance) - math.log(p[i, i])
                    if inner:
                        logs[s, c] += below[x, c, state_of(mask)] - below[x, c, i]
            differs >>= _FOUR
            a >>= _FOUR
            b >>= _FOUR
            s += 1


@uncounted
def drawn_category(rng, logs):
    """With probabilities proportional to exp(logs)."""
    most, total = -math.inf, 0.0
    for c in range(logs.shape[0]):
        most = max(most, logs[c])
    for c in range(logs.shape[0]):
        total += math.exp(logs[c] - most)
    left, c = uniform(rng) * total, 0
    while c < logs.shape[0] - 1 and left > math.exp(logs[c] - most):
        left -= math.exp(logs[c] - most)
        c += 1
    return c


@merged
def recount(memory, n_tips, tree):
    """All shares and counts, from the sequences: of the root site by site, of all others by differences."""
    order, n = tree.order, tree.order.shape[0]
    sites_of(memory.words[order[n - 1]], memory.category, memory.shares[order[n - 1]])
    for k in range(n - 2, -1, -1):
        x = order[k]
        above, counts = tree.parent[x], memory.counts[x]
        counts[:] = 0
        count(memory.words[above], memory.words[x], memory.category, counts)
        memory.several[x] = count_rest(counts, memory.shares[above])
        if x >= n_tips:
            for c in range(counts.shape[0]):
                for j in range(4):
                    total = 0
                    for i in range(4):
                        total += counts[c, i, 1 << j]
                    memory.shares[x, c, j] = total
