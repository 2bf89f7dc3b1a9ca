"""What a command shows of its steps."""

from __future__ import annotations

from io import StringIO
from math import nan

import numpy as np
from rich.console import Console

from phloem.cli.chain_tables import chain_progress
from phloem.cli.streams import shown_steps
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.sampler import Progress
from phloem.inference.mcmc.stones import Ladder


def written(terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=80)
    with shown_steps(console, "reading") as progress:
        progress("reading", 1, 4)
        progress("distances", 30, 60)
        progress("tree", 0, 0)
        console.print("a sentence in between")
    return console.file.getvalue()


def test_a_terminal_sees_the_step_its_share_and_the_time_left():
    text = written(True)
    assert "tree" in text and "left" in text and "a sentence in between" in text
    assert max(len(line) for line in text.split("\r")[0].splitlines()) < 200  # escapes included


def test_nothing_but_messages_goes_to_a_file_in_the_first_minute():
    assert written(False) == "a sentence in between\n"


def test_a_file_is_told_once_a_minute(monkeypatch):
    seconds = iter([0.0, 59.0, 61.0, 61.0, 62.0])
    monkeypatch.setattr("phloem.cli.streams.time.monotonic", lambda: next(seconds))
    assert written(False) == "distances: 30 of 60\na sentence in between\n"


def test_a_file_is_told_how_far_chains_are(monkeypatch):
    monkeypatch.setattr("phloem.cli.streams.LOG_EVERY", 0.0)
    console = Console(file=StringIO(), width=200)
    _, report, _ = chain_progress(console, lambda now: None)
    report(Progress(1000, 5000, 250.4, 16.0, None))
    report(Progress(2000, None, 250.4, nan, Diagnosis(2000, 10, 0.0312, 85.4, 1.02, "kappa", False)))
    assert console.file.getvalue().splitlines() == [
        "1,000 generations of 5,000, 250 chain-generations/s, about 16 s left",
        "2,000 generations, 250 chain-generations/s, ASDSF 0.0312, least ESS 85 (kappa)",
    ]


def test_chains_that_climb_stones_say_which_and_not_what_would_have_to_agree(monkeypatch):
    monkeypatch.setattr("phloem.cli.streams.LOG_EVERY", 0.0)
    console, stones = Console(file=StringIO(), width=200), Ladder(np.array([1.0, 0.25, 0.0]), 100, 50, 10)
    _, report, _ = chain_progress(console, lambda now: None, stones)
    found = Diagnosis(99, 10, 0.0312, 85.4, 1.02, "kappa", False)
    for generation in (99, 100, 149, 150, 200):
        report(Progress(generation, 200, 250.4, nan, found))
    said = [line.rpartition("/s, ")[2] for line in console.file.getvalue().splitlines()]
    first, second = "stone 1 of 2, power 0.25", "stone 2 of 2, power 0"
    assert said == ["before the first of 2 stones", first, first, second, second]
