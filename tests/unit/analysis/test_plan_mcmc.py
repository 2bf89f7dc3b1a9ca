"""`phloem plan --mcmc`: a pilot of the analysis, and what it says of its length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phloem.analysis import pilot as module
from phloem.analysis.plan_mcmc import plan_mcmc
from phloem.cli import build_app
from phloem.errors import InputError

PRIMATES = str(Path(__file__).resolve().parents[3] / "examples/primates.nex")


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(module, "MOST", 3000)


def test_a_forecast_is_that_of_its_pilot(short, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plan_mcmc({"alignment": PRIMATES, "model": "GTR+G4", "generations": 1000, "least_ess": 400.0})
    assert (
        found.pilot.generations == 3000
        and found.selection.engine == "cpu"
        and found.pilot.diagnosis.n_draws > 100
    )
    assert found.chains.n_chains == 4 and found.taxa[0] == "Tarsius_syrichta"
    assert found.wanted == pytest.approx(400 / found.pilot.diagnosis.ess * 1500 / 0.75)
    assert found.hours == pytest.approx(found.wanted / found.generations_per_second / 3600)
    assert found.memory_bytes > 100_000 and list(tmp_path.iterdir()) == []
    samples = found.chains.n_runs * (1000 // found.chains.sample_every + 1)
    assert found.end == 1000 and found.memory_bytes == found.fixed_bytes + samples * found.sample_bytes
    # one that stops by itself is told the memory of what it needs, not of the most it may do
    open_ended = replace(found, chains=replace(found.chains, generations=10**8, until_converged=True))
    assert open_ended.unlimited and found.wanted <= open_ended.end < found.wanted + 1
    assert replace(open_ended, wanted=float("nan")).end == 1_000_000


def test_a_block_is_obeyed(short, tmp_path):
    file = tmp_path / "x.nex"
    block = "begin mrbayes; lset nst=6 rates=gamma; mcmcp ngen=5000 nruns=3 nchains=1; end;\n"
    file.write_text(Path(PRIMATES).read_text() + block)
    found = plan_mcmc({"alignment": str(file)}, seconds=0.1)
    assert found.chains.n_runs == 3 and found.chains.n_chains == 1
    assert found.models == ("GTR+FO+G4",)


def test_the_command(short):
    done = CliRunner().invoke(build_app(), ["plan", PRIMATES, "--mcmc", "--model", "GTR+G4"])
    assert done.exit_code == 0, done.output
    for text in ("generations/s", "ESS of 200", "R-hat", "CPU chosen", "2 runs of 4", "until converged"):
        assert text in done.stdout
    told = CliRunner().invoke(build_app(), ["plan", PRIMATES, "--model", "JC", "--pilot", "3"])
    assert isinstance(told.exception, InputError) and "--pilot is of --mcmc" in str(told.exception)
    for seconds in ("0", "-1", "nan", "1e9"):
        told = CliRunner().invoke(build_app(), ["plan", PRIMATES, "--mcmc", "--pilot", seconds])
        assert isinstance(told.exception, InputError) and "a pilot of" in str(told.exception)
    for wrong in (["--method", "nj"], ["--engine", "reference"], ["--tree", "x"]):
        told = CliRunner().invoke(build_app(), ["plan", PRIMATES, "--mcmc", *wrong])
        assert isinstance(told.exception, InputError) and "not of phloem mcmc" in str(told.exception)


def test_the_pilot_of_a_command_line_obeys_all_of_it(short, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["mcmc", PRIMATES, "--model", "GTR+G4", "--runs", "3", "--generations", "20000", "--pilot", "0.1"]
    done = CliRunner().invoke(build_app(), words)
    assert done.exit_code == 0, done.output
    for text in ("3 runs of 4", "20,000 generations", "ESS of 200"):
        assert text in done.stdout
    assert list(tmp_path.iterdir()) == []
    stones = CliRunner().invoke(build_app(), [*words, "--stepping-stone", "5"])
    assert stones.exit_code == 0 and "ESS of" not in stones.stdout  # which they do not end by
    told = CliRunner().invoke(build_app(), [*words, "--pilot", "0"])
    assert isinstance(told.exception, InputError) and "a pilot of" in str(told.exception)


def test_the_pilot_of_dated_trees(short, tmp_path, monkeypatch):
    """It obeys the command line, writes nothing, and counts the warm-up that the analysis would have."""
    monkeypatch.chdir(tmp_path)
    data = Path(PRIMATES).parents[1] / "tests/golden/time_trees/data/dengue4"
    words = ["time", f"{data}.fasta", "--dates", f"{data}.dates.tsv", "--model", "JC", "--runs", "3"]
    done = CliRunner().invoke(build_app(), [*words, "--generations", "20000", "--pilot", "0.1"])
    assert done.exit_code == 0, done.output
    for text in ("3 runs of 1", "20,000 generations", "generations/s", "17 taxa", "CPU", "ESS of 200"):
        assert text in done.stdout
    assert list(tmp_path.iterdir()) == []
    told = CliRunner().invoke(build_app(), [*words, "--pilot", "0"])
    assert isinstance(told.exception, InputError) and "a pilot of" in str(told.exception)
