"""An analysis that was killed goes on from its checkpoint, and its files are those of one that was not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from statistical.time.time_runs import killed_after

pytestmark = pytest.mark.slow
DATA = Path(__file__).parents[2] / "golden" / "time_trees" / "data"


def command(prefix: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "phloem", "time", str(DATA / "dengue4.fasta"), "--dates",
        str(DATA / "dengue4.dates.tsv"), "--model", "HKY+FO+G4", "--clock", "ucln", "--tree-prior", "skyline",
        "--pieces", "4", "--prefix", str(prefix), "--generations", "60000", "--check-every", "5000", *more,
    ]  # fmt: skip


def test_killed_and_resumed(tmp_path):
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    prefix = tmp_path / "killed"
    log = Path(f"{prefix}.run1.log")
    for lines in (30, 80, 150):  # of 300
        killed_after(command(prefix), log, lines)
    done = subprocess.run(command(prefix), check=True, capture_output=True, text=True)
    assert "resumed at generation" in " ".join(done.stdout.split())
    for kind in ("run1.log", "run1.trees", "run2.log", "run2.trees", "mcc.tre"):
        assert Path(f"{prefix}.{kind}").read_text() == (tmp_path / f"whole.{kind}").read_text()
    again = subprocess.run(command(prefix), check=True, capture_output=True, text=True)
    assert "was finished before" in " ".join(again.stdout.split())
    other = subprocess.run(command(prefix, "--seed", "2"), capture_output=True, text=True)
    assert other.returncode == 2
