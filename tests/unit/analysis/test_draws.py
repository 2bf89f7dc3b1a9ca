"""What samplers have drawn, by name, as tables and plots elsewhere take it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import phloem
from phloem.errors import InputError
from phloem.summary.trace import trace_summary


@pytest.fixture
def run(tmp_path):
    """A prefix with two traces: 60 draws, every tenth generation, 21 of them of the tuning; the draws."""
    draws = np.random.default_rng(1).normal(size=(2, 60, 2)).round(6)
    draws[:, :21] -= 1000
    for number, own in enumerate(draws, 1):
        rows = "".join(f"{10 * k}\t{a}\t{b}\n" for k, (a, b) in enumerate(own.tolist()))
        (tmp_path / f"x.run{number}.p").write_text(f"[ID: 1]\nGen\tLnL\tpi(A)\n{rows}")
    return tmp_path / "x", draws


def record(prefix, **chains) -> None:
    prefix.with_name("x.json").write_text(json.dumps({"settings": {"chains": chains}}))


def test_a_finished_analysis_says_what_is_left_out(run):
    prefix, drawn = run
    record(prefix, burn_in=0.25, tuning_generations=200)
    found = phloem.read_draws(prefix)
    assert found.names == ("LnL", "pi(A)") and found.generations[:, 0].tolist() == [210, 210]
    assert np.array_equal(found.values, drawn[:, 21:])
    assert found.by_name()["pi(A)"].shape == (2, 39)
    wanted = trace_summary(found.names, drawn[:, 21:])
    assert found.summary().ess.tolist() == wanted.ess.tolist()
    columns = found.columns()
    assert list(columns) == ["run", "generation", "LnL", "pi(A)"]
    assert (columns["run"][38], columns["run"][39], columns["generation"][39]) == (1, 2, 210)
    assert columns["LnL"][39] == drawn[1, 21, 0]
    record(prefix, tuning_generations=400)  # of dated trees, which have no share of their own
    assert phloem.read_draws(str(prefix)).generations[0, 0] == 410
    assert len(repr(found)) < 200


def test_what_is_not_known_must_be_said(run):
    prefix, drawn = run
    files = [f"{prefix}.run1.p", f"{prefix}.run2.p"]
    for unknown in (prefix, files, files[0]):
        with pytest.raises(InputError, match="burn-in"):
            phloem.read_draws(unknown)
        values = phloem.read_draws(unknown, burn_in=0.5).values
        assert np.array_equal(values, drawn[: len(values), 30:])
    other = prefix.with_name("x.run3.p")
    other.write_text("Gen\tLnL\n" + "".join(f"{10 * k}\t-1\n" for k in range(60)))
    with pytest.raises(InputError, match="other columns than that of run 1") as told:
        phloem.read_draws(prefix, burn_in=0.5)
    assert told.value.file == str(other)
    other.unlink()
    with pytest.raises(InputError, match="no trace of this prefix"):
        phloem.read_draws(prefix.with_name("y"))
    with pytest.raises(InputError, match="not 1"):
        phloem.read_draws(prefix, burn_in=1)
    record(prefix, tuning_generations=590)
    with pytest.raises(InputError, match="no draw is left"):
        phloem.read_draws(prefix)
    with pytest.raises(KeyError, match="there is no 'kappa'"):
        phloem.read_draws(prefix, burn_in=0)["kappa"]
