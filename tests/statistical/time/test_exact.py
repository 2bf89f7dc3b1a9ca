"""Without data the sampler must find the priors, and with few taxa the posterior that quadrature finds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.inference.time.settings import Clade, TreeModel
from phloem.tree.dated import random_dated_tree
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


@pytest.mark.parametrize("clock", ["strict", "ucln"])
@pytest.mark.parametrize("name", PRIORS)
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
    if clock == "ucln":  # the prior of rates, whatever is held
        assert close(found["clock_cv"], 1 / 3)


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
