"""An interrupt, or a request to end, keeps what was drawn up to then; the same analysis goes on from it."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from phloem import read_alignment
from phloem.inference.mcmc import sampler
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import advance_all, sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment

PRIMATES = read_alignment(Path(__file__).resolve().parents[4] / "examples/primates.nex")
STRUCTURE = structure_of_model(model_for_alignment("GTR+I+G4", PRIMATES))
SETTINGS = ChainSettings(
    generations=2_400, sample_every=40, check_every=2_400, tuning_generations=1_600, threads=2
)


def _await(stopped) -> None:
    for _ in range(60_000):  # another thread may be compiling, on a processor that others use, too
        if stopped():
            return
        threading.Event().wait(0.01)
    raise AssertionError("nothing stopped it")


def drawn(prefix: Path, **more):
    return sample(observations(PRIMATES), STRUCTURE, SETTINGS, str(prefix), **more)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_drawn_is_kept_and_gone_on_with(asked, tmp_path, monkeypatch):
    """Runs stop at generations of their own; the files are then those of an analysis that nobody stopped."""
    right = sampler.advanced

    def advanced(run, n_generations, stopped=lambda: False):
        if stopped() or n_generations < 2_400:
            return right(run, n_generations)
        run = right(run, 800 if run.number == 0 else 1_240)
        if run.number == 0:
            os.kill(os.getpid(), asked)
        _await(stopped)
        return run

    usual = signal.default_int_handler if asked == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(asked, usual)  # whoever runs the tests may ignore it
    try:
        with monkeypatch.context() as patch:
            patch.setattr(sampler, "advanced", advanced)
            with pytest.raises(KeyboardInterrupt):
                drawn(tmp_path / "stopped")
        assert signal.getsignal(asked) == usual
    finally:
        signal.signal(asked, before)
    assert drawn(tmp_path / "stopped").resumed_at == 1_240
    drawn(tmp_path / "whole")
    for name in ("run1.p", "run2.p", "run1.t", "run2.t"):
        assert (tmp_path / f"stopped.{name}").read_bytes() == (tmp_path / f"whole.{name}").read_bytes()


def test_a_run_that_is_not_brought_to_the_others_is_seen(tmp_path, monkeypatch):
    """The error planted: runs go on from where each was."""
    left = replace(SETTINGS, generations=1_200)
    runs = sample(observations(PRIMATES), STRUCTURE, left, str(tmp_path / "x")).runs
    behind = sampler.advanced(runs[0], 400), runs[1]
    checkpoint = sampler.Checkpoint(str(tmp_path / "x"), {"n_runs": 2})
    checkpoint.load()
    checkpoint.save(behind)
    right = sampler.advanced
    with monkeypatch.context() as patch:
        patch.setattr(sampler, "advanced", lambda run, n, *stopped: right(run, n) if stopped else run)
        with pytest.raises(ValueError, match="same shape"):  # runs of unlike length
            drawn(tmp_path / "x", identity={})


def test_what_the_runs_came_to_is_told():
    def advance(run, block, stopped):
        _await(stopped)
        return run + block

    def report():
        raise KeyboardInterrupt

    kept = []
    with pytest.raises(KeyboardInterrupt):
        advance_all(advance, [1, 2], 10, 2, report, kept.append)
    assert kept == [[11, 12]]


def test_a_request_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        def report():
            os.kill(os.getpid(), signal.SIGHUP)

        def advance(run, block, stopped):
            threading.Event().wait(0.5)
            return "not stopped" if not stopped() else "stopped"

        assert advance_all(advance, [1], 10, 1, report) == ["not stopped"]
    finally:
        signal.signal(signal.SIGHUP, before)
