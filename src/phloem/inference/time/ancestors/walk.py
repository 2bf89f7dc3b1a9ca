"""Many small changes of a dated tree in one call, each at the price of what it touches, not of the tree.

Where ancestors are known, a subtree that goes elsewhere concerns three ancestors and four branches, and of a
tree prior that is a product over joinings and intervals (TreePrior.joining) the intervals between two
heights. So the tree is changed in place, in the proposal's slot, and what was touched is copied back or
forth. Every change is accepted or not by itself, with the exact ratio of the whole density: the walk as a
whole is a move that needs no more.

Whatever would move the root is left to the moves of the whole tree, both ways.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.hardware.numba_records import by_reference
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.undefined import is_defined
from phloem.inference.time.ancestors.branches import log_of_branch, log_of_root
from phloem.inference.time.ancestors.chain import memory_at, total_of
from phloem.inference.time.ancestors.draws import draw, take_drawn
from phloem.inference.time.ancestors.redraw import REDRAWN, forget, set_order, sums
from phloem.inference.time.ancestors.sequences import (
    ACROSS,
    EXCHANGE,
    GAINED,
    HEIGHT,
    LAST,
    LENGTH,
    N_TIPS,
    SLIDE,
    UNDEFINED_STEPS,
    Lineages,
)
from phloem.inference.time.compiled.by_address import JOINING
from phloem.inference.time.compiled.edit import graft, prune, random_subtree, sibling
from phloem.inference.time.moves.narrow_exchange import exchange_with_uncle
from phloem.inference.time.moves.subtree_leap import leap
from phloem.inference.time.moves.subtree_slide import slide
from phloem.inference.time.records import OF_LIKELIHOOD, OF_PRIOR
from phloem.pruning.cpu.cell_records import SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.storage import int64_at

SHARES = 0.12, 0.36, 0.60, 0.80  # up to which a number says which kind is next
HELD = 0.5  # how often distances are held, of clocks for which that may be
MOST_TRIES = 400  # of a lineage at a height


log_joining = JOINING.call


@uncounted
def walk(table, numbers, addresses, w, n_steps):
    """So many steps; the log-likelihood after them. w.found[GAINED] is how the log prior density changed."""
    memory, n_tips = by_reference(memory_at(table)), table[N_TIPS]
    slots = int64_at(addresses[SLOT], (2,))
    model = by_reference(cell_model(cell_numbers(numbers), addresses, slots[0]))
    forget(memory.near)  # what a proposal that was not taken has left there
    begin(w)
    for _ in range(n_steps):
        u, kind = uniform(w.rng), HEIGHT
        for k in range(4):
            kind += u >= SHARES[k]
        w.tried[kind] += 1
        held = w.spread > 0.0 and uniform(w.rng) < HELD
        ratio, prior, change, topology = propose(w, kind), 0.0, 0.0, False
        if ratio > -math.inf:
            prior = memory.near.power[OF_PRIOR] * prior_change(w, held)
        if ratio + prior > -math.inf:
            topology = note_redrawn(memory.near, w)
            change = likelihood_change(memory, model, w, topology)
        defined = is_defined(ratio, prior, change)
        if not defined:
            w.found[UNDEFINED_STEPS] += 1.0
            w.found[LAST], w.found[LAST + 1], w.found[LAST + 2] = ratio, prior, change
        if math.log(uniform(w.rng)) < ratio + prior + change and defined:
            w.taken[kind] += 1
            w.found[GAINED] += w.pair[0]
            accept(memory, n_tips, model, w, topology)
        else:
            forget(memory.near)
            copy(w, False)
    return total_of(memory.value)


@uncounted
def begin(w):
    """Places, lineages and waits of all nodes."""
    w.found[:], w.tried[:], w.taken[:] = 0.0, 0, 0
    k = 0
    for i in range(w.order.shape[0]):
        x = w.order[i]
        k += 1 if x < w.n_tips else -1
        w.rank[x], w.lineages[i] = i, k
        log_joining(w.joining, (w.heights[x], w.x, w.settings, w.pair))
        w.waited[x] = w.pair[1]
        if w.parent[x] >= 0:
            w.found[LENGTH] += w.heights[w.parent[x]] - w.heights[x]


# What a step changes.


@uncounted
def propose(w, kind):
    """Change the tree; what it touches into w.touched, branches that last another time into w.others, both
    ended by -1. Returns the log Hastings ratio, -inf for a step that is impossible or would move the root."""
    w.touched[0] = w.others[0] = -1
    root = w.parent.shape[0] - 1
    if kind == HEIGHT:
        x = w.n_tips + below(w.rng, w.n_tips - 1)
        if x == root:
            return -math.inf
        a, b = w.left[x], w.right[x]
        note(w.touched, x), note(w.touched, a), note(w.touched, b)
        note(w.others, x), note(w.others, a), note(w.others, b)
        low = max(w.heights[a], w.heights[b])
        w.heights[x] = low + uniform(w.rng) * (w.heights[w.parent[x]] - low)
        return 0.0
    i = random_subtree(w)
    q = w.parent[i]
    if q == root:
        return -math.inf
    s, above, top = sibling(w, i), w.parent[q], w.heights[root]
    note(w.touched, i), note(w.touched, q), note(w.touched, above)
    if kind == EXCHANGE:
        u = sibling(w, q)
        note(w.touched, u), note(w.others, i), note(w.others, u)
        return exchange_with_uncle(w, i)
    note(w.touched, s)
    ratio = across(w, i) if kind == ACROSS else slide(w, i) if kind == SLIDE else leap(w, i)
    if w.heights[root] != top:  # numbers of nodes were exchanged
        restore(w)
        return -math.inf
    j = sibling(w, i)
    if ratio > -math.inf:
        note(w.touched, j), note(w.touched, w.parent[q])
        note(w.others, i), note(w.others, q), note(w.others, s), note(w.others, j)
    return ratio


@uncounted
def across(w, i):
    """fixed_height_spr of a subtree i, its lineage found by drawing nodes until one is there at that height;
    how often that takes depends on the rest of the tree alone."""
    q, s, tries = w.parent[i], sibling(w, i), 0
    height, n = w.heights[q], w.parent.shape[0]
    while tries < MOST_TRIES:
        tries += 1
        j = below(w.rng, n - 1)
        if j in (i, q) or w.heights[j] >= height:
            continue
        if j == s:
            return -math.inf
        if w.heights[w.parent[j]] > height:
            prune(w, i)
            graft(w, i, q, j, height)
            return 0.0
    return -math.inf


@uncounted
def note(nodes, x):
    """Add a node, unless it is there."""
    k = 0
    while nodes[k] >= 0 and nodes[k] != x:
        k += 1
    if nodes[k] < 0:
        nodes[k], nodes[k + 1] = x, -1


@uncounted
def restore(w):
    """The proposal's slot as the accepted one."""
    for x in range(w.parent.shape[0]):
        w.parent[x], w.left[x], w.right[x] = w.before.parent[x], w.before.left[x], w.before.right[x]
        w.heights[x] = w.before.heights[x]


