"""Trees whose samples may be ancestors of others: three taxa, every tree with and without ancestors, against
quadrature; with data, every clock, samples of uncertain age, and few moves at a time."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors import fossilised_birth_death
from phloem.density.tree_priors.tree_prior import Genealogy, Scale, registered
from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.compiled import by_address
from phloem.inference.time.settings import Clade, TreeModel
from phloem.inference.time.structure import prior_options
from phloem.tree.dated import DatedTree
from statistical.time.test_exact import TWO, of_columns
from statistical.time.time_runs import close, nothing_observed, sampled

pytestmark = pytest.mark.slow
X, W = np.polynomial.legendre.leggauss(24)
X, W = (X + 1) / 2, W / 2
NUMBERS = {
    "fbd": {"birth_rate": 0.6, "death_rate": 0.2, "sampling_rate": 0.3, "origin_gap": 0.5},
    "fbd-root": {"net_diversification": 0.5, "relative_death": 0.4, "sampling_proportion": 0.3},
    "bdsky": {
        "reproductive_number": 1.2, "becoming_uninfectious_rate": 0.5, "sampling_proportion": 0.5,
        "removal_probability": 0.3, "origin_gap": 0.5,
    },
}  # fmt: skip
ONE_R = {"shift": {"reproductive_number": ()}}
ROOT = Gamma(4.0, 2.0)


def spans(begin, edges, points=(X, W)):
    """Points and weights of heights above begin, in pieces that edges part."""
    x, w = points
    ends = [begin, *sorted({e for e in edges if e > begin})]
    for low, high in zip(ends, [*ends[1:], np.inf]):
        heights = low + (high - low) * x if high < np.inf else low + 3.0 * x / (1 - x)
        yield from zip(heights, (high - low) * w if high < np.inf else 3.0 * w / (1 - x) ** 2)


def histories(tips):
    """Every tree of three dated tips and its weight: joinings between, tips as old as their parents."""
    for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        parent = np.array([0, 0, 0, 4, -1])
        parent[[a, b]], parent[c] = 3, 4
        base = max(tips[a], tips[b])
        lows = [(base, 1.0)] if tips[a] != tips[b] else []  # the older one an ancestor of the other
        for low, of_low in [*lows, *spans(base, [tips[c]])]:
            highs = [(tips[c], 1.0)] if low < tips[c] else []
            for high, of_high in [*highs, *spans(max(low, tips[c]), [])]:
                yield np.array([*tips, low, high]), parent, of_low * of_high


def shapes(items):
    """Every rooted binary tree of some subtrees, as pairs of pairs."""
    if len(items) == 1:
        yield items[0]
        return
    first, *rest = items
    for r in range(len(rest)):
        for beside in combinations(rest, r):
            others = [x for x in rest if x not in beside]
            yield from product(shapes([first, *beside]), shapes(others))


def trees_of(tips, points):
    """Every dated tree, as histories."""

    def numbered(shape, pairs):
        if not isinstance(shape, tuple):
            return shape
        pairs.append(tuple(numbered(child, pairs) for child in shape))
        return len(tips) + len(pairs) - 1

    def dated(heights, pairs, weight):
        if len(heights) == 2 * len(tips) - 1:
            yield np.array(heights), weight
            return
        a, b = pairs[len(heights) - len(tips)]
        base, older = max(heights[a], heights[b]), a if heights[a] > heights[b] else b
        if older < len(tips) and heights[a] != heights[b]:
            yield from dated([*heights, heights[older]], pairs, weight)
        for height, own in spans(base, tips, points):
            yield from dated([*heights, height], pairs, weight * own)

    for shape in shapes(list(range(len(tips)))):
        pairs, parent = [], np.full(2 * len(tips) - 1, -1)
        numbered(shape, pairs)
        for k, children in enumerate(pairs):
            parent[list(children)] = len(tips) + k
        for heights, weight in dated(list(tips), pairs, 1.0):
            yield heights, parent, weight


def expected(prior, tips, numbers, settings, log_likelihood=None):
    """Means of the root's height and of the number of ancestors."""
    total = masses(prior, tips, numbers, settings, log_likelihood)
    return total[1:] / total[0]


