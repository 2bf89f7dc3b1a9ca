"""Without data the sampler must find the priors, and with few taxa the posterior that quadrature finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.deviations import CHANGES
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.tree_priors import constant
from phloem.density.tree_priors.tree_prior import LEVEL, ORIGIN_GAP, Genealogy, Scale, registered
from phloem.inference.time.sampler import first_kept
from phloem.inference.time.settings import Clade, TreeModel
from phloem.pruning.cpu.cell_records import CellNumbers
from phloem.summary.trace import trace_summary
from phloem.tree.dated import dated_tree, random_dated_tree
from statistical.time.time_runs import close, nothing_observed, sampled

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parents[2] / "golden" / "time_trees"
EXACT = json.loads((GOLDEN / "exact_1d_targets.json").read_text())
THREE = json.loads((GOLDEN / "exact_quadrature_3taxa.json").read_text())
TIPS = np.array([0.0, 0.0, 0.5, 1.0, 1.0, 2.5, 4.0, 7.5])


def simulated(waiting, n=6000):
    """Means and standard errors of root height and tree length over simulated trees."""
    rng, found = np.random.default_rng(1), []
    for _ in range(n):
        tree = random_dated_tree(TIPS, rng, lambda t, pairs: waiting(t, pairs, rng.exponential()))
        h = tree.heights
        found.append([h[-1], (h[tree.parent[:-1]] - h[:-1]).sum(), tree.parent[0] == tree.parent[1]])
    found = np.array(found)
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(n)


def growing(t, pairs, e, size=6.0, growth=0.4):
    """Waiting time at a rate pairs exp(growth t) / size."""
    return np.log1p(growth * size * e * np.exp(-growth * t) / pairs) / growth


PRIORS = {
    "constant": ({"pop_size": 3.0}, lambda t, pairs, e: 3.0 * e / pairs),
    "exponential": ({"pop_size": 6.0, "growth_rate": 0.4}, growing),
}


OF_CLOCK = {
    "strict": ("clock_rate", np.exp(0.5)),
    "ucln": ("clock_cv", 1 / 3),
    "ucgd": ("clock_cv", 1 / 3),
    "random": ("rate_changes", CHANGES),
    "shrinkage": ("clock_scale", 0.1),
    "white-noise": ("clock_variance", 0.1),
    "autocorrelated": ("clock_variance", 1.0),
}
"""A number of each clock, and its mean under the prior, whatever is held."""
CASES = [(name, clock) for clock in ("strict", "ucln") for name in PRIORS]
CASES += [("constant", clock) for clock in OF_CLOCK if clock not in ("strict", "ucln")]


@pytest.mark.parametrize("name, clock", CASES)
def test_coalescents_against_simulation(name, clock):
    numbers, waiting = PRIORS[name]
    priors = numbers | {"clock_rate": LogNormal(0.0, 1.0)}
    tree = TreeModel(clock=clock, prior=name, priors=priors)
    found, clades, _ = sampled(nothing_observed(8), TIPS, "JC", tree, generations=600_000, use_data=False)
    (root, length, pair), errors = simulated(waiting)
    assert close(found["root_height"], root, errors[0])
    assert close(found["tree_length"], length, errors[1])
    assert close(clades[frozenset(("t0", "t1"))], pair, errors[2])
    assert not close(found["root_height"], 1.05 * root, errors[0])
    number, mean = OF_CLOCK[clock]
    assert close(found[number], mean)
    assert not close(found[number], 1.3 * mean)


def test_clocks_of_parts_without_data():
    """Each has its own priors, the tree what it has without clocks; a rate given the tree's length L is
    Gamma(½, rate L) of the CTMC reference, of mean 1 / 2L."""
    priors = {"pop_size": 3.0, "clock_rate{b}": LogNormal(0.0, 1.0), "clock_cv{b}": Exponential(1.0)}
    own = nothing_observed(8, n=2), TIPS, "JC", TreeModel(clock="ucln", priors=priors)
    settings = {"use_data": False, "parts": (1, "unlinked")}
    found, _, _ = sampled(*own, generations=600_000, **settings)
    (root, length, _), errors = simulated(PRIORS["constant"][1])
    rng, half = np.random.default_rng(2), []
    for _ in range(4000):
        tree = random_dated_tree(TIPS, rng, lambda t, pairs: 3.0 * rng.exponential() / pairs)
        half.append(0.5 / (tree.heights[tree.parent[:-1]] - tree.heights[:-1]).sum())
    assert close(found["root_height"], root, errors[0]) and close(found["tree_length"], length, errors[1])
    means = {"clock_rate{b}": np.exp(0.5), "clock_cv{a}": 1 / 3, "clock_cv{b}": 1.0}
    for name, mean in means.items():
        assert close(found[name], mean), name
        assert not close(found[name], 1.3 * mean)
    assert close(found["clock_rate{a}"], np.mean(half), np.std(half) / np.sqrt(len(half)))
    assert not close(found["clock_rate{a}"], 1.3 * np.mean(half))

    def planted(data):  # the second clock's rate has the first one's prior, too
        return data._replace(clock=data.clock._replace(reference=np.ones(2, np.uint8)))

    found, _, _ = sampled(*own, generations=60_000, planted=planted, **settings)
    assert not close(found["clock_rate{b}"], np.exp(0.5))


def rates_of_parts(rows, linkage, priors, seed, **more):
    """Draws (n, 3) of the root's height and of the parts' rates of two strict clocks, or of one."""
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    _, _, run = sampled(
        alignment, TIPS[:5], "JC", TreeModel(priors=priors | {"pop_size": 3.0}), parts=(50, linkage),
        generations=300_000, seed=seed, **more,
    )  # fmt: skip
    numbers = dict(zip(run.columns.names, run.samples.numbers[first_kept(run) :, 2:].T))
    if linkage == "unlinked":
        rates = [numbers["clock_rate{a}"], numbers["clock_rate{b}"]]
    else:
        rates = [numbers["clock_rate"] * numbers[f"rate{{{part}}}"] for part in "ab"]
    names = ("root", "a", "b")
    summary = trace_summary(names, np.stack([numbers["root_height"], *rates], axis=1)[None])
    return {name: (summary.mean[i], summary.mcse[i]) for i, name in enumerate(names)}


def test_strict_clocks_of_parts_are_a_rate_a_part_in_other_words():
    """With a gamma(2, β) rate and flat shares the parts' rates are independent, Exponential(β w) each, w the
    part's share of the sites: the same model as that of two strict clocks with these priors."""
    rng = np.random.default_rng(7)
    base = rng.choice(list("ACGT"), 150)
    rows = {}
    for x in range(5):
        row, at = base.copy(), rng.random(150) < np.repeat([0.1, 0.3], [50, 100])
        row[at] = rng.choice(list("ACGT"), at.sum())
        rows[f"t{x}"] = "".join(row)
    shared = rates_of_parts(rows, "proportional", {"clock_rate": Gamma(2.0, 6.0)}, 1)
    priors = {"clock_rate{a}": Exponential(2.0), "clock_rate{b}": Exponential(4.0)}
    own = rates_of_parts(rows, "unlinked", priors, 2)
    for name, (mean, error) in shared.items():
        assert close(own[name], mean, error), name
    wrong = rates_of_parts(rows, "unlinked", priors | {"clock_rate{b}": Exponential(40.0)}, 2)
    assert not close(wrong["b"], *shared["b"])


