"""Ancestors whose neighbours are others now are summed over, given these neighbours, and drawn anew.

A proposal that changes the topology is judged by the sums, in the tree before and in the tree after: so what
is drawn is drawn from its exact conditional distribution, and needs no Hastings ratio. Sites at which all
neighbours are alike are of few kinds, and cost nothing; the others are looked at one by one.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.ancestors.branches import (
    add_states,
    mask_at,
    matrix,
    missing_in,
    note_sites,
    state_of,
    whole_sites,
)
from phloem.inference.time.ancestors.sequences import LACKING, MISSING, MOST

_FOUR, _MIX = np.uint64(4), np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(56)  # bits of a hash that say where a kind of site is kept: KINDS of them
# of Near.notes: how many lengths a proposal changed, what else it changed, how many ancestors it draws anew,
# how many nodes are beside these, at how many sites these differ, and of how many of them (Near.lacking) the
# sites that are missing do not count as different
CHANGED, KIND_OF, REDRAWN, BESIDE, DIFFER, LACK = range(6)
WHOLE_TREE, LENGTHS, TOPOLOGY = range(3)  # what a proposal changed
LEFT, RIGHT, ABOVE = range(3)  # of Near.kin


@uncounted
def forget(near):
    """That some ancestors were to be drawn anew."""
    for k in range(near.notes[REDRAWN]):
        near.at[near.redrawn[1, k]] = -1
    near.notes[REDRAWN] = 0


@uncounted
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
def set_matrices(near, n_tips, model, before, now):
    """Of the branches at the ancestors that are drawn anew, and what is at the root: the likelihood's power
    of every entry, but of tips' branches, whose states may be several, that are summed first."""
    for side in range(2):
        for k in range(near.notes[REDRAWN]):
            x = near.redrawn[side, k]
            for i in range(3):
                y = near.kin[side, k, i] if i < ABOVE else x
                length = before.lengths[y] if side == 0 else now.lengths[y]
                for c in range(near.root.shape[0] if i < ABOVE or near.kin[side, k, ABOVE] >= 0 else 0):
                    t, p = length * model.rates[c], near.p[side, y, c]
                    matrix(model.right[0], model.left[0], model.values[0], t, p)
                    if near.power[0] != 1.0 and y >= n_tips:
                        for entry in range(16):
                            p[entry // 4, entry % 4] = p[entry // 4, entry % 4] ** near.power[0]
    for c in range(near.root.shape[0]):
        for i in range(4):
            near.root[c, i] = (model.root_frequencies[0, i] * model.weights[c]) ** near.power[0]


@uncounted
def peel(near, side, c, up):
    """Log-likelihood of a site of category c, near.mask of the neighbours; messages into up (MOST, 4)."""
    value, n_tips = 1.0, (near.at.shape[0] + 1) // 2
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
                own[i] *= total ** near.power[0] if child < n_tips and near.power[0] != 1.0 else total
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
def find_sites(words, category, shares, near, room, sites, agree):
    """Sites at which the neighbours differ, or all where those of the first may have several states (it is a
    tip: shares is empty): into sites; and how many others of each kind there are, into agree."""
    n, whole, one, (differs, missing) = 0, shares.shape[0] == 0, words[near.beside[0]], room
    differs[:] = np.uint64(0xFFFFFFFFFFFFFFFF) if whole else np.uint64(0)
    missing[:] = np.uint64(0)
    near.notes[LACK] = 0
    if not whole:
        for b in range(1, near.notes[BESIDE]):
            compare(near, near.beside[b], words, differs, missing)
    agree[:] = 0
    for c in range(shares.shape[0]):
        for i in range(4):
            agree[c, i, 0] = shares[c, i]
    for w in range(differs.shape[0]):
        n = note_sites(differs[w], w, sites, n) if differs[w] != 0 else n
    for s in sites[: 0 if whole else n]:
        agree[category[s], state_of(mask_at(one, s)), 0] -= 1
    near.notes[DIFFER] = n
    for w in range(missing.shape[0]):
        bits = missing[w] & ~whole_sites(differs[w]) if missing[w] != 0 else missing[w]
        if bits != 0:
            count_lacking(near, words, category, w, bits, agree)
    for c in range(agree.shape[0]):
        for i in range(4):
            for kind in range(1, 1 << near.notes[LACK]):
                agree[c, i, 0] -= agree[c, i, kind]


@uncounted
def compare(near, y, words, differs, missing):
    """Add the sites at which neighbour y differs from the first, and those at which it is missing, to these
    (W,) words. Of LACKING tips what is missing does not differ."""
    one, other, lack = words[near.beside[0]], words[y], near.notes[LACK]
    lacks = False
    if y < (near.at.shape[0] + 1) // 2 and lack < LACKING:
        for w in range(differs.shape[0]):
            unknown = missing_in(other[w])
            differs[w] |= (one[w] ^ other[w]) & ~unknown
            missing[w] |= unknown
            lacks = lacks or unknown != 0
    else:
        for w in range(differs.shape[0]):
            differs[w] |= one[w] ^ other[w]
    if lacks:
        near.lacking[lack] = y
        near.notes[LACK] = lack + 1


@uncounted
def count_lacking(near, words, category, w, bits, agree):
    """Add the sites of word w, whose bits are set, to the kinds in agree of the tips that they lack."""
    one, left = words[near.beside[0]], bits
    for kind in range(1, 1 << near.notes[LACK]):
        own = left
        for b in range(near.notes[LACK]):
            unknown = missing_in(words[near.lacking[b], w])
            own &= unknown if (kind >> b) & 1 else ~unknown
        if own != 0:
            add_states(one, category, w, own, agree[:, :, kind])
            left &= ~own
            if left == 0:
                return


@uncounted
def set_masks(near, words, s):
    """near.mask of the neighbours at a site."""
    for b in range(near.notes[BESIDE]):
        y = near.beside[b]
        near.mask[y] = np.uint8(mask_at(words[y], s))


@uncounted
def set_alike(near, i, kind):
    """near.mask where all neighbours have state i but the tips of a kind, which are missing."""
    for b in range(near.notes[BESIDE]):
        near.mask[near.beside[b]] = np.uint8(1 << i)
    for b in range(near.notes[LACK]):
        if (kind >> b) & 1:
            near.mask[near.lacking[b]] = np.uint8(MISSING)


@uncounted
def kind_at(n):
    """Category, state and which tips are missing, of the n-th number of agree."""
    return n >> (2 + LACKING), (n >> LACKING) & 3, n & ((1 << LACKING) - 1)


@uncounted
def sums(memory, n_tips, model, before, now):
    """How the log-likelihood of the neighbours given all else changes, its power summed over the ancestors
    that are to be drawn anew."""
    near, agree, change = memory.near, memory.agree, 0.0
    set_matrices(near, n_tips, model, before, now)
    near.kinds[:] = np.uint64(0)
    first = near.beside[0]
    shares = memory.shares[first, : 0 if first < n_tips else agree.shape[0]]
    room = memory.differs, memory.missing
    find_sites(memory.words, memory.category, shares, near, room, memory.sites, agree)
    differ = near.notes[DIFFER]
    for n in range(differ + agree.size):
        times, (c, i, kind) = 1, kind_at(n - differ)
        if n < differ:
            s = memory.sites[n]
            c = np.int64(memory.category[s])
            set_masks(near, memory.words, s)
        else:
            times = agree[c, i, kind]
            if times > 0:
                set_alike(near, i, kind)
        if times > 0:
            row = kind_of_site(near, c)
            change += times * (near.logs[row, 1] - near.logs[row, 0])
    return change
