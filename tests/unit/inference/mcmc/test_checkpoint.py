"""A run that was killed goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from phloem import read_alignment
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import load, write_atomically
from phloem.inference.mcmc.observations import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure_of_model import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment

ROOT = Path(__file__).resolve().parents[4]
PRIMATES = ROOT / "examples/primates.nex"


def chains(**settings) -> ChainSettings:
    return ChainSettings(
        **({"generations": 6000, "sample_every": 100, "check_every": 1000, "seed": 4} | settings)
    )


def run_here(prefix, settings: ChainSettings):
    alignment = read_alignment(PRIMATES)
    structure = structure_of_model(model_for_alignment("GTR+G4", alignment))
    return sample(observations(alignment), structure, settings, str(prefix), {"seed": settings.seed})


def traces(folder: Path, name: str) -> list[str]:
    return [(folder / f"{name}.run{r}.{kind}").read_text() for r in (1, 2) for kind in "pt"]


def test_a_resumed_run_continues_bit_for_bit(tmp_path):
    run_here(tmp_path / "whole", chains())
    run_here(tmp_path / "parts", chains(generations=2000, tuning_generations=chains().tuning))
    again = run_here(tmp_path / "parts", chains())
    assert again.resumed_at == 2000
    assert traces(tmp_path, "whole") == traces(tmp_path, "parts")


def test_threads_do_not_change_numbers(tmp_path):
    run_here(tmp_path / "one", chains(threads=1))
    run_here(tmp_path / "two", chains(threads=2))
    assert traces(tmp_path, "one") == traces(tmp_path, "two")


def test_another_seed_changes_them(tmp_path):
    a, b = run_here(tmp_path / "a", chains()), run_here(tmp_path / "b", chains(seed=5))
    assert not np.array_equal(a.runs[0].samples.numbers, b.runs[0].samples.numbers)
    assert not np.array_equal(a.runs[0].samples.numbers[1:], a.runs[1].samples.numbers[1:])


def test_a_killed_process_resumes_bit_for_bit(tmp_path):
    """A real SIGKILL, at no convenient moment, and the same command again."""
    arguments = ["--generations", "40000", "--sample-every", "100", "--check-every", "4000", "--seed", "9"]
    command = [sys.executable, "-c", "from phloem.cli import main; main()", "mcmc", str(PRIMATES), *arguments]
    subprocess.run([*command, "--prefix", "whole"], cwd=tmp_path, check=True, capture_output=True)
    killed = subprocess.Popen(
        [*command, "--prefix", "killed"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    trace = tmp_path / "killed.run1.t"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (trace.exists() and trace.stat().st_size > 50_000):
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed.json").exists(), "the run ended before it could be killed"
    with open(trace, "a") as stream:
        stream.write("   tree gen.99 = [&U] ((1:0.1,2")  # what a kill in the middle of a line leaves
    done = subprocess.run(
        [*command, "--prefix", "killed"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "resumed at generation" in done.stdout
    assert traces(tmp_path, "whole") == traces(tmp_path, "killed")


def test_a_checkpoint_of_another_analysis_is_refused(tmp_path):
    run_here(tmp_path / "a", chains(generations=1000))
    with pytest.raises(InputError, match="another seed"):
        run_here(tmp_path / "a", chains(seed=5))


def test_broken_checkpoints_are_the_users_errors(tmp_path):
    run_here(tmp_path / "a", chains(generations=1000))
    file = tmp_path / "a.ckp.npz"
    whole = file.read_bytes()
    for content in (b"", b"nonsense", whole[: len(whole) // 2], whole[:100] + bytes(50) + whole[150:]):
        write_atomically(file, content)
        with pytest.raises(InputError):
            load(file, {"seed": 4})
