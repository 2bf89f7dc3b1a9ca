"""The sampler's guard: planted errors stop a run with a report; right runs and runs without data go on."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.errors import NumericalError
from phloem.inference.mcmc import guard, sampler, start
from phloem.inference.mcmc.guard import informative, plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel, structure_of_model
from phloem.io.alignment import read_alignment
from phloem.io.newick import parse_newick
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.tree import Tree

ROOT = Path(__file__).resolve().parents[4]
ALIGNMENT = read_alignment(ROOT / "examples/primates.nex")
MODEL = model_for_alignment("HKY+G4", ALIGNMENT)
STRUCTURE = structure_of_model(MODEL)
PLAIN = plain_likelihood([ALIGNMENT], STRUCTURE)


def plant_a_wrong_matrix(monkeypatch):
    """A to C twice as often as the model says in every model that the compiled loop makes: a wrong transition
    matrix, which the guard's own way to the likelihood does not use."""
    right = start.recipes_of

    def wrong(structure):
        recipes = right(structure)
        recipes.base[0, [0, 1], [1, 0]] *= 2
        return recipes

    monkeypatch.setattr(start, "recipes_of", wrong)


class WrongLater(ChainModel):
    """Rates of categories that are 1 % too high, but where the chain begins."""

    def site_model(self, part, values):
        right = super().site_model(part, values)
        begins = np.array_equal(values, self.space.start())
        return right if begins else replace(right, rates=right.rates * 1.01)


def run(prefix=None, structure=STRUCTURE, plain=PLAIN, data=None, **settings):
    given = {"n_runs": 2, "n_chains": 2, "generations": 2000, "sample_every": 20, "check_every": 500}
    chains = ChainSettings(**(given | settings))
    observed = data or observations(ALIGNMENT)
    return sample(observed, structure, chains, prefix and str(prefix), {}, None, None, plain)


def planted(monkeypatch, change):
    """change(run) before every block, change(run after it) → run."""
    right = sampler.advanced
    monkeypatch.setattr(sampler, "advanced", lambda run, *rest: change(run, lambda r: right(r, *rest)))


def test_a_right_run_is_compared_and_goes_through(monkeypatch):
    """Of every run the chains at the start and at the end, and a sample of every so many generations: the
    same ones however the run is cut into blocks."""
    monkeypatch.setattr(guard, "GUARD_EVERY", 1000)

    def asked(check_every: int) -> list[float]:
        tree_lengths = []
        run(
            plain=lambda *row: (tree_lengths.append(row[1].sum()), PLAIN(*row))[1],
            check_every=check_every,
        )
        return sorted(tree_lengths)

    assert len(asked(300)) == 2 * (2 + 4 + 2) and asked(300) == asked(2000)


