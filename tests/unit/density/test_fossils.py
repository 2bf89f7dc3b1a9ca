"""Trees whose fossils may be ancestors: the densities' derivatives there, and what they are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.unit.density.test_tree_priors import slope_error, slopes

from phloem.density.tree_priors.fossils import begins_with_ancestor, plain_log_q, plain_unseen, rates_of
from phloem.density.tree_priors.tree_prior import Genealogy, Scale, registered
from phloem.errors import InputError
from phloem.tree.dated import random_dated_tree

CASES = [
    ("fbd", {"sampled": 0.2}),
    ("fbd", {}),
    ("fbd-root", {"sampled": 0.2}),
    ("fbd-root", {}),
    ("fbd-root", {"sampled": 0.2, "sampling": "diversified"}),
    ("fbd-root", {"sampling": "diversified"}),
    ("fbd", {"sampled": 0.2, "shift": {"birth_rate": (1.3, 3.1), "sampling_rate": (0.7, 1.9, 9.0)}}),
    ("fbd-root", {"shift": {"net_diversification": (1.3, 3.1), "sampling_proportion": (0.7, 1.9)}}),
    ("fbd-root", {"sampled": 0.2, "shift": {"relative_death": (2.2,)}}),
]
cases = pytest.mark.parametrize(("name", "options"), CASES)


def drawn(name, options, seed=1, n_tips=12, ancestors=3):
    """A random tree of living and fossils, of which some are ancestors; numbers that are nothing special."""
    rng, prior = np.random.default_rng(seed), registered()[name]
    tips = np.where(np.arange(n_tips) < 4, 0.0, rng.uniform(0.5, 4, n_tips).round(2))
    while True:
        tree = random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(5.0 / pairs))
        heights, done = tree.heights.copy(), 0
        for f in np.argsort(tips):
            above = tree.parent[f]
            sibling = tree.right[above] if tree.left[above] == f else tree.left[above]
            if done < ancestors and heights[sibling] < heights[f] and tree.parent[above] >= 0:
                heights[above] = heights[f]
                done += 1
        if done == ancestors:
            break
    order = tree.order[np.argsort(heights[tree.order], kind="stable")]
    parameters = prior.parameters(Scale(5.0, n_tips, 3), options)
    x = np.concatenate([b.start for b in parameters.blocks]) * rng.uniform(0.7, 1.4, len(parameters.blocks))
    return (
        prior, Genealogy(heights, order, n_tips, np.zeros(0, np.int64), tree.parent), x, parameters.settings
    )  # fmt: skip


@cases
@pytest.mark.parametrize("seed", [1, 2])
def test_derivatives_where_fossils_are_ancestors(name, options, seed):
    prior, g, x, settings = drawn(name, options, seed)
    tips = np.arange(g.n_tips)
    here = np.zeros(len(g.heights), np.uint8)
    here[g.parent[tips][g.heights[g.parent[tips]] == g.heights[tips]]] = 1
    assert here.sum() == 3
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    free = [i for i in range(len(g.heights)) if not here[i]]
    _, by_height, by_number = slopes(prior, g, x, settings)
    assert np.abs(by_height[here == 1]).max() < 1e-12
    expected = differences(prior, g, x, settings)
    found = np.append(by_height, by_number)
    kept = [i for i in (*free, *range(len(by_height), len(found))) if i >= g.n_tips]
    assert np.abs(found - expected)[kept].max() < 4e-8 * np.abs(expected).max()
    assert np.abs(1.001 * found - expected)[kept].max() > 4e-8 * np.abs(expected).max()  # the control


@pytest.mark.parametrize("options", [{}, {"sampling": "diversified"}, {"fossils": "ends"}])
def test_without_fossils_the_proportion_of_them_may_be_zero(options):
    """As MrBayes' tutorial on node dating has it: the limit, and of one fossil nothing."""
    rng, prior = np.random.default_rng(4), registered()["fbd-root"]
    found = {}
    for tips in ("living", "one fossil"):
        ages = np.where(np.arange(7) < (6 if tips == "one fossil" else 7), 0.0, 0.4)
        tree = random_dated_tree(ages, rng, lambda t, pairs: rng.exponential(5.0 / pairs))
        g = Genealogy(tree.heights, tree.order, 7, np.zeros(0, np.int64), tree.parent)
        settings = prior.parameters(Scale(5.0, 7, 3), {"sampled": 0.2} | options).settings
        for share in (0.0, 1e-9):
            x = np.array([0.7, 0.4, share])
            with np.errstate(divide="ignore"):
                found[tips, share] = prior.log_density(g, x, settings), slopes(prior, g, x, settings)[0]
    plain, compiled = found["living", 0.0]
    assert compiled == pytest.approx(plain, rel=1e-12)
    assert plain == pytest.approx(found["living", 1e-9][0], rel=1e-6)
    assert found["one fossil", 0.0] == (-math.inf, -math.inf)
    assert math.isfinite(found["one fossil", 1e-9][0])


