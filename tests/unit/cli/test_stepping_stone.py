"""`phloem mcmc --stepping-stone` and `phloem bayes-factors` as a user meets them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.draws import read_draws
from phloem.analysis.stones import bayes_factors, of_same_data
from phloem.analysis.summarise import SummariseSettings, run_summarise
from phloem.cli import build_app
from phloem.errors import InputError
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.stones import LEAST_ESS, ladder, stretches

PRIMATES = Path(__file__).resolve().parents[3] / "examples/primates.nex"
SHORT = ["--stepping-stone", "4", "--generations", "5000", "--sample-every", "20", "--chains", "1"]


def command(*arguments: str):
    return CliRunner().invoke(build_app(), list(arguments))


def analysed(prefix: Path, model: str, *more: str):
    return command("mcmc", str(PRIMATES), *SHORT, "--model", model, "--prefix", str(prefix), *more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stones")
    done = [analysed(folder / model, model) for model in ("JC", "GTR+G4")]
    assert [result.exit_code for result in done] == [0, 0], done[0].output
    return folder, done


def test_the_estimate_its_table_and_its_files(finished):
    folder, (jc, _) = finished
    record = json.loads((folder / "JC.ss.json").read_text())
    rows = [line.split("\t") for line in (folder / "JC.ss.tsv").read_text().splitlines()]
    assert rows[0][3] == "log_ratio" and len(rows) == 5 and float(rows[-1][1]) == 0.0
    total = sum(float(row[3]) for row in rows[1:])
    assert total == pytest.approx(record["log_marginal_likelihood"], abs=1e-6)
    assert f"Log marginal likelihood: {total:.3f}" in jc.stdout
    names = {file.name for file in folder.iterdir() if file.name.startswith("JC.")}
    assert names == {
        *(f"JC.ss.run{r}.{kind}" for r in (1, 2) for kind in "pt"),
        *(f"JC.ss.{rest}" for rest in ("tsv", "json", "ckp.npz", "ckp.run1.samples", "ckp.run2.samples")),
    }
    assert "no posterior sample" in (folder / "JC.ss.run1.p").read_text().splitlines()[0]


def test_the_ladder_and_what_a_generation_belongs_to():
    settings = ChainSettings(stones=4, generations=5000, sample_every=20)
    found = ladder(settings)
    assert (found.first, found.each, found.left_out) == (1000, 1000, 260)
    assert np.allclose(found.powers, (np.arange(4, -1, -1) / 4) ** 2.5)
    pieces = list(stretches(settings, 0, 5000))
    whole = [(*of, sum(n for n, _, _ in same)) for of, same in groupby(pieces, lambda piece: piece[1:])]
    assert [n for _, _, n in whole] == [1000] + [260, 740] * 4
    assert [adapts for adapts, _, _ in whole] == [True] + [True, False] * 4
    assert whole[-1][1] == 0.0 and whole[1][1] == whole[2][1] == 0.75**2.5
    assert {n for n, adapts, _ in pieces if adapts} <= {25, 10, 15}  # chains are looked at on the way
    halves = [*stretches(settings, 0, 1130), *stretches(settings, 1130, 3870)]
    assert [p for n, _, p in halves for _ in range(n)] == [p for n, _, p in pieces for _ in range(n)]


def test_stones_from_the_prior_and_what_is_before_the_first():
    usual = ChainSettings(stones=4, generations=5000, sample_every=20)
    up = ladder(replace(usual, stones_from_prior=True, stone_burn_in=0))
    assert (up.first, up.each) == (40, 1240)  # what is left over is before the first stone
    assert np.allclose(up.powers, ladder(usual).powers[::-1]) and up.of(0)[:2] == (0.0, True)
    assert [up.of(40 + 1240 * k)[0] for k in range(4)] == [up.stone(k)[0] for k in range(4)]
    assert up.stone(3) == pytest.approx((0.75**2.5, 1.0)) and ladder(usual).stone(0) == up.stone(3)
    long = ladder(replace(usual, stone_burn_in=3000))
    assert (long.first, long.each) == (3000 + 2000 - 4 * 500, 500) and long.of(0)[0] == 1.0


def test_models_are_compared_the_best_first(finished):
    folder, _ = finished
    files = [str(folder / f"{model}.ss.json") for model in ("JC", "GTR+G4")]
    best, other = bayes_factors(files)
    assert best.model.startswith("GTR") and best.log_bayes_factor == 0.0
    assert other.log_bayes_factor == pytest.approx(other.log - best.log) and other.log_bayes_factor < -300
    assert best.probability + other.probability == pytest.approx(1)
    assert other.factor_error == pytest.approx(np.hypot(best.error, other.error))
    shown = command("bayes-factors", *files)
    assert shown.exit_code == 0 and re.search(r"GTR.*\n.*JC", shown.stdout)


def test_prefixes_and_records_of_both_samplers_are_compared(finished):
    folder, _ = finished
    record = json.loads((folder / "JC.ss.json").read_text())
    del record["settings"]["without"], record["settings"]["ordered"]  # which dated analyses do not have
    record |= {"model": "JC; strict clock; yule", "log_marginal_likelihood": 0.0}
    (folder / "dated.ss.json").write_text(json.dumps(record))
    found = bayes_factors([str(folder / name) for name in ("JC", "dated", "GTR+G4.ss")])
    assert [Path(one.file).name for one in found] == ["dated.ss.json", "GTR+G4.ss.json", "JC.ss.json"]


def test_different_data_and_other_files_are_refused(finished):
    folder, _ = finished
    assert analysed(folder / "part", "JC", "--sites", "1-400").exit_code == 0
    file = str(folder / "JC.ss.json")
    with pytest.raises(InputError, match="different data"):
        bayes_factors([file, str(folder / "part.ss.json")])
    record = json.loads((folder / "JC.ss.json").read_text())
    record["settings"]["trait"] = {"table": "places.tsv", "column": None}  # as of dated trees
    record["provenance"]["files"]["places.tsv"] = {"sha256": "1"}
    (folder / "trait.ss.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="different data"):
        bayes_factors([file, str(folder / "trait.ss.json")])
    with pytest.raises(InputError, match="no record of a stepping-stone"):
        bayes_factors([file, str(PRIMATES)])
    with pytest.raises(InputError, match="given twice"):
        bayes_factors([file, str(folder / "JC")])
    with pytest.raises(InputError, match="Bayes factor"):
        bayes_factors([file])


def test_a_prefix_without_a_record_says_what_is_there(finished, tmp_path):
    jc = str(finished[0] / "JC")
    (tmp_path / "half.ss.ckp.npz").write_text("of an analysis that was stopped")
    (tmp_path / "posterior.json").write_text("of one without stones")
    for name, told in (
        ("half", "not finished"),
        ("posterior", "no stepping stones"),
        ("none", "no such file"),
    ):
        for ending in ("", ".ss.json"):
            with pytest.raises(InputError, match=told):
                bayes_factors([jc, str(tmp_path / f"{name}{ending}")])


def test_other_priors_of_branch_lengths_are_told(finished):
    folder, _ = finished
    record = json.loads((folder / "JC.ss.json").read_text())
    assert record["settings"]["chains"]["priors"]["branch_lengths"] == "gammadir(1,0.1,1,1)"
    record["settings"]["chains"]["priors"]["branch_lengths"] = "exponential(10)"
    (folder / "other.ss.json").write_text(json.dumps(record | {"model": "HKY"}))
    alike, differing = (
        command("bayes-factors", str(folder / "JC"), str(folder / name)) for name in ("GTR+G4", "other")
    )
    assert "Priors of branch lengths differ" not in alike.output
    told = "gammadir(1,0.1,1,1) (", "exponential(10) ("
    assert "Priors of branch lengths differ" in differing.output and all(x in differing.output for x in told)


def test_stones_of_few_effective_samples_are_told(finished):
    folder, (jc, _) = finished
    record = json.loads((folder / "JC.ss.json").read_text())
    few = sum(stone["ess"] < LEAST_ESS for stone in record["stones"])
    assert few == 0 or f"{few} of 4 stones have so few" in jc.stdout
    for name, ess in (("many", 500.0), ("few", 6.0)):
        record["stones"][2]["ess"], others = (
            ess,
            [s for s in record["stones"] if s is not record["stones"][2]],
        )
        for stone in others:
            stone["ess"] = 500.0
        (folder / f"{name}.ss.json").write_text(json.dumps(record))
    found = {Path(m.file).name: m.guessed for m in bayes_factors([str(folder / n) for n in ("few", "many")])}
    assert found == {"few.ss.json": 1, "many.ss.json": 0}
    told = command("bayes-factors", str(folder / "few"), str(folder / "many")).output.replace("\n", " ")
    assert "few.ss.json have stones with so few" in told and "many.ss.json have" not in told


def test_likelihoods_of_variable_sites_alone_are_not_compared_with_others(finished):
    folder, _ = finished
    record = json.loads((folder / "JC.ss.json").read_text())
    assert record["provenance"]["conditioned_on"] == {}
    conditioned = record["provenance"] | {"conditioned_on": {"variable": "their checksum"}}
    (folder / "asc.ss.json").write_text(json.dumps(record | {"model": "JC+ASC", "provenance": conditioned}))
    (folder / "none.ss.json").write_text(json.dumps(record | {"log_marginal_likelihood": None}))
    files = [str(folder / f"{name}.ss.json") for name in ("JC", "asc")]
    with pytest.raises(InputError, match="conditioned on different things"):
        bayes_factors(files)
    assert of_same_data(files) == [files[:1], files[1:]]
    with pytest.raises(InputError, match="no record of a stepping-stone"):
        bayes_factors([files[0], str(folder / "none.ss.json")])


@pytest.mark.parametrize("sampler", ["mcmc", "time"])
def test_power_posteriors_are_not_summarised_as_a_posterior(sampler, finished, tmp_path):
    prefix, ending = str(finished[0] / "JC.ss"), ("p", "t")
    if sampler == "time":
        (tmp_path / "x.fasta").write_text(">a\nACGTA\n>b\nACGTC\n>c\nACCTC\n>d\nACCTG\n")
        told = ["--model", "JC", "--prefix", str(tmp_path / "x"), *SHORT[:-2]]
        (of_more_runs := tmp_path / "x.ss.run3.log").write_text("of an analysis that is replaced")
        assert command("time", str(tmp_path / "x.fasta"), *told, "--redo").exit_code == 0
        assert not of_more_runs.exists()
        prefix, ending = str(tmp_path / "x.ss"), ("log", "trees")
    for files in ((prefix,), *((f"{prefix}.run1.{one}",) for one in ending)):
        with pytest.raises(InputError, match="no posterior"):
            run_summarise(SummariseSettings(files))
    with pytest.raises(InputError, match="power posteriors"):
        read_draws(prefix)
    assert read_draws(prefix, burn_in=0.0).generations[0, -1] == 5000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stepping-stone", "-3"], "step"),
        (["--generations", "1000"], "10 are the least"),
        (["--until-converged"], "no until-converged"),
        (["--prior-only"], "no prior-only"),
        (["--stone-shape", "0"], "positive number"),
        (["--stone-burn-in", "5000"], "of 5,000 in all, not 5000"),
        (["--stone-burn-in", "4900"], "10 are the least"),
    ],
)
def test_what_cannot_be_done_is_said(options, message, tmp_path):
    result = analysed(tmp_path / "x", "JC", *options)
    assert isinstance(result.exception, InputError) and re.search(message, str(result.exception))


def test_a_finished_estimate_is_not_extended(finished):
    folder, _ = finished
    before = (folder / "JC.ss.tsv").read_text()
    assert analysed(folder / "JC", "JC").exit_code == 0
    assert (folder / "JC.ss.tsv").read_text() == before
    result = analysed(folder / "JC", "JC", "--generations", "9000")
    assert isinstance(result.exception, InputError) and "finished" in str(result.exception)
