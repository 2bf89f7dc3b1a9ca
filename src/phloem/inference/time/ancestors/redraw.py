"""Ancestors whose neighbours are others now are summed over, given these neighbours, and drawn anew.

A proposal that changes the topology is judged by the sums, in the tree before and in the tree after: so what is
drawn is drawn from its exact conditional distribution, and needs no Hastings ratio. Sites at which all neighbours
are alike are of few kinds, and cost nothing; the others are looked at one by one, sixteen sites a word at a time.
"""

from __future__ import annotations

import math
import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.time.ancestors.branches import count_rest, log_of_branch, matrix, sites_of, state_of
from phloem.inference.time.ancestors.sequences import KINDS, MISSING, MOST, SITES

_FOUR, _FIFTEEN, _MIX = np.uint64(4), np.uint64(MISSING), np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(56)  # bits of a hash that say where a kind of site is kept
CHANGED, KIND_OF, REDRAWN, BESIDE, DIFFER = range(5)  # of Memory.notes
WHOLE_TREE, LENGTHS, TOPOLOGY = range(3)  # what a proposal changed
MANY = 200.0  # sites that are expected to differ from all their neighbours: then all are drawn one by one


@uncounted
def find_redrawn(memory, before, now):
    """Ancestors whose children are others now: into memory.redrawn, children first. False for too many."""
    n, found = 0, memory.redrawn[0]
    for x in range(memory.n_tips, now.parent.shape[0]):
        a, b = now.left[x], now.right[x]
        if (a == before.left[x] and b == before.right[x]) or (a == before.right[x] and b == before.left[x]):
            continue
        if n == MOST:
            return False
        found[n] = x
        n += 1
    about(memory, before, now, n)
    return True


@uncounted
def about(memory, before, now, n):
    """Of n ancestors in memory.redrawn[0]: their order in both trees, and their other neighbours."""
    redrawn, at, beside = memory.redrawn, memory.at, memory.beside
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
    size = 0
    for k in range(n):
        x = redrawn[1, k]
        for y in (now.left[x], now.right[x], now.parent[x]):
            known = y < 0 or at[y] >= 0
            for i in range(size):
                known = known or beside[i] == y
            if not known:
                beside[size] = y
                size += 1
    for i in range(size):  # an ancestor first: all its sites have one state
        if beside[i] >= memory.n_tips:
            beside[0], beside[i] = beside[i], beside[0]
            break
    memory.notes[REDRAWN], memory.notes[BESIDE] = n, size


@uncounted
def forget(memory):
    """That some ancestors were to be drawn anew."""
    for k in range(memory.notes[REDRAWN]):
        memory.at[memory.redrawn[1, k]] = -1
    memory.notes[REDRAWN] = 0


@uncounted
def set_matrices(memory, model, tree, side):
    """Of the branches at the ancestors that are drawn anew."""
    for k in range(memory.notes[REDRAWN]):
        x = memory.redrawn[1, k]
        for y in (x, tree.left[x], tree.right[x]):
            for c in range(memory.shares.shape[1] if tree.parent[y] >= 0 else 0):
                t, p = tree.lengths[y] * model.rates[c], memory.p[side, y, c]
                matrix(model.right[0], model.left[0], model.values[0], t, p)


@uncounted
def peel(memory, model, tree, side, c, up):
    """Log-likelihood of a site of category c, memory.mask of the neighbours; messages into up (MOST, 4)."""
    value = 1.0
    for k in range(memory.notes[REDRAWN]):
        x = memory.redrawn[side, k]
        own = up[memory.at[x]]
        for i in range(4):
            own[i] = 1.0
        for child in (tree.left[x], tree.right[x]):
            p, inside = memory.p[side, child, c], memory.at[child]
            for i in range(4):
                total = 0.0
                for j in range(4):
                    if inside >= 0:
                        total += p[i, j] * up[inside, j]
                    elif (memory.mask[child] >> j) & 1:
                        total += p[i, j]
                own[i] *= total
        above, total = tree.parent[x], 0.0
        if above < 0:
            for i in range(4):
                total += model.root_frequencies[0, i] * model.weights[c] * own[i]
        elif memory.at[above] < 0:
            p, i = memory.p[side, x, c], state_of(memory.mask[above])
            for j in range(4):
                total += p[i, j] * own[j]
        else:
            total = 1.0
        value *= total
    return math.log(value) if value > 0.0 else -math.inf


