"""`phloem mcmc` and `phloem time --stepping-stone --stones-from` as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phloem.analysis.mcmc_options import command_line, mcmc_settings
from phloem.analysis.stones import bayes_factors
from phloem.cli import build_app
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import Checkpoint

PRIMATES = Path(__file__).resolve().parents[3] / "examples/primates.nex"
SHORT = ["--generations", "4000", "--sample-every", "20", "--check-every", "1000", "--chains", "2"]
STONES = ["--stepping-stone", "4", "--generations", "5000", *SHORT[2:]]


def command(*arguments: str):
    return CliRunner().invoke(build_app(), ["mcmc", str(PRIMATES), "--model", "JC", *arguments])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("stones") / "jc"
    done = [command(*SHORT, "--prefix", str(prefix))]
    done += [command(*STONES, "--prefix", str(prefix), "--stones-from", str(prefix))]
    assert [one.exit_code for one in done] == [0, 0], done[-1].output
    return prefix, done[-1].stdout


def test_what_is_said_and_written(finished):
    prefix, shown = finished
    record = json.loads(Path(f"{prefix}.ss.json").read_text())
    assert "from a working distribution, fitted to" in re.sub(r"\s+", " ", shown)
    assert record["working_draws"] == 300 and len(record["working_distribution"]) == 64
    assert (
        record["settings"]["stones_from"] == str(prefix) and record["settings"]["chains"]["working"] is None
    )
    assert "--stone-shape 1" in record["command"] and f"--stones-from {prefix}" in record["command"]
    rows = [line.split("\t") for line in Path(f"{prefix}.ss.tsv").read_text().splitlines()]
    assert [float(row[1]) for row in rows[1:]] == [0.75, 0.5, 0.25, 0.0]  # evenly spaced
    assert float(rows[4][5]) > -6700  # mean log-likelihood: of a prior it would be far lower
    names = Path(f"{prefix}.ss.run1.p").read_text().splitlines()[1].split("\t")
    assert names[-1] == "LnWork"


def test_the_same_command_leads_back():
    told = {"alignment": str(PRIMATES), "stepping_stone": 4, "stones_from": "x"}
    settings = mcmc_settings(told)
    assert settings.chains.stone_shape == 1.0 and settings.stones_from == "x"
    assert "--stones-from x" in command_line(settings)
    assert mcmc_settings(told | {"stone_shape": 0.5}).chains.stone_shape == 0.5


def test_models_are_compared_by_either_kind_of_stones(finished):
    prefix, _ = finished
    plain = command(*STONES, "--prefix", f"{prefix}-plain")
    assert plain.exit_code == 0
    found = {Path(one.file).name: one for one in bayes_factors([str(prefix), f"{prefix}-plain"])}
    assert found["jc.ss.json"].error < 0.2 * found["jc-plain.ss.json"].error


def kill_at_the_fourth_save(patch):
    right, saved = Checkpoint.save, []

    def killed(checkpoint, runs):
        right(checkpoint, runs)
        saved.append(runs)
        if len(saved) == 4:
            raise KeyboardInterrupt

    patch.setattr(Checkpoint, "save", killed)


def test_a_killed_analysis_goes_on_bit_for_bit(finished, monkeypatch):
    prefix, _ = finished
    told = [*STONES, "--stones-from", str(prefix), "--prefix", f"{prefix}-killed"]
    with monkeypatch.context() as patch:
        kill_at_the_fourth_save(patch)
        assert command(*told).exit_code != 0 and not Path(f"{prefix}-killed.ss.json").exists()
    again = command(*told)
    assert again.exit_code == 0 and "resumed at generation 3,000" in again.stdout
    for ending in ("ss.tsv", "ss.run1.p", "ss.run2.p", "ss.run1.t"):
        assert Path(f"{prefix}-killed.{ending}").read_text() == Path(f"{prefix}.{ending}").read_text()


def test_another_working_distribution_does_not_resume(finished):
    prefix, _ = finished
    assert command(*SHORT, "--seed", "2", "--prefix", f"{prefix}2").exit_code == 0
    told = command(*STONES, "--prefix", str(prefix), "--stones-from", f"{prefix}2")
    assert isinstance(told.exception, InputError)
    assert "another working_distribution" in str(told.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stones-from", "PREFIX", *SHORT], "--stones-from is about stepping stones"),
        ([*STONES, "--stones-from", "nowhere"], "no finished analysis of this prefix"),
        ([*STONES, "--stones-from", "PREFIX.ss"], "of power posteriors"),
        ([*STONES, "--stones-from", "PREFIX", "--model", "HKY"], "another model"),
        ([*STONES, "--stones-from", "PREFIX", "--sites", "1-400"], "another sites"),
        ([*STONES, "--stones-from", "PREFIX", "--start", "nj", "--fixed-topology"], "another fixed_topology"),
        ([*STONES, "--stones-from", "PREFIX", "--device", "gpu"], "are on the CPU"),
        ([*STONES, "--stones-from", "PREFIX", "--stones-from-prior"], "in place of the prior"),
    ],
)
def test_what_cannot_be_done_is_said(finished, options, message, tmp_path):
    prefix, _ = finished
    own = [option.replace("PREFIX", str(prefix)) for option in options]
    told = command(*own, "--prefix", str(tmp_path / "x"))
    assert isinstance(told.exception, InputError) and re.search(message, str(told.exception)), told.output
    assert told.exception.hint


def of_time(folder: Path, *more: str):
    file = folder / "x.fasta"
    file.write_text(">a\nACGTA\n>b\nACGTC\n>c\nACCTC\n>d\nACCTG\n")
    own = ["--model", "JC", "--sample-every", "20", "--check-every", "1000", "--prior", "clock_rate=1"]
    return CliRunner().invoke(build_app(), ["time", str(file), *own, *more])


def test_dated_trees_have_one_too(finished, tmp_path, monkeypatch):
    prefix = str(tmp_path / "x")
    stones = ["--stepping-stone", "4", "--generations", "5000", "--prefix", prefix]
    assert of_time(tmp_path, "--generations", "4000", "--prefix", prefix).exit_code == 0
    done = of_time(tmp_path, *stones, "--stones-from", prefix)
    assert done.exit_code == 0, done.output
    record = json.loads(Path(f"{prefix}.ss.json").read_text())
    assert record["working_draws"] == 320 and record["settings"]["chains"]["stone_shape"] == 1.0
    assert Path(f"{prefix}.ss.run1.log").read_text().splitlines()[1].endswith("\tLnWork")
    again = of_time(tmp_path, *stones, "--stones-from", prefix)
    assert again.exit_code == 0 and "resumed at generation 5,000" in again.stdout
    other = [*stones[:-1], f"{prefix}-killed", "--stones-from", prefix]
    with monkeypatch.context() as patch:
        kill_at_the_fourth_save(patch)
        assert of_time(tmp_path, *other).exit_code != 0
    assert "resumed at generation 3,000" in of_time(tmp_path, *other).stdout
    for ending in ("ss.tsv", "ss.run1.log", "ss.run2.trees"):
        assert Path(f"{prefix}-killed.{ending}").read_text() == Path(f"{prefix}.{ending}").read_text()
    undated, _ = finished
    for more, message in (
        ([*stones, "--stones-from", str(undated)], "another .*kind"),
        ([*stones, "--stones-from", prefix, "--clock", "ucln"], "another tree"),
        (["--generations", "4000", "--stones-from", prefix], "about stepping stones"),
        ([*stones, "--stones-from", f"{prefix}-none"], "no finished analysis"),
    ):
        told = of_time(tmp_path, *more, "--redo")
        assert isinstance(told.exception, InputError) and re.search(message, str(told.exception)), told.output
