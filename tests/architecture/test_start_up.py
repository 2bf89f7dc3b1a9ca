"""`import phloem` and `phloem --help` load no numerical library, so that they start at once."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("numba", "torch", "triton", "scipy", "numpy", "matplotlib", "arviz_stats", "xarray")


def loaded_after(code: str) -> list[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [name for name in json.loads(done.stdout.splitlines()[-1]) if name in HEAVY]


def test_import_is_light():
    assert loaded_after("import phloem") == []


def test_command_line_is_light():
    assert loaded_after("from phloem.cli import build_app; build_app()") == []


def test_the_check_sees_a_heavy_import():
    assert "numpy" in loaded_after("import numpy")