def test_a_clade_with_a_clock_of_its_own_without_data():
    """The clade is kept together, and its ratio has its prior."""
    rng, found = np.random.default_rng(3), []
    while len(found) < 4000:
        tree = random_dated_tree(TIPS[:5], rng, lambda t, pairs: rng.exponential(3.0 / pairs))
        if tree.parent[0] == tree.parent[1]:
            found.append(tree.heights[-1])
    own = Clade("own", ("t0", "t1"), clock=True)
    priors = {"pop_size": 3.0, "clock_rate": Exponential(1.0)}
    tree = TreeModel(clock="local", priors=priors, clades=(own,))
    sampled_, clades, _ = sampled(
        nothing_observed(5), TIPS[:5], "JC", tree, generations=400_000, use_data=False
    )
    assert clades[frozenset(("t0", "t1"))][0] == 1.0
    assert close(sampled_["root_height"], np.mean(found), np.std(found) / np.sqrt(len(found)))
    assert close(sampled_["clock_ratio(own)"], np.exp(0.5))
    assert not close(sampled_["clock_ratio(own)"], 1.2 * np.exp(0.5))


@pytest.mark.parametrize(
    "name, numbers, key",
    [
        ("yule", {"birth_rate": 0.05}, "e_prior_yule_rootcal_fixed"),
        ("bd", {"net_diversification": 0.05, "relative_death": 0.5}, "e_prior_bd_rootcal_fixed"),
    ],
)
def test_calibrated_roots_against_quadrature(name, numbers, key):
    taxa = tuple(f"t{i}" for i in range(12))
    priors = numbers | {"clock_rate": LogNormal(0.0, 1.0)}
    root = Clade("root", taxa, age=Normal(50.0, 5.0))
    tree = TreeModel(prior=name, priors=priors, clades=(root,))
    found, _, _ = sampled(nothing_observed(12), np.zeros(12), "JC", tree, generations=600_000, use_data=False)
    assert close(found["root_height"], EXACT[key]["rootHeight"]["mean"])
    assert close(found["tree_length"], EXACT[key]["treeLength"]["mean"])
    assert close(found["age(root)"], EXACT[key]["rootHeight"]["mean"])


