"""GPU tests run on a GPU, or in Triton's interpreter where PHLOEM_TEST_GPU=1."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

ASKED = os.environ.get("PHLOEM_TEST_GPU") == "1"


def _why_not() -> str | None:
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed (pip install 'phloem[gpu]')"
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd") or ASKED:
        return None
    return "no GPU here; PHLOEM_TEST_GPU=1 runs these tests in Triton's interpreter"


REASON = _why_not()
if REASON is None and ASKED and not (os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")):
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is first imported

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and REASON is None
# Of cases of one kind those that a device runs with the others, and the interpreter in the slow suite.
LATER = [pytest.mark.slow] if INTERPRETED else []


def steps(on_a_device: int, interpreted: int) -> int:
    """How many steps a walk of chains takes; in the interpreter one takes half a second."""
    return interpreted if INTERPRETED else on_a_device


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/gpu" in item.path.as_posix():
            item.add_marker(pytest.mark.gpu)
            if REASON is not None:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session", autouse=True)
def lean_interpreter() -> None:
    if INTERPRETED:
        from gpu.lean_interpreter import make_lean

        make_lean()


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch):
    """Every allocation of the engine starts as NaN (integers: a large negative number)."""
    import torch

    empty = torch.empty

    def filled(*arguments, **options):
        array = empty(*arguments, **options)
        if array.dtype.is_floating_point:
            return array.fill_(float("nan"))
        return array.fill_(max(-1_000_000, torch.iinfo(array.dtype).min) if array.dtype.is_signed else 255)

    monkeypatch.setattr(torch, "empty", filled)