@pytest.mark.parametrize("patterns", [1, 50, 10_000])
def test_the_plain_path_is_the_reference_in_blocks_of_any_size(patterns, monkeypatch):
    monkeypatch.setattr(guard, "BLOCK_BYTES", patterns * 8 * 4 * 4 * 2 * 12)
    evaluated, right = [], guard.ReferenceEvaluator
    monkeypatch.setattr(guard, "ReferenceEvaluator", lambda p: (evaluated.append(p), right(p))[1])
    samples = run(generations=100, n_runs=1).runs[0].samples
    numbers = dict(zip(("TL", "kappa", "pi(A)", "pi(C)", "pi(G)", "pi(T)", "alpha"), samples.numbers[-1, 2:]))
    frequencies = np.array([numbers[f"pi({s})"] for s in "ACGT"])
    model = MODEL.with_values(
        {"kappa": numbers["kappa"], "alpha": numbers["alpha"], "frequencies": frequencies}
    )
    tree = Tree(ALIGNMENT.taxa, samples.parent[-1], samples.lengths[-1], rooted=False)
    evaluated.clear()
    found = PLAIN(samples.parent[-1], samples.lengths[-1], numbers)
    expected = TreeLikelihood(ALIGNMENT, tree, model, engine="reference")
    assert found == pytest.approx(expected.log_likelihood(), rel=1e-13)
    assert len(evaluated) == -(-expected.n_patterns // patterns)


@pytest.mark.parametrize("chains", [1, 3])
def test_a_wrong_transition_matrix_stops_the_start(chains, tmp_path, monkeypatch):
    plant_a_wrong_matrix(monkeypatch)
    with pytest.raises(NumericalError, match="not that of the reference") as error:
        run(tmp_path / "x", n_chains=chains)
    assert "x.report.json" in str(error.value)
    report = json.loads((tmp_path / "x.report.json").read_text())
    assert report["generation"] == 0 and report["run"] == 1 and report["heat_rank"] == 0
    tree = parse_newick(report["tree"])[0]
    assert set(tree.taxa) == set(ALIGNMENT.taxa) and set(report["numbers"]) >= {
        "TL",
        "kappa",
        "alpha",
        "pi(A)",
    }
    assert report["log_likelihood"] != pytest.approx(report["reference_log_likelihood"], rel=1e-6)


def test_a_wrong_model_stops_the_run():
    """The start is right, what is made of new numbers is not (free rates have no compiled recipe)."""
    structure = structure_of_model(model_for_alignment("JC+R3", ALIGNMENT))
    plain = plain_likelihood([ALIGNMENT], structure)
    run(structure=structure, plain=plain, generations=500)
    with pytest.raises(NumericalError, match="not that of the reference") as error:
        run(structure=WrongLater(structure.parameterisation), plain=plain)
    assert "generation 0:" not in str(error.value)


def test_a_wrong_heated_chain_stops_the_start(monkeypatch):
    right = sampler.new_run

    def wrong(*args):
        made = right(*args)
        made.state.log_likelihood[1] *= 1 + 1e-7
        return made

    monkeypatch.setattr(sampler, "new_run", wrong)
    with pytest.raises(NumericalError, match="heat rank 1, generation 0"):
        run()


def test_a_stale_cache_stops_the_run_and_keeps_what_was_right(monkeypatch, tmp_path):
    """Lengths change in both slots, so that the sampler sees no reason to compute messages anew."""

    def stale(run, go):
        if run.generation >= 1000:
            run.state.lengths[...] *= 1.1
        return go(run)

    monkeypatch.setattr(guard, "GUARD_EVERY", 1)  # later moves would mend what is stale
    planted(monkeypatch, stale)
    with pytest.raises(NumericalError, match="not that of the reference"):
        run(tmp_path / "x")
    assert json.loads((tmp_path / "x.report.json").read_text())["generation"] > 1000
    lines = (tmp_path / "x.run1.p").read_text().splitlines()
    assert lines[-1].split("\t")[0] == "1000"
    monkeypatch.undo()
    assert run(tmp_path / "x").resumed_at == 1000


def test_a_constant_likelihood_stops_the_run(monkeypatch):
    def constant(run, go):
        after = go(run)
        after.samples.numbers[:, 0] = after.samples.numbers[0, 0]
        return after

    planted(monkeypatch, constant)
    with pytest.raises(NumericalError, match="stays the same while trees change"):
        run()


def test_a_wrong_resume_is_stopped(tmp_path, monkeypatch):
    run(tmp_path / "x", generations=1000)
    plant_a_wrong_matrix(monkeypatch)
    with pytest.raises(NumericalError, match="generation 1,000"):
        run(tmp_path / "x")


@pytest.mark.parametrize(("factor", "stops"), [(1 + 1e-10, False), (1 + 3e-8, True), (float("nan"), True)])
def test_how_much_it_takes(factor, stops):
    with pytest.raises(NumericalError) if stops else nullcontext():
        run(plain=lambda *row: factor * PLAIN(*row), generations=100)


def test_runs_without_data_are_exempt(monkeypatch):
    with monkeypatch.context() as planted_here:
        plant_a_wrong_matrix(planted_here)
        run(use_data=False)
    observed = observations(ALIGNMENT)
    missing = replace(
        observed, codes=np.zeros_like(observed.codes[:, :1]), code_sets=np.ones((1, 4)), weights=np.ones(1)
    )
    assert informative(observed) and not informative(missing)
    result = run(plain=lambda *row: 0.0, data=missing)
    assert np.allclose(result.runs[0].samples.numbers[:, 0], 0, atol=1e-12)
    one_taxon = replace(
        missing, codes=np.array([[0]] * 11 + [[1]], np.int32), code_sets=np.array([[1.0] * 4, [1, 0, 0, 0]])
    )
    assert not informative(one_taxon)


def test_the_command_is_guarded(monkeypatch, tmp_path):
    from phloem.analysis import mcmc

    plant_a_wrong_matrix(monkeypatch)
    chains = ChainSettings(generations=6000, sample_every=50)
    settings = mcmc.McmcSettings(
        str(ROOT / "examples/primates.nex"), "HKY+G4", prefix=str(tmp_path / "x"), chains=chains
    )
    with pytest.raises(NumericalError, match="not that of the reference"):
        mcmc.run_mcmc(settings)
    assert [file.name for file in tmp_path.iterdir()] == ["x.report.json"]
    monkeypatch.undo()
    result = mcmc.run_mcmc(replace(settings, redo=True))
    assert result.files and not (tmp_path / "x.report.json").exists()


def test_a_wrong_prior_stops_the_start(monkeypatch, tmp_path):
    """Of kappa, by 1 %: nothing but the guard would tell. Chains that ignore the data, too."""
    right = start.block_table

    def wrong(space, priors):
        table = right(space, priors)
        return table._replace(numbers=table.numbers * 1.01)

    run(generations=100)
    run(generations=100, use_data=False)
    monkeypatch.setattr(start, "block_table", wrong)
    for use_data in (True, False):
        with pytest.raises(NumericalError, match="the log prior is not that of the reference"):
            run(tmp_path / str(use_data), generations=100, use_data=use_data)
        report = json.loads((tmp_path / f"{use_data}.report.json").read_text())
        assert abs(report["log_prior"] - report["reference_log_prior"]) > 1e-3


@pytest.mark.parametrize("chain", [0, 1])
def test_a_chain_that_stands_still_stops_the_run(chain, monkeypatch):
    """Planted: its prior is no number, so that every proposal is worse. The control: all are right."""
    monkeypatch.setattr(guard, "MOST_IN_VAIN", 500)
    run()

    def stuck(run, go):
        if run.generation >= 1000:
            run.state.log_prior[run.state.rank == chain] = np.nan
        return go(run)

    planted(monkeypatch, stuck)
    with pytest.raises(NumericalError, match=f"heat rank {chain} has accepted none of its last"):
        run(prefix=None, n_chains=2, swap_every=10**9)