@uncounted
def copy(w, accepted):
    """What was touched, to the accepted slot or from there."""
    k, old = 0, w.before
    while w.touched[k] >= 0:
        x = w.touched[k]
        k += 1
        if accepted:
            old.parent[x], old.left[x], old.right[x] = w.parent[x], w.left[x], w.right[x]
            old.heights[x], old.lengths[x], w.was[x] = w.heights[x], w.lengths[x], w.deviations[x]
        else:
            w.parent[x], w.left[x], w.right[x] = old.parent[x], old.left[x], old.right[x]
            w.heights[x], w.lengths[x], w.deviations[x] = old.heights[x], old.lengths[x], w.was[x]


# The density.


@uncounted
def prior_change(w, held):
    """Set lengths, or with held the deviations that keep them; how the log prior density changes, which is
    w.pair[0], too. -inf where a branch lasts no time."""
    gained, longer, k = 0.0, 0.0, 0
    while w.others[k] >= 0:
        x = w.others[k]
        k += 1
        time, was = w.heights[w.parent[x]] - w.heights[x], w.before.heights[w.before.parent[x]]
        was -= w.before.heights[x]
        if not time > 0.0:
            return -math.inf
        longer += time - was
        if held and time != was:
            e, old = w.deviations[x] + math.log(was / time) / w.spread, w.deviations[x]
            w.deviations[x] = e
            gained -= 0.5 * (e * e - old * old)
        elif time != was:
            w.lengths[x] = w.rate * time
            if w.spread > 0.0:
                w.lengths[x] *= math.exp(w.spread * w.deviations[x] - w.shift)
    if w.reference == 1:
        gained += 0.5 * math.log1p(longer / w.found[LENGTH]) - w.rate * longer
    k = 0
    while w.touched[k] >= 0:
        x = w.touched[k]
        k += 1
        if w.heights[x] != w.before.heights[x]:  # one at most
            gained += joining_change(w, x)
    w.pair[0] = gained
    return gained


