"""Rates of sites are drawn given all sequences: a category for every site.

What a site says of a category is what it would say with the state of the root everywhere, and what each
change along the tree adds to that: its own branch, and all branches below, which have another state from
there on. So the work is that of the changes, and of sites without any there are four kinds.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.ancestors.branches import (
    count_at_sites,
    count_rest,
    differing,
    mask_at,
    matrix,
    missing_in,
    note_sites,
    sites_of,
    state_of,
)
from phloem.inference.time.ancestors.draws import drawn_state


@uncounted
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
        to_weights(logs[s], memory.near.power[0])
        memory.category[s] = drawn_state(rng, logs[s])


@uncounted
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


@uncounted
def add_changes(memory, n_tips, x, one, other):
    """What the sites that change on the branch above x, or are not known below, say besides."""
    logs, below, inner = memory.by_site, memory.below, x >= n_tips
    if not inner:
        add_missing(memory, x, one, other)
    for s in memory.sites[: differing(one, other, memory.sites)]:
        i, mask = state_of(mask_at(one, s)), mask_at(other, s)
        for c in range(logs.shape[1]):
            p, chance = memory.near.p[0, x, c], 0.0
            for j in range(4):
                chance += p[i, j] if (mask >> j) & 1 else 0.0
            logs[s, c] += math.log(chance) - math.log(p[i, i])
            if inner:
                logs[s, c] += below[x, c, state_of(mask)] - below[x, c, i]


@uncounted
def add_missing(memory, x, one, other):
    """Of sites that are missing below a branch, which say nothing: not even that their state stays."""
    stays, logs = memory.stays, memory.by_site
    for c in range(stays.shape[0]):
        for i in range(4):
            stays[c, i] = math.log(memory.near.p[0, x, c, i, i])
    for w in range(other.shape[0]):
        bits = missing_in(other[w])
        if bits != 0:
            for s in memory.sites[: note_sites(bits, w, memory.sites, 0)]:
                i = state_of(mask_at(one, s))
                for c in range(logs.shape[1]):
                    logs[s, c] -= stays[c, i]


@uncounted
def to_weights(logs, power):
    """Numbers proportional to exp(power · logs), the largest 1, in their place."""
    most = -math.inf
    for c in range(logs.shape[0]):
        most = max(most, logs[c])
    for c in range(logs.shape[0]):
        logs[c] = math.exp(power * (logs[c] - most))


@uncounted
def recount(memory, n_tips, tree):
    """All shares and counts, from the sequences: of the root site by site, of all others by differences."""
    order, n = tree.order, tree.order.shape[0]
    sites_of(memory.words[order[n - 1]], memory.category, memory.shares[order[n - 1]])
    for k in range(n - 2, -1, -1):
        x = order[k]
        above, counts = tree.parent[x], memory.counts[x]
        pair = memory.words[above], memory.words[x]
        n_sites = differing(pair[0], pair[1], memory.sites)
        count_at_sites(pair, memory.category, memory.sites[:n_sites], counts)
        memory.several[x] = count_rest(counts, memory.shares[above])
        if x >= n_tips:
            for c in range(counts.shape[0]):
                for j in range(4):
                    total = 0
                    for i in range(4):
                        total += counts[c, i, 1 << j]
                    memory.shares[x, c, j] = total
