"""A kernel that Triton's cache lacks is announced before it is compiled; one that it holds is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from phloem.clustering.gpu.linkage import linkage_merges  # noqa: E402
from phloem.hardware.notice import NOTICES, compilation_begins, on_first_compilation  # noqa: E402

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def double(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, 2 * tl.load(x + i))
"""
# Compiled for one kind of GPU, which needs none to be there. Sizes: new, in the cache, new.
SCRIPT = """
import json
import triton
from a_kernel import double
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import phloem.pruning.gpu.kernels
from phloem.hardware.notice import on_first_compilation  # noqa: E402

heard = []
for n in (64, 64, 128):
    said = []
    on_first_compilation(said.append)
    source = ASTSource(double, {"x": "*fp32", "N": "constexpr"}, {(1,): n})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))
    heard.append(said)
print(json.dumps(heard))
"""


def test_triton_compiling_is_announced_unless_its_cache_has_the_kernel(tmp_path):
    (tmp_path / "a_kernel.py").write_text(KERNEL)
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [[NOTICES["gpu"]], [], [NOTICES["gpu"]]]


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled here")
def test_the_interpreter_is_not_called_a_compiler():
    said: list[str] = []
    on_first_compilation(said.append)
    distances = torch.from_numpy(1.0 - np.eye(4))
    linkage_merges(distances, "upgma")
    assert said == []
    compilation_begins("gpu")
    assert said == [NOTICES["gpu"]]
