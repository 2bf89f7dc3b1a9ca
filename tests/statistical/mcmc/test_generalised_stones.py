"""Generalised stepping stones against exact marginal likelihoods, with planted errors.

Of characters that nobody knows the likelihood is 1, and so is the marginal likelihood, whatever the priors:
then all that is left is whether a working distribution is normalised over numbers, lengths and topologies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.statistical.mcmc.test_marginal_likelihood import FOUR, RATE, THREE, exact

from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.gamma import Gamma
from phloem.errors import NumericalError
from phloem.inference.mcmc import run as run_module
from phloem.inference.mcmc import start as start_module
from phloem.inference.mcmc import stones
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.records import PRIOR
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.stones import marginal_likelihood
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.mcmc.working_fit import fit_working
from phloem.model.grammar import parse_model
from phloem.tree.tree import Tree

JC = structure_of_model(parse_model("JC", datatype="dna"))
SETTINGS = ChainSettings(
    seed=5, n_chains=1, sample_every=20, generations=16_000, priors=Priors(ExponentialPrior(RATE))
)
STONES = {"stones": 5, "stone_shape": 1.0, "generations": 24_000}
WITH_PAIR = Tree(("t0", "t1", "t2", "t3"), np.array([5, 4, 5, 4, 5, -1]), np.full(6, 0.1), rooted=False)


def observed(rows: list[str]) -> Observations:
    taxa = tuple(f"t{i}" for i in range(len(rows)))
    codes = np.array([["ACGT?".index(x) for x in row] for row in rows], np.int32)
    return Observations(taxa, codes, np.vstack([np.eye(4), np.ones(4)]), np.ones(codes.shape[1]))


def posterior(data, structure, settings=SETTINGS, tree=None):
    """A working distribution, and settings of stones from it."""
    runs = sample(data, structure, settings, start_tree=tree).runs
    drawn = [run.samples for run in runs]
    working = fit_working(structure, settings, drawn, [samples.n // 4 for samples in drawn])
    return working, replace(settings, **STONES, working=working)


def estimate(data, structure, settings, tree=None):
    runs = sample(data, structure, settings, start_tree=tree).runs
    return marginal_likelihood([run.samples for run in runs], stones.ladder(settings))


@pytest.fixture(scope="module")
def of_four():
    return posterior(observed(FOUR), JC)


@pytest.mark.parametrize(("rows", "chains"), [(THREE, 1), (FOUR, 2)])
def test_the_estimate_is_the_exact_value(rows, chains):
    working, settings = posterior(observed(rows), JC)
    found, value = estimate(observed(rows), JC, replace(settings, n_chains=chains)), exact(rows)
    assert working.n_draws > 1000
    assert 0.0 < found.error < 0.03  # of plain stones with three times the generations: 0.08
    assert abs(found.log - value) < 4 * found.error
    assert found.log == pytest.approx(sum(s.log_ratio for s in found.stones))
    assert found.stones[-1].power == 0.0 and found.stones[0].log_likelihood < 0.0


def test_of_one_topology_too():
    """The three topologies' marginal likelihoods, of which this is one, add up to three times that of all."""
    settings = replace(SETTINGS, fixed_topology=True)
    each = []
    for pair in ((1, 3), (2, 3), (1, 2)):
        parent = np.where(np.isin(np.arange(6), pair), 4, 5)
        parent[5] = -1
        tree = replace(WITH_PAIR, parent=parent)
        working, own = posterior(observed(FOUR), JC, settings, tree)
        assert working.splits is None
        each.append(estimate(observed(FOUR), JC, own, tree))
    whole = np.log(np.mean(np.exp([one.log for one in each])))
    assert abs(whole - exact(FOUR)) < 4 * max(one.error for one in each) < 0.12


@pytest.mark.parametrize(
    ("model", "n_parts", "priors"),
    [
        ("GTR+I+G4", 1, ()),
        ("HKY+G4", 2, ("alpha=uniform(0.1,300)", "kappa=dirichlet(2)")),  # alpha is sampled to 200
    ],
)
def test_what_nobody_knows_has_marginal_likelihood_1(model, n_parts, priors):
    parsed = parse_model(model, datatype="dna")
    parts = [PartModel(f"p{i}", parsed, 1, 1) for i in range(n_parts)]
    structure = structure_of_parts(parts, Linkage(lengths="unlinked") if n_parts > 1 else None)
    data = [observed(["?"] * 6)] * n_parts
    of_prior = replace(SETTINGS, priors=replace(SETTINGS.priors, others=priors), seed=3)
    working, settings = posterior(data, structure, of_prior)
    assert any(len(halves) > 10 for halves in working.splits.values())
    found = estimate(data, structure, replace(settings, generations=36_000))
    assert 0.0 < found.error < 0.25
    assert abs(found.log) < 4 * found.error


def test_a_working_distribution_that_is_not_normalised_is_noticed(of_four):
    working, settings = of_four
    over = replace(working, constant=working.constant + 0.3)
    found = estimate(observed(FOUR), JC, replace(settings, working=over))
    assert abs(found.log - exact(FOUR)) > 8 * found.error


def test_splits_without_the_topologies_prior_are_noticed(of_four):
    """Probabilities of splits in place of their ratios to those under uniform topologies."""
    working, settings = of_four
    bare = {clade: {h: x - np.log(3) for h, x in own.items()} for clade, own in working.splits.items()}
    found = estimate(observed(FOUR), JC, replace(settings, working=replace(working, splits=bare)))
    assert abs(found.log - exact(FOUR)) > 8 * found.error


def far_off(working):
    """Branches half as long as they should be."""
    lengths = {
        clade: tuple(replace(own, gamma=Gamma(own.gamma.shape, 2 * own.gamma.rate)) for own in sets)
        for clade, sets in working.lengths.items()
    }
    return replace(working, lengths=lengths)


def test_far_from_the_posterior_it_costs_precision_alone(of_four):
    working, settings = of_four
    found = estimate(observed(FOUR), JC, replace(settings, working=far_off(working)))
    assert abs(found.log - exact(FOUR)) < 4 * found.error < 0.6


def test_chains_that_forget_the_working_distribution_are_noticed(of_four, monkeypatch):
    monkeypatch.setattr(run_module, "WORKING", PRIOR)  # the prior gets its power
    working, settings = of_four
    found = estimate(observed(FOUR), JC, replace(settings, working=far_off(working)))
    assert abs(found.log - exact(FOUR)) > 8 * found.error


def test_the_guard_compares_it(of_four, monkeypatch):
    right = start_module.working_table

    def wrong(*told):
        table = right(*told)
        return table._replace(lengths=table.lengths * [1.0, 1.01, 1.0])

    monkeypatch.setattr(start_module, "working_table", wrong)
    with pytest.raises(NumericalError, match="log working density is not that of the reference"):
        estimate(observed(FOUR), JC, of_four[1])
