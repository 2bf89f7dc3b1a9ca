"""A run that was killed goes on as if nothing had happened."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from phloem import read_alignment
from phloem.errors import InputError
from phloem.inference.mcmc import checkpoint
from phloem.inference.mcmc.checkpoint import FORMAT, samples_path, state_path
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io import output_file
from phloem.io.output_file import OutputError, write_file
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
    history = [] if name.endswith(".ss") else [(folder / f"{name}.mcmc").read_text()]
    return history + [(folder / f"{name}.run{r}.{kind}").read_text() for r in (1, 2) for kind in "pt"]


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """What one thread draws, and the folder of its files."""
    folder = tmp_path_factory.mktemp("usual")
    return run_here(folder / "one", chains(threads=1)), folder


def test_a_resumed_run_continues_bit_for_bit(usual, tmp_path):
    run_here(tmp_path / "parts", chains(generations=2000, tuning_generations=chains().tuning))
    again = run_here(tmp_path / "parts", chains())
    assert again.resumed_at == 2000
    assert traces(usual[1], "one") == traces(tmp_path, "parts")


def test_threads_do_not_change_numbers(usual, tmp_path):
    run_here(tmp_path / "two", chains(threads=2))
    assert traces(usual[1], "one") == traces(tmp_path, "two")


def test_another_seed_changes_them(usual, tmp_path):
    a, b = usual[0], run_here(tmp_path / "b", chains(seed=5))
    assert not np.array_equal(a.runs[0].samples.numbers, b.runs[0].samples.numbers)
    assert not np.array_equal(a.runs[0].samples.numbers[1:], a.runs[1].samples.numbers[1:])


SETS = ["--partitions", str(PRIMATES.with_suffix(".partitions")), "--linkage", "unlinked"]


STONES = ["--stepping-stone", "20"]
KILLED = [([], 8000), *(pytest.param(words, 8000, marks=pytest.mark.slow) for words in (SETS, STONES))]


def kill(command: list[str], folder: Path, trace: Path) -> None:
    """Start a command, and kill it where its trace is long."""
    trace.unlink(missing_ok=True)
    begun = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while begun.poll() is None and not (trace.exists() and trace.stat().st_size > 50_000):
        time.sleep(0.005)
    begun.kill()
    begun.wait()


@pytest.mark.parametrize(("model", "generations"), KILLED, ids=["one set", "sets", "stones"])
def test_a_killed_process_resumes_bit_for_bit(model, generations, tmp_path):
    """A real SIGKILL, at no convenient moment, and the same command again."""
    arguments = [*model, "--generations", str(generations), "--check-every", str(generations // 10)]
    arguments += ["--sample-every", str(generations // 400), "--seed", "9"]
    command = [sys.executable, "-c", "from phloem.cli import main; main()", "mcmc", str(PRIMATES), *arguments]
    subprocess.run([*command, "--prefix", "whole"], cwd=tmp_path, check=True, capture_output=True)
    ending = ".ss" if model is STONES else ""
    trace, record = (tmp_path / f"killed{ending}.{name}" for name in ("run1.t", "json"))
    for _ in range(10):  # where others have the processors, it may have ended before it could be killed
        kill([*command, "--prefix", "killed", "--redo"], tmp_path, trace)
        if not record.exists():
            break
    assert not record.exists()
    with open(trace, "a") as stream:
        stream.write("   tree gen.99 = [&U] ((1:0.1,2")  # what a kill in the middle of a line leaves
    if not ending:
        with open(tmp_path / "killed.mcmc", "a") as stream:
            stream.write(f"{generations}\t0.123\tNA\n{generations // 10}\t0.1")  # of no checkpoint
    done = subprocess.run(
        [*command, "--prefix", "killed"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "resumed at generation" in done.stdout
    assert traces(tmp_path, f"whole{ending}") == traces(tmp_path, f"killed{ending}")
    if ending:
        tables = [(tmp_path / f"{name}.ss.tsv").read_text() for name in ("whole", "killed")]
        assert tables[0] == tables[1]


def test_a_checkpoint_of_another_analysis_is_refused(tmp_path):
    run_here(tmp_path / "a", chains(generations=1000))
    with pytest.raises(InputError, match="another seed"):
        run_here(tmp_path / "a", chains(seed=5))


def test_broken_checkpoints_are_the_users_errors(tmp_path):
    run_here(tmp_path / "a", chains(generations=1000))
    for file in (state_path(str(tmp_path / "a")), samples_path(str(tmp_path / "a"), 1)):
        whole = file.read_bytes()
        for content in (b"", b"nonsense", whole[: len(whole) // 2], whole[:600] + bytes(50) + whole[650:]):
            write_file(file, content)
            with pytest.raises(InputError, match="redo") as error:
                run_here(tmp_path / "a", chains())
            assert error.value.file == str(file)
        write_file(file, whole)
    samples_path(str(tmp_path / "a"), 0).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        run_here(tmp_path / "a", chains())


@pytest.mark.parametrize("former", [1, 2, 3, 4, 5, 6, 7])
def test_a_checkpoint_of_a_former_format_is_refused_with_a_remedy(former, tmp_path):
    """Format 1 held the samples in the archive, format 2 trees without a root, format 3 one set
    of branch lengths."""
    identity = np.frombuffer(json.dumps({"format": former, "seed": 4}).encode(), np.uint8)
    np.savez(tmp_path / "a.ckp.npz", identity=identity, **{"run0.samples.generation": np.arange(3)})
    with pytest.raises(InputError, match=rf"format {former}, .* resumes format {FORMAT}(.|\n)*--redo"):
        run_here(tmp_path / "a", chains())


def test_a_checkpoint_without_what_chains_now_know_is_refused(tmp_path):
    """Of the same format, by a version before it."""
    run_here(tmp_path / "a", chains(generations=1000))
    with np.load(state_path(str(tmp_path / "a"))) as archive:
        arrays = {name: archive[name] for name in archive.files if not name.endswith("state.covariance")}
    np.savez(state_path(str(tmp_path / "a")), **arrays)
    with pytest.raises(InputError, match=r"another version of phloem(.|\n)*--redo"):
        run_here(tmp_path / "a", chains())


def test_a_checkpoint_costs_what_is_new(tmp_path, monkeypatch):
    """The archive of states keeps its size, and every sample is written once."""
    sizes, written = set(), []
    encoded = checkpoint._rows

    def rows(samples, first):
        sizes.add((tmp_path / "a.ckp.npz").stat().st_size)
        written.append(len(encoded(samples, first)))
        return encoded(samples, first)

    monkeypatch.setattr(checkpoint, "_rows", rows)
    run_here(tmp_path / "a", chains(generations=3000, tuning_generations=0))
    result = run_here(tmp_path / "a", chains(tuning_generations=0))
    assert result.resumed_at == 3000 and result.runs[0].samples.n == 61
    assert len(sizes) == 1 and sum(written) == 2 * 61 and max(written) == 10


class Killed(BaseException):
    """In place of SIGKILL: nothing of phloem catches it."""


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
STEPS = (
    (3 + 2 * 2 + 3) + 4 * 3 + 3 + 2 * (2 * 2 + 3 + 4 + 1) + 2
)  # files opened, flushed, renamed by the run below


SHORTER = chains(generations=2000, tuning_generations=0, n_chains=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Where the files of a run that nothing ended are."""
    folder = tmp_path_factory.mktemp("whole")
    run_here(folder / "whole", SHORTER)
    return folder


