"""Ancestors are drawn anew from their conditional distribution, in the proposed tree, after redraw.sums."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.time.ancestors.branches import (
    count_at_sites,
    count_rest,
    log_of_branch,
    mask_at,
    sites_of,
    state_of,
)
from phloem.inference.time.ancestors.redraw import (
    ABOVE,
    BESIDE,
    DIFFER,
    REDRAWN,
    kind_at,
    kind_of_site,
    set_alike,
    set_masks,
)
from phloem.inference.time.ancestors.sequences import MISSING, SITES

_FIFTEEN = np.uint64(MISSING)
MANY = 200.0  # sites that are expected to differ from all their neighbours: then all are drawn one by one


@uncounted
def drawn_state(rng, weights):
    """A number below n, with weights (n,)."""
    total, last = 0.0, weights.shape[0] - 1
    for i in range(last + 1):
        total += weights[i]
    left, i = uniform(rng) * total, 0
    while i < last and left > weights[i]:
        left -= weights[i]
        i += 1
    while weights[i] == 0.0 and i > 0:  # rounding
        i -= 1
    return i


@uncounted
def weigh(near, c, k, up, out):
    """Weights (4,) of the states of the k-th ancestor, given the states drawn above it."""
    above = near.kin[1, k, ABOVE]
    if above < 0:
        for i in range(4):
            out[i] = near.root[c, i] * up[k, i]
        return
    i = near.drawn[near.at[above]] if near.at[above] >= 0 else state_of(near.mask[above])
    x = near.redrawn[1, k]
    for j in range(4):
        out[j] = near.p[1, x, c, i, j] * up[k, j]


@uncounted
def draw_site(rng, near, c, up, room):
    """States of all ancestors that are drawn anew at one site, into near.drawn."""
    for k in range(near.notes[REDRAWN] - 1, -1, -1):
        weigh(near, c, k, up, room)
        near.drawn[k] = drawn_state(rng, room)


@uncounted
def first_to_differ(near, c, i, up, room, chances):
    """Of a site at which all neighbours have state i: into chances the probability of each ancestor, from the
    last, to be the first that has another; returns their sum."""
    stays, total = 1.0, 0.0
    for k in range(near.notes[REDRAWN] - 1, -1, -1):
        weigh(near, c, k, up, room)
        other = 0.0
        for j in range(4):
            other += room[j] if j != i else 0.0
        chances[k] = stays * other / (other + room[i])
        total += chances[k]
        stays *= room[i] / (other + room[i])
        near.drawn[k] = i
    return total


@uncounted
def draw_other(rng, near, c, i, up, room, chances):
    """States of a site at which not all ancestors have state i, that of all neighbours."""
    total, k = first_to_differ(near, c, i, up, room, chances), near.notes[REDRAWN] - 1
    left = uniform(rng) * total
    while k > 0 and left > chances[k]:
        left -= chances[k]
        k -= 1
    for own in range(k, -1, -1):
        weigh(near, c, own, up, room)
        room[i] = 0.0 if own == k else room[i]
        near.drawn[own] = drawn_state(rng, room)


@uncounted
def write_states(near, fresh, s):
    """near.drawn at a site into the sequences that are drawn."""
    w, shift = s // SITES, np.uint64(4 * (s % SITES))
    for k in range(near.notes[REDRAWN]):
        kept = fresh[k, w] & ~(_FIFTEEN << shift)
        fresh[k, w] = kept | (np.uint64(1 << near.drawn[k]) << shift)


@uncounted
def how_many(rng, n, chance):
    """Binomial, by inversion; n · chance at most some hundreds."""
    left, k = uniform(rng), 0
    value, odds = math.exp(n * math.log1p(-chance)), chance / (1.0 - chance)
    while left > value and k < n:
        left -= value
        value *= (n - k) / (k + 1.0) * odds
        k += 1
    return k


@uncounted
def draw(rng, memory, n_tips):
    """Draw ancestors anew, given their neighbours in the proposed tree: into memory.fresh. sums was called
    before. Other sites at which one of them differs from its neighbours are added to memory.sites."""
    near, fresh, room, agree = memory.near, memory.fresh, memory.room[0, 0], memory.agree
    first = near.beside[0]
    for k in range(near.notes[REDRAWN]):
        begin, own = memory.words[near.redrawn[1, k] if first < n_tips else first], fresh[k]
        for w in range(own.shape[0]):
            own[w] = begin[w]
    differ = near.notes[DIFFER]
    for n in range(differ + agree.size):
        (c, i, kind), s = kind_at(n - differ), -1
        if n < differ:
            s = memory.sites[n]
            c = np.int64(memory.category[s])
            set_masks(near, memory.words, s)
        elif agree[c, i, kind] == 0:
            continue
        else:
            set_alike(near, i, kind)
        up = near.up[kind_of_site(near, c), 1]
        if s >= 0:
            draw_site(rng, near, c, up, room)
            write_states(near, fresh, s)
        else:
            own = memory.words, memory.category, memory.sites, fresh
            draw_alike(rng, near, own, (c, i, agree[c, i, kind]), up, room, memory.chances)


@uncounted
def draw_alike(rng, near, own, kind, up, room, chances):
    """Sites of a kind, (category c, state i, how many), where all neighbours that are known have state i, as
    near.mask says: those few at which an ancestor differs. own: words, categories, sites, new sequences."""
    words, category, sites, fresh = own
    c, i, n = kind
    chance = first_to_differ(near, c, i, up, room, chances)
    if n * chance > MANY or chance > 0.5:
        for s in range(category.shape[0]):
            if category[s] == c and is_alike(near, words, s):
                draw_site(rng, near, c, up, room)
                write_states(near, fresh, s)
                add_site(near, sites, s)
        return
    more = how_many(rng, n, chance)
    while more > 0:
        s = below(rng, category.shape[0])
        if category[s] == c and is_alike(near, words, s) and is_untouched(near, fresh, s, i):
            draw_other(rng, near, c, i, up, room, chances)
            write_states(near, fresh, s)
            add_site(near, sites, s)
            more -= 1


@uncounted
def add_site(near, sites, s):
    """To those at which counts may differ."""
    sites[near.notes[DIFFER]] = s
    near.notes[DIFFER] += 1


@uncounted
def is_alike(near, words, s):
    """Whether a site has near.mask in all neighbours."""
    alike = True
    for b in range(near.notes[BESIDE]):
        y = near.beside[b]
        alike = alike and mask_at(words[y], s) == near.mask[y]
    return alike


@uncounted
def is_untouched(near, fresh, s, i):
    """Whether all ancestors drawn have state i there so far."""
    untouched = True
    for k in range(near.notes[REDRAWN]):
        untouched = untouched and mask_at(fresh[k], s) == 1 << i
    return untouched


@uncounted
def take_drawn(memory, n_tips, model, tree):
    """Take over what was drawn: sequences, shares, counts and log-likelihoods of the branches at them."""
    near = memory.near
    n, first, differ = near.notes[REDRAWN], near.beside[0], near.notes[DIFFER]
    for k in range(n):
        x = near.redrawn[1, k]
        own, fresh = memory.words[x], memory.fresh[k]
        for w in range(own.shape[0]):
            own[w] = fresh[w]
        if first < n_tips:
            sites_of(own, memory.category, memory.shares[x])
        else:
            pair = memory.words[first], own
            sites_beside(pair, memory.category, memory.sites[:differ], memory.shares[first], memory.shares[x])
    for n_branch in range(3 * n):
        k, i = n_branch // 3, n_branch % 3
        x = near.redrawn[1, k]
        above = near.kin[1, k, ABOVE] if i == ABOVE else x
        y = x if i == ABOVE else near.kin[1, k, i]
        if i == ABOVE and (above < 0 or near.at[above] >= 0):
            continue  # there is none, or it is a child's
        pair, counts = (memory.words[above], memory.words[y]), memory.counts[y]
        count_at_sites(pair, memory.category, memory.sites[:differ], counts)
        memory.several[y] = count_rest(counts, memory.shares[above])
        memory.value[y] = log_of_branch(
            counts, memory.several[y] != 0, model.right[0], model.left[0], model.values[0], model.rates,
            tree.lengths[y], memory.room[0, 0],
        )  # fmt: skip


@uncounted
def sites_beside(pair, category, sites, known, shares):
    """shares (C, 4) of the second of two sequences, from those of the first, which differs at some sites."""
    for c in range(shares.shape[0]):
        for i in range(4):
            shares[c, i] = known[c, i]
    for s in sites:
        shares[category[s], state_of(mask_at(pair[0], s))] -= 1
        shares[category[s], state_of(mask_at(pair[1], s))] += 1