def differences(prior, g, x, settings):
    def moved(vector, i, heights):
        ends = []
        for sign in (1, -1):
            other = vector.copy()
            other[i] += sign * 1e-6
            own = (g._replace(heights=other), x) if heights else (g, other)
            ends.append(prior.log_density(*own, settings))
        return (ends[0] - ends[1]) / 2e-6

    inner = [moved(g.heights, i, True) if i >= g.n_tips else 0.0 for i in range(len(g.heights))]
    return np.array(inner + [moved(x, i, False) for i in range(len(x))])


@pytest.mark.parametrize("options", [{"sampled": 0.2, "fossils": "ends"}, {"fossils": "ends"}])
def test_derivatives_where_samples_end_lineages(options):
    prior, g, x, settings = drawn("fbd-root", options, ancestors=0)
    assert slopes(prior, g, x, settings)[0] == pytest.approx(prior.log_density(g, x, settings), rel=1e-12)
    assert slope_error(prior, g, x, settings) < 4e-8


@pytest.mark.parametrize("since", [0.0, 0.7])
def test_what_is_seen_of_a_lineage_obeys_its_equations(since):
    """dp₀/dt = μ - (λ+μ+ψ) p₀ + λ p₀², p₀(z) = 1 - ρ; d log q/dt = λ + μ + ψ - 2 λ p₀ (Stadler 2010)."""
    birth, death, sampling, seen = 0.8, 0.3, 0.4, 0.35
    r = rates_of(birth, death, sampling, seen, since)

    def flow(t, y):
        p, _ = y
        rate = birth + death + sampling
        return [death - rate * p + birth * p * p, rate - 2 * birth * p]

    found = solve_ivp(flow, (since, 5.0), [1 - seen, math.log(4.0)], rtol=1e-11, atol=1e-12)
    assert plain_unseen(r, 5.0) == pytest.approx(found.y[0, -1], rel=1e-8)
    assert plain_log_q(r, 5.0) == pytest.approx(found.y[1, -1], rel=1e-8)
    wrong = rates_of(birth, death, sampling, seen + 0.01, since)
    assert plain_unseen(wrong, 5.0) != pytest.approx(found.y[0, -1], rel=1e-6)


def test_a_fossil_at_the_root_is_no_tree_of_two_branches():
    prior, g, x, settings = drawn("fbd-root", {})
    root, heights = int(g.order[-1]), g.heights.copy()
    fossil = int(np.flatnonzero(g.parent[: g.n_tips] == g.parent[g.n_tips - 1])[0])
    parent = g.parent.copy()
    parent[fossil], heights[fossil] = root, heights[root]
    other = g._replace(parent=parent, heights=heights)
    assert begins_with_ancestor(other) and not begins_with_ancestor(g)
    assert prior.log_density(other, x, settings) == -math.inf
    assert slopes(prior, other, x, settings)[0] == -math.inf


def test_options_that_do_not_go_together_are_refused():
    scale = Scale(5.0, 9, 3)
    with pytest.raises(InputError, match="bdss"):
        registered()["fbd"].parameters(scale, {"fossils": "ends"})
    with pytest.raises(InputError, match="at random"):
        registered()["fbd-root"].parameters(scale, {"fossils": "ends", "sampling": "diversified"})
    with pytest.raises(InputError, match="--fossils"):
        registered()["fbd-root"].parameters(scale, {"fossils": "relics"})
    with pytest.raises(InputError, match="--sampling"):
        registered()["fbd-root"].parameters(scale, {"sampling": "some"})