def test_ages_of_stems_without_data():
    """Yule trees of five taxa drawn by hand (ages exponential, but the root's), weighed by the density of the
    age of the node above the ancestor of two; the negative control: that of the ancestor itself."""
    rng, n, rate = np.random.default_rng(3), 400_000, 0.8
    ages = np.sort(rng.exponential(1 / rate, (n, 4)), axis=1)
    lineages, rows = np.tile(1 << np.arange(5), (n, 1)), np.arange(n)
    own, above, last = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)  # of the ancestor of 0 and 1
    for k in range(4):
        i, j = rng.integers(0, 5 - k, n), rng.integers(0, 4 - k, n)
        j += j >= i
        joined = lineages[rows, i] | lineages[rows, j]
        first = (last == 0) & (joined & 3 == 3)
        next_ = (last > 0) & (above == 0) & (joined & 3 == 3)
        own[first], last[first] = ages[first, k], 1
        above[next_] = ages[next_, k]
        lineages[rows, i], lineages[rows, j] = joined, lineages[:, 4 - k]
    above = np.where(above == 0, own, above)
    log_weight = -rate * ages[:, -1] + np.array(Normal(1.0, 0.1).log_density(above[:, None]))
    weight = np.exp(log_weight - log_weight.max())
    taxa = tuple(f"t{i}" for i in range(5))
    pair = Clade("pair", taxa[:2])
    stem = Clade("stem(pair)", taxa[:2], stem=True, age=Normal(1.0, 0.1))
    tree = TreeModel(prior="yule", priors={"birth_rate": rate, "clock_rate": 1.0}, clades=(pair, stem))
    found, _, _ = sampled(nothing_observed(5), np.zeros(5), "JC", tree, generations=400_000, use_data=False)
    for name, exact in (("root_height", ages[:, -1]), ("age(pair)", own), ("age(stem(pair))", above)):
        assert close(found[name], np.average(exact, weights=weight)), name
    assert not close(found["age(pair)"], np.average(above, weights=weight))


CLASSES = {"xxx": "AAA", "xxy": "AAC", "xyx": "ACA", "yxx": "CAA"}


@pytest.mark.parametrize("case", THREE)
@pytest.mark.parametrize("use_data", [True, False])
def test_three_dated_taxa_against_quadrature(case, use_data):
    given = THREE[case]
    target = given if use_data else given["prior_only"]
    columns = [CLASSES[kind] * n for kind, n in given["pattern_class_counts"].items()]
    rows = {taxon: "".join(c[i::3] for c in columns) for i, taxon in enumerate(given["taxa"])}
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    priors = {"pop_size": given["Ne"], "clock_rate": given["rate"]}
    heights = np.array(given["tip_heights"])
    found, clades, _ = sampled(
        alignment, heights, "JC", TreeModel(priors=priors), generations=400_000, use_data=use_data
    )
    assert close(found["root_height"], target["rootHeight"]["mean"])
    for clade in target["clades"]:
        if 0.001 < clade["prob"] < 0.999:
            assert close(clades[frozenset(clade["clade"])], clade["prob"])


