"""Compiled code in processes of their own that share a cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def told_elsewhere(folder: Path, code: str, *arguments: str) -> str:
    """What another process prints that runs code, with the folder's modules and a cache in the folder."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env={**os.environ, **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
