"""A discrete trait that changes along a dated tree: its likelihood.

K states, R routes between pairs of them (Lemey, Rambaut, Drummond and Suchard 2009, PLoS Comput. Biol.
5:e1000520): Q_ij = μ I_r ρ_r / c for the route r from i to j, both ways where rates are symmetric, with
c = Σ_ij I_r ρ_r / K, so that μ is the number of changes a unit of time where all states are as frequent. The
indicators I_r say which routes there are: their number is offset + Poisson(mean), cut at R and 1, and all
sets of as many are alike. Tips may have any of several states. The state at the root is drawn from
frequencies, equal ones or the chain's.

P(t) v by uniformisation: with λ the largest rate of leaving, Σ_n Poisson(n; λt) (I + Q/λ)^n v, all terms
positive. Messages of the accepted tree are kept, and those of a proposal that are the same are copied.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm

from phloem.hardware.numba_compile import uncounted

CHANGES = math.log(2.0)  # routes beyond the fewest that could join all states, where rates are symmetric
PIECE = 16.0  # λt of a piece of a branch
HALF_LOG_PI = 0.5 * math.log(math.pi)
FRESH, SLOPES = 1, 2  # what trait_density is asked for: trusting no memory; slopes by height


class Trait(NamedTuple):
    """What never changes. tips: (T, K), 1 where a tip may have a state. source, target: (R,) int64 of the
    routes; both: 1 where a route is one in both directions. clock, rates, routes, root: which of the
    numbers is the first of each, routes and root -1 where there are none; reference: 1 where the clock's
    prior is the CTMC reference. offset, mean: of the number of routes; log_total: log Σ of its cut
    Poisson terms."""

    tips: np.ndarray
    source: np.ndarray
    target: np.ndarray
    both: int
    clock: int
    rates: int
    routes: int
    root: int
    reference: int
    offset: int
    mean: float
    log_total: float


class Lineage(NamedTuple):
    """A dated tree: parent, left, right, order (children before parents), heights (N,); the root is last."""

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    heights: np.ndarray


class TraitMemory(NamedTuple):
    """Two slots of: rates (2, K, K) Q; below (2, N, K), above (2, N, K): likelihoods of what is below a node,
    and at the upper end of its branch, by states; scale (2, N) logarithms taken out of them; largest, value
    (2,). kept: (N,) uint8; outside (N, K); room (6, K); by_height (N,): slopes. power: (1,) of the
    likelihood, 1 but for stepping stones and melted chains."""

    rates: np.ndarray
    below: np.ndarray
    above: np.ndarray
    scale: np.ndarray
    largest: np.ndarray
    value: np.ndarray
    kept: np.ndarray
    outside: np.ndarray
    room: np.ndarray
    by_height: np.ndarray
    power: np.ndarray


def trait_memory(n_nodes: int, n_states: int) -> TraitMemory:
    """Room for trees of n_nodes."""
    shape = (2, n_nodes, n_states)
    return TraitMemory(
        np.zeros((2, n_states, n_states)), np.zeros(shape), np.zeros(shape), np.zeros(shape[:2]), np.zeros(2),
        np.zeros(2), np.zeros(n_nodes, np.uint8), np.zeros(shape[1:]), np.zeros((6, n_states)),
        np.zeros(n_nodes), np.ones(1),
    )  # fmt: skip


# Plainly: the specification.


def rate_matrix(trait: Trait, x: np.ndarray) -> np.ndarray:
    """(K, K) Q at the numbers x."""
    k, r = trait.tips.shape[1], len(trait.source)
    on = x[trait.routes : trait.routes + r] if trait.routes >= 0 else np.ones(r)
    q = np.zeros((k, k))
    q[trait.source, trait.target] = on * x[trait.rates : trait.rates + r]
    if trait.both:
        q += q.T
    if q.any():
        q *= x[trait.clock] * k / q.sum()
    return q - np.diag(q.sum(axis=1))


def root_frequencies(trait: Trait, x: np.ndarray) -> np.ndarray:
    """(K,)."""
    k = trait.tips.shape[1]
    return x[trait.root : trait.root + k] if trait.root >= 0 else np.full(k, 1.0 / k)


def log_likelihood(trait: Trait, tree: Lineage, x: np.ndarray) -> float:
    """Of the tips' states at the numbers x."""
    q, below = rate_matrix(trait, x), np.ones((len(tree.parent), trait.tips.shape[1]))
    below[: len(trait.tips)] = trait.tips
    for node in tree.order:
        above = tree.parent[node]
        if above >= 0:
            below[above] *= expm(q * (tree.heights[above] - tree.heights[node])) @ below[node]
    with np.errstate(divide="ignore"):
        return float(np.log(root_frequencies(trait, x) @ below[-1]))