@uncounted
def kind_of_site(memory, model, before, now, c):
    """Which row of memory.up and logs has a site of category c with memory.mask, in both trees."""
    key, size = np.uint64(c + 1), memory.notes[BESIDE]
    row = 0
    if size < 15:
        for b in range(size):
            key = (key << _FOUR) | np.uint64(memory.mask[memory.beside[b]])
        row = np.int64((key * _MIX) >> _HIGH)
        if memory.kinds[row] == key:
            return row
        memory.kinds[row] = key
    else:
        memory.kinds[row] = 0
    memory.logs[row, 0] = peel(memory, model, before, 0, c, memory.up[row, 0])
    memory.logs[row, 1] = peel(memory, model, now, 1, c, memory.up[row, 1])
    return row


@uncounted
def find_sites(memory):
    """Sites at which the neighbours differ, or all where those of the first may have several states: into
    memory.sites; and how many others of each kind there are, into memory.agree."""
    first, agree, differs, n = memory.beside[0], memory.agree, memory.differs, 0
    whole, one = first < memory.n_tips, memory.words[first]
    differs[:] = np.uint64(0xFFFFFFFFFFFFFFFF) if whole else np.uint64(0)
    for b in range(1, memory.notes[BESIDE]):
        other = memory.words[memory.beside[b]]
        for w in range(differs.shape[0]):
            differs[w] |= one[w] ^ other[w]
    for c in range(agree.shape[0]):
        for i in range(4):
            agree[c, i] = 0 if whole else memory.shares[first, c, i]
    for w in range(differs.shape[0]):
        word, s = differs[w], w * SITES
        while word != 0 and s < memory.n_sites:
            if word & _FIFTEEN != 0:
                memory.sites[n] = s
                n += 1
                if not whole:
                    agree[memory.category[s], state_of(mask_at(one, s))] -= 1
            word >>= _FOUR
            s += 1
    memory.notes[DIFFER] = n


