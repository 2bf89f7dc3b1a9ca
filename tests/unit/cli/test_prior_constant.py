"""`phloem time --stones-from … --prior-constant`: priors whose constant only sampling tells, as a user meets
them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from phloem.analysis.stones import bayes_factors
from phloem.errors import InputError
from unit.cli.test_stones_from import kill_at_the_fourth_save, of_time

GROWTH = ["--tree-prior", "exponential"]
DRAWS = ["--generations", "4000"]
STONES = ["--stepping-stone", "4", "--generations", "5000"]


@pytest.fixture(scope="module")
def prior(tmp_path_factory):
    """A folder with draws of the prior, its constant, and draws of the posterior."""
    folder = tmp_path_factory.mktemp("constant")
    names = {name: str(folder / name) for name in ("prior", "near")}
    of_prior = [*GROWTH, "--prior-only", "--prefix", names["prior"]]
    done = [of_time(folder, *of_prior, *DRAWS)]
    done.append(of_time(folder, *of_prior, *STONES, "--stones-from", names["prior"]))
    done.append(of_time(folder, *GROWTH, *DRAWS, "--prefix", names["near"]))
    assert [one.exit_code for one in done] == [0, 0, 0], done[-1].output
    assert "Log constant of the prior" in done[1].stdout and "bayes-factors" not in done[1].stdout
    return folder


def stones(folder, *more, clock=()):
    own = [*GROWTH, *STONES, "--stones-from", str(folder / "near"), *clock]
    return of_time(folder, *own, *more)


def test_the_constant_is_taken_off_and_told(prior):
    done = stones(prior, "--prior-constant", str(prior / "prior"), "--prefix", str(prior / "near"))
    assert done.exit_code == 0, done.output
    record = json.loads((prior / "near.ss.json").read_text())
    alone = json.loads((prior / "prior.ss.json").read_text())
    assert "log_marginal_likelihood" not in alone and alone["log_prior_constant"] < 0.3
    both = record["log_of_likelihood_and_prior"]
    assert record["log_marginal_likelihood"] == pytest.approx(both - alone["log_prior_constant"])
    errors = record["log_of_likelihood_and_prior_standard_error"], alone["standard_error"]
    assert record["standard_error"] == pytest.approx((errors[0] ** 2 + errors[1] ** 2) ** 0.5)
    runs = record["log_marginal_likelihood_of_runs"]
    assert min(runs) <= record["log_marginal_likelihood"] <= max(runs)
    assert "of likelihood and prior as its density is written" in re.sub(r"\s+", " ", done.stdout)
    with pytest.raises(InputError, match="constant of a prior"):
        bayes_factors([str(prior / "near"), str(prior / "prior")])


def test_a_killed_search_for_the_constant_goes_on(prior, monkeypatch):
    told = [*GROWTH, "--prior-only", *STONES, "--stones-from", str(prior / "prior")]
    told += ["--prefix", str(prior / "killed")]
    with monkeypatch.context() as patch:
        kill_at_the_fourth_save(patch)
        assert of_time(prior, *told).exit_code != 0
    assert "resumed at generation 3,000" in of_time(prior, *told).stdout
    for ending in ("ss.tsv", "ss.run1.log", "ss.run2.trees"):
        assert Path(f"{prior}/killed.{ending}").read_text() == Path(f"{prior}/prior.{ending}").read_text()


@pytest.mark.parametrize("look", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "only sampling the prior tells what it adds up to"),
        (("--prior-constant", "FOLDER/near"), "no finished stepping-stone analysis of a prior"),
        (("--prior-constant", "FOLDER/prior", "--prior", "growth_rate=normal(0,1)"), "another tree"),
        (("--prior-only",), "another use_data"),
    ],
)
def test_what_cannot_be_is_said(prior, more, message, look, tmp_path):
    own = [option.replace("FOLDER", str(prior)) for option in more]
    told = stones(prior, *own, *look, "--prefix", str(tmp_path / "x"))
    assert isinstance(told.exception, InputError) and re.search(message, str(told.exception)), told.output
    assert told.exception.hint


def test_what_is_known_is_not_asked_for(prior, tmp_path):
    near = ["--prefix", str(tmp_path / "x")]
    assert of_time(tmp_path, *DRAWS, *near).exit_code == 0
    told = of_time(
        tmp_path,
        *STONES,
        "--stones-from",
        str(tmp_path / "x"),
        "--prior-constant",
        str(prior / "prior"),
        *near,
    )
    assert isinstance(told.exception, InputError) and "this one's is known" in str(told.exception)
    for more, message in (
        (["--prior-only", *STONES], "begins at a working distribution"),
        ([*DRAWS, "--prior-constant", "y"], "marginal likelihoods by stones from a working"),
    ):
        told = of_time(tmp_path, *more, "--prefix", str(tmp_path / "z"))
        assert isinstance(told.exception, InputError) and message in str(told.exception), told.output
