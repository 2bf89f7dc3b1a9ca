"""Wrong moves, registered as right ones are, are noticed in what the sampler draws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow  # compiles the sampler anew; test_moves.py has the errors of single moves
def test_errors_of_registered_moves_show_in_what_is_drawn(tmp_path):
    """The tests of planted_moves.py, each of which a wrong move must fail to spoil."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name("planted_moves.py"))],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "25 passed" in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
