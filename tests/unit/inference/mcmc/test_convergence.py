"""Diagnosis of runs that agree, that do not, and that are stuck."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.errors import InputError, NumericalError
from phloem.inference.mcmc.convergence import (
    Diagnosis,
    _forecast,
    diagnose,
    frozen_warnings,
    kept,
    looks_at,
    weak_evidence,
)
from phloem.inference.mcmc.guard import _impossible_states
from phloem.inference.mcmc.move_table import chosen_moves
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.sampler import expected_end, sample
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.settings import (
    ChainSettings,
    Convergence,
    ExponentialPrior,
    GammaDirichletPrior,
    Priors,
    parse_length_prior,
)
from phloem.inference.mcmc.structure import ChainModel, structure_of_model
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted

TAXA = ("a", "b", "c", "d")
NAMES = ("LnL", "LnPr", "TL")
# ((a,b),c,d) and ((a,c),b,d) in phloem.tree's order
AB = np.array([4, 4, 5, 5, 5, -1], np.int32)
AC = np.array([4, 5, 4, 5, 5, -1], np.int32)


def samples_of(rng, n: int, share_ab: float, shift: float = 0.0) -> Samples:
    ab = rng.random(n) < share_ab
    return Samples(
        np.arange(n) * 10,
        rng.normal(size=(n, 3)) + [0, 0, shift],
        np.where(ab[:, None], AB, AC).astype(np.int32),
        np.where(np.arange(6) < 5, 0.1, 0.0) * np.ones((n, 1)),
        np.zeros((n, 0, 6)),
    )


def verdict(shares=(0.5, 0.5), shift=0.0, n=4000):
    rng = np.random.default_rng(1)
    runs = [samples_of(rng, n, shares[0]), samples_of(rng, n, shares[1], shift)]
    return diagnose(runs, NAMES, TAXA, 0, Convergence(asdsf=0.02))


def test_runs_that_agree():
    found = verdict()
    assert found.met and found.asdsf < 0.02 and found.ess > 3000 and found.r_hat < 1.01


def test_runs_that_differ_in_topology_only():
    found = verdict(shares=(0.8, 0.4))
    assert not found.met and found.asdsf > 0.1 and found.r_hat > 1.05
    assert found.limiting == "a split of 2 taxa"


def test_runs_that_differ_in_a_number_only():
    found = verdict(shift=1.0)
    assert not found.met and found.r_hat > 1.1 and found.asdsf < 0.02


def test_too_few_samples_are_no_convergence():
    assert not verdict(n=3).met


def test_burn_in_covers_the_tuning():
    s = samples_of(np.random.default_rng(0), 100, 0.5)
    assert kept(s, 0.25, 0) == 25 and kept(s, 0.25, 500) == 51 and kept(s, 0.0, 0) == 1


def jukes_cantor() -> ChainModel:
    return structure_of_model(parse_model("JC", datatype="dna"))


def random_data(n_tips=5) -> Observations:
    codes = np.random.default_rng(0).integers(0, 4, (n_tips, 30)).astype(np.int32)
    return Observations(tuple("abcdefgh"[:n_tips]), codes, np.eye(4), np.ones(30))


def test_until_converged_stops_early_and_says_why():
    settings = ChainSettings(generations=400_000, sample_every=20, check_every=10_000, until_converged=True)
    result = sample(random_data(), jukes_cantor(), settings)
    assert result.diagnosis.met and result.runs[0].generation < 400_000
    assert result.diagnosis.ess > 200 and result.diagnosis.asdsf < 0.01 and result.diagnosis.r_hat < 1.01


def test_frozen_chains_are_noticed():
    run = new_run(0, random_data(), jukes_cantor(), ChainSettings(tuning_generations=0))
    run = advanced(run, 8000)
    assert frozen_warnings([run]) == []
    nni = [m.name for m in run.moves].index("nni")
    run.state.accepted[:, nni] = 0
    run.state.tried[:, nni] = 5000
    assert frozen_warnings([run]) == ["run 1: move nni was tried 5,000 times and never accepted"]
    run.state.accepted[:] = 0
    run.state.swaps_accepted[:] = 0
    text = "\n".join(frozen_warnings([run]))
    assert "heat rank 3 accepted nothing" in text and "never swapped" in text


def drawn_trees(rng, stays: float, n: int, start: np.ndarray | None = None) -> Samples:
    """Of six taxa: one of two trees, the last one kept with a probability; numbers that all differ."""
    trees = np.array([[6, 6, 7, 7, 8, 8, 9, 9, 9, -1], [6, 7, 6, 7, 8, 8, 9, 9, 9, -1]], np.int32)
    which = np.cumsum(rng.random(n) > stays) % 2
    parent = trees[which]
    parent[0] = trees[0] if start is None else start
    lengths = np.where(parent >= 0, 0.1, 0.0)
    return Samples(np.arange(n) * 10, rng.normal(size=(n, 3)), parent, lengths, np.zeros((n, 0, 10)))


@pytest.mark.parametrize(("stays", "warned"), [(0.5, False), (0.999, True)])
def test_a_split_that_hardly_comes_and_goes_is_told(stays, warned):
    rng, taxa = np.random.default_rng(1), tuple("abcdef")
    other = np.array([6, 7, 8, 6, 7, 8, 9, 9, 9, -1], np.int32)
    runs = [drawn_trees(rng, stays, 4000), drawn_trees(rng, stays, 4000, other)]
    told = weak_evidence(runs, taxa, 100)
    assert len(told) == warned and all("rarely exchanged" in text for text in told)


def test_runs_that_start_alike_are_told():
    rng, taxa = np.random.default_rng(1), tuple("abcdef")
    other = np.array([6, 7, 8, 6, 7, 8, 9, 9, 9, -1], np.int32)
    for start, shared in ((None, True), (other, False)):
        runs = [drawn_trees(rng, 0.5, 400), drawn_trees(rng, 0.5, 400, start)]
        told = weak_evidence(runs, taxa, 100)
        assert any("share 100% of their splits" in text for text in told) == shared


@pytest.mark.parametrize(
    ("model", "priors", "told"),
    [
        ("F81+F{0.5,0.5,0,0}", Priors(), "30 of 30 site patterns of part 'all' have states of frequency 0"),
        ("K80", Priors(others=("kappa=dirichlet(1e308)",)), "log prior of kappa"),
    ],
)
def test_an_impossible_start_is_explained(model, priors, told):
    structure = structure_of_model(parse_model(model, datatype="dna"))
    with pytest.raises(NumericalError, match="chain 1 cannot start") as error:
        new_run(0, random_data(), structure, ChainSettings(priors=priors))
    assert told in str(error.value)


def test_an_impossible_start_names_the_site_in_the_file(tmp_path):
    """Of a part, of characters by their number of states, of codons; not of columns that --sites chose."""
    (tmp_path / "x.fa").write_text(">a\nTTACACGT\n>b\nTTACCCAT\n>c\nTTACACAT\n")
    dna = {"part": ["JC, one = 1-2", "F81+F{0.5,0.5,0,0}, two = DNA, 3-8"], "datatype": "dna"}
    codons = "GY94+F{" + ",".join(["0"] + [repr(1 / 60)] * 60) + "}"
    (tmp_path / "c.fa").write_text(">a\nTTCTTCAAA\n>b\nTTCTTCTTC\n>c\nTTCTTCTTC\n")
    cases = [
        ("x.fa", dna, "G of a at site 7 of the file"),
        ("x.fa", {"model": "F81+F{0.5,0.5,0,0}", "sites": "3-8"}, "G of a. "),
        ("c.fa", {"model": codons, "datatype": "codon"}, "state 1 of a at site 7 of the file"),
    ]
    for file, options, told in cases:
        data = chain_input(mcmc_settings({"alignment": str(tmp_path / file), **options}))
        values = data.structure.space.start()
        found = [
            text
            for k, own in enumerate(data.observed())
            for text in _impossible_states(data.structure, k, own, values)
        ]
        assert len(found) == 1 and told in f"{found[0]}. "


def test_priors_and_moves_are_read_and_checked():
    assert parse_length_prior("exponential(10)") == ExponentialPrior(10.0)
    assert parse_length_prior(" GammaDir(1, 0.1, 1, 1) ") == GammaDirichletPrior()
    for text in ("gammadir(1,2)", "exponential(0)", "uniform(1,0)", "exponential(10", "exponential(a)"):
        with pytest.raises(InputError):
            parse_length_prior(text)
    with pytest.raises(InputError, match="no move 'sqr'"):
        chosen_moves(jukes_cantor(), 5, {"sqr": 1.0})
    nan = float("nan")
    wrong_ones = ({"n_runs": 0}, {"n_runs": 1.5}, {"burn_in": 1.0}, {"heating": -1.0}, {"heating": nan})
    for wrong in (*wrong_ones, {"seed": -1}, {"seed": 0.5}, {"p_extend": 1.0}, {"threads": 2.5}):
        with pytest.raises(InputError):
            ChainSettings(**wrong)


def test_three_taxa_have_one_topology():
    run = advanced(new_run(0, random_data(3), jukes_cantor(), ChainSettings(sample_every=10)), 200)
    assert np.all(run.samples.parent == run.samples.parent[0])
    assert {m.name for m in run.moves} == {"branch_multiplier", "node_slider", "tree_multiplier"}


def test_tuning_reaches_its_targets_and_then_stops():
    run = new_run(0, random_data(8), jukes_cantor(), ChainSettings(tuning_generations=30_000))
    run = advanced(run, 30_000)
    tuned, tried, accepted = run.state.tuning.copy(), run.state.tried.copy(), run.state.accepted.copy()
    run = advanced(run, 30_000)
    assert np.array_equal(tuned, run.state.tuning)
    rate = (run.state.accepted - accepted)[0] / (run.state.tried - tried)[0]
    for m, move in enumerate(run.moves):
        if move.move.target:
            assert abs(rate[m] - move.move.target) < 0.08, (move.name, rate[m])


def swaps_tried(**settings) -> np.ndarray:
    observed = Observations(("a", "b", "c", "d"), np.zeros((4, 1), np.int32), np.ones((1, 4)), np.ones(1))
    chains = ChainSettings(use_data=False, n_runs=1, n_chains=3, sample_every=10, **settings)
    structure = structure_of_model(parse_model("JC", datatype="dna"))
    return advanced(advanced(new_run(0, observed, structure, chains), 13), 87).state.swaps_tried


def test_swaps_are_tried_every_so_many_generations():
    """Whatever the pieces in which the chains are advanced; the control is a try in every generation."""
    assert swaps_tried().sum() == 100 and swaps_tried(swap_every=7).sum() == 14
    assert swaps_tried(swap_every=101).sum() == 0
    assert not np.array_equal(swaps_tried(), swaps_tried(swap_seed=5))
    assert np.array_equal(swaps_tried(), swaps_tried(swap_seed=1))


def test_a_forecast_goes_by_the_threshold_that_is_furthest_away():
    """ESS grows with the samples, R-hat - 1 falls as they grow, ASDSF as their root."""
    now = Diagnosis(1000, 100, 0.03, 50.0, 1.02, "TL", False)
    assert _forecast(now, Convergence(ess=100, asdsf=1, r_hat=1.1)) == 2000
    assert _forecast(now, Convergence(ess=1, asdsf=0.01, r_hat=1.1)) == pytest.approx(9000)
    assert _forecast(now, Convergence(ess=1, asdsf=1, r_hat=1.01)) == pytest.approx(2000)
    assert _forecast(replace(now, asdsf=np.nan), Convergence(ess=100, r_hat=1.1)) == 2000  # one run
    assert np.isnan(_forecast(now, Convergence(ess=1, r_hat=1.0)))  # never met
    found = verdict()
    assert found.forecast == found.generation and verdict(shares=(0.8, 0.4)).forecast > found.generation
    assert (
        expected_end(ChainSettings(until_converged=True, check_every=300), replace(now, forecast=1000))
        == 1200
    )
    assert (
        expected_end(ChainSettings(generations=900, until_converged=True), replace(now, forecast=1000)) == 900
    )
    assert expected_end(ChainSettings(until_converged=True), now) is None
    assert expected_end(ChainSettings(), now) == 1_000_000


def test_looks_are_a_share_of_the_run_and_the_same_after_a_resume():
    looks = [g for g in range(100, 1_000_001, 100) if looks_at(g, 100, 1_000_000)]
    assert looks[:10] == list(range(100, 1001, 100)) and looks[-1] == 1_000_000
    assert sum(looks) < 25 * 1_000_000 and len(looks) < 250
    assert max(np.diff(looks)[20:] / np.array(looks)[20:-1]) < 0.11
    assert not looks_at(150, 100, 1_000_000) and looks_at(150, 100, 150)


def test_of_a_prior_the_rare_splits_count():
    """No split is above the least frequency that data would make one; without them nothing would ever end."""
    taxa = tuple("abcdefghijkl")
    rng, trees = np.random.default_rng(1), []
    for _ in range(2):
        drawn = [uniform_unrooted(12, rng) for _ in range(2000)]
        trees.append(np.array([tree.parent for tree in drawn], np.int32))
    n = trees[0].shape[1]
    runs = [
        Samples(
            np.arange(2000), rng.normal(size=(2000, 3)), parent, np.ones((2000, n)), np.zeros((2000, 0, n))
        )
        for parent in trees
    ]
    found = diagnose(runs, NAMES, taxa, 0, Convergence())
    assert found.met and 0 < found.asdsf < 0.01
