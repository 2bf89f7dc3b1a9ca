"""Swaps, and moves whose log Hastings ratio is 0, which scaling cannot spoil: here the proposal itself is.

The sampler's own functions drive a chain in Python towards a known distribution and reach it; the same chain
with a planted error in the proposal does not.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from phloem.inference.mcmc.compiled.move_nni import internal_branch, nearest_neighbour_interchange
from phloem.inference.mcmc.compiled.move_number import unit_slider
from phloem.inference.mcmc.compiled.move_simplex import simplex_slider
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.run import draw_swaps, swap_chains
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.start import stream
from phloem.tree.sample import sample_hanging_from_tip
from statistical.mcmc.prior_sampling import ks_p_value, topology_p_value

ACCEPT, REJECT = 1e-4, 1e-6  # smallest p-value of a right one, largest of a planted error


# swaps ------------------------------------------------------------------------------------------------------


def tempered(swapping, n: int = 40_000, seed: int = 1) -> np.ndarray:
    """(n,) draws of the cold one of four chains, whose target is N(0, 1): a quarter of its logarithm is
    called likelihood, the rest prior. Between swaps every chain takes a step that leaves N(0, 1)**heat as it
    is."""
    rng, words = np.random.default_rng(seed), stream(seed, 0, 0)
    heat, rank, x = 1 / (1 + 1.0 * np.arange(4)), np.arange(4), rng.normal(size=4)
    tried, accepted, drawn = np.zeros((4, 4), np.int64), np.zeros((4, 4), np.int64), np.empty(n)
    kept = 0.7  # of the last value
    steps = rng.normal(size=(n, 4)) * math.sqrt(1 - kept**2)
    for i in range(n):
        x = kept * x + steps[i] / np.sqrt(heat[rank])
        quarter = -(x**2) / 8
        swapping(heat, quarter, 3 * quarter, rank, words, tried, accepted)
        drawn[i] = x[rank == 0][0]
    assert accepted.sum() > 0.2 * n and sorted(rank) == [0, 1, 2, 3]
    return drawn


def swap(heat, likelihood, prior, rank, words, tried, accepted):
    """A generation's swap as the sampler draws it and decides it."""
    chains, log_uniform = np.zeros((1, 2), np.int64), np.zeros(1)
    draw_swaps(words, 4, chains, log_uniform)
    swap_chains(heat, likelihood, prior, rank, tried, accepted, *chains[0], log_uniform[0])


def exchange(rank, accepted, i: int, j: int) -> None:
    accepted[min(rank[i], rank[j]), max(rank[i], rank[j])] += 1
    rank[i], rank[j] = rank[j], rank[i]


def pair(words) -> tuple[int, int]:
    i = below(words, 4)
    return i, (i + 1 + below(words, 3)) % 4


def without_ratio(heat, likelihood, prior, rank, words, tried, accepted):
    exchange(rank, accepted, *pair(words))


def with_the_wrong_sign(heat, likelihood, prior, rank, words, tried, accepted):
    swap(-heat, likelihood, prior, rank, words, tried, accepted)


def without_the_prior(heat, likelihood, prior, rank, words, tried, accepted):
    swap(heat, likelihood, 0.0 * prior, rank, words, tried, accepted)


def only_towards_the_better(heat, likelihood, prior, rank, words, tried, accepted):
    """The pair is looked at only where the hotter chain is at the better place: a choice the way back does
    not have."""
    i, j = pair(words)
    cold, hot = (i, j) if rank[i] < rank[j] else (j, i)
    if likelihood[hot] + prior[hot] > likelihood[cold] + prior[cold]:
        exchange(rank, accepted, i, j)


def test_swaps_leave_the_cold_chain_its_distribution():
    assert ks_p_value(tempered(swap), stats.norm()) > ACCEPT


@pytest.mark.parametrize(
    "wrong", [without_ratio, with_the_wrong_sign, without_the_prior, only_towards_the_better]
)
def test_a_wrong_swap_is_noticed(wrong):
    assert ks_p_value(tempered(wrong), stats.norm()) < REJECT


# numbers and simplexes --------------------------------------------------------------------------------------


