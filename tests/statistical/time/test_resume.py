"""An analysis that was killed goes on from its checkpoint, and its files are those of one that was not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from statistical.time.time_runs import killed_after
from unit.cli.test_processes import environment, needs_mpi

pytestmark = pytest.mark.slow
DATA = Path(__file__).parents[2] / "golden" / "time_trees" / "data"


def command(prefix: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "phloem", "time", str(DATA / "dengue4.fasta"), "--dates",
        str(DATA / "dengue4.dates.tsv"), "--model", "HKY+FO+G4", "--clock", "ucln", "--tree-prior", "skyline",
        "--pieces", "4", "--prefix", str(prefix), "--generations", "60000", "--check-every", "5000", *more,
    ]  # fmt: skip


@pytest.mark.parametrize("parts, chains", [(False, 1), (True, 1), (False, 3)])
def test_killed_and_resumed(parts, chains, tmp_path):
    """Of one clock, and of parts with a clock each; coupled chains."""
    (tmp_path / "parts").write_text("DNA, a = 1-700\nDNA, b = 701-1485\n")
    more = ("--partitions", str(tmp_path / "parts"), "--linkage", "unlinked") if parts else ()
    more += ("--chains", str(chains), "--swap-every", "7") if chains > 1 else ()
    subprocess.run(command(tmp_path / "whole", *more), check=True, capture_output=True)
    prefix = tmp_path / "killed"
    log = Path(f"{prefix}.run1.log")
    for lines in (30, 80, 150):  # of 300
        killed_after(command(prefix, *more), log, lines)
    done = subprocess.run(command(prefix, *more), check=True, capture_output=True, text=True)
    assert "resumed at generation" in " ".join(done.stdout.split())
    for kind in ("run1.log", "run1.trees", "run2.log", "run2.trees", "mcc.tre"):
        assert Path(f"{prefix}.{kind}").read_text() == (tmp_path / f"whole.{kind}").read_text()
    again = subprocess.run(command(prefix, *more), check=True, capture_output=True, text=True)
    assert "was finished before" in " ".join(again.stdout.split())
    other = subprocess.run(command(prefix, *more, "--seed", "2"), capture_output=True, text=True)
    assert other.returncode == 2


@needs_mpi
def test_a_killed_process_ends_all_and_one_goes_on(tmp_path):
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    prefix = tmp_path / "killed"
    begun = subprocess.Popen(
        ["mpiexec", "-n", "2", *command(prefix)],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    log = Path(f"{prefix}.run1.log")
    while begun.poll() is None and not (log.exists() and log.read_text().count("\n") > 60):
        time.sleep(0.01)
    children = subprocess.run(["pgrep", "-P", str(begun.pid)], capture_output=True, text=True, check=True)
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
    said, _ = begun.communicate(timeout=300)
    assert re.search(r"rank 1 .*signal 9", said) and not Path(f"{prefix}.mcc.tre").exists()
    done = subprocess.run(command(prefix), check=True, capture_output=True, text=True)
    assert "resumed at generation" in " ".join(done.stdout.split())
    for kind in ("run1.log", "run1.trees", "run2.log", "run2.trees", "mcc.tre"):
        assert Path(f"{prefix}.{kind}").read_text() == (tmp_path / f"whole.{kind}").read_text()
