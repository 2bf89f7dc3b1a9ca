"""Ancestors whose neighbours are others now are summed over, given these neighbours, and drawn anew.

A proposal that changes the topology is judged by the sums, in the tree before and in the tree after: so what
is drawn is drawn from its exact conditional distribution, and needs no Hastings ratio. Sites at which all
neighbours are alike are of few kinds, and cost nothing; the others are looked at one by one.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.time.ancestors.branches import (
    count_rest,
    log_of_branch,
    mask_at,
    matrix,
    sites_of,
    state_of,
)
from phloem.inference.time.ancestors.sequences import MISSING, MOST, SITES

_FOUR, _FIFTEEN, _MIX = np.uint64(4), np.uint64(MISSING), np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(56)  # bits of a hash that say where a kind of site is kept: KINDS of them
# of Near.notes: how many lengths a proposal changed, what else it changed, how many ancestors it draws anew,
# how many nodes are beside these, and at how many sites these differ
CHANGED, KIND_OF, REDRAWN, BESIDE, DIFFER = range(5)
WHOLE_TREE, LENGTHS, TOPOLOGY = range(3)  # what a proposal changed
LEFT, RIGHT, ABOVE = range(3)  # of Near.kin
MANY = 200.0  # sites that are expected to differ from all their neighbours: then all are drawn one by one


@uncounted
def forget(near):
    """That some ancestors were to be drawn anew."""
    for k in range(near.notes[REDRAWN]):
        near.at[near.redrawn[1, k]] = -1
    near.notes[REDRAWN] = 0


@merged
def find_redrawn(near, n_tips, before, now):
    """Ancestors whose children are others now: into near.redrawn. False for too many."""
    n, possible = 0, True
    for x in range(n_tips, now.parent.shape[0]):
        a, b = now.left[x], now.right[x]
        if (a == before.left[x] and b == before.right[x]) or (a == before.right[x] and b == before.left[x]):
            continue
        possible = possible and n < MOST
        if possible:
            near.redrawn[0, n] = x
            n += 1
    near.notes[REDRAWN] = n
    return possible


@uncounted
def set_order(near, n_tips, before, now):
    """Of the ancestors in near.redrawn[0]: their order and kin in both trees, and other neighbours."""
    redrawn, at, n = near.redrawn, near.at, near.notes[REDRAWN]
    for k in range(n):
        redrawn[1, k] = redrawn[0, k]
    for side in range(2):
        heights, own = (before.heights, redrawn[0]) if side == 0 else (now.heights, redrawn[1])
        for k in range(1, n):
            x, j = own[k], k - 1
            while j >= 0 and heights[own[j]] > heights[x]:
                own[j + 1] = own[j]
                j -= 1
            own[j + 1] = x
    for k in range(n):
        at[redrawn[1, k]] = k
        x, y = redrawn[0, k], redrawn[1, k]
        near.kin[0, k, LEFT], near.kin[0, k, RIGHT] = before.left[x], before.right[x]
        near.kin[1, k, LEFT], near.kin[1, k, RIGHT] = now.left[y], now.right[y]
        near.kin[0, k, ABOVE], near.kin[1, k, ABOVE] = before.parent[x], now.parent[y]
    size, beside = 0, near.beside
    for k in range(n):
        for i in range(3):
            y = near.kin[1, k, i]
            known = y < 0 or at[y] >= 0
            for j in range(size):
                known = known or beside[j] == y
            if not known:
                beside[size] = y
                size += 1
    for i in range(size):  # an ancestor first: all its sites have one state
        if beside[i] >= n_tips:
            beside[0], beside[i] = beside[i], beside[0]
            break
    near.notes[BESIDE] = size


@uncounted
def set_matrices(near, model, before, now):
    """Of the branches at the ancestors that are drawn anew."""
    for side in range(2):
        for k in range(near.notes[REDRAWN]):
            x = near.redrawn[side, k]
            for i in range(3):
                y = near.kin[side, k, i] if i < ABOVE else x
                length = before.lengths[y] if side == 0 else now.lengths[y]
                for c in range(near.root.shape[0] if i < ABOVE or near.kin[side, k, ABOVE] >= 0 else 0):
                    t, p = length * model.rates[c], near.p[side, y, c]
                    matrix(model.right[0], model.left[0], model.values[0], t, p)
    for c in range(near.root.shape[0]):
        for i in range(4):
            near.root[c, i] = model.root_frequencies[0, i] * model.weights[c]


@uncounted
def peel(near, side, c, up):
    """Log-likelihood of a site of category c, near.mask of the neighbours; messages into up (MOST, 4)."""
    value = 1.0
    for k in range(near.notes[REDRAWN]):
        x = near.redrawn[side, k]
        own = up[near.at[x]]
        for i in range(4):
            own[i] = 1.0
        for child in near.kin[side, k, :ABOVE]:
            p, inside = near.p[side, child, c], near.at[child]
            for i in range(4):
                total = 0.0
                for j in range(4):
                    if inside >= 0:
                        total += p[i, j] * up[inside, j]
                    elif (near.mask[child] >> j) & 1:
                        total += p[i, j]
                own[i] *= total
        above, total = near.kin[side, k, ABOVE], 0.0
        if above < 0:
            for i in range(4):
                total += near.root[c, i] * own[i]
        elif near.at[above] < 0:
            i = state_of(near.mask[above])
            for j in range(4):
                total += near.p[side, x, c, i, j] * own[j]
        else:
            total = 1.0
        value *= total
    return math.log(value) if value > 0.0 else -math.inf


@uncounted
def kind_of_site(near, c):
    """Which row of near.up and logs has a site of category c with near.mask, in both trees."""
    key, size = np.uint64(c + 1), near.notes[BESIDE]
    if size < 15:
        for b in range(size):
            key = (key << _FOUR) | np.uint64(near.mask[near.beside[b]])
    else:
        key = np.uint64(0)
    row = np.int64((key * _MIX) >> _HIGH)
    if key == 0 or near.kinds[row] != key:
        near.kinds[row] = key
        for side in range(2):
            near.logs[row, side] = peel(near, side, c, near.up[row, side])
    return row


@uncounted
def find_sites(words, category, shares, near, differs, sites, agree):
    """Sites at which the neighbours differ, or all where those of the first may have several states (it is a
    tip: shares is empty): into sites; and how many others of each kind there are, into agree."""
    n, whole, one = 0, shares.shape[0] == 0, words[near.beside[0]]
    differs[:] = np.uint64(0xFFFFFFFFFFFFFFFF) if whole else np.uint64(0)
    for b in range(1, near.notes[BESIDE]):
        other = words[near.beside[b]]
        for w in range(differs.shape[0]):
            differs[w] |= one[w] ^ other[w]
    for c in range(agree.shape[0]):
        for i in range(4):
            agree[c, i] = 0 if whole else shares[c, i]
    for w in range(differs.shape[0]):
        word, s = differs[w], w * SITES
        while word != 0 and s < sites.shape[0]:
            if word & _FIFTEEN != 0:
                sites[n] = s
                n += 1
                if not whole:
                    agree[category[s], state_of(mask_at(one, s))] -= 1
            word >>= _FOUR
            s += 1
    near.notes[DIFFER] = n


@uncounted
def set_masks(near, words, s):
    """near.mask of the neighbours at a site."""
    for b in range(near.notes[BESIDE]):
        y = near.beside[b]
        near.mask[y] = np.uint8(mask_at(words[y], s))


@uncounted
def set_alike(near, i):
    """near.mask where all neighbours have state i."""
    for b in range(near.notes[BESIDE]):
        near.mask[near.beside[b]] = np.uint8(1 << i)


@merged
def sums(memory, n_tips, model, before, now):
    """How the log-likelihood of the neighbours given all else changes, summed over the ancestors that are to
    be drawn anew."""
    near, agree, change = memory.near, memory.agree, 0.0
    set_matrices(near, model, before, now)
    near.kinds[:] = np.uint64(0)
    first = near.beside[0]
    shares = memory.shares[first, : 0 if first < n_tips else agree.shape[0]]
    find_sites(memory.words, memory.category, shares, near, memory.differs, memory.sites, agree)
    differ = near.notes[DIFFER]
    for n in range(differ + agree.size):
        times, c, i = 1, (n - differ) >> 2, (n - differ) & 3
        if n < differ:
            s = memory.sites[n]
            c = np.int64(memory.category[s])
            set_masks(near, memory.words, s)
        else:
            times = agree[c, i]
            set_alike(near, i)
        if times > 0:
            row = kind_of_site(near, c)
            change += times * (near.logs[row, 1] - near.logs[row, 0])
    return change


# Drawing, in the proposed tree.


@uncounted
def drawn_state(rng, weights):
    """A state, with weights (4,)."""
    total = weights[0] + weights[1] + weights[2] + weights[3]
    left, i = uniform(rng) * total, 0
    while i < 3 and left > weights[i]:
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


@merged
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
        c, i, s = (n - differ) >> 2, (n - differ) & 3, -1
        if n < differ:
            s = memory.sites[n]
            c = np.int64(memory.category[s])
            set_masks(near, memory.words, s)
        else:
            set_alike(near, i)
            if agree[c, i] == 0:
                continue
        up = near.up[kind_of_site(near, c), 1]
        if s >= 0:
            draw_site(rng, near, c, up, room)
            write_states(near, fresh, s)
        else:
            own = memory.words, memory.category, memory.sites, fresh
            draw_alike(rng, near, own, (c, i, agree[c, i]), up, room, memory.chances)


@uncounted
def draw_alike(rng, near, own, kind, up, room, chances):
    """Sites of a kind, (category c, state i, how many), at which all neighbours have state i: those few at
    which an ancestor differs. own: words, categories, sites and new sequences."""
    words, category, sites, fresh = own
    c, i, n = kind
    chance = first_to_differ(near, c, i, up, room, chances)
    if n * chance > MANY or chance > 0.5:
        for s in range(category.shape[0]):
            if category[s] == c and is_alike(near, words, s, i):
                draw_site(rng, near, c, up, room)
                write_states(near, fresh, s)
                add_site(near, sites, s)
        return
    more = how_many(rng, n, chance)
    while more > 0:
        s = below(rng, category.shape[0])
        if category[s] == c and is_alike(near, words, s, i) and is_untouched(near, fresh, s, i):
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
def is_alike(near, words, s, i):
    """Whether a site has state i in all neighbours."""
    alike = True
    for b in range(near.notes[BESIDE]):
        alike = alike and mask_at(words[near.beside[b]], s) == 1 << i
    return alike


@uncounted
def is_untouched(near, fresh, s, i):
    """Whether all ancestors drawn have state i there so far."""
    untouched = True
    for k in range(near.notes[REDRAWN]):
        untouched = untouched and mask_at(fresh[k], s) == 1 << i
    return untouched


@merged
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


@uncounted
def count_at_sites(pair, category, sites, counts):
    """Differences between two sequences that differ at some sites only, above and below, into counts."""
    counts[:] = 0
    for s in sites:
        a, b = mask_at(pair[0], s), mask_at(pair[1], s)
        if a != b:
            counts[category[s], state_of(a), b] += 1
