"""Posteriors of BEAST 1.10.4: every mean and every clade within 4 combined standard errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.terms.uniform import Uniform
from phloem.inference.time.settings import Clade, TreeModel
from phloem.io.alignment import read_alignment
from phloem.io.date_table import read_dates
from statistical.time.time_runs import close, sampled

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parents[2] / "golden" / "time_trees"
SITES = {"kappa": LogNormal(1.0, 1.25), "alpha": Exponential(2.0)}
RATE, SIZE = {"clock_rate": LogNormal(np.log(1e-3), 1.0)}, {"pop_size": LogNormal(np.log(30.0), 1.0)}
APES = Clade("apes", ("Homo_sapiens", "Pan", "Gorilla", "Pongo"), together=True, age=Normal(15.0, 2.0))
SLOW = {"clock_rate": LogNormal(np.log(0.01), 1.0)}
CASES = {
    "a_dengue4_strict_const": TreeModel(priors=SITES | RATE | SIZE),
    "b_dengue4_ucln_const": TreeModel(
        clock="ucln", clock_sd="log-median", priors=SITES | RATE | SIZE | {"clock_sigma": Exponential(3.0)}
    ),
    "c_dengue4_strict_skyline4": TreeModel(prior="skyline", pieces=4, priors=SITES | RATE),
    "d_primates_strict_yule_cal": TreeModel(
        prior="yule", priors=SITES | SLOW | {"birth_rate": Exponential(10.0)}, clades=(APES,)
    ),
    "d_primates_strict_bd_cal": TreeModel(  # as its own numbers say: test_the_relative_death_rate…
        prior="bd",
        priors=SITES | SLOW | {"net_diversification": Exponential(10.0), "relative_death": 1e-9},
        clades=(APES,),
    ),
}
NAMES = {
    "likelihood": "LnL",
    "treeModel.rootHeight": "root_height",
    "treeLength": "tree_length",
    "coalescent": "tree_prior",
    "popSize": "pop_size",
    "clock.rate": "clock_rate",
    "kappa": "kappa",
    "alpha": "alpha",
    "frequencies1": "pi(A)",
    "frequencies2": "pi(C)",
    "frequencies3": "pi(G)",
    "frequencies4": "pi(T)",
    "ucld.sigma": "clock_sigma",
    "meanRate": "mean_rate",
    "yule.birthRate": "birth_rate",
    "bd.meanGrowthRate": "net_diversification",
    "tmrca(apes)": "age(apes)",
    **{f"skyline.popSize{k}": f"pop_size_{k}" for k in range(2, 5)},
    **{f"skyline.groupSize{k}": f"group_size_{k}" for k in range(1, 5)},
}


def posterior(case: str, generations: int = 1_000_000, tree: TreeModel | None = None):
    given = json.loads((GOLDEN / f"{case}.json").read_text())
    alignment = read_alignment(str(GOLDEN / given["data"]["fasta"]))
    heights = np.zeros(alignment.n_taxa)
    if given["tip_dates"]:
        heights = read_dates(GOLDEN / given["tip_dates"], alignment.taxa).ages[0]
    found, clades, _ = sampled(alignment, heights, "HKY+FO+G4", tree or CASES[case], generations=generations)
    return given, found, clades


@pytest.mark.parametrize("case", CASES)
def test_means_and_clades(case):
    given, found, clades = posterior(case)
    checked = 0
    for name, expected in given["parameters"].items():
        if NAMES.get(name) in found:
            assert close(found[NAMES[name]], expected["mean"], expected["mcse"]), name
            checked += 1
    assert checked >= 9
    for clade in given["clades"]:
        if 0.1 < clade["prob"] < 0.9 and clade["mcse"]:
            assert close(clades[frozenset(clade["clade"])], clade["prob"], clade["mcse"]), clade["clade"]


def test_the_relative_death_rate_of_beast_s_primates_was_zero():
    """The case says uniform(0, 1), but its trace has no such column, and neither its input nor its log is
    kept. Its numbers tell: (1) every mean is that of the Yule analysis, which differs in nothing else; (2)
    at a = 0, and nowhere else, growth r given the tree is Gamma(12, 10 + L) with L the tree's length, so
    that E[log p(tree)] = 11 E[log r] - E[r L] with E[r L] = 12 - 10 E[r]. BEAST 1.10.4 takes a rate that is
    not given as 0."""
    bd, yule = (
        json.loads((GOLDEN / f"d_primates_strict_{name}_cal.json").read_text())["parameters"]
        for name in ("bd", "yule")
    )
    assert "bd.relativeDeathRate" not in bd
    for name, one in bd.items():
        other = yule["yule.birthRate" if name == "bd.meanGrowthRate" else name]
        assert abs(one["mean"] - other["mean"]) < 4 * np.hypot(one["mcse"], other["mcse"]), name
    r, tree = bd["bd.meanGrowthRate"], bd["speciation"]
    shape = (r["mean"] / r["sd"]) ** 2  # E[log r] of a gamma with its mean and sd
    log_r = np.log(r["mean"]) - 1 / (2 * shape) - 1 / (12 * shape**2)
    found = 11 * log_r - (12 - 10 * r["mean"])
    error = 11 * r["mcse"] / r["mean"]
    assert abs(found - tree["mean"]) < 4 * np.hypot(error, tree["mcse"])


def test_a_free_relative_death_rate_is_another_posterior():
    """The control: the growth rate is then lower than BEAST's by many standard errors."""
    case = "d_primates_strict_bd_cal"
    free = {**CASES[case].priors, "relative_death": Uniform(0.0, 1.0)}
    given, found, _ = posterior(case, 300_000, replace(CASES[case], priors=free))
    expected = given["parameters"]["bd.meanGrowthRate"]
    assert not close(found["net_diversification"], expected["mean"], expected["mcse"], 8.0)


def test_a_wrong_prior_is_seen():
    case = "a_dengue4_strict_const"
    wrong = TreeModel(priors=SITES | RATE | {"pop_size": LogNormal(np.log(60.0), 1.0)})
    given, found, _ = posterior(case, 300_000, wrong)
    expected = given["parameters"]["popSize"]
    assert not close(found["pop_size"], expected["mean"], expected["mcse"])
