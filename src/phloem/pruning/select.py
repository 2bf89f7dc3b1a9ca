"""The only place that decides where a likelihood runs, and says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from phloem.errors import DeviceError, require_choice
from phloem.hardware.limits import require_threads
from phloem.hardware.machine import gpu_is_here, require_torch, usable_cores, why_not_gpu
from phloem.pruning.along_sites import AlongSites
from phloem.pruning.gpu.cost import (
    LOADING_SECONDS,
    WORTH_SECONDS,
    ChainPlan,
    Speeds,
    advise,
    advise_chains,
    advise_search,
    lacking_for_search,
)
from phloem.pruning.interface import FLOAT32_STATES, Evaluator, Problem, refuse_slow_precision
from phloem.pruning.tree_data import layout_key

ENGINES = ("auto", "reference", "cpu", "gpu")
CHAIN_DEVICES = ("auto", "cpu", "gpu")
PRECISIONS = ("float64", "float32")

# Below this many message entries (distinct columns of internal nodes × states × categories) a second thread
# costs more than it saves: some 0.25 ms a likelihood on one core (docs/performance.md).
SMALL_PROBLEM = 150_000


@dataclass(frozen=True)
class Selection:
    """What will run and why. make builds the evaluator."""

    engine: str
    threads: int
    precision: str
    reason: str
    make: Callable[[Problem], Evaluator]


def select_parts(requested: str, problems: Sequence[Problem], threads: int | None = None) -> list[Selection]:
    """select_engine for the parts of an alignment. Those of one layout have one answer: on a GPU they share
    launches, so that what pays is asked of all of them together."""
    groups: dict[tuple, list[int]] = {}
    for i, problem in enumerate(problems):
        groups.setdefault(layout_key(problem), []).append(i)
    entries, found = sum(map(entries_at_tips, problems)), dict[int, Selection]()
    for own in groups.values():
        together = [problems[i] for i in own]
        beside = entries - entries_at_tips(together[0])
        found |= dict.fromkeys(own, select_engine(requested, together[0], threads, beside, together))
    return [found[i] for i in range(len(problems))]


def select_engine(
    requested: str, problem: Problem, threads: int | None = None, beside: int = 0,
    together: Sequence[Problem] = (),
) -> Selection:  # fmt: skip
    """Choose engine and threads for a problem.

    requested: one of ENGINES. threads: None lets phloem choose. beside: entries at the tips of other parts
    that the same threads evaluate; together: parts, this one included, that share launches on a GPU. Raises
    InputError for an unknown name, for what is no number of threads and for float32 where it gains nothing,
    DeviceError where the engine asked for cannot run here (there is no fallback behind the user's back).
    """
    require_threads(threads)
    require_choice("engine", requested, ENGINES)
    require_choice("precision", problem.precision, PRECISIONS)
    along = problem.order is not None
    if along:
        require_cpu_for_order(requested)
    if requested == "reference":
        return Selection("reference", 1, problem.precision, "asked for: the NumPy reference", _make_reference)
    if requested == "gpu":
        return _gpu(problem)
    may_use_gpu = requested == "auto" and threads is None and not along and gpu_is_here()
    if may_use_gpu and problem.precision == "float32":
        if problem.state_sets.shape[1] < FLOAT32_STATES:
            return _gpu(problem, "chosen: float32 is not offered on CPUs for few states")
    refuse_slow_precision(problem)
    chosen, why_threads = _choose_threads(problem, beside, threads)
    why = "asked for"
    if requested == "auto":
        why = f"chosen: {ALONG_SITES if along else why_not_gpu()}"
        if may_use_gpu:
            use_gpu, reason = _compare(together or [problem], chosen)
            why = f"chosen: {reason}"
            if use_gpu:
                return _gpu(problem, why)
    make = partial(_make_cpu, threads=chosen)
    return Selection("cpu", chosen, problem.precision, f"CPU {why}; {why_threads}", make)


ALONG_SITES = "rates that are correlated along the sites are summed over there only"  # why, as a clause


def require_cpu_for_order(requested: str) -> None:
    """DeviceError where a GPU is asked for what goes along the sites one after the other."""
    if requested == "gpu":
        raise DeviceError(
            "rates that are correlated along the sites (+AG) are evaluated on CPUs only",
            hint="Leave the GPU out, or write +G in place of +AG.",
        )


def _compare(problems: Sequence[Problem], cores: int) -> tuple[bool, str]:
    """Whether to use the GPU, and why. Engines are measured only where a first guess says it might pay."""
    problem, advice = problems[0], advise(problems, cores)
    if advice.cpu_seconds < WORTH_SECONDS / 2:
        return False, advice.reason
    from phloem.pruning.calibration import calibrated_speeds

    try:
        speeds = calibrated_speeds(problem.state_sets.shape[1], problem.precision, cores)
    except DeviceError as problem_there:
        return False, f"the GPU cannot be used: {problem_there}"
    if speeds is not None:
        advice = advise(problems, cores, speeds)
    return advice.use_gpu, advice.reason


def select_chains(
    requested: str, problems: Callable[[], Sequence[Problem]], plan: ChainPlan, threads: int | None = None
) -> Selection:
    """Choose where chains are evaluated: auto, cpu or gpu. problems: of the parts, asked for only where an
    answer depends on them. InputError and DeviceError as select_engine."""
    require_threads(threads)
    require_choice("device", requested, CHAIN_DEVICES)
    cores = threads or usable_cores()[0]
    use_gpu, why = requested == "gpu", "asked for"
    if requested == "auto":
        use_gpu, why = False, f"chosen: {why_not_gpu()}"
        if gpu_is_here():
            use_gpu, reason = _compare_chains(problems(), plan, cores)
            why = f"chosen: {reason}"
    if use_gpu:
        return chains_on_gpu(why)
    return chains_on_cpu(why, cores)


def chains_on_cpu(why: str, threads: int) -> Selection:
    """The sampler on the CPU. why: a clause."""
    how = "kernels in a compiled loop; runs and their chains share the threads"
    return Selection("cpu", threads, "float64", f"CPU {why}; {how}", _no_evaluator)


def chains_on_gpu(why: str, precision: str = "float64") -> Selection:
    """The sampler on a GPU; DeviceError where there is none, or no PyTorch. why: a clause."""
    require_torch()
    from phloem.pruning.gpu.evaluator import device_name, find_device

    name = device_name(find_device())
    how = "all chains of a thread in one launch a generation"
    how += ", conditional likelihoods in float32" if precision == "float32" else ""
    return Selection("gpu", 1, precision, f"GPU {why} ({name}); {how}", _no_evaluator)


def _no_evaluator(_: Problem) -> Evaluator:
    raise DeviceError("samplers and searches evaluate by themselves")


def _compare_chains(problems: Sequence[Problem], plan: ChainPlan, cores: int) -> tuple[bool, str]:
    """Whether chains run on the GPU, and why; measured as in _compare."""
    speeds: list[Speeds | None] = [None] * len(problems)
    advice = advise_chains(problems, plan, cores, speeds)
    if advice.cpu_seconds < advice.gpu_seconds or not advice.saves(plan.generations, LOADING_SECONDS / 2):
        return False, advice.reason
    from phloem.pruning.calibration import calibrated_speeds

    try:
        speeds = [calibrated_speeds(p.state_sets.shape[1], p.precision, cores) for p in problems]
    except DeviceError as problem_there:
        return False, f"the GPU cannot be used: {problem_there}"
    advice = advise_chains(problems, plan, cores, speeds)
    return advice.use_gpu, advice.reason


def select_search(
    requested: str,
    groups: Callable[[], Sequence[Sequence[Problem]]],
    climbs: float,
    threads: int | None = None,
) -> Selection:
    """Choose where a search over trees has its messages: auto, cpu or gpu. groups: the parts of every set of
    branch lengths, asked for only where an answer depends on them. climbs: that are forecast. InputError and
    DeviceError as select_engine, DeviceError for what a GPU lacks or has no memory for."""
    require_threads(threads)
    require_choice("device", requested, CHAIN_DEVICES)
    why, gpu = "asked for", requested == "gpu"
    if requested == "auto":
        why = f"chosen: {why_not_gpu()}"
        if gpu_is_here() and threads is None:
            gpu, why = _compare_search(groups(), climbs)
    elif gpu:
        require_torch()
        from phloem.pruning.gpu.directed_memory import require_search

        require_search(groups())
    if not gpu:
        return Selection("cpu", threads or usable_cores()[0], "float64", f"CPU {why}", _no_evaluator)
    from phloem.pruning.gpu.evaluator import device_name, find_device

    return Selection("gpu", 1, "float64", f"GPU {why} ({device_name(find_device())})", _no_evaluator)


def _compare_search(groups: Sequence[Sequence[Problem]], climbs: float) -> tuple[bool, str]:
    """Whether a search is on the GPU, and why."""
    problems = [problem for group in groups for problem in group]
    advice = advise_search(problems, climbs, usable_cores()[0])
    lacking = next(filter(None, map(lacking_for_search, problems)), None)
    if lacking is not None or not advice.use_gpu:
        return False, f"chosen: {lacking or advice.reason}"
    from phloem.pruning.gpu.directed_memory import require_search

    try:
        require_search(groups)
    except DeviceError as problem_there:
        return False, f"chosen: {problem_there}"
    return True, f"chosen: {advice.reason}"


def entries_at_tips(problem: Problem) -> int:
    """Tips × patterns × states × categories: the size of a problem."""
    return problem.tip_codes.size * problem.state_sets.shape[1] * problem.n_categories


def _choose_threads(problem: Problem, beside: int, threads: int | None) -> tuple[int, str]:
    cores, limit = usable_cores()
    if threads is not None:
        return threads, _plural(threads) + " asked for"
    if cores > 1:
        entries, where = entries_at_tips(problem) + beside, "at the tips"
        if entries >= SMALL_PROBLEM and not beside:
            entries, where = _message_entries(problem), "of messages"
        if entries < SMALL_PROBLEM:
            return 1, f"1 thread, since the problem is small ({entries:,} entries {where})"
    return cores, f"{_plural(cores)} ({limit})"


def _message_entries(problem: Problem) -> int:
    """Distinct columns of internal nodes × states × categories, or, where that is large anyway, those of the
    root, which has all patterns."""
    n_tips, n_patterns = problem.tip_codes.shape
    each = problem.state_sets.shape[1] * problem.n_categories
    if n_patterns * each >= SMALL_PROBLEM:
        return n_patterns * each
    from phloem.pruning.cpu.regions import column_sizes  # Numba: only where the answer depends on it

    return int(column_sizes(problem)[n_tips:].sum()) * each


def _plural(n: int) -> str:
    return f"{n} thread" + ("" if n == 1 else "s")


def _gpu(problem: Problem, why: str = "asked for") -> Selection:
    require_torch()
    from phloem.pruning.gpu.evaluator import device_name, find_device, make_evaluator

    name = device_name(find_device())
    return Selection("gpu", 1, problem.precision, f"GPU {why} ({name})", make_evaluator)


def _make_reference(problem: Problem) -> Evaluator:
    from phloem.pruning.reference.evaluator import ReferenceEvaluator
    from phloem.pruning.reference.neighbours import sites_together

    return (
        ReferenceEvaluator(problem)
        if problem.order is None
        else AlongSites(problem, ReferenceEvaluator, sites_together)
    )


def _make_cpu(problem: Problem, threads: int) -> Evaluator:
    from phloem.pruning.cpu.evaluator import CpuEvaluator

    if problem.order is None:
        return CpuEvaluator(problem, threads)
    from phloem.pruning.cpu.neighbours import sites_together

    return AlongSites(problem, partial(CpuEvaluator, threads=threads), sites_together)
