"""How fast this machine's engines are: measured once for each kind of problem, kept in the user's cache."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path

import numpy as np

from phloem import __version__
from phloem.hardware.machine import detect_hardware
from phloem.model.record import EigenSystem, ProcessNumbers, SiteModel
from phloem.pruning.gpu.cost import Speeds, gradient_flop, tree_levels
from phloem.pruning.interface import Evaluator, Problem

# Operations of the sample that fills a GPU; a core of the CPU gets a sixteenth of its patterns.
SAMPLE_FLOP = 1e10
CORES_FOR_ALL = 16
SAMPLE_TIPS = 32
CALLS = 7

_announce: list[Callable[[], None]] = []


def on_calibration(callback: Callable[[], None]) -> None:
    """Call callback, once, if this process measures the engines (some seconds, more if kernels compile)."""
    _announce[:] = [callback]


def calibration_file() -> Path:
    """Where speeds are kept: phloem/engine-speeds.json in XDG_CACHE_HOME or ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "phloem" / "engine-speeds.json"


def calibrated_speeds(n_states: int, precision: str, cores: int) -> Speeds | None:
    """Speeds measured on this machine, now if they were not before; None where they could not be kept.

    They belong to the processor, the GPU and the versions of PyTorch and phloem; cores is what the CPU engine
    may use. DeviceError where PyTorch finds no GPU.
    """
    kind = f"{n_states} states, {precision}, {cores} core" + "s" * (cores > 1)
    found = known_speeds().get(kind)
    if found is not None or not _can_write():
        return found
    for callback in _announce:
        callback()
    _announce.clear()
    speeds = measure_speeds(n_states, precision, cores)
    known = _read()
    known.setdefault(_machine(), {})[kind] = asdict(speeds)
    _write(known)
    return speeds


def known_speeds() -> dict[str, Speeds]:
    """Kind of problem → speeds, of those that were measured on this machine."""
    return {kind: Speeds(**numbers) for kind, numbers in _read().get(_machine(), {}).items()}


def measure_speeds(n_states: int, precision: str, cores: int) -> Speeds:
    """Time both engines on three samples: two that are all latency, one that fills the GPU."""
    from phloem.pruning.cpu.evaluator import CpuEvaluator
    from phloem.pruning.gpu.evaluator import make_evaluator

    categories = 4 if n_states <= 4 else 1
    patterns = int(SAMPLE_FLOP / (6 * n_states**2 * categories * (2 * SAMPLE_TIPS - 1)))
    full = sample_problem(n_states, precision, max(512, min(patterns, 16_384)), categories)
    flat = _with_patterns(full, 8)
    left, right = _chain()
    deep = replace(flat, left=left, right=right)
    seconds = {name: _seconds(make_evaluator(p), p) for name, p in (("flat", flat), ("deep", deep))}
    level = max(seconds["deep"] - seconds["flat"], 0.0) / (tree_levels(deep) - tree_levels(flat))
    call = max(seconds["flat"] - level * tree_levels(flat), 1e-6)
    work = max(_seconds(make_evaluator(full), full) - seconds["flat"], 1e-6)
    part = _with_patterns(full, full.tip_codes.shape[1] * min(cores, CORES_FOR_ALL) // CORES_FOR_ALL)
    there = _seconds(CpuEvaluator(part, cores), part)
    return Speeds(call, level, gradient_flop(full) / work, gradient_flop(part) / there)


def sample_problem(n_states: int, precision: str, n_patterns: int, n_categories: int) -> Problem:
    """Random characters on a balanced tree, every column its own."""
    codes = np.random.default_rng(1).integers(n_states, size=(SAMPLE_TIPS, n_patterns))
    pairs = np.arange(2 * SAMPLE_TIPS - 2, dtype=np.int32).reshape(-1, 2)
    return Problem(
        tip_codes=codes.astype(np.uint16),
        state_sets=np.eye(n_states, dtype=bool),
        pattern_weights=np.ones(n_patterns),
        ascertained=np.zeros(n_patterns, bool),
        left=pairs[:, 0].copy(),
        right=pairs[:, 1].copy(),
        n_categories=n_categories,
        precision=precision,
        repeats=False,
    )


def equal_rates(n_states: int, n_categories: int) -> SiteModel:
    """All exchanges equally likely."""
    q = (np.ones((n_states, n_states)) - n_states * np.eye(n_states)) / (n_states - 1)
    values, vectors = np.linalg.eigh(q)
    frequencies = np.full(n_states, 1 / n_states)
    weights = np.full(n_categories, 1 / n_categories)
    eigen = EigenSystem(values, vectors, np.ascontiguousarray(vectors.T))
    process = ProcessNumbers(q, frequencies, frequencies, eigen)
    return SiteModel.of_one(process, np.ones(n_categories), weights)


def _chain() -> tuple[np.ndarray, np.ndarray]:
    """Left and right children of a caterpillar tree."""
    inner = np.arange(SAMPLE_TIPS, 2 * SAMPLE_TIPS - 2)
    return np.append(0, inner).astype(np.int32), np.arange(1, SAMPLE_TIPS, dtype=np.int32)


def _with_patterns(problem: Problem, n: int) -> Problem:
    return replace(
        problem,
        tip_codes=np.ascontiguousarray(problem.tip_codes[:, :n]),
        pattern_weights=problem.pattern_weights[:n],
        ascertained=problem.ascertained[:n],
    )


def _seconds(evaluator: Evaluator, problem: Problem) -> float:
    """Median of CALLS gradients after the first, which may compile."""
    model = equal_rates(problem.state_sets.shape[1], problem.n_categories)
    lengths = np.full(2 * SAMPLE_TIPS - 1, 0.1)
    taken = []
    for _ in range(1 + CALLS):
        start = time.perf_counter()
        evaluator.gradient(lengths, model)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken[1:]))


def _machine() -> str:
    hardware = detect_hardware()
    gpus = ", ".join(gpu.name for gpu in hardware.accelerators) or "GPU"
    return f"{gpus}; {hardware.cpu}; torch {metadata.version('torch')}; phloem {__version__}"


def _read() -> dict[str, dict[str, dict[str, float]]]:
    """Everything kept; what cannot be read is measured anew."""
    try:
        known = json.loads(calibration_file().read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _can_write() -> bool:
    folder = calibration_file().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _write(known: dict[str, dict[str, dict[str, float]]]) -> None:
    """In one step, so that a reader never sees half a file."""
    target = calibration_file()
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    partial.write_text(json.dumps(known, indent=1) + "\n")
    partial.replace(target)
