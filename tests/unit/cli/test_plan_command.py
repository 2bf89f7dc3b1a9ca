"""`phloem plan` as a user meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.distance import DistanceAnalysisSettings
from phloem.analysis.plan import PlanSettings, run_plan
from phloem.analysis.plan_distance import plan_distance_tree
from phloem.cli import build_app
from phloem.errors import InputError
from phloem.hardware.machine import Accelerator
from phloem.io.distance_matrix import taxa_of_matrix
from phloem.pruning import grid, plan

PRIMATES = str(Path(__file__).resolve().parents[3] / "examples/primates.nex")


def command(*arguments: str):
    return CliRunner().invoke(build_app(), ["plan", *arguments])


def test_a_likelihood():
    result = command(PRIMATES, "--model", "GTR+G4")
    assert result.exit_code == 0 and "413 patterns" in result.stdout and "--optimize" in result.stdout
    assert "phloem mcmc" in result.stdout and "CPU chosen: " in result.stdout


def test_parts_are_planned_together():
    partitions = PRIMATES.replace(".nex", ".partitions")
    result = command(PRIMATES, "--partitions", partitions)
    assert result.exit_code == 0 and "898 sites, 485 patterns" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert all(name in result.stdout for name in ("position1", "position2", "position3", "trna"))
    told = command(PRIMATES, "--partitions", partitions, "--model", "HKY+G4").exception
    assert isinstance(told, InputError) and "every part has a model already" in str(told)


def test_what_has_no_model_is_planned_with_the_usual_one(tmp_path):
    file = tmp_path / "parts.txt"
    file.write_text("DNA, first = 1-400\nHKY, rest = 401-898\n")
    plan = run_plan(PlanSettings(PRIMATES, partitions=str(file)))
    assert plan.usual == {"first": "GTR+F+G4"} and [part.categories for part in plan.parts] == [4, 1]
    assert "No model given, of first: GTR+F+G4" in command(PRIMATES, "--partitions", str(file)).stdout
    alone, named = command(PRIMATES), command(PRIMATES, "--model", "GTR+F+G4")
    assert alone.exit_code == 0 and "No model given: GTR+F+G4" in alone.stdout
    assert "GTR+F+G4, 4 states, 4 rate categories" in alone.stdout and "No model given" not in named.stdout


def test_fewer_than_three_taxa(tmp_path):
    (tmp_path / "two.fasta").write_text(">a\nACGT\n>b\nACGA\n")
    assert "2 taxa, 4 sites" in command(str(tmp_path / "two.fasta")).stdout
    (tmp_path / "one.fasta").write_text(">a\nACGT\n")
    error = command(str(tmp_path / "one.fasta")).exception
    assert isinstance(error, InputError) and "one.fasta" in str(error) and "two taxa" in str(error)


def test_the_memory_of_parts_adds_up():
    partitions = PRIMATES.replace(".nex", ".partitions")
    plan = run_plan(PlanSettings(PRIMATES, partitions=partitions))
    sizes = [part.forecast.memory_bytes for part in plan.parts]
    assert len(sizes) == 4 and plan.total(lambda forecast: forecast.memory_bytes) == sum(sizes)
    small = replace(plan, hardware=replace(plan.hardware, available_bytes=max(sizes) + 1))
    assert not small.fits and replace(plan, hardware=replace(plan.hardware, available_bytes=10**9)).fits


def test_a_tree_from_an_alignment():
    result = command(PRIMATES, "--method", "nj")
    assert result.exit_code == 0 and "12 taxa, 898 sites" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    "options, message",
    [
        (("--method", "nj", "--tree", "t.nwk"), "--tree is for a likelihood"),
        (("--method", "nj", "--engine", "reference"), "no reference engine"),
        (("--method", "nj", "--partitions", "p.txt"), "--partitions and --part are for a likelihood"),
        (("--method", "nj", "--part", "JC, a = 1-9"), "--partitions and --part are for a likelihood"),
        (("--model", "JC", "--bootstrap", "10"), "--bootstrap is for a distance tree"),
        (("--model", "JC", "--distance", "p"), "--distance is for a distance tree"),
    ],
)
def test_options_of_the_other_kind_are_not_ignored(options, message):
    assert message in str(command(PRIMATES, *options).exception)


def test_a_tree_is_planned_with_its_own_options():
    plain = plan_distance_tree(DistanceAnalysisSettings(PRIMATES, "upgma"))
    whole = plan_distance_tree(DistanceAnalysisSettings(PRIMATES, "upgma", bootstrap=99, cophenetic=True))
    assert whole.tree_seconds == pytest.approx(100 * plain.tree_seconds)
    assert whole.memory_bytes > plain.memory_bytes
    text = command(PRIMATES, "--method", "upgma", "--precision", "float32", "--device", "cpu").stdout
    assert "distances in float32" in text and "CPU asked for" in text


@pytest.mark.parametrize("name", ["m.phy", "m.csv", "m.tsv", "m.npy"])
def test_sizes_of_matrices(name, tmp_path):
    path = str(tmp_path / name)
    if name.endswith(".npy"):
        np.save(path, np.zeros((3, 3)))
    elif name.endswith(".phy"):
        Path(path).write_text("  3\nA\nB 1\nC 2 2\n")
    else:
        separator = "," if name.endswith(".csv") else "\t"
        rows = [["", "A", "B, b" if separator == "\t" else '"B, b"', "C"], ["A", "0", "1", "1"]]
        Path(path).write_text("\n".join(separator.join(row) for row in rows))
    assert taxa_of_matrix(path) == 3


def test_what_does_not_fit_is_said(tmp_path):
    (tmp_path / "large.phy").write_text("20000000\n")
    settings = DistanceAnalysisSettings(str(tmp_path / "large.phy"), method="upgma")
    assert plan_distance_tree(settings).fits is False
    assert "does not fit" in command(settings.input, "--method", "upgma").stdout


def test_linkage_may_be_spread_over_several_gpus(tmp_path):
    (tmp_path / "m.phy").write_text("200000\n")
    plan = plan_distance_tree(DistanceAnalysisSettings(str(tmp_path / "m.phy"), "upgma", precision="float32"))
    gpus = (Accelerator("a card", 150 * 10**9),) * 2
    two = replace(plan, device="gpu", hardware=replace(plan.hardware, accelerators=gpus))
    assert two.fits and not replace(two, method="nj").fits
    assert not replace(two, hardware=replace(plan.hardware, accelerators=gpus[:1])).fits


def test_memory_grows_with_the_matrix(tmp_path):
    def planned(n: int, method: str):
        (tmp_path / "m.phy").write_text(f"{n}\n")
        return plan_distance_tree(DistanceAnalysisSettings(str(tmp_path / "m.phy"), method=method))

    assert planned(20_000, "nj").memory_bytes > 3.9 * planned(10_000, "nj").memory_bytes
    assert planned(10_000, "bionj").memory_bytes > 1.9 * planned(10_000, "nj").memory_bytes


def test_how_processes_would_share(monkeypatch):
    """Cells that are too small for any use: the forecast says what dividing them costs."""
    one_piece = run_plan(PlanSettings(PRIMATES, "GTR+G4")).parts[0].forecast
    monkeypatch.setattr(grid, "LEAST_WORK", {"cpu": 1e3})
    monkeypatch.setattr(grid, "LEAST_COLUMNS", 1)
    result = run_plan(PlanSettings(PRIMATES, "GTR+G4", ranks=6))
    found, forecast = result.ranks, result.parts[0].forecast
    assert forecast.memory_bytes == found.likelihood[0].memory_bytes > one_piece.memory_bytes
    assert forecast.work.columns > one_piece.work.columns  # what cells compute twice counts
    assert [row.size for row in found.likelihood] == [1, 2, 4, 6] == [row.size for row in found.chains]
    one, two = found.likelihood[:2]
    assert sum(one.shares) > 1 and all(sum(row.shares) == sum(one.shares) for row in found.likelihood)
    monkeypatch.setattr(plan, "MESSAGE_SECONDS", 0.0)
    monkeypatch.setattr(plan, "BYTES_A_SECOND", 1e30)
    free = run_plan(PlanSettings(PRIMATES, "GTR+G4", ranks=6)).ranks
    one, two, four, six = free.likelihood
    assert one.seconds > two.seconds > four.seconds > six.seconds > one.seconds / 6
    assert one.memory_bytes > two.memory_bytes > six.memory_bytes and len(six.shares) == 6
    assert 0 < free.remainder < 0.5 and six.seconds / one.seconds == pytest.approx(
        free.remainder + (1 - free.remainder) / 6
    )
    monkeypatch.setattr(plan, "MESSAGE_SECONDS", 1.0)  # nobody would wait so long
    dear = run_plan(PlanSettings(PRIMATES, "GTR+G4", ranks=6)).ranks
    assert all(len(row.shares) == 1 for row in dear.likelihood) and np.isnan(dear.remainder)


def test_ranks_are_of_likelihoods_and_chains():
    result = command(PRIMATES, "--model", "GTR+G4", "--ranks", "3")
    assert result.exit_code == 0 and "too little to divide" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "Of a generation" in result.stdout
    partitions = PRIMATES.replace(".nex", ".partitions")
    parts = command(PRIMATES, "--partitions", partitions, "--ranks", "2")
    assert parts.exit_code == 0 and "shares the 4 parts" in parts.stdout
    for more in (("--method", "nj"), ("--mcmc",)):
        error = command(PRIMATES, *more, "--ranks", "2").exception
        assert isinstance(error, InputError) and "--ranks is not of" in str(error)
    assert isinstance(command(PRIMATES, "--model", "JC", "--ranks", "0").exception, InputError)