def masses(prior, tips, numbers, settings, log_likelihood=None):
    """The integral of the density, and of it times each of these two."""
    total = np.zeros(3)
    for heights, parent, weight in histories(tips):
        order = np.argsort(heights, kind="stable")
        g = Genealogy(heights, order, 3, np.zeros(0, np.int64), parent)
        log = prior.log_density(g, np.array([*numbers.values()]), settings)
        if prior.needs_root:
            log += float(ROOT.log_density(heights[-1:]))
        if log_likelihood is not None:
            log += log_likelihood(DatedTree(parent, parent, parent, heights, order))
        ancestors = (heights[parent[:3]] == heights[:3]).sum()
        total += weight * np.exp(log) * np.array([1.0, heights[-1], ancestors])
    return total


def tree_of(name, clock="strict", **options):
    clades = (Clade("root", ("t0", "t1", "t2"), age=ROOT),) if name == "fbd-root" else ()
    rate = Exponential(1.0)
    return TreeModel(
        clock=clock, prior=name, priors=NUMBERS[name] | {"clock_rate": rate}, clades=clades, options=options
    )


def agrees(found, root, ancestors):
    return close(found["root_height"], root) and close(found["sampled_ancestors"], ancestors)


CASES = [
    ("fbd", [0.0, 0.7, 1.9], {}),
    ("fbd", [0.0, 0.0, 0.8], {"sampled": 0.4}),
    ("fbd-root", [0.0, 0.0, 0.8], {"sampled": 0.5}),
    ("fbd-root", [0.0, 0.6, 1.1], {"sampled": 0.5}),
    ("fbd-root", [0.0, 0.0, 0.8], {"sampled": 0.5, "sampling": "diversified"}),
    ("bdsky", [0.0, 0.7, 1.9], ONE_R),
]


@pytest.mark.parametrize("name, tips, options", CASES)
def test_three_taxa_without_data(name, tips, options):
    prior = registered()[name]
    tree = tree_of(name, **options)
    settings = prior.parameters(Scale(1.0, 3, 1), prior_options(prior, tree)).settings
    found, _, _ = sampled(
        nothing_observed(3), np.array(tips), "JC", tree, generations=400_000, use_data=False
    )
    root, ancestors = expected(prior, tips, NUMBERS[name], settings)
    assert agrees(found, root, ancestors)
    other = NUMBERS[name] | ({"sampling_rate": 0.36} if name == "fbd" else {"sampling_proportion": 0.36})
    assert not agrees(found, *expected(prior, tips, other, settings))


def test_the_probability_that_the_sampled_infect_no_more_is_sampled():
    """Flat, of two samples that lie so that one may be the other's ancestor: at 1 that has density 0."""
    prior, tips = registered()["bdsky"], [0.0, 0.7, 1.9]
    numbers = NUMBERS["bdsky"] | {"removal_probability": Uniform(0.0, 1.0)}
    tree = TreeModel(prior="bdsky", priors=numbers | {"clock_rate": Exponential(1.0)}, options=ONE_R)
    settings = prior.parameters(Scale(1.0, 3, 1), prior_options(prior, tree)).settings
    found, _, _ = sampled(
        nothing_observed(3), np.array(tips), "JC", tree, generations=400_000, use_data=False
    )
    points, weights = np.polynomial.legendre.leggauss(6)
    total, of_removal = np.zeros(3), 0.0
    for r, weight in zip((points + 1) / 2, weights):
        own = weight * masses(prior, tips, NUMBERS["bdsky"] | {"removal_probability": r}, settings)
        total, of_removal = total + own, of_removal + r * own[0]
    assert agrees(found, *total[1:] / total[0])
    assert close(found["removal_probability"], of_removal / total[0])
    assert abs(of_removal / total[0] - 0.5) > 0.02  # the trees say something of it