@uncounted
def mask_at(words, s):
    """Of a sequence (W,) at a site."""
    return np.int64((words[s // SITES] >> np.uint64(4 * (s % SITES))) & _FIFTEEN)


@uncounted
def sums(memory, model, before, now):
    """Log-likelihoods, before and now, of the neighbours given all else, summed over the ancestors that are to
    be drawn anew, and of the branches between them."""
    old, new, agree = 0.0, 0.0, memory.agree
    set_matrices(memory, model, before, 0)
    set_matrices(memory, model, now, 1)
    memory.kinds[:] = np.uint64(0)
    find_sites(memory)
    for n in range(memory.notes[DIFFER]):
        s = memory.sites[n]
        set_masks(memory, s)
        row = kind_of_site(memory, model, before, now, np.int64(memory.category[s]))
        old += memory.logs[row, 0]
        new += memory.logs[row, 1]
    for c in range(agree.shape[0]):
        for i in range(4):
            if agree[c, i] > 0:
                row = kind_of_alike(memory, model, before, now, c, i)
                old += agree[c, i] * memory.logs[row, 0]
                new += agree[c, i] * memory.logs[row, 1]
    return old, new


@uncounted
def set_masks(memory, s):
    """memory.mask of the neighbours at a site."""
    for b in range(memory.notes[BESIDE]):
        y = memory.beside[b]
        memory.mask[y] = np.uint8(mask_at(memory.words[y], s))


@uncounted
def kind_of_alike(memory, model, before, now, c, i):
    """kind_of_site where all neighbours have state i."""
    for b in range(memory.notes[BESIDE]):
        memory.mask[memory.beside[b]] = np.uint8(1 << i)
    return kind_of_site(memory, model, before, now, c)


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
def weigh(memory, model, tree, c, k, up, out):
    """Weights (4,) of the states of the k-th ancestor, given the states drawn above it."""
    x = memory.redrawn[1, k]
    above = tree.parent[x]
    if above < 0:
        for i in range(4):
            out[i] = model.root_frequencies[0, i] * up[k, i]
        return
    i = memory.drawn[memory.at[above]] if memory.at[above] >= 0 else state_of(memory.mask[above])
    for j in range(4):
        out[j] = memory.p[1, x, c, i, j] * up[k, j]


@uncounted
def draw_site(rng, memory, model, tree, c, up, room):
    """States of all ancestors that are drawn anew at one site, into memory.drawn."""
    for k in range(memory.notes[REDRAWN] - 1, -1, -1):
        weigh(memory, model, tree, c, k, up, room)
        memory.drawn[k] = drawn_state(rng, room)


@uncounted
def first_to_differ(memory, model, tree, c, i, up, room, chances):
    """Of a site at which all neighbours have state i: into chances the probability of each ancestor, from the
    last, to be the first that has another; returns their sum."""
    stays, total = 1.0, 0.0
    for k in range(memory.notes[REDRAWN] - 1, -1, -1):
        weigh(memory, model, tree, c, k, up, room)
        other = 0.0
        for j in range(4):
            other += room[j] if j != i else 0.0
        chances[k] = stays * other / (other + room[i])
        total += chances[k]
        stays *= room[i] / (other + room[i])
        memory.drawn[k] = i
    return total


@uncounted
def draw_other(rng, memory, model, tree, c, i, up, room, chances):
    """States of a site at which not all ancestors have state i, that of all neighbours."""
    total = first_to_differ(memory, model, tree, c, i, up, room, chances)
    last = memory.notes[REDRAWN] - 1
    left, k = uniform(rng) * total, last
    while k > 0 and left > chances[k]:
        left -= chances[k]
        k -= 1
    for own in range(k, -1, -1):
        weigh(memory, model, tree, c, own, up, room)
        if own == k:
            room[i] = 0.0
        memory.drawn[own] = drawn_state(rng, room)


@uncounted
def write_states(memory, s):
    """memory.drawn at a site into the sequences that are drawn."""
    w, shift = s // SITES, np.uint64(4 * (s % SITES))
    for k in range(memory.notes[REDRAWN]):
        kept = memory.fresh[k, w] & ~(_FIFTEEN << shift)
        memory.fresh[k, w] = kept | (np.uint64(1 << memory.drawn[k]) << shift)


@uncounted
def how_many(rng, n, chance):
    """Binomial, by inversion; n · chance below some hundreds."""
    left, k = uniform(rng), 0
    value, odds = math.exp(n * math.log1p(-chance)), chance / (1.0 - chance)
    while left > value and k < n:
        left -= value
        value *= (n - k) / (k + 1.0) * odds
        k += 1
    return k


@uncounted
def draw(rng, memory, model, before, now):
    """Draw ancestors anew, given their neighbours in the proposed tree: into memory.fresh. sums was called
    before. Other sites at which one of them differs from its neighbours are added to memory.sites."""
    first, room, chances = memory.beside[0], memory.room[0, 0], memory.chances
    for k in range(memory.notes[REDRAWN]):
        begin, own = memory.words[redrawn_or(memory, first, k)], memory.fresh[k]
        for w in range(own.shape[0]):
            own[w] = begin[w]
    for n in range(memory.notes[DIFFER]):
        s = memory.sites[n]
        set_masks(memory, s)
        c = np.int64(memory.category[s])
        row = kind_of_site(memory, model, before, now, c)
        draw_site(rng, memory, model, now, c, memory.up[row, 1], room)
        write_states(memory, s)
    for c in range(memory.agree.shape[0]):
        for i in range(4):
            if memory.agree[c, i] > 0:
                draw_alike(rng, memory, model, (before, now), c, i, room, chances)


@uncounted
def redrawn_or(memory, first, k):
    """Whose sequence a new one begins as: that of an ancestor beside, else the former one."""
    return memory.redrawn[1, k] if first < memory.n_tips else first


@uncounted
def draw_alike(rng, memory, model, trees, c, i, room, chances):
    """Sites of category c at which all neighbours have state i: those few at which an ancestor differs."""
    before, now = trees
    up = memory.up[kind_of_alike(memory, model, before, now, c, i), 1]
    chance = first_to_differ(memory, model, now, c, i, up, room, chances)
    n = memory.agree[c, i]
    if n * chance > MANY or chance > 0.5:
        for s in range(memory.n_sites):
            if is_alike(memory, s, c, i):
                draw_site(rng, memory, model, now, c, up, room)
                write_states(memory, s)
                add_site(memory, s)
        return
    more = how_many(rng, n, chance)
    while more > 0:
        s = below(rng, memory.n_sites)
        if is_alike(memory, s, c, i) and is_untouched(memory, s, i):
            draw_other(rng, memory, model, now, c, i, up, room, chances)
            write_states(memory, s)
            add_site(memory, s)
            more -= 1


@uncounted
def add_site(memory, s):
    """To those at which counts may differ."""
    memory.sites[memory.notes[DIFFER]] = s
    memory.notes[DIFFER] += 1


@uncounted
def is_alike(memory, s, c, i):
    """Whether a site of category c has state i in all neighbours, whose masks are then set."""
    alike = memory.category[s] == c
    for b in range(memory.notes[BESIDE]):
        alike = alike and mask_at(memory.words[memory.beside[b]], s) == 1 << i
    if alike:
        for b in range(memory.notes[BESIDE]):
            memory.mask[memory.beside[b]] = np.uint8(1 << i)
    return alike


@uncounted
def is_untouched(memory, s, i):
    """Whether all ancestors drawn have state i there so far."""
    untouched = True
    for k in range(memory.notes[REDRAWN]):
        untouched = untouched and mask_at(memory.fresh[k], s) == 1 << i
    return untouched


@uncounted
def take_drawn(memory, model, tree):
    """Take over what was drawn: sequences, shares, counts and log-likelihoods of the branches at them."""
    n, first = memory.notes[REDRAWN], memory.beside[0]
    for k in range(n):
        x = memory.redrawn[1, k]
        own, fresh = memory.words[x], memory.fresh[k]
        for w in range(own.shape[0]):
            own[w] = fresh[w]
        if first < memory.n_tips:
            sites_of(own, memory.category, memory.n_sites, memory.shares[x])
        else:
            sites_beside(memory, x, first)
    for k in range(n):
        x = memory.redrawn[1, k]
        for y in (x, tree.left[x], tree.right[x]):
            if tree.parent[y] >= 0 and (y != x or memory.at[tree.parent[x]] < 0):
                count_at_sites(memory, tree.parent[y], y)
                memory.value[y] = log_of_branch(
                    memory.counts[y], memory.several[y] != 0, model, tree.lengths[y], memory.room[0, 0]
                )


@uncounted
def sites_beside(memory, x, known):
    """shares of an ancestor from those of one that differs from it at memory.sites only."""
    shares, one, other = memory.shares[x], memory.words[known], memory.words[x]
    for c in range(shares.shape[0]):
        for i in range(4):
            shares[c, i] = memory.shares[known, c, i]
    for n in range(memory.notes[DIFFER]):
        s = memory.sites[n]
        shares[memory.category[s], state_of(mask_at(one, s))] -= 1
        shares[memory.category[s], state_of(mask_at(other, s))] += 1


@uncounted
def count_at_sites(memory, above, x):
    """counts of the branch between an ancestor and x, which differ at memory.sites only."""
    counts, one, other = memory.counts[x], memory.words[above], memory.words[x]
    counts[:] = 0
    for n in range(memory.notes[DIFFER]):
        s = memory.sites[n]
        a, b = mask_at(one, s), mask_at(other, s)
        if a != b:
            counts[memory.category[s], state_of(a), b] += 1
    memory.several[x] = count_rest(counts, memory.shares[above])