def test_sampled_dates_and_clades_that_must_be():
    """A tip between two dates, a clade kept together: against simulations that are rejected."""
    rng, found = np.random.default_rng(3), []
    while len(found) < 4000:
        tips = np.array([0.0, rng.uniform(0.0, 3.0), 1.0, 2.0])
        tree = random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(4.0 / pairs))
        if tree.parent[0] == tree.parent[2]:
            found.append([tips[1], tree.heights[tree.parent[0]], tree.heights[-1]])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    bounds = np.array([[0.0, 0.0], [0.0, 3.0], [1.0, 1.0], [2.0, 2.0]])
    clade = Clade("pair", ("t0", "t2"), together=True)
    priors = {"pop_size": 4.0, "clock_rate": Exponential(1.0)}
    sampled_, _, run = sampled(
        nothing_observed(4), bounds, "JC", TreeModel(priors=priors, clades=(clade,)),
        generations=400_000, use_data=False,
    )  # fmt: skip
    kept = run.samples.sets[run.samples.n // 4 :, 0, 1]
    assert abs(kept.mean() - mean[0]) < 4 * np.hypot(error[0], 2 * kept.std() / np.sqrt(len(kept) / 4))
    assert close(sampled_["age(pair)"], mean[1], error[1])
    assert close(sampled_["root_height"], mean[2], error[2])


@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_dates_with_errors_are_normal_without_data(clock):
    """A coalescent of a known size is a distribution given any dates, so that without data these keep theirs;
    planted: a density of an error a tenth too large."""
    means, errors = np.array([0.0, 3.0, 3.4, 6.0, 2.0]), np.array([0.0, 0.5, 0.6, 1.0, 0.0])
    bounds = np.stack([means - 4.75 * errors, means + 4.75 * errors], axis=1)
    priors = {"pop_size": 4.0, "clock_rate": Exponential(1.0)}

    def largest(errors):
        tips = [Clade(f"tip t{i}", (f"t{i}",), age=Normal(means[i], errors[i])) for i in (1, 2, 3)]
        tree = TreeModel(clock=clock, priors=priors, clades=tuple(tips))
        _, _, run = sampled(
            nothing_observed(5), bounds, "JC", tree, generations=1_000_000, use_data=False, sample_every=100
        )
        kept = run.samples.sets[first_kept(run) :, 0, 1:4]
        scaled = (kept - means[1:4]) / [0.5, 0.6, 1.0]
        shown = np.concatenate([scaled, scaled**2], axis=1)
        found = trace_summary([f"x{k}" for k in range(6)], shown[None])
        return np.abs((found.mean - np.repeat([0.0, 1.0], 3)) / found.mcse).max()

    assert largest(np.array([0.0, 0.5, 0.6, 1.0, 0.0])) < 4
    assert largest(np.array([0.0, 0.55, 0.66, 1.1, 0.0])) > 5


def test_partial_and_negative_constraints_without_data():
    """Clades and ages against simulated trees of which those that do not obey are rejected."""
    held = (
        Clade("partial", ("t0", "t1"), together=True, outside=("t4",)),
        Clade("negative", ("t2", "t3"), apart=True),
    )
    rng, found = np.random.default_rng(5), []
    while len(found) < 6000:
        tree = random_dated_tree(np.zeros(5), rng, lambda t, pairs: rng.exponential(4.0 / pairs))
        below = {x: {x} for x in range(5)}
        for x in tree.order[tree.order >= 5].tolist():
            below[x] = below[int(tree.left[x])] | below[int(tree.right[x])]
        mrca = min((x for x in below if {0, 1} <= below[x]), key=lambda x: len(below[x]))
        if 4 not in below[mrca] and {2, 3} not in below.values():
            pair = float({0, 1} in below.values())
            found.append([tree.heights[mrca], tree.heights[-1], pair, float({0, 1, 2} in below.values())])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    priors = {"pop_size": 4.0, "clock_rate": Exponential(1.0)}
    numbers, clades, _ = sampled(
        nothing_observed(5), np.zeros(5), "JC", TreeModel(priors=priors, clades=held),
        generations=400_000, use_data=False,
    )  # fmt: skip
    assert close(numbers["age(partial)"], mean[0], error[0]) and close(
        numbers["root_height"], mean[1], error[1]
    )
    for tips, k in ((("t0", "t1"), 2), (("t0", "t1", "t2"), 3)):
        assert close(clades[frozenset(tips)], mean[k], error[k])
    assert frozenset(("t2", "t3")) not in clades


def histories(tips):
    """Points and weights of Gauss and Legendre over the three histories of three dated tips."""
    x, w = np.polynomial.legendre.leggauss(24)
    x, w = (x + 1) / 2, w / 2
    for a, b, c in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        parent = np.array([0, 0, 0, 4, -1])
        parent[[a, b]], parent[c] = 3, 4
        base = max(tips[a], tips[b])
        edges = [base, tips[c]] if tips[c] > base else [base]
        for begin, end in zip(edges, [*edges[1:], np.inf]):
            lows = begin + (end - begin) * x if end < np.inf else begin + 3.0 * x / (1 - x)
            low_weights = (end - begin) * w if end < np.inf else 3.0 * w / (1 - x) ** 2
            for low, weight in zip(lows, low_weights):
                start = max(low, tips[c])
                for high, other in zip(start + 3.0 * x / (1 - x), 3.0 * w / (1 - x) ** 2):
                    yield dated_tree(parent, np.array([*tips, low, high])), weight * other


def ages_by_quadrature(tips, log_density):
    """Mean height of the root."""
    mass = total = 0.0
    for tree, weight in histories(tips):
        g = Genealogy(tree.heights, tree.order, 3, np.array([1, 1]), tree.parent)
        value = weight * np.exp(log_density(g))
        mass, total = mass + value, total + value * tree.heights[-1]
    return total / mass


TWO = ("A" * 30 + "ACGT" * 15, "A" * 30 + "ACGT" * 12 + "C" * 12, "A" * 27 + "GCT" * 21)


def of_columns(tree, rate, column_states):
    """Log-likelihood of columns (3, n) under JC, summing over the states of both joinings."""
    same = 0.25 + 0.75 * np.exp(-4 / 3 * rate * (tree.heights[tree.parent[:4]] - tree.heights[:4]))
    p = [np.where(np.eye(4, dtype=bool), s, (1 - s) / 3) for s in same]
    low = [x for x in range(3) if tree.parent[x] == 3]
    above = p[3] @ (p[low[0]][:, column_states[low[0]]] * p[low[1]][:, column_states[low[1]]])
    (other,) = set(range(3)) - set(low)
    return np.log(0.25 * (above * p[other][:, column_states[other]]).sum(axis=0)).sum()


def test_three_taxa_with_two_clocks_against_quadrature():
    """The rate of one part is held, the other's has its prior."""
    tips, first, held = np.array([0.0, 0.4, 1.0]), 0.05, 40
    states = np.array([["ACGT".index(c) for c in row] for row in TWO])
    x, w = np.polynomial.legendre.leggauss(20)
    x, total = (x + 1) / 2, np.zeros(3)
    rates = 0.15 * x / (1 - x)
    w = w / 2 * 0.15 / (1 - x) ** 2 * 4.0 * np.exp(-4.0 * rates)
    for tree, weight in histories(tips):
        g = Genealogy(tree.heights, tree.order, 3, np.zeros(0, np.int64), tree.parent)
        prior = constant.log_density(g, np.array([2.0]), np.zeros(0))
        one = prior + of_columns(tree, first, states[:, :held])
        for rate, of_rate in zip(rates, w):
            value = weight * of_rate * np.exp(one + of_columns(tree, rate, states[:, held:]) + 250.0)
            total += value * np.array([1.0, tree.heights[-1], rate])
    root, rate = total[1:] / total[0]
    rows = dict(zip(("x", "y", "z"), TWO))
    priors = {"pop_size": 2.0, "clock_rate{a}": first, "clock_rate{b}": Exponential(4.0)}
    own = alignment_from_sequences(rows, alphabet("dna")), tips, "JC", TreeModel(priors=priors)

    def planted(data):
        numbers = data.numbers.copy()
        numbers[:, CellNumbers._fields.index("first_lengths")] = 0
        return data._replace(numbers=numbers)

    found, _, _ = sampled(*own, parts=(held, "unlinked"), generations=300_000)
    assert close(found["root_height"], root) and close(found["clock_rate{b}"], rate)
    found, _, _ = sampled(*own, parts=(held, "unlinked"), generations=30_000, planted=planted)
    assert not close(found["clock_rate{b}"], rate)  # planted: both parts go by the first clock


BY_RATES = {"birth_rate": 0.6, "death_rate": 0.2, "sampling_rate": 0.3, "origin_gap": 0.5}
SHIFTING = {"reproductive_number_1": 0.7, "reproductive_number_2": 2.1, "becoming_uninfectious_rate": 0.6}
SHIFTING |= {"sampling_proportion_1": 0.6, "sampling_proportion_2": 0.3, "origin_gap": 0.5}
SHIFTS = {"shift": {"reproductive_number": (1.9,), "sampling_proportion": (0.4,)}}


@pytest.mark.parametrize(
    ("name", "fixed", "options"),
    [
        ("bdss", BY_RATES, {}),
        ("fbd", BY_RATES, {"fossils": "tips"}),
        ("fbd", BY_RATES, {"fossils": "tips", "sampled": 0.3, "condition": "survival"}),
        ("bdsky", SHIFTING, SHIFTS),
        ("bdsky", SHIFTING, SHIFTS | {"condition": "sampling"}),
    ],
)
def test_priors_of_three_dated_taxa_against_quadrature(name, fixed, options):
    """With numbers that are held."""
    prior, tips = registered()[name], np.array([0.0, 0.7, 1.9])
    x, settings = np.array([*fixed.values()]), prior.parameters(Scale(1.0, 3, 1), options).settings

    def mean(numbers):
        return ages_by_quadrature(tips, lambda g: prior.log_density(g, numbers, settings))

    tree = TreeModel(prior=name, options=options, priors=fixed | {"clock_rate": Exponential(1.0)})
    found, _, _ = sampled(nothing_observed(3), tips, "JC", tree, generations=400_000, use_data=False)
    assert close(found["root_height"], mean(x))
    assert not close(found["root_height"], mean(x * 1.1))


def test_an_origin_whose_age_has_a_density_against_quadrature():
    """Of three dated taxa; the gap between it and the root is integrated over."""
    prior, tips, age = registered()["fbd"], np.array([0.0, 0.7, 1.9]), LogNormal(1.0, 0.3)
    options = {"fossils": "tips", "numbers": "diversification", "sampled": 0.5, "condition": "survival"}
    held = {"net_diversification": 0.3, "relative_death": 0.4, "sampling_proportion": 0.5}
    settings = prior.parameters(Scale(1.0, 3, 1), options).settings
    u, w = np.polynomial.legendre.leggauss(60)
    u, w = (u + 1) / 2, w / 2

    def mean(shift):
        def log_density(g):
            total = 0.0
            for part, weight in zip(u, w):  # gap = 2u / (1 - u)
                gap = 2.0 * part / (1 - part)
                own = prior.log_density(g, np.array([*held.values(), gap]), settings)
                own += age.log_density(np.array([g.heights[-1] + gap - shift]))
                total += weight * 2.0 / (1 - part) ** 2 * np.exp(own)
            return np.log(total)

        return ages_by_quadrature(tips, log_density)

    origin = Clade("origin", ("t0", "t1", "t2"), age=age, offset=1.0, above=ORIGIN_GAP)
    tree = TreeModel(
        prior="fbd", options=options, priors=held | {"clock_rate": Exponential(1.0)}, clades=(origin,)
    )
    found, _, _ = sampled(nothing_observed(3), tips, "JC", tree, generations=400_000, use_data=False)
    assert close(found["root_height"], mean(1.0))
    assert not close(found["root_height"], mean(1.5))
    assert found["age(origin)"][0] == pytest.approx(found["root_height"][0] + found["origin_gap"][0])


def test_a_skyride_of_three_dated_taxa_against_quadrature():
    """Two sizes: the youngest with a prior of its own, and the precision held."""
    prior, tips, middle, spread = registered()["skyride"], np.array([0.0, 0.7, 1.9]), np.log(2.5), 0.3
    settings = prior.parameters(Scale(1.0, 3, 1), {LEVEL: True}).settings
    e, w = np.polynomial.hermite_e.hermegauss(6)
    w = w / w.sum()

    def mean(level):
        def log_density(g):
            total = 0.0
            for e1, w1 in zip(e, w):
                for e2, w2 in zip(e, w):  # the second size around the first, as the prior has it: weight 2
                    theta = level + spread * e1, level + spread * e1 + e2 / np.sqrt(8.0)
                    x = np.array([*np.exp(theta), 4.0])
                    drawn = -0.5 * e2 * e2 - 0.5 * np.log(2 * np.pi / 8.0) - theta[1]
                    total += w1 * w2 * np.exp(prior.log_density(g, x, settings) - drawn)
            return np.log(total)

        return ages_by_quadrature(tips, log_density)

    priors = {LEVEL: LogNormal(middle, spread), "precision": 4.0, "clock_rate": Exponential(1.0)}
    tree = TreeModel(prior="skyride", priors=priors)
    found, _, _ = sampled(nothing_observed(3), tips, "JC", tree, generations=600_000, use_data=False)
    assert close(found["root_height"], mean(middle))
    assert not close(found["root_height"], mean(middle + 0.2))
    assert close(found["pop_size_1"], np.exp(middle + spread**2 / 2))
