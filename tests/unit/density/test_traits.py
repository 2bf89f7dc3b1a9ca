"""The likelihood of a trait on a dated tree, against sums over all states of all nodes; its slopes; what is
kept of an accepted tree; the prior of its routes; histories."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from phloem.data.traits import TipTraits
from phloem.density import traits
from phloem.density.space import Space
from phloem.errors import InputError
from phloem.hardware.numba_compile import compiled
from phloem.inference.time.compiled.histories import MOST_EVENTS, draw_history
from phloem.inference.time.traits import PER_ROUTE, TraitModel, drawn_history
from phloem.tree.dated import random_dated_tree

density = compiled(traits.trait_density)


def case(n_tips, k, symmetric=True, few=False, free_root=False, seed=1):
    """A trait with tips known, unknown and known in part, its numbers (n,), and a tree."""
    rng = np.random.default_rng(seed)
    possible = np.zeros((n_tips, k), bool)
    possible[np.arange(n_tips), rng.integers(0, k, n_tips)] = True
    possible[0], possible[1, :2] = True, True
    tips = TipTraits("place", tuple(map(str, range(n_tips))), tuple("ABCDEFGH"[:k]), possible)
    model = TraitModel(tips, symmetric, few, free_root)
    space = Space(tuple(model.blocks(1.0)))
    record, x = model.record(space, reference=True), space.start()
    r = len(model.pairs)
    x[0], x[record.rates : record.rates + r] = 0.7, rng.exponential(size=r)
    if few:
        x[record.routes : record.routes + r] = 1.0
        x[record.routes + rng.integers(r)] = 0.0
    if free_root:
        x[record.root :] = rng.dirichlet(np.ones(k))
    return model, record, x, tree_of(n_tips, rng)


def tree_of(n_tips, rng):
    drawn = random_dated_tree(rng.uniform(0, 2, n_tips), rng, lambda t, pairs: rng.exponential(2.0 / pairs))
    return traits.Lineage(drawn.parent, drawn.left, drawn.right, drawn.order, drawn.heights)


def of_all_states(record, tree, x, q=None):
    """By the states of all nodes (K,) * N: their joint probabilities with what the tips may have."""
    k, n = record.tips.shape[1], len(tree.parent)
    q = traits.rate_matrix(record, x) if q is None else q
    joint = np.zeros((k,) * n)
    p = [expm(q * (tree.heights[tree.parent[i]] - tree.heights[i])) for i in range(n - 1)]
    for states in itertools.product(range(k), repeat=n):
        value = traits.root_frequencies(record, x)[states[-1]]
        for i in range(n - 1):
            value *= p[i][states[tree.parent[i]], states[i]]
        joint[states] = value * np.prod([record.tips[i, states[i]] for i in range(len(record.tips))])
    return joint


CASES = list(itertools.product((True, False), (False, True), (False, True)))


@pytest.mark.parametrize("kind", CASES)
def test_likelihood_is_the_sum_over_all_states(kind):
    _, record, x, tree = case(4, 3, *kind)
    expected = math.log(of_all_states(record, tree, x).sum())
    assert traits.log_likelihood(record, tree, x) == pytest.approx(expected, abs=1e-12)
    memory = traits.trait_memory(7, 3)
    own = density(record, tree, tree, x, x, memory, 0, traits.FRESH)
    assert own == pytest.approx(expected + traits.log_prior(record, tree, x), abs=1e-12)
    backwards = of_all_states(record, tree, x, traits.rate_matrix(record, x).T).sum()
    assert (abs(math.log(backwards) - expected) > 1e-3) == (not kind[0])  # planted: the other direction


@pytest.mark.parametrize("kind", CASES)
def test_compiled_is_the_reference_on_larger_trees(kind):
    for n_tips, k, times in ((2, 2, 1.0), (30, 5, 1.0), (30, 5, 60.0)):
        _, record, x, tree = case(n_tips, k, *kind, seed=3)
        x[0] *= times
        if kind[1] and k == 2:
            x[record.routes : record.routes + len(record.source)] = 1.0
        memory = traits.trait_memory(len(tree.parent), k)
        own = density(record, tree, tree, x, x, memory, 1, traits.FRESH)
        expected = traits.log_prior(record, tree, x) + traits.log_likelihood(record, tree, x)
        assert own == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("power", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("kind", CASES)
def test_slopes_by_heights_are_differences(kind, power):
    """Of the prior and a power of the likelihood, which its value is, too."""
    _, record, x, tree = case(8, 3, *kind)
    memory = traits.trait_memory(15, 3)
    memory.power[0] = power
    own = density(record, tree, tree, x, x, memory, 0, traits.FRESH | traits.SLOPES)
    whole = traits.log_prior(record, tree, x) + power * traits.log_likelihood(record, tree, x)
    assert own == pytest.approx(whole, rel=1e-11, abs=1e-12)
    expected = np.zeros(15)
    for i, step in itertools.product(range(15), (-2, -1, 1, 2)):
        moved = tree._replace(heights=tree.heights + 1e-4 * step * (np.arange(15) == i))
        value = traits.log_prior(record, moved, x) + power * traits.log_likelihood(record, moved, x)
        expected[i] += {-2: 1, -1: -8, 1: 8, 2: -1}[step] * value / 12e-4
    if not expected.any():  # neither prior nor likelihood has heights
        assert not memory.by_height.any()
        return
    error = np.abs(memory.by_height - expected).max() / np.abs(expected).max()
    assert error < 1e-8
    planted = memory.by_height.copy()
    planted[3] *= 1.001
    assert np.abs(planted - expected).max() / np.abs(expected).max() > 1e-6


def test_what_is_kept_of_the_accepted_tree_is_what_would_be_found():
    _, record, x, tree = case(12, 4, False, True, True)
    rng, memory, fresh = np.random.default_rng(2), traits.trait_memory(23, 4), traits.trait_memory(23, 4)
    slot, used = 0, 0
    density(record, tree, tree, x, x, memory, slot, traits.FRESH)
    for step in range(60):
        other, y = tree, x.copy()
        if step % 3 == 0:
            y[rng.integers(len(y) - 4)] *= 1.1 * (step % 2)
        elif step % 3 == 1:  # one height
            node, heights = 12 + rng.integers(11), tree.heights.copy()
            above = tree.parent[node]
            top = heights[above] if above >= 0 else heights[node] + 1.0
            heights[node] = rng.uniform(max(heights[tree.left[node]], heights[tree.right[node]]), top)
            other = tree._replace(heights=heights, order=np.argsort(heights, kind="stable"))
        else:
            other = tree_of(12, rng)
        own = density(record, tree, other, x, y, memory, 1 - slot, 0)
        used += int(memory.kept.sum())
        plain = density(record, other, other, y, y, fresh, 0, traits.FRESH)
        assert own == plain or (math.isinf(own) and math.isinf(plain))
        if rng.uniform() < 0.5 and own > -math.inf:
            slot, tree, x = 1 - slot, other, y
    assert used > 100
    y = x.copy()
    y[0] *= 1.1
    memory.below[slot] *= 1.01  # planted: what is kept is of something else
    assert density(record, tree, tree, x, x, memory, 1 - slot, 0) != own
    assert density(record, tree, tree, x, y, memory, 1 - slot, 0) == density(
        record, tree, tree, y, y, fresh, 0, traits.FRESH
    )


@pytest.mark.parametrize("symmetric", [True, False])
def test_prior_of_routes_is_a_distribution(symmetric):
    model, record, x, tree = case(4, 3, symmetric, True)
    r, total, mean, fewest = len(record.source), 0.0, 0.0, model.number[0]
    at = slice(record.routes, record.routes + r)
    record = record._replace(reference=0)
    for there in itertools.product((0.0, 1.0), repeat=r):
        x[at] = there
        p = math.exp(traits.log_prior(record, tree, x))
        assert (p > 0) == (sum(there) >= max(fewest, 1))
        total, mean = total + p, mean + p * there[0]
    assert total == pytest.approx(1.0, abs=1e-12)
    assert traits.prior_of_route(record) == pytest.approx(mean, abs=1e-12)
    x[at] = 0.0
    assert density(record, tree, tree, x, x, traits.trait_memory(7, 3), 0, traits.FRESH) == -math.inf


def test_data_that_no_route_explains_are_impossible():
    _, record, x, tree = case(4, 3, True, True)
    record = record._replace(tips=np.eye(3)[[0, 1, 2, 0]], offset=0)
    x[record.routes : record.routes + 3] = 1.0, 0.0, 0.0
    assert density(record, tree, tree, x, x, traits.trait_memory(7, 3), 0, traits.FRESH) == -math.inf
    with np.errstate(divide="ignore"):
        assert traits.log_likelihood(record, tree, x) == -math.inf


def expected_changes(record, tree, x, joint):
    """(K, K) mean numbers of changes given the tips, by an integral of the process with itself (Van Loan
    1978, IEEE Trans. Automat. Contr. 23:395), in terms of the joint probabilities of nodes' states."""
    k, n = record.tips.shape[1], len(tree.parent)
    q, found = traits.rate_matrix(record, x), np.zeros((k, k))
    for i, j in itertools.product(range(k), repeat=2):
        if i == j:
            continue
        e = np.zeros((k, k))
        e[i, j] = q[i, j]
        for node in range(n - 1):
            t = tree.heights[tree.parent[node]] - tree.heights[node]
            both = expm(np.block([[q, e], [np.zeros((k, k)), q]]) * t)
            axes = tuple(a for a in range(n) if a not in (node, tree.parent[node]))
            ends = joint.sum(axis=axes)
            ends = ends.T if node < tree.parent[node] else ends  # from the parent's state to the node's
            found[i, j] += (ends * both[:k, k:] / both[:k, :k]).sum() / joint.sum()
    return found


