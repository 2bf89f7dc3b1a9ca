"""`phloem leave-one-out` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.left_out import compared_models
from phloem.cli import build_app
from phloem.errors import InputError

PRIMATES = Path(__file__).resolve().parents[3] / "examples/primates.nex"
SHORT = ["--generations", "8000", "--sample-every", "40", "--chains", "1", "--runs", "1", "--site-table"]


def command(*arguments: str):
    return CliRunner().invoke(build_app(), list(arguments))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("left_out")
    more = {"JC": ["--model", "JC"], "HKY": ["--model", "HKY+G4"]}
    more["parts"] = ["--part", "HKY+G4, b = 400-898", "--part", "JC, a = 1-399"]
    more["codons"] = ["--datatype", "translated", "--model", "Poisson", "--genetic-code", "2"]
    more["codons"] += ["--stop-codons", "mask", "--sites", "2-457"]
    more["some"] = ["--model", "JC", "--sites", "1-500"]
    for name, options in more.items():
        done = command("mcmc", str(PRIMATES), *SHORT, *options, "--prefix", str(folder / name))
        assert done.exit_code == 0, done.output
    return folder


def test_the_better_model_is_first_by_what_sites_differ(finished):
    found = compared_models([str(finished / name) for name in ("JC", "HKY")])
    assert [m.model for m in found] == ["HKY+FO+G4", "JC"]
    better, worse = (np.genfromtxt(finished / f"{n}.sites", names=True)["left_out"] for n in ("HKY", "JC"))
    assert found[1].below == pytest.approx(worse.sum() - better.sum()) and found[0].below == 0
    assert found[1].below_error == pytest.approx(np.sqrt(898 * (better - worse).var()))
    assert found[1].below < -300 and found[1].below_error < 0.5 * found[1].error
    shown = command("leave-one-out", str(finished / "JC.json"), str(finished / "HKY"))
    assert shown.exit_code == 0 and f"{found[1].below:.2f}" in shown.stdout


def test_parts_are_compared_site_by_site_whatever_their_order(finished):
    found = compared_models([str(finished / name) for name in ("parts", "JC")])
    by_site = {
        n: dict(zip(*(np.genfromtxt(finished / f"{n}.sites", names=True, dtype=None, encoding="utf-8")[c]
                      for c in ("site", "left_out")))) for n in ("parts", "JC")
    }  # fmt: skip
    differences = np.array([by_site["parts"][k] - by_site["JC"][k] for k in range(1, 899)])
    assert found[1].model == "JC" and found[1].below == pytest.approx(-differences.sum())
    assert found[1].below_error == pytest.approx(np.sqrt(898 * differences.var()))
    # the control: rows as they stand in the files, which have the parts in another order
    rows = np.array([*by_site["parts"].values()]) - np.array([*by_site["JC"].values()])
    assert np.sqrt(898 * rows.var()) != pytest.approx(found[1].below_error, rel=0.01)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["JC"], "one model alone"),
        (["JC", "some"], "different data"),
        (["JC", "codons"], "different data"),
        (["JC", "nothing"], "no such file"),
    ],
)
def test_what_cannot_be_compared_is_an_error(finished, names, told):
    with pytest.raises(InputError, match=told):
        compared_models([str(finished / name) for name in names])


def test_an_analysis_without_a_table_says_how_to_make_one(finished, tmp_path):
    for suffix in ("json", "sites"):
        (tmp_path / f"x.{suffix}").write_bytes((finished / f"JC.{suffix}").read_bytes())
    record = (tmp_path / "x.json").read_text()
    (tmp_path / "x.json").write_text(record.replace('"leave_one_out": {', '"before": {'))
    with pytest.raises(InputError, match="no table of sites"):
        compared_models([str(finished / "JC"), str(tmp_path / "x")])
    conditioned = record.replace('"conditioned_on": {}', '"conditioned_on": {"variable": "their checksum"}')
    (tmp_path / "x.json").write_text(conditioned)
    with pytest.raises(InputError, match="conditioned on different things"):
        compared_models([str(finished / "JC"), str(tmp_path / "x")])