def faults() -> list:
    """At every step either, in turn; the other one of the slow suite."""
    kinds, found = ((Killed(), "killed"), (FULL, "full disk")), []
    for step in range(STEPS):
        for k, (fault, name) in enumerate(kinds):
            later = [pytest.mark.slow] * ((step + k) % 2)
            found.append(pytest.param(step, fault, id=f"{name}-{step}", marks=later))
    return found


@pytest.mark.parametrize(("deadly", "fault"), faults())
def test_failing_at_any_step_of_a_run_loses_nothing(deadly, fault, whole, tmp_path, monkeypatch):
    """At the n-th opening, flush or rename, a half-written row behind it; then the same command again."""
    steps = count()

    def step(function):
        def counted(*arguments, **named):
            if next(steps) == deadly:
                raise fault
            return function(*arguments, **named)

        return counted

    with monkeypatch.context() as planted:
        planted.setattr(os, "fsync", step(os.fsync))
        planted.setattr(os, "replace", step(os.replace))
        for module in (checkpoint, output_file):
            planted.setattr(module, "open", step(open), raising=False)
        with pytest.raises((Killed, OutputError)) as told:
            run_here(tmp_path / "killed", SHORTER)
    if fault is FULL:
        assert str(told.value).startswith(f"{tmp_path / 'killed'}."), "the file is named"
        assert "the disk is full; " in str(told.value), "and what is left"
    for file in tmp_path.glob("*.samples"):
        with open(file, "ab") as stream:
            stream.write(b"half a row")
    run_here(tmp_path / "killed", SHORTER)
    assert traces(tmp_path, "killed") == traces(whole, "whole")
    a, b = samples_path(str(tmp_path / "killed"), 0), samples_path(str(whole / "whole"), 0)
    assert a.read_bytes().removesuffix(b"half a row") == b.read_bytes()