def walked(propose, start, log_density, n: int = 40_000, seed: int = 2) -> np.ndarray:
    """(n, k) states of a Metropolis–Hastings chain; propose(x, words) changes x and returns its log ratio."""
    words, x = stream(seed, 0, 0), np.array(start, np.float64)
    drawn = np.empty((n, len(x)))
    for i in range(n):
        new = x.copy()
        ratio = propose(new, words)
        if ratio > -math.inf and math.log(uniform(words)) < ratio + log_density(new) - log_density(x):
            x = new
        drawn[i] = x
    return drawn


def flat(x) -> float:
    return 0.0


def beta_density(x) -> float:
    return math.log(x[0]) + 3 * math.log1p(-x[0])  # Beta(2, 4)


def slide(x, words):
    return unit_slider(x, words, 0.4, 0.0, 0.9999)


def slide_with_drift(x, words):
    """The window is not centred."""
    x[0] = abs(x[0] + 0.4 * (uniform(words) - 0.4))
    x[0] = 2 * 0.9999 - x[0] if x[0] > 0.9999 else x[0]
    return 0.0


def slide_without_reflection(x, words):
    """What leaves the bounds is set to them, and stays near."""
    x[0] = min(max(x[0] + 0.8 * (uniform(words) - 0.5), 1e-3), 0.999)
    return 0.0


def slide_by_shares(x, words):
    """A window that grows with x is a multiplier, whose ratio is not 0."""
    x[0] *= math.exp(2.0 * (uniform(words) - 0.5))
    return 0.0 if 1e-2 < x[0] < 0.9999 else -math.inf


@pytest.mark.parametrize(
    ("density", "target"), [(flat, stats.uniform()), (beta_density, stats.beta(2, 4))], ids=["flat", "beta"]
)
def test_the_unit_slider_reaches_its_target(density, target):
    assert ks_p_value(walked(slide, [0.5], density)[:, 0], target) > ACCEPT


@pytest.mark.parametrize("wrong", [slide_with_drift, slide_without_reflection, slide_by_shares])
def test_a_wrong_unit_slider_is_noticed(wrong):
    assert ks_p_value(walked(wrong, [0.5], flat)[:, 0], stats.uniform()) < REJECT


def trade(x, words):
    return simplex_slider(x, words, 0.5, 1e-6)


def trade_and_renormalise(x, words):
    """One entry slides, all are divided by the new sum: the Jacobian is not 1."""
    x[below(words, 4)] += 0.3 * uniform(words)
    x /= x.sum()
    return 0.0


def trade_shares_of_the_first(x, words):
    """The window is a part of one entry, and the other one is always the last: the way back has another."""
    i = below(words, 3)
    moved = x[i] * 0.8 * (uniform(words) - 0.5)
    x[i], x[3] = x[i] - moved, x[3] + moved
    return 0.0 if x[3] > 1e-6 else -math.inf


def dirichlet_p_value(propose) -> float:
    drawn = walked(propose, [0.25] * 4, flat)
    return min(ks_p_value(drawn[:, i], stats.beta(1, 3)) for i in range(4))


def test_the_simplex_slider_reaches_its_target():
    assert dirichlet_p_value(trade) > ACCEPT


@pytest.mark.parametrize("wrong", [trade_and_renormalise, trade_shares_of_the_first])
def test_a_wrong_simplex_slider_is_noticed(wrong):
    assert dirichlet_p_value(wrong) < REJECT


# topologies -------------------------------------------------------------------------------------------------

N_TIPS, N_TOPOLOGIES = 6, 105
ROWS = 2 * N_TIPS - 2
STEPS = 6  # between draws, which are then nearly independent


def caterpillar():
    """adjacency and edge (N, 3) of a tree: the neighbours of every node, and the numbers of its branches."""
    adjacency, edge = np.zeros((ROWS, 3), np.int32), np.zeros((ROWS, 3), np.int32)
    inner = list(range(N_TIPS, ROWS))
    pairs = [(0, inner[0]), *((k + 1, x) for k, x in enumerate(inner)), (N_TIPS - 1, inner[-1])]
    pairs += itertools.pairwise(inner)
    filled = np.zeros(ROWS, int)
    for number, (x, y) in enumerate(pairs):
        for one, other in ((x, y), (y, x)):
            adjacency[one, filled[one]], edge[one, filled[one]] = other, number
            filled[one] += 1
    return adjacency, edge


