"""How far a command is, as the file that it writes for others."""

from __future__ import annotations

import json

import pytest

import phloem.analysis.progress
from phloem.analysis.progress import ProgressFile, in_words
from phloem.errors import InputError
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.sampler import Progress
from phloem.inference.ml.search_state import Doing


def test_progress_is_written_once_a_second_and_has_no_nan(tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    now = [0.0]
    monkeypatch.setattr(phloem.analysis.progress.time, "monotonic", lambda: now[0])
    written = ProgressFile(str(path), [])
    diagnosis = Diagnosis(500, 10, float("nan"), 3.0, 1.2, "alpha", False)
    written.tell(Progress(500, 1000, 20.0, float("nan"), diagnosis))
    told = json.loads(path.read_text())
    assert told["generation"] == 500 and told["seconds_left"] is None
    assert told["convergence"]["asdsf"] is None and told["convergence"]["ess"] == 3.0
    now[0] = 0.5
    written.tell(Progress(600, 1000, 20.0, 1.0, None))
    assert json.loads(path.read_text())["generation"] == 500
    now[0] = 1.5
    written.tell(Progress(700, 1000, 20.0, 1.0, None))
    assert json.loads(path.read_text()) == {
        "generation": 700, "total": 1000, "speed": 20.0, "seconds_left": 1.0, "convergence": None,
        "moves": {}, "tuning": 0,
    }  # fmt: skip


def test_progress_is_no_input(tmp_path):
    path = tmp_path / "a.nex"
    path.write_text("#NEXUS")
    with pytest.raises(InputError, match="input"):
        ProgressFile(str(path), [str(path)]).check(list)
    with pytest.raises(InputError, match="two outputs"):
        ProgressFile(str(tmp_path / "x.json"), []).check(lambda: [str(tmp_path / "x.json")])
    ProgressFile(None, []).tell(Progress(1, 2, 3.0, 4.0, None))
    assert path.read_text() == "#NEXUS"


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(phloem.analysis.progress.time, "monotonic", lambda: now[0])
    return now


def told(tmp_path, clock, steps) -> list[dict]:
    """What the file says after every (seconds, doing)."""
    path, found = tmp_path / "p.json", []
    written = ProgressFile(str(path), [])
    for seconds, doing in steps:
        clock[0] += seconds
        written.tell_step(doing, -12.5)
        found.append(json.loads(path.read_text()))
    return found


def test_steps_that_are_alike_have_a_rate_and_an_end(tmp_path, clock):
    steps = [(1, Doing("bootstrap", k, 10, f"bootstrap {k} of 10", "about")) for k in (1, 2, 3)]
    first, second, third = told(tmp_path, clock, [steps[0], (2, steps[1][1]), (2, steps[2][1])])
    assert first["speed"] is None and first["seconds_left"] is None and first["left"] is None
    assert second["speed"] == 0.5 and second["seconds_left"] == 16
    assert third["speed"] == 0.5 and third["seconds_left"] == 14 and third["left"] == "about"
    assert third["step"] == "bootstrap 3 of 10" and third["log_likelihood"] == -12.5


def test_where_steps_are_not_alike_or_have_no_end_nothing_is_promised(tmp_path, clock):
    climb = told(tmp_path, clock, [(2, Doing("first climb", k, 3)) for k in (1, 2)])[-1]
    assert climb["speed"] is None and climb["seconds_left"] is None
    models = told(tmp_path, clock, [(2, Doing("models", k, None, "JC")) for k in (1, 2)])[-1]
    assert models["speed"] == 0.5 and models["seconds_left"] is None


def test_a_new_stage_is_told_at_once_and_counts_anew(tmp_path, clock):
    search = [(2, Doing("search", 0, 10, f"try {k}", "at least")) for k in range(3)]
    found = told(tmp_path, clock, [*search, (0.1, Doing("supports")), (0.1, Doing("supports", 1))])
    assert [one["stage"] for one in found] == ["search"] * 3 + ["supports"] * 2
    assert found[2]["seconds_left"] == 20 and found[3]["speed"] is None and found[4]["done"] == 0


def test_a_line_for_the_terminal(clock):
    lines: list[str] = []
    tell = ProgressFile(None, []).teller(lines.append)
    for k in (1, 2):
        clock[0] += 30
        tell(Doing("search", k, 9, f"try {k}", "at least"), -1.5)
    assert lines == [
        "try 1: log-likelihood -1.5000",
        "try 2: log-likelihood -1.5000, at least 4 min left",
    ]
    assert in_words(99) == "99 s" and in_words(8000) == "2.2 h"