@pytest.mark.parametrize("times", [1.0, 25.0])
def test_histories_have_the_exact_frequencies(times):
    """Of states of all nodes, and mean numbers of changes; the second with more events than one piece of a
    branch holds."""
    _, record, x, tree = case(4, 3, False, False, True, seed=5)
    x[0] *= times
    n, draws = 7, 20_000 if times == 1.0 else 4_000
    joint = of_all_states(record, tree, x)
    rng = np.array([1, 2, 3, 4], np.uint64)
    states, jumps, counts = np.zeros(n, np.int64), np.zeros((3, 3)), np.zeros((n, 3))
    memory, reach, squares = traits.trait_memory(n, 3), np.zeros((MOST_EVENTS, 3)), np.zeros((3, 3))
    totals = np.zeros((3, 3))
    for _ in range(draws):
        jumps[:] = 0.0
        value = draw_history(rng, record, tree, x, memory, states, jumps, reach)
        counts[np.arange(n), states] += 1
        totals, squares = totals + jumps, squares + jumps**2
    assert value == pytest.approx(math.log(joint.sum()), abs=1e-12)
    for node in range(n):
        exact = joint.sum(axis=tuple(a for a in range(n) if a != node)) / joint.sum()
        error = np.sqrt(np.maximum(exact * (1 - exact), 0.0) / draws) + 1e-12
        assert (np.abs(counts[node] / draws - exact) < 4.5 * error).all()
    mean, exact = totals / draws, expected_changes(record, tree, x, joint)
    error = np.sqrt((squares / draws - mean**2) / draws) + 1e-12
    off = ~np.eye(3, dtype=bool)
    assert (np.abs(mean - exact) < 4.5 * error)[off].all()
    assert not (np.abs(mean - exact.T) < 4.5 * error)[off].all()  # planted: the other direction


def test_a_history_says_what_it_is_of():
    model, record, x, tree = case(6, 3, False, True)
    words = np.array([5, 6, 7, 8], np.uint64)
    one, again = (drawn_history(model, record, tree, x, words) for _ in range(2))
    assert (one.states == again.states).all() and (one.columns == again.columns).all()
    assert words.tolist() == [5, 6, 7, 8]  # the chain's own stream stays as it is
    named = dict(zip(model.columns, one.columns))
    assert named["trait_likelihood"] == pytest.approx(traits.log_likelihood(record, tree, x), abs=1e-11)
    assert named["n_routes"] == 5
    assert named["trait_changes"] == sum(v for name, v in named.items() if name.startswith(PER_ROUTE))
    for tip in range(6):
        assert model.tips.possible[tip, one.states[tip]]


def test_a_trait_has_two_states_or_more():
    model = case(4, 3)[0]
    with pytest.raises(InputError, match="1 states"):
        TraitModel(replace(model.tips, states=("A",), possible=np.ones((4, 1), bool)))