def log_prior(trait: Trait, tree: Lineage, x: np.ndarray) -> float:
    """Of the set of routes, and of the clock where its prior is the CTMC reference."""
    total, r = 0.0, len(trait.source)
    if trait.routes >= 0:
        n = int(x[trait.routes : trait.routes + r].sum())
        more = n - trait.offset
        if more < 0 or n < 1:
            return -math.inf
        total += more * math.log(trait.mean) - math.lgamma(more + 1) - trait.log_total
        total -= math.lgamma(r + 1) - math.lgamma(n + 1) - math.lgamma(r - n + 1)
    if trait.reference:
        length = (tree.heights[tree.parent[:-1]] - tree.heights[:-1]).sum()
        total += 0.5 * math.log(length / x[trait.clock]) - x[trait.clock] * length - HALF_LOG_PI
    return total


def number_weights(offset: int, mean: float, most: int) -> np.ndarray:
    """(most + 1,) relative probabilities of 0, 1, … routes."""
    n = np.arange(most + 1)
    more = np.maximum(n - offset, 0)
    log = more * math.log(mean) - np.array([math.lgamma(m + 1.0) for m in more])
    return np.where((n >= offset) & (n >= 1), np.exp(log), 0.0)


def prior_of_route(trait: Trait) -> float:
    """The probability of any route before the data: the mean number over all there are."""
    weights = number_weights(trait.offset, trait.mean, len(trait.source))
    return float(weights @ np.arange(len(weights)) / weights.sum() / (len(weights) - 1))


# Compiled.


@uncounted
def set_rates(trait, x, q):
    """Q into q (K, K); returns the largest rate of leaving."""
    k, total, largest = q.shape[0], 0.0, 0.0
    for i in range(k):
        for j in range(k):
            q[i, j] = 0.0
    for r in range(trait.source.shape[0]):
        rate = x[trait.rates + r]
        if trait.routes >= 0:
            rate *= x[trait.routes + r]
        q[trait.source[r], trait.target[r]] = rate
        if trait.both != 0:
            q[trait.target[r], trait.source[r]] = rate
            total += rate
        total += rate
    for i in range(k):
        leaving = 0.0
        for j in range(k):
            if total > 0.0:
                q[i, j] *= x[trait.clock] * k / total
            leaving += q[i, j]
        q[i, i] = -leaving
        largest = max(largest, leaving)
    return largest


@uncounted
def event(q, largest, v, transposed, out):
    """out = (I + Q / λ) v, or its transpose's."""
    k = q.shape[0]
    for i in range(k):
        total = 0.0
        for j in range(k):
            total += (q[j, i] if transposed else q[i, j]) * v[j]
        out[i] = max(v[i] + total / largest, 0.0)


@uncounted
def pass_on(q, largest, time, transposed, out, room):
    """out becomes exp(Q time) out, or exp(Qᵀ time) out. room: (2, K)."""
    k, left = q.shape[0], largest * time
    while left > 0.0:
        step = min(left, PIECE)
        left -= step
        weight, n = math.exp(-step), 0
        for i in range(k):
            room[0, i] = out[i]
            out[i] *= weight
        while n <= step or weight > 1e-18:
            n += 1
            weight *= step / n
            event(q, largest, room[0], transposed, room[1])
            for i in range(k):
                room[0, i] = room[1, i]
                out[i] += weight * room[1, i]


@uncounted
def _alike(trait, a, b):
    """Whether a trait has the same numbers, but for rates of routes that there are not."""
    k, r = trait.tips.shape[1], trait.source.shape[0]
    same = a[trait.clock] == b[trait.clock]
    for i in range(r):
        own = a[trait.rates + i] == b[trait.rates + i]
        if trait.routes >= 0:
            own = own or a[trait.routes + i] == 0.0
            own = own and a[trait.routes + i] == b[trait.routes + i]
        same = same and own
    if trait.root >= 0:
        for i in range(k):
            same = same and a[trait.root + i] == b[trait.root + i]
    return same


@uncounted
def root_share(trait, x, i):
    return x[trait.root + i] if trait.root >= 0 else 1.0 / trait.tips.shape[1]


