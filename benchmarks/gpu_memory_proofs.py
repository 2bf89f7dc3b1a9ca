"""Problems that need tens of GB on a GPU: offsets past 32 bits, and 20,000 branches at 256 states in 24 GB.

Parts of gpu_likelihood.py that run only when named.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from gpu_times import call_times
from problems import Case, equal_exchange_model, simulated

from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.gpu.blocks import RESERVED_BYTES, forecast_device_bytes
from phloem.pruning.gpu.evaluator import GpuEvaluator, make_evaluator


def large(arguments, rows: list[dict]) -> None:
    """31 taxa × 360,031 amino-acid sites: a message array past 2**31 elements, whole and in blocks."""
    case = simulated(31, 360_031, 20, 32, length=0.5)
    torch.cuda.empty_cache()  # of what ran before
    torch.cuda.reset_peak_memory_stats()
    forecast = forecast_device_bytes(case.problem)
    whole = make_evaluator(case.problem)
    start = time.perf_counter()
    found = whole.gradient(case.lengths, case.model)
    seconds = time.perf_counter() - start
    if not isinstance(whole, GpuEvaluator):
        sys.exit("the device is too small for this part")
    elements = whole._batch.launch.arrays["messages"].numel()
    peak = torch.cuda.max_memory_allocated()
    del whole
    torch.cuda.empty_cache()
    split = make_evaluator(case.problem, 24 << 30)
    wanted = split.gradient(case.lengths, case.model)
    value = abs(found.log_likelihood / wanted.log_likelihood - 1)
    slope = np.abs(found.branch_lengths - wanted.branch_lengths).max() / np.abs(wanted.branch_lengths).max()
    if value > 1e-11 or slope > 1e-9:
        sys.exit(f"RED large: {value} {slope}")
    print(
        f"large: {elements:,} elements, {type(split).__name__} agrees to {value:.1e} and {slope:.1e}; "
        f"first gradient {seconds:.2f} s, forecast {forecast / 2**30:.2f} GiB, peak {peak / 2**30:.2f} GiB"
    )


def branches(arguments, rows: list[dict]) -> None:
    """20,000 branches at 256 states in float64, branch and model gradients, in a process limited to 24 GB."""
    limit, total = 24 * 10**9, torch.cuda.get_device_properties(0).total_memory
    case = simulated(10_001, 32, 256, 1)
    forecast = forecast_device_bytes(case.problem, parameters=True)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(limit / total)
    torch.cuda.reset_peak_memory_stats()
    gpu = make_evaluator(case.problem, limit - RESERVED_BYTES)
    found = gpu.gradient(case.lengths, case.model, parameters=True)
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    if abs(forecast / peak - 1) > 0.1 or reserved > limit:
        sys.exit(f"RED branches: forecast {forecast:,}, peak {peak:,}, reserved {reserved:,} bytes")
    errors = _branch_errors(arguments, case, gpu, found)
    if not all(error < bound for error, bound in zip(errors, (1e-9, 1e-8, 1e-8, 1e-5))):
        sys.exit(f"RED branches: {errors}")
    call = call_times(lambda: gpu.gradient(case.lengths, case.model), 5)[1]
    parameters = call_times(lambda: gpu.gradient(case.lengths, case.model, True), 3)[1]
    torch.cuda.set_per_process_memory_fraction(1.0)
    rows.append(
        {
            "problem": case.name,
            "precision": "float64",
            "value_error": f"{errors[0]:.1e}",
            "gradient_error": f"{errors[1]:.1e}",
            "gradient_call_ms": f"{call:.1f}",
            "parameters_call_ms": f"{parameters:.1f}",
            "forecast_mib": f"{forecast / 2**20:.0f}",
            "peak_mib": f"{peak / 2**20:.0f}",
        }
    )
    print(
        f"branches: {case.name}, forecast {forecast / 1e9:.2f} GB, peak {peak / 1e9:.2f} GB allocated and "
        f"{reserved / 1e9:.2f} GB reserved of {limit / 1e9:.0f}; gradient {call:.0f} ms, with the model's "
        f"{parameters:.0f} ms; value, branches, ⟨dQ, Q⟩ and frequencies off by "
        f"{', '.join(f'{error:.1e}' for error in errors)}",
        flush=True,
    )


def _branch_errors(arguments, case: Case, gpu, found) -> tuple[float, float, float, float]:
    """Relative errors of the value and the branch derivatives against the CPU engine; of ⟨d Q, Q⟩ against
    Σ length · derivative, which it must equal; of a change of the frequencies against differences of values.
    """
    wanted = CpuEvaluator(case.problem, arguments.threads).gradient(case.lengths, case.model)
    value = abs(found.log_likelihood / wanted.log_likelihood - 1)
    slope = np.abs(found.branch_lengths - wanted.branch_lengths).max() / np.abs(wanted.branch_lengths).max()
    whole = case.lengths @ found.branch_lengths
    by_process, frequencies = found.site_model.processes[0], case.model.single.root_frequencies
    scaled = abs((by_process.rate_matrix * case.model.single.rate_matrix).sum() / whole - 1)
    direction, step = np.random.default_rng(1).normal(size=len(frequencies)), 1e-4
    tilted = [frequencies * np.exp(sign * step * direction) for sign in (1, -1)]
    up, down = (equal_exchange_model(f / f.sum()) for f in tilted)
    difference = gpu.log_likelihood(case.lengths, up) - gpu.log_likelihood(case.lengths, down)
    up, down = up.single, down.single
    by_gradient = (by_process.rate_matrix * (up.rate_matrix - down.rate_matrix)).sum()
    by_gradient += by_process.root_frequencies @ (up.root_frequencies - down.root_frequencies)
    return value, float(slope), float(scaled), float(abs(by_gradient / difference - 1))