def test_four_taxa_of_which_one_fossil_may_be_an_ancestor_of_the_other():
    prior, tips, options = registered()["fbd-root"], [0.0, 0.0, 0.6, 1.1], {"sampled": 0.4}
    settings = prior.parameters(Scale(1.0, 4, 1), options).settings
    x, w = np.polynomial.legendre.leggauss(10)
    total = np.zeros(5)
    for heights, parent, weight in trees_of(tips, ((x + 1) / 2, w / 2)):
        order = np.argsort(heights, kind="stable")
        g = Genealogy(heights, order, 4, np.zeros(0, np.int64), parent)
        log = prior.log_density(g, np.array([*NUMBERS["fbd-root"].values()]), settings)
        ancestors = heights[parent[:4]] == heights[:4]
        own = np.array([1.0, heights[-1], ancestors.sum(), ancestors[2], ancestors[3]])
        total += weight * np.exp(log + float(ROOT.log_density(heights[-1:]))) * own
    root, ancestors, younger, older = total[1:] / total[0]
    taxa = tuple(f"t{i}" for i in range(4))
    tree = TreeModel(
        prior="fbd-root", priors=NUMBERS["fbd-root"] | {"clock_rate": Exponential(1.0)},
        clades=(Clade("root", taxa, age=ROOT),), options=options,
    )  # fmt: skip
    found, _, run = sampled(
        nothing_observed(4), np.array(tips), "JC", tree, generations=1_000_000, use_data=False
    )
    assert agrees(found, root, ancestors) and 0.1 < younger < older
    there = run.samples.lengths[run.samples.n // 4 :, 2:4] == 0.0
    for share, own in zip((younger, older), there.T):
        error = own[: len(own) // 40 * 40].reshape(40, -1).mean(1).std() / np.sqrt(40)
        assert abs(own.mean() - share) < 4 * error


FEW = [
    {"sampled_ancestor": 1.0, "root_height": 1.0},
    {"sampled_ancestor": 1.0, "hamilton": 1.0},
    {"sampled_ancestor": 1.0, "wilson_balding": 1.0, "fixed_height_spr": 1.0, "root_height": 1.0},
    {"sampled_ancestor": 1.0, "subtree_leap": 1.0, "narrow_exchange": 1.0, "wide_exchange": 1.0},
    {"sampled_ancestor": 1.0, "subtree_slide": 1.0, "node_height": 1.0, "tree_scaler": 1.0},
]


@pytest.mark.parametrize("moves", FEW)
def test_few_moves_at_a_time(moves):
    prior, tips = registered()["fbd"], [0.0, 0.7, 1.9]
    settings = prior.parameters(Scale(1.0, 3, 1), {}).settings
    found, _, _ = sampled(
        nothing_observed(3), np.array(tips), "JC", tree_of("fbd"), generations=600_000, use_data=False,
        move_weights=moves,
    )  # fmt: skip
    assert agrees(found, *expected(prior, tips, NUMBERS["fbd"], settings))


of_fossils = uncounted(fossilised_birth_death.density)


def without_two(g, x, settings, by_height, by_number):
    """The planted error: a joining of a labelled tree has one way of saying which is which."""
    value, joinings = of_fossils(g, x, settings, by_height, by_number), g.n_tips - 1
    for k in range(g.n_tips):
        joinings -= g.heights[g.parent[k]] == g.heights[k]
    return value - joinings * np.log(2.0)


def test_a_density_of_oriented_trees_is_seen():
    prior, tips = registered()["fbd"], [0.0, 0.7, 1.9]
    settings = prior.parameters(Scale(1.0, 3, 1), {}).settings
    found, _, _ = sampled(
        nothing_observed(3), np.array(tips), "JC", tree_of("fbd"), generations=100_000, use_data=False,
        planted=lambda data: data._replace(tree_density=by_address.TREE_PRIOR.address(without_two)),
    )  # fmt: skip
    assert not agrees(found, *expected(prior, tips, NUMBERS["fbd"], settings))


@pytest.mark.parametrize("clock", ["ucln", "ucgd", "white-noise", "autocorrelated"])
def test_rates_of_branches_that_last_no_time_say_nothing(clock):
    """Without data the tree is as without them."""
    prior, tips = registered()["fbd"], [0.0, 0.7, 1.9]
    settings = prior.parameters(Scale(1.0, 3, 1), {}).settings
    found, _, run = sampled(
        nothing_observed(3), np.array(tips), "JC", tree_of("fbd", clock), generations=600_000, use_data=False
    )
    assert agrees(found, *expected(prior, tips, NUMBERS["fbd"], settings))
    assert run.model.samples_ancestors and np.isfinite(run.samples.numbers).all()


@pytest.mark.parametrize("name, tips, options", [CASES[0], CASES[3]])
def test_three_taxa_with_data(name, tips, options):
    prior, rate = registered()[name], 0.1
    settings = prior.parameters(Scale(1.0, 3, 1), options).settings
    states = np.array([["ACGT".index(c) for c in row] for row in TWO])

    def log_likelihood(tree):
        return of_columns(tree, rate, states) + 250.0

    alignment = alignment_from_sequences({f"t{i}": row for i, row in enumerate(TWO)}, alphabet("dna"))
    tree = tree_of(name, **options)
    tree = TreeModel(
        prior=name, priors=NUMBERS[name] | {"clock_rate": rate}, clades=tree.clades, options=options
    )
    found, _, _ = sampled(alignment, np.array(tips), "JC", tree, generations=400_000)
    assert agrees(found, *expected(prior, tips, NUMBERS[name], settings, log_likelihood))
    assert not agrees(found, *expected(prior, tips, NUMBERS[name], settings))


def of_one_column(tree, decay, states):
    """Log-likelihood of one column under JC, by the mean of exp(-4/3 length) of every branch."""
    same = 0.25 + 0.75 * decay(tree.heights[tree.parent[:4]] - tree.heights[:4])
    p = [np.where(np.eye(4, dtype=bool), s, (1 - s) / 3) for s in same]
    low = [x for x in range(3) if tree.parent[x] == 3]
    above = p[3] @ (p[low[0]][:, states[low[0]]] * p[low[1]][:, states[low[1]]])
    (other,) = set(range(3)) - set(low)
    return np.log(0.25 * (above * p[other][:, states[other]]).sum())


@pytest.mark.parametrize("clock", ["white-noise", "ucgd"])
def test_one_column_by_rates_that_are_integrated_out(clock):
    """Branch lengths are gamma, independent, and one column's likelihood is multilinear in what they decay
    to, whose means are known: rates drawn for branches that begin and cease to last are drawn rightly."""
    prior, tips, options = registered()["fbd"], [0.0, 0.7, 1.9], {}
    settings = prior.parameters(Scale(1.0, 3, 1), options).settings
    rate, spread, states = 0.5, 2.0, [0, 1, 0]

    def decay(lasts):
        if clock == "white-noise":
            return (1 + 4 / 3 * spread) ** (-rate * lasts / spread)
        return (1 + 4 / 3 * rate * lasts * spread**2) ** (-1 / spread**2)

    name = "clock_variance" if clock == "white-noise" else "clock_cv"
    tree = TreeModel(clock=clock, prior="fbd", priors=NUMBERS["fbd"] | {"clock_rate": rate, name: spread})
    alignment = alignment_from_sequences({f"t{i}": "ACGT"[s] for i, s in enumerate(states)}, alphabet("dna"))
    found, _, _ = sampled(alignment, np.array(tips), "JC", tree, generations=1_500_000)
    numbers = NUMBERS["fbd"]
    assert agrees(found, *expected(prior, tips, numbers, settings, lambda t: of_one_column(t, decay, states)))
    assert not agrees(found, *expected(prior, tips, numbers, settings))  # without the data
    assert not agrees(
        found,
        *expected(
            prior, tips, numbers, settings,
            lambda t: of_one_column(t, lambda lasts: np.exp(-4 / 3 * rate * lasts), states),
        ),
    )  # fmt: skip


def test_a_sample_of_uncertain_age_takes_its_parent_along():
    prior, rows = registered()["fbd"], []
    settings = prior.parameters(Scale(1.0, 3, 1), {}).settings
    ages = 0.3 + 1.4 * X
    masses = []
    for age in ages:
        total = np.zeros(3)
        for heights, parent, weight in histories([0.0, age, 1.2]):
            order = np.argsort(heights, kind="stable")
            g = Genealogy(heights, order, 3, np.zeros(0, np.int64), parent)
            log = prior.log_density(g, np.array([*NUMBERS["fbd"].values()]), settings)
            ancestors = (heights[parent[:3]] == heights[:3]).sum()
            total += weight * np.exp(log) * np.array([1.0, heights[-1], ancestors])
        masses.append(total[0])
        rows.append(total)
    whole = W @ np.array(rows)
    root, ancestors = whole[1:] / whole[0]
    mean_age = (W * ages) @ np.array(masses) / whole[0]
    bounds = np.array([[0.0, 0.0], [0.3, 1.7], [1.2, 1.2]])
    found, _, run = sampled(
        nothing_observed(3), bounds, "JC", tree_of("fbd"), generations=600_000, use_data=False
    )
    assert agrees(found, root, ancestors)
    kept = run.samples.sets[run.samples.n // 4 :, 0, 1]
    assert abs(kept.mean() - mean_age) < 4 * 2 * kept.std() / np.sqrt(len(kept) / 4)
