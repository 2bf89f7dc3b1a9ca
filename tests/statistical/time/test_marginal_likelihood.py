"""Marginal likelihoods of dated trees by stepping stones against quadrature, with planted errors; as a user
has them, killed and resumed."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, qmc

from phloem.analysis.stones import bayes_factors
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.traits import TipTraits
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.tree_priors import constant
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.stones import Ladder, marginal_likelihood
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time import run as run_module
from phloem.inference.time.draws import of_all_data
from phloem.inference.time.sampler import sample
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.inference.time.traits import TraitModel
from phloem.likelihood.model_for_alignment import model_for_alignment
from statistical.time.test_exact import histories
from statistical.time.time_runs import killed_after, nothing_observed

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parents[2] / "golden" / "time_trees"
THREE = json.loads((GOLDEN / "exact_quadrature_3taxa.json").read_text())
CLASSES = {"xxx": "AAA", "xxy": "AAC", "xyx": "ACA", "yxx": "CAA"}
SETTINGS = TimeSettings(seed=3, stones=16, generations=240_000, sample_every=20)


def estimate(alignment, tips, tree: TreeModel, trait=None, of=of_all_data):
    structure = structure_of_model(model_for_alignment("JC", alignment, "median"), alignment.n_sites)
    bounds = np.stack([tips, tips], axis=1)
    model = time_model(structure, tree, alignment.taxa, bounds, float("nan"), trait)
    runs = sample(observations(alignment), model, SETTINGS).runs
    return marginal_likelihood([of(run.columns, run.samples) for run in runs], SETTINGS.ladder)


def dengue(case: str):
    """An alignment with the patterns of a case, and its tips' heights."""
    given = THREE[case]
    columns = [CLASSES[kind] * n for kind, n in given["pattern_class_counts"].items()]
    rows = {taxon: "".join(c[i::3] for c in columns) for i, taxon in enumerate(given["taxa"])}
    return alignment_from_sequences(rows, alphabet("dna")), np.array(given["tip_heights"])


TIPS = np.array([0.0, 0.7, 1.9])
COUNTS = {"AAA": 50, "AAC": 7, "ACA": 4, "CAA": 3, "ACG": 2}
SIZE, MIDDLE, SPREAD = 2.0, np.log(0.1), 0.6  # of the population; of the logarithm of the clock's rate


def by_quadrature(besides=lambda tree: 0.0) -> float:
    """Log marginal likelihood of COUNTS under JC, constant size, and a strict clock of log-normal rate.
    besides: of a tree, what else adds to its log-likelihood."""
    e, w = np.polynomial.hermite_e.hermegauss(20)
    rates, weights = np.exp(MIDDLE + SPREAD * e), w / w.sum()
    values = []
    for tree, weight in histories(TIPS):
        g = Genealogy(tree.heights, tree.order, 3, np.zeros(0, np.int64), tree.parent)
        prior = constant.log_density(g, np.array([SIZE]), np.zeros(0))
        length = tree.heights[tree.parent[:3]] - tree.heights[:3]
        length[tree.parent[:3] == 4] += tree.heights[4] - tree.heights[3]  # from the younger joining
        value = columns(np.exp(-4.0 / 3.0 * rates[:, None] * length))
        values.append(np.log(weight) + prior + besides(tree) + np.logaddexp.reduce(value + np.log(weights)))
    return float(np.logaddexp.reduce(values))


STATES, MOVES = ("x", "y", "x"), 0.4  # of the tips; changes of a line's state for a unit of time


def of_trait(tree) -> float:
    """The likelihood of STATES, two that are as likely at the root, summed over the two inner nodes."""
    length = tree.heights[tree.parent[:-1]] - tree.heights[:-1]
    other = 0.5 * -np.expm1(-2 * MOVES * length)
    total = 0.0
    for inner in itertools.product("xy", repeat=2):
        states = (*STATES, *inner)
        same = np.array([states[x] == states[tree.parent[x]] for x in range(4)])
        total += 0.5 * np.where(same, 1 - other, other).prod()
    return float(np.log(total))


