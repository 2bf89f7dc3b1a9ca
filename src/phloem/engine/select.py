"""The only place that decides where a likelihood runs, and says why."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, get_args

from phloem.engine.gpu_cost import WORTH_SECONDS, advise
from phloem.engine.hardware import usable_cores
from phloem.engine.interface import Evaluator, Problem
from phloem.errors import DeviceError, InputError, require_choice, require_count

ENGINES = ("auto", "reference", "cpu", "gpu")
PRECISIONS = ("float64", "float32")

# Below this many message entries (columns × states × categories) a second thread costs more than it saves.
SMALL_PROBLEM = 200_000


@dataclass(frozen=True)
class Selection:
    """What will run and why. make builds the evaluator."""

    engine: str
    threads: int
    precision: str
    reason: str
    make: Callable[[Problem], Evaluator]


def select_engine(requested: str, problem: Problem, threads: int | None = None) -> Selection:
    """Choose engine and threads for a problem.

    requested: one of ENGINES. threads: None lets phloem choose. Raises InputError for an unknown name and for
    what is no number of threads, DeviceError where the engine asked for cannot run here (there is no fallback
    behind the user's back).
    """
    if threads is not None:
        require_count("threads", threads)
    require_choice("engine", requested, ENGINES)
    require_choice("precision", problem.precision, PRECISIONS)
    if requested == "reference":
        return Selection("reference", 1, problem.precision, "asked for: the NumPy reference", _make_reference)
    if requested == "gpu":
        return _gpu(problem)
    chosen, why_threads = _choose_threads(problem, threads)
    why = "asked for"
    if requested == "auto":
        why = f"chosen: {_why_not_gpu()}"
        if threads is None and gpu_is_here():
            use_gpu, reason = _compare(problem, chosen)
            why = f"chosen: {reason}"
            if use_gpu:
                return _gpu(problem, why)
    return Selection(
        "cpu", chosen, problem.precision, f"CPU {why}; {why_threads}", lambda p: _make_cpu(p, chosen)
    )


def _compare(problem: Problem, cores: int) -> tuple[bool, str]:
    """Whether to use the GPU, and why. Engines are measured only where a first guess says it might pay."""
    advice = advise(problem, cores)
    if advice.cpu_seconds < WORTH_SECONDS / 2:
        return False, advice.reason
    from phloem.engine.calibration import calibrated_speeds

    try:
        speeds = calibrated_speeds(problem.state_sets.shape[1], problem.precision, cores)
    except DeviceError as problem_there:
        return False, f"the GPU cannot be used: {problem_there}"
    if speeds is not None:
        advice = advise(problem, cores, speeds)
    return advice.use_gpu, advice.reason


Device = Literal["auto", "cpu", "gpu"]
GPU_WORTH_SECONDS = 5.0  # loading PyTorch takes about as long


def select_distance_device(
    requested: str, cpu_seconds: float, missing: str | None = None
) -> tuple[Literal["cpu", "gpu"], str]:
    """Where distances, linkage or neighbour joining run, and why.

    requested: "auto", "cpu" or "gpu". cpu_seconds: forecast for two cores. missing: what the GPU kernels lack
    for this task. Raises InputError or DeviceError as select_engine does.
    """
    require_choice("device", requested, get_args(Device))
    if requested == "gpu":
        if missing is not None:
            raise InputError(f"the GPU kernels have no {missing}", hint="Choose the CPU.")
        _require_torch()
        return "gpu", "GPU asked for"
    if requested == "cpu":
        return "cpu", "CPU asked for"
    if missing is not None:
        return "cpu", f"CPU chosen: the GPU kernels have no {missing}"
    if not gpu_is_here():
        return "cpu", f"CPU chosen: {_why_not_gpu()}"
    if cpu_seconds < GPU_WORTH_SECONDS:
        return "cpu", f"CPU chosen: about {cpu_seconds:.1g} s, less than a GPU takes to start"
    return "gpu", f"GPU chosen: about {cpu_seconds:.0f} s on two cores"


def _choose_threads(problem: Problem, threads: int | None) -> tuple[int, str]:
    cores, limit = usable_cores()
    if threads is not None:
        return threads, _plural(threads) + " asked for"
    entries = problem.tip_codes.size * problem.state_sets.shape[1] * problem.n_categories
    if cores > 1 and entries < SMALL_PROBLEM:
        return 1, f"1 thread, since the problem is small ({entries:,} entries at the tips)"
    return cores, f"{_plural(cores)} ({limit})"


def _plural(n: int) -> str:
    return f"{n} thread" + ("" if n == 1 else "s")


def _why_not_gpu() -> str:
    if not _driver_is_here():
        return "no GPU here"
    if find_spec("torch") is None:
        return "the GPU needs PyTorch, which is not installed (pip install 'phloem[gpu]')"
    return "threads were asked for"


def gpu_is_here() -> bool:
    """A driver and PyTorch; whether they fit each other shows when the engine is built."""
    return _driver_is_here() and find_spec("torch") is not None


def _driver_is_here() -> bool:
    """NVIDIA's or AMD's."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")


def _require_torch() -> None:
    if find_spec("torch") is None:
        raise DeviceError("the GPU needs PyTorch, which is not installed: pip install 'phloem[gpu]'")


def _gpu(problem: Problem, why: str = "asked for") -> Selection:
    _require_torch()
    from phloem.engine.gpu import device_name, find_device, make_evaluator

    name = device_name(find_device())
    return Selection("gpu", 1, problem.precision, f"GPU {why} ({name})", make_evaluator)


def _make_reference(problem: Problem) -> Evaluator:
    from phloem.engine.reference import ReferenceEvaluator

    return ReferenceEvaluator(problem)


def _make_cpu(problem: Problem, threads: int) -> Evaluator:
    from phloem.engine.cpu import CpuEvaluator

    return CpuEvaluator(problem, threads)