@uncounted
def collect(trait, before, now, x, memory, slot, same):
    """Messages of a tree into a slot; same: those of the other slot, of the tree before, are of the same
    numbers. Returns the log-likelihood."""
    k, n_tips, old, kept = trait.tips.shape[1], trait.tips.shape[0], 1 - slot, memory.kept
    below, above, scale = memory.below[slot], memory.above[slot], memory.scale[slot]
    for node in now.order:
        a, b, parent = now.left[node], now.right[node], now.parent[node]
        alike = same
        if a >= 0:
            alike = alike and before.left[node] == a and before.right[node] == b
            alike = alike and kept[a] != 0 and kept[b] != 0
        if alike:
            scale[node] = memory.scale[old, node]
            for i in range(k):
                below[node, i] = memory.below[old, node, i]
        elif node < n_tips:
            scale[node] = 0.0
            for i in range(k):
                below[node, i] = trait.tips[node, i]
        else:
            largest = 0.0
            for i in range(k):
                below[node, i] = above[a, i] * above[b, i]
                largest = max(largest, below[node, i])
            if not largest > 0.0:
                return -math.inf
            scale[node] = scale[a] + scale[b] + math.log(largest)
            for i in range(k):
                below[node, i] /= largest
        if parent < 0:
            break
        time = now.heights[parent] - now.heights[node]
        former = before.parent[node]
        alike = alike and former >= 0 and before.heights[former] - before.heights[node] == time
        kept[node] = alike
        for i in range(k):
            above[node, i] = memory.above[old, node, i] if alike else below[node, i]
        if not alike:
            pass_on(memory.rates[slot], memory.largest[slot], time, False, above[node], memory.room)
    root, total = now.order[now.order.shape[0] - 1], 0.0
    for i in range(k):
        total += root_share(trait, x, i) * below[root, i]
    return math.log(total) + scale[root] if total > 0.0 else -math.inf


@uncounted
def _down(trait, now, x, memory, slot):
    """Adds the slopes of the log-likelihood by heights to memory.by_height."""
    k, outside, room, above = trait.tips.shape[1], memory.outside, memory.room, memory.above[slot]
    q = memory.rates[slot]
    for at in range(now.order.shape[0] - 1, -1, -1):
        node = now.order[at]
        parent = now.parent[node]
        if parent < 0:
            for i in range(k):
                outside[node, i] = root_share(trait, x, i)
            continue
        sibling = now.right[parent] if now.left[parent] == node else now.left[parent]
        total, slope, largest = 0.0, 0.0, 0.0
        for i in range(k):
            here = outside[parent, i] * above[sibling, i]
            moved = 0.0
            for j in range(k):
                moved += q[i, j] * above[node, j]
            total += here * above[node, i]
            slope += here * moved
            outside[node, i] = here
            largest = max(largest, here)
        slope /= total
        memory.by_height[parent] += slope
        memory.by_height[node] -= slope
        if now.left[node] >= 0:
            for i in range(k):
                outside[node, i] /= largest
            time = now.heights[parent] - now.heights[node]
            pass_on(q, memory.largest[slot], time, True, outside[node], room)


@uncounted
def _own_prior(trait, now, x, memory, slopes):
    """As log_prior, with its slopes by heights."""
    total, r, n, length = 0.0, trait.source.shape[0], 0, 0.0
    if trait.routes >= 0:
        for i in range(r):
            n += x[trait.routes + i] != 0.0
        more = n - trait.offset
        if more < 0 or n < 1:
            return -math.inf
        total += more * math.log(trait.mean) - math.lgamma(more + 1.0) - trait.log_total
        total -= math.lgamma(r + 1.0) - math.lgamma(n + 1.0) - math.lgamma(r - n + 1.0)
    if trait.reference != 0:
        rate, root = x[trait.clock], now.parent.shape[0] - 1
        for node in range(root):
            length += now.heights[now.parent[node]] - now.heights[node]
        total += 0.5 * math.log(length / rate) - rate * length - HALF_LOG_PI
        if slopes:
            for node in range(root):
                memory.by_height[now.parent[node]] += 0.5 / length - rate
                memory.by_height[node] -= 0.5 / length - rate
    return total


def trait_density(trait, before, now, x_before, x, memory, slot, asked):
    """log_prior + power · log_likelihood of the tree now at the numbers x, into a slot of the memory; the
    other slot is that of the tree before at x_before. asked: FRESH | SLOPES."""
    for node in range(memory.by_height.shape[0]):
        memory.by_height[node] = 0.0
    slopes = asked & SLOPES != 0
    prior = _own_prior(trait, now, x, memory, slopes)
    if not prior > -math.inf:
        return -math.inf
    memory.largest[slot] = set_rates(trait, x, memory.rates[slot])
    same = asked & FRESH == 0 and _alike(trait, x_before, x)
    value = collect(trait, before, now, x, memory, slot, same)
    memory.value[slot] = value
    power, by_height = memory.power[0], memory.by_height
    if power == 0.0:
        return prior
    if slopes and value > -math.inf:
        for node in range(by_height.shape[0]):
            by_height[node] /= power
        _down(trait, now, x, memory, slot)
        for node in range(by_height.shape[0]):
            by_height[node] *= power
    return prior + power * value