def hung(adjacency, edge, length):
    """parent and lengths of the tree hung from tip 0."""
    parent, above, stack = np.full(ROWS, -1), np.zeros(ROWS), [0]
    while stack:
        x = stack.pop()
        for y, branch in zip(adjacency[x, : 1 if x < N_TIPS else 3], edge[x]):
            if y != parent[x]:
                parent[y], above[y] = x, length[branch]
                stack.append(y)
    return parent, above


def interchanged(propose, n: int = 4_000, seed: int = 3) -> Samples:
    """n trees of a chain that takes proposals by the density of exponential(1) lengths, and before each draws
    the length of one branch anew. propose(adjacency, edge, length, words) changes all three."""
    words, rng = stream(seed, 0, 0), np.random.default_rng(seed)
    adjacency, edge = caterpillar()
    length = rng.exponential(size=ROWS - 1)
    parents, lengths = np.empty((n, ROWS), np.int32), np.empty((n, ROWS))
    for i in range(n):
        for _ in range(STEPS):
            length[below(words, ROWS - 1)] = rng.exponential()
            new = adjacency.copy(), edge.copy(), length.copy()
            ratio = propose(*new, words)
            if math.log(uniform(words)) < ratio + length.sum() - new[2].sum():
                adjacency, edge, length = new
        parents[i], lengths[i] = hung(adjacency, edge, length)
    sample = sample_hanging_from_tip([f"t{i}" for i in range(N_TIPS)], parents, lengths)
    return Samples(np.arange(n), np.zeros((n, 2)), sample.parent, sample.lengths)


def interchange(adjacency, edge, length, words):
    return nearest_neighbour_interchange(adjacency, edge, N_TIPS, words)


def exchange_across(adjacency, edge, u: int, v: int, a: int, b: int) -> None:
    """Neighbour a of u and neighbour b of v change places, with their branches."""
    i, j = (adjacency[u] == a).argmax(), (adjacency[v] == b).argmax()
    adjacency[a, (adjacency[a] == u).argmax()] = v
    adjacency[b, (adjacency[b] == v).argmax()] = u
    adjacency[u, i], adjacency[v, j] = b, a
    edge[u, i], edge[v, j] = edge[v, j], edge[u, i]


def next_to_cherries(adjacency, edge, length, words):
    """A branch that ends at no cherry is mostly drawn anew: trees of many cherries are left more often than
    they are reached."""
    for _ in range(2):
        u, v = internal_branch(adjacency, words, N_TIPS)
        if max((adjacency[u] < N_TIPS).sum(), (adjacency[v] < N_TIPS).sum()) == 2:
            break
    a = [x for x in adjacency[u] if x != v][below(words, 2)]
    b = [x for x in adjacency[v] if x != u][below(words, 2)]
    exchange_across(adjacency, edge, u, v, a, b)
    return 0.0


def only_the_first_way_out(adjacency, edge, length, words):
    """Which neighbours change places follows from their numbers: the way back is another one."""
    u, v = internal_branch(adjacency, words, N_TIPS)
    u, v = min(u, v), max(u, v)
    a, b = min(x for x in adjacency[u] if x != v), max(x for x in adjacency[v] if x != u)
    exchange_across(adjacency, edge, u, v, a, b)
    return 0.0


def with_a_stretch(adjacency, edge, length, words):
    """A branch is stretched on the way, and the ratio says nothing of it."""
    ratio = interchange(adjacency, edge, length, words)
    length[below(words, ROWS - 1)] *= math.exp(3.0 * (uniform(words) - 0.5))
    return ratio


def test_interchanges_reach_every_topology_alike_and_leave_lengths_alone():
    samples = interchanged(interchange)
    assert topology_p_value(samples, N_TOPOLOGIES) > ACCEPT
    total = samples.lengths.sum(axis=1)
    assert ks_p_value(total, stats.gamma(2 * N_TIPS - 3)) > ACCEPT


@pytest.mark.parametrize("wrong", [next_to_cherries, only_the_first_way_out])
def test_a_wrong_choice_of_interchanges_is_noticed(wrong):
    assert topology_p_value(interchanged(wrong), N_TOPOLOGIES) < REJECT


def test_lengths_that_change_on_the_way_are_noticed():
    total = interchanged(with_a_stretch).lengths.sum(axis=1)
    assert ks_p_value(total, stats.gamma(2 * N_TIPS - 3)) < REJECT