SPREAD_RATE = 0.3  # of the exponential prior of ucln's spread, which so is wide


def of_branch_rates(n: int = 1000) -> float:
    """As by_quadrature, of ucln: the mean over n draws of its numbers and four branches' rates, from a
    sequence that fills their space evenly, and another one at each history."""
    points = qmc.Sobol(6, seed=5).random(1 << 17)
    normal = norm.ppf(points[:, :5])
    spread = np.sqrt(np.log1p((-np.log1p(-points[:, 5]) / SPREAD_RATE) ** 2))[:, None]
    middle = np.exp(MIDDLE + SPREAD * normal[:, :1])
    rates = middle * np.exp(spread * normal[:, 1:] - spread**2 / 2)
    values = []
    for k, (tree, weight) in enumerate(histories(TIPS)):
        g = Genealogy(tree.heights, tree.order, 3, np.zeros(0, np.int64), tree.parent)
        prior = constant.log_density(g, np.array([SIZE]), np.zeros(0))
        own = rates[np.arange(k * n, (k + 1) * n) % len(rates)]
        length = own * (tree.heights[tree.parent[:4]] - tree.heights[:4])
        length[:, np.flatnonzero(tree.parent[:3] == 4)] += length[:, 3:]
        value = np.logaddexp.reduce(columns(np.exp(-4.0 / 3.0 * length[:, :3]))) - np.log(n)
        values.append(np.log(weight) + prior + value)
    return float(np.logaddexp.reduce(values))


def columns(e) -> np.ndarray:
    """(n,) log-likelihoods; e: (n, 3) of the branches of three tips."""
    p = np.where(np.eye(4, dtype=bool), 0.25 + 0.75 * e[..., None, None], 0.25 - 0.25 * e[..., None, None])
    total = np.zeros(len(e))
    for column, count in COUNTS.items():
        own = [p[:, k, :, "ACGT".index(x)] for k, x in enumerate(column)]
        total += count * np.log(0.25 * np.prod(own, axis=0).sum(axis=-1))
    return total


def estimate_of_rates(clock="strict", given=(), **more):
    rows = {f"t{k}": "".join(column[k] * n for column, n in COUNTS.items()) for k in range(3)}
    priors = {"pop_size": SIZE, "clock_rate": LogNormal(float(MIDDLE), SPREAD)} | more
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    return estimate(alignment, TIPS, TreeModel(clock, priors=priors), *given)


@pytest.mark.parametrize("case", THREE)
def test_three_dated_taxa_with_everything_held_against_quadrature(case):
    tree = TreeModel(priors={"pop_size": THREE[case]["Ne"], "clock_rate": THREE[case]["rate"]})
    found, exact = estimate(*dengue(case), tree), THREE[case]["log_marginal_likelihood"]
    assert 0.0 < found.error < 0.1
    assert abs(found.log - exact) < 4 * found.error
    assert max(abs(one - exact) for one in found.per_run) < 6 * found.error


def test_a_rate_that_is_sampled_against_quadrature():
    found = estimate_of_rates()
    assert 0.0 < found.error < 0.08
    assert abs(found.log - by_quadrature()) < 4 * found.error


def test_a_trait_is_data_too():
    """Alignment and trait together; planted: what the alignment alone says at every stone."""
    possible = np.array([[s == t for t in "xy"] for s in STATES])
    tips = TipTraits("place", ("t0", "t1", "t2"), ("x", "y"), possible)
    trait, exact = TraitModel(tips), by_quadrature(of_trait)
    found = estimate_of_rates(given=(trait,), trait_clock=MOVES)
    assert 0.0 < found.error < 0.08 and abs(found.log - exact) < 4 * found.error
    planted = estimate_of_rates(given=(trait, lambda columns, samples: samples), trait_clock=MOVES)
    assert abs(planted.log - exact) > 10 * planted.error


def test_cold_ones_of_coupled_chains_find_the_same(monkeypatch):
    monkeypatch.setitem(globals(), "SETTINGS", replace(SETTINGS, n_chains=3, heating=0.5))
    found = estimate_of_rates()
    assert 0.0 < found.error < 0.08
    assert abs(found.log - by_quadrature()) < 4 * found.error