@uncounted
def joining_change(w, x):
    """How the log density of the tree changes where joining x has another height: every pair's wait, of
    whichever lineages there are in between."""
    old, t, m, waited = w.before.heights[x], w.heights[x], w.rank[x], 0.0
    log_joining(w.joining, (old, w.x, w.settings, w.pair))
    gained, last = -w.pair[0], w.pair[1]
    log_joining(w.joining, (t, w.x, w.settings, w.pair))
    gained, end = gained + w.pair[0], w.pair[1]
    if t > old:
        while w.before.heights[w.order[m + 1]] < t:
            m += 1
            now = w.waited[w.order[m]]
            waited += w.lineages[m - 1] * (now - last)
            last = now
        return gained - waited - w.lineages[m] * (end - last)
    m -= 1
    while w.before.heights[w.order[m]] > t:
        now = w.waited[w.order[m]]
        waited += (w.lineages[m] - 1) * (last - now)
        last, m = now, m - 1
    return gained + waited + (w.lineages[m] - 1) * (last - end)


@uncounted
def note_redrawn(near, w):
    """Ancestors of the touched whose children are others now, which are to be drawn anew; whether there are
    any."""
    n, k = 0, 0
    while w.touched[k] >= 0:
        x = w.touched[k]
        k += 1
        if x >= w.n_tips:
            a, b, left, right = w.left[x], w.right[x], w.before.left[x], w.before.right[x]
            if not ((a == left and b == right) or (a == right and b == left)):
                near.redrawn[0, n] = x
                n += 1
    near.notes[REDRAWN] = n
    return n > 0


@uncounted
def tree_now(w):
    """The proposal's."""
    return Lineages(w.parent, w.left, w.right, w.order, w.heights, w.lengths)


@uncounted
def likelihood_change(memory, model, w, topology):
    """How the log-likelihood's power changes, summed over the ancestors that are to be drawn anew; of another
    topology all branches that last another time are beside these."""
    if topology:
        set_order(memory.near, w.n_tips, w.before, tree_now(w))
        return sums(memory, w.n_tips, model, w.before, tree_now(w))
    change, k = 0.0, 0
    while w.others[k] >= 0:
        x = w.others[k]
        k += 1
        memory.new_value[x] = memory.value[x]
        if w.lengths[x] != w.before.lengths[x]:
            memory.new_value[x] = log_of_branch(
                memory.counts[x], memory.several[x] != 0, model.right[0], model.left[0], model.values[0],
                model.rates, w.lengths[x], memory.room[0, 0],
            )  # fmt: skip
            change += memory.new_value[x] - memory.value[x]
    return memory.near.power[OF_LIKELIHOOD] * change


@uncounted
def accept(memory, n_tips, model, w, topology):
    """Take the step: ancestors are drawn, the order of events changes."""
    k = 0
    if topology:
        draw(w.rng, memory, n_tips)
        take_drawn(memory, n_tips, model, tree_now(w))
        root = w.parent.shape[0] - 1
        memory.value[root] = log_of_root(memory.shares[root], model.root_frequencies[0], model.weights)
        forget(memory.near)
    else:
        while w.others[k] >= 0:
            memory.value[w.others[k]] = memory.new_value[w.others[k]]
            k += 1
    k = 0
    while w.others[k] >= 0:
        x = w.others[k]
        k += 1
        w.found[LENGTH] += w.heights[w.parent[x]] - w.heights[x]
        w.found[LENGTH] -= w.before.heights[w.before.parent[x]] - w.before.heights[x]
    k = 0
    while w.touched[k] >= 0:
        x = w.touched[k]
        k += 1
        if w.heights[x] != w.before.heights[x]:
            move_event(w, x)
    copy(w, True)


@uncounted
def move_event(w, x):
    """Joining x among the events."""
    t, m, order = w.heights[x], w.rank[x], w.order
    log_joining(w.joining, (t, w.x, w.settings, w.pair))
    w.waited[x] = w.pair[1]
    while m + 1 < order.shape[0] and w.before.heights[order[m + 1]] < t:
        order[m], w.lineages[m] = order[m + 1], w.lineages[m + 1] + 1
        w.rank[order[m]] = m
        m += 1
    while m > 0 and w.before.heights[order[m - 1]] > t:
        order[m], w.lineages[m] = order[m - 1], w.lineages[m - 1] - 1
        w.rank[order[m]] = m
        m -= 1
    order[m], w.rank[x] = x, m
    w.lineages[m] = w.lineages[m - 1] - 1  # its children are below