def test_branch_rates_that_hardly_differ_change_little():
    """A clock's spread that is held near 0 is a strict clock."""
    found = estimate_of_rates("ucln", clock_cv=1e-3)
    assert abs(found.log - by_quadrature()) < 4 * found.error


def test_branch_rates_that_differ_against_quadrature_and_draws():
    """The control: a strict clock has another marginal likelihood."""
    found, exact = estimate_of_rates("ucln", clock_cv=Exponential(SPREAD_RATE)), of_branch_rates()
    assert 0.0 < found.error < 0.1
    assert abs(found.log - exact) < 4 * found.error < abs(by_quadrature() - exact)


def test_data_that_say_nothing_have_a_likelihood_of_one():
    tree = TreeModel("ucln", priors={"clock_rate": LogNormal(0.0, 1.0)})
    found = estimate(nothing_observed(3), TIPS, tree)
    assert found.log == pytest.approx(0.0, abs=1e-12) and found.error == pytest.approx(0.0, abs=1e-12)


def test_chains_at_the_wrong_power_are_noticed(monkeypatch):
    """They sample one stone too high."""
    right = Ladder.of

    def one_too_high(ladder, generation):
        power, adapts, until = right(ladder, generation)
        k = int(np.argmin(abs(ladder.powers - power)))
        return float(ladder.powers[max(k - 1, 0)]), adapts, until

    monkeypatch.setattr(Ladder, "of", one_too_high)
    found = estimate_of_rates()
    assert abs(found.log - by_quadrature()) > 8 * found.error


def test_chains_that_forget_the_power_are_noticed(monkeypatch):
    right = run_module.stretch_after
    monkeypatch.setattr(run_module, "stretch_after", lambda *of: replace(right(*of), power=1.0))
    found = estimate_of_rates()
    assert abs(found.log - by_quadrature()) > 8 * found.error


def command(prefix: Path, *more: str) -> list[str]:
    data = GOLDEN / "data"
    return [
        sys.executable, "-m", "phloem", "time", str(data / "dengue4.fasta"), "--dates",
        str(data / "dengue4.dates.tsv"), "--model", "HKY+FO+G4", "--clock", "ucln", "--prefix", str(prefix),
        "--stepping-stone", "8", "--generations", "60000", "--sample-every", "50",
        "--check-every", "5000", *more,
    ]  # fmt: skip


def test_killed_and_resumed_and_compared(tmp_path):
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    prefix = tmp_path / "killed"
    log = Path(f"{prefix}.ss.run1.log")
    for lines in (60, 300, 900):  # of 1,200: before the first stone, between stones
        killed_after(command(prefix), log, lines)
    done = subprocess.run(command(prefix), check=True, capture_output=True, text=True)
    assert "resumed at generation" in " ".join(done.stdout.split())
    for kind in ("run1.log", "run1.trees", "run2.log", "run2.trees", "tsv"):
        assert Path(f"{prefix}.ss.{kind}").read_text() == (tmp_path / f"whole.ss.{kind}").read_text()
    names = {file.name for file in tmp_path.iterdir() if file.name.startswith("killed")}
    of_runs = [f"run{r}.{kind}" for r in (1, 2) for kind in ("log", "trees")]
    kept = ["tsv", "json", "ckp.npz", "ckp.run1.samples", "ckp.run2.samples"]
    assert names - {"killed.ss.lock"} == {f"killed.ss.{rest}" for rest in (*of_runs, *kept)}
    more = subprocess.run(command(prefix, "--generations", "80000"), capture_output=True, text=True)
    assert more.returncode == 2 and "finished" in more.stderr
    subprocess.run(command(tmp_path / "strict", "--clock", "strict"), check=True, capture_output=True)
    best, other = bayes_factors([str(tmp_path / "strict"), f"{prefix}.ss"])
    assert {best.model, other.model} == {
        f"HKY+FO+G4; {clock} clock; constant" for clock in ("strict", "ucln")
    }
