"""One likelihood in cells: ranges of site patterns that are evaluated apart, here, on several GPUs or in
several processes.

Where cells begin and end depends on the problem and the kind of engine alone, and their sums are added with
compensation, in the order of cells. So numbers depend neither on how many processes or GPUs there are nor on
which has which cells; one has the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, count, pairwise
from typing import Any, Literal, Protocol

import numpy as np

from phloem.errors import NumericalError
from phloem.hardware.ranks import Ranks
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.pruning.calibration import equal_rates
from phloem.pruning.interface import EngineGradient, Evaluator, Problem
from phloem.pruning.select import Selection, select_engine

Engine = Literal["auto", "reference", "cpu", "gpu"]

# What cells do twice must be little: transition matrices, and columns that look alike below a node in several
# of them (docs/clusters.md has the measurements). The reference is the specification, in one piece.
LEAST_WORK = {"cpu": 5e7, "gpu": 5e9}  # of a cell: entries of messages × (states + PASSING)
PASSING = 20  # what an entry takes beside its products, in these
LEAST_COLUMNS = 50  # of a cell, an inner node and state
MOST_CELLS = 16


@dataclass(frozen=True)
class OnRanks:
    """An engine on processes of which the first uses this, and the others assist (hardware/ranks.py); or on
    several GPUs of one process."""

    engine: Engine
    ranks: Ranks
    gpus: int = 1


def chosen(
    engine: Engine | OnRanks, problem: Problem, threads: int | None = None
) -> tuple[Selection, Evaluator]:
    """What evaluates a problem and why, and it. Errors as select_engine."""
    asked = engine if isinstance(engine, OnRanks) else OnRanks(engine, Ranks())
    selection = select_engine(asked.engine, problem, threads)
    n_cells, ranks = cells_of(problem, selection.engine), asked.ranks
    gpus = asked.gpus if selection.engine == "gpu" and ranks.size == 1 else 1
    if n_cells == 1:
        idle, what = max(ranks.size, gpus) - 1, f"{ranks.size} processes, {ranks.how}"
        if idle:
            what = what if ranks.size > 1 else f"{gpus} GPUs"
            why = f"{selection.reason}; {what}; {idle} idle: there is too little to divide"
            selection = replace(selection, reason=why)
        return selection, selection.make(problem)
    order, problems = in_cells(problem, n_cells)
    if ranks.size > 1:
        if threads is None:
            selection = replace(selection, threads=min(selection.threads, ranks.cores))
        shares, text = measured_shares(ranks, selection, problems)
        if selection.engine == "cpu" and len(shares) > 1:
            text += f", {selection.threads} thread{'s' * (selection.threads > 1)} each"
        selection = replace(selection, reason=f"{selection.reason}; {text}")
        if len(shares) > 1:
            return selection, GridEvaluator(order, AmongRanks(ranks, selection, problems, shares))
    if gpus > 1:
        shares, text = measured_on_gpus(gpus, selection, problems)
        selection = replace(selection, reason=f"{selection.reason}; {text}")
        if len(shares) > 1:
            return selection, GridEvaluator(order, AmongGpus(selection, problems, shares))
    return selection, GridEvaluator(order, InThisProcess([selection.make(p) for p in problems]))


# The grid.


def cells_of(problem: Problem, engine: str) -> int:
    """How many cells a problem has, by the distinct columns of its inner nodes; of GPUs, which are alike and
    come in powers of two, a power of two."""
    if engine not in LEAST_WORK or problem.order is not None:  # neighbours stay together
        return 1
    (n_tips, n_patterns), n_states = problem.tip_codes.shape, problem.state_sets.shape[1]
    each = problem.n_categories * n_states * (n_states + PASSING)

    def most(columns: int) -> int:
        by_columns = columns // ((n_tips - 1) * LEAST_COLUMNS * n_states)
        n = max(1, min(MOST_CELLS, int(columns * each // LEAST_WORK[engine]), by_columns))
        return 1 << n.bit_length() - 1 if engine == "gpu" else n

    if most(n_patterns * (n_tips - 1)) == 1:
        return 1
    from phloem.pruning.cpu.regions import column_sizes  # Numba: only where the answer depends on it

    return most(int(column_sizes(problem)[n_tips:].sum()))


def in_cells(problem: Problem, n_cells: int) -> tuple[np.ndarray, list[Problem]]:
    """The observed patterns as they follow in cells, and the problems of these."""
    order = alike_together(problem)
    bounds = [k * len(order) // n_cells for k in range(n_cells + 1)]
    return order, [cell_problem(problem, order[a:b]) for a, b in pairwise(bounds)]


def alike_together(problem: Problem) -> np.ndarray:
    """Numbers of the observed patterns, sorted by their characters at the tips in the tree's order: what
    looks alike below many nodes is together then, and few cells have the same columns."""
    n_tips, tips, ahead = len(problem.tip_codes), list[int](), [2 * len(problem.left)]
    while ahead:
        x = ahead.pop()
        if x < n_tips:
            tips.append(x)
        else:
            ahead += [int(problem.right[x - n_tips]), int(problem.left[x - n_tips])]
    observed = np.flatnonzero(~problem.ascertained)
    columns = np.ascontiguousarray(problem.tip_codes[tips][:, observed].T)
    columns = columns.view(np.dtype((np.void, columns.itemsize * n_tips))).ravel()
    return observed[np.argsort(columns, kind="stable")]


def cell_problem(problem: Problem, patterns: np.ndarray) -> Problem:
    """Of some patterns, with all that stand for unobservable ones: what is subtracted for these is a sum over
    the observed characters, so that values of cells add up under +ASC, too."""
    own = np.append(patterns, np.flatnonzero(problem.ascertained))
    return replace(
        problem,
        tip_codes=np.ascontiguousarray(problem.tip_codes[:, own]),
        pattern_weights=problem.pattern_weights[own],
        ascertained=problem.ascertained[own],
    )


# The evaluator.


class Cells(Protocol):
    """Who is asked. What a cell cannot evaluate is an error in place of its answer."""

    def ask(self, method: str, *arguments: Any) -> list[Any]: ...


class GridEvaluator:
    """Evaluator (pruning/interface.py) over cells. order: the observed patterns, as they follow in cells; all
    others stand for unobservable ones, and are in every cell."""

    name = "grid"

    def __init__(self, order: np.ndarray, cells: Cells) -> None:
        self._order, self._cells = order, cells

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        return float(in_order(self._asked("log_likelihood", lengths, model)))

    def site_log_likelihoods(self) -> np.ndarray:
        return self._along_patterns(self._asked("site_log_likelihoods"))

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        found: list[EngineGradient] = self._asked("gradient", lengths, model, parameters)
        by_model = [one.site_model for one in found if one.site_model is not None]
        return EngineGradient(
            float(in_order([one.log_likelihood for one in found])),
            in_order([one.branch_lengths for one in found]),
            _sum_of_models(by_model) if by_model else None,
        )

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        return self._along_patterns(self._asked("site_branch_derivatives", lengths, model))

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        return in_order(self._asked("second_derivatives", lengths, model))

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        try:
            return float(in_order(self._asked("propose", lengths, changed, model, left, right)))
        except NumericalError:
            self._cells.ask(_FORGET)
            raise

    def accept(self) -> None:
        self._asked("accept")

    def reject(self) -> None:
        self._asked("reject")

    def _asked(self, method: str, *arguments: Any) -> list[Any]:
        found = self._cells.ask(method, *arguments)
        for answer in found:
            if isinstance(answer, NumericalError):
                raise answer
        return found

    def _along_patterns(self, found: Sequence[np.ndarray]) -> np.ndarray:
        """The last axes of what cells say, patterns where they belong."""
        n_hidden = (sum(part.shape[-1] for part in found) - len(self._order)) // len(found)
        whole = np.empty((*found[0].shape[:-1], len(self._order) + n_hidden))
        ends = [part.shape[-1] - n_hidden for part in found]
        whole[..., self._order] = np.concatenate([p[..., :end] for p, end in zip(found, ends)], axis=-1)
        hidden = np.delete(np.arange(whole.shape[-1]), self._order)
        whole[..., hidden] = found[-1][..., ends[-1] :]
        return whole


def in_order(parts: Sequence[Any]) -> np.ndarray:
    """The sum of arrays, one after the other, with what every addition rounds away added at the end
    (Neumaier 1974; Knuth's two-sum)."""
    total = np.array(parts[0], np.float64)
    lost = np.zeros_like(total)
    with np.errstate(invalid="ignore"):  # of infinities, which stay
        for part in parts[1:]:
            new = total + part
            back = new - total
            lost += (total - (new - back)) + (part - back)
            total = new
        return np.where(np.isfinite(total), total + lost, total)


def _sum_of_models(found: Sequence[SiteModelGradient]) -> SiteModelGradient:
    processes = [
        ProcessGradient(
            in_order([one.processes[m].rate_matrix for one in found]),
            in_order([one.processes[m].root_frequencies for one in found]),
        )
        for m in range(len(found[0].processes))
    ]
    return SiteModelGradient(
        tuple(processes),
        in_order([one.rates for one in found]),
        in_order([one.weights for one in found]),
        float(in_order([one.invariant for one in found])),
        in_order([one.invariant_frequencies for one in found]),
    )


_FORGET = "forget"


def _answer(evaluator: Evaluator, method: str, arguments: tuple) -> Any:
    """What a cell's evaluator says; _FORGET: that it takes back a proposal, if there is one."""
    if method == _FORGET:
        try:
            return evaluator.reject()
        except RuntimeError:
            return None
    try:
        return getattr(evaluator, method)(*arguments)
    except NumericalError as error:
        return error


@dataclass(frozen=True)
class InThisProcess:
    """Cells one after the other."""

    evaluators: Sequence[Evaluator]

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        return [_answer(one, method, arguments) for one in self.evaluators]


class AmongGpus:
    """Cells on GPUs that this process sees, each asked by a thread of its own: shares says how many each has,
    from the first on, neighbours together."""

    def __init__(self, selection: Selection, problems: Sequence[Problem], shares: Sequence[int]) -> None:
        from phloem.hardware.gpu_device import on_gpu

        self._pool, self._on, self._own = ThreadPoolExecutor(len(shares), "phloem"), on_gpu, []
        for k, (n, end) in enumerate(zip(shares, accumulate(shares))):
            with on_gpu(k):
                self._own.append(InThisProcess([selection.make(p) for p in problems[end - n : end]]))

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        found = [self._pool.submit(self._ask, k, method, arguments) for k in range(len(self._own))]
        return [answer for one in found for answer in one.result()]

    def _ask(self, k: int, method: str, arguments: tuple) -> list[Any]:
        with self._on(k):
            return self._own[k].ask(method, *arguments)


# Several processes. The first asks, and has cells as the others have; these keep theirs by a number.

_HELD: dict[tuple[int, int], InThisProcess] = {}  # by the grid's number, and the process's
_NUMBERS = count()


class AmongRanks:
    """Cells on ranks: shares says how many each has, neighbours together; ranks behind have none."""

    def __init__(
        self, ranks: Ranks, selection: Selection, problems: Sequence[Problem], shares: Sequence[int]
    ) -> None:
        self._ranks, self._number = ranks, next(_NUMBERS)
        ends = list(accumulate(shares))
        own = [list(problems[end - n : end]) for n, end in zip(shares, ends)]
        parts = own + [[] for _ in range(ranks.size - len(own))]
        ranks.together(_open, self._number, selection.engine, selection.threads, parts=parts)

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        found = self._ranks.together(_ask, self._number, method, arguments)
        return [answer for part in found for answer in part]


def _open(ranks: Ranks, number: int, engine: Engine, threads: int, parts=None) -> None:
    own: list[Problem] = ranks.scatter(parts)
    made = [select_engine(engine, problem, threads).make(problem) for problem in own]
    _HELD[number, ranks.number] = InThisProcess(made)


def _ask(ranks: Ranks, number: int, method: str, arguments: tuple) -> list[list[Any]] | None:
    return ranks.gather(_HELD[number, ranks.number].ask(method, *arguments))


# How many of the processes or GPUs are of use, and what each has.


def measured_shares(ranks: Ranks, selection: Selection, problems: Sequence[Problem]) -> tuple[list[int], str]:
    """How many cells each of the first ranks has, by measured speeds, and that in words."""
    seconds = ranks.together(_seconds_of_a_cell, selection.engine, selection.threads, problems[0])
    n_states, n_nodes = problems[0].state_sets.shape[1], 2 * len(problems[0].tip_codes) - 1
    numbers = n_nodes + problems[0].n_categories * (n_states + 2) + 3 * n_states**2
    message = fastest(lambda: ranks.together(_exchanged, np.zeros(numbers)))
    shares = useful_shares(len(problems), seconds, message)
    return shares, _shares_text(
        f"{ranks.size} processes, {ranks.how}", "process", shares, message, ranks.size
    )


def measured_on_gpus(n: int, selection: Selection, problems: Sequence[Problem]) -> tuple[list[int], str]:
    """measured_shares of the first n GPUs that this process sees. DeviceError where it sees fewer."""
    from phloem.hardware.gpu_device import on_gpu, require_gpus

    require_gpus(n)
    seconds = []
    for k in range(n):
        with on_gpu(k):
            evaluate = _evaluation("gpu", selection.threads, problems[0])
            evaluate()
            seconds.append(fastest(evaluate))
    with ThreadPoolExecutor(n) as pool:
        message = fastest(lambda: list(pool.map(abs, range(n))))
    shares = useful_shares(len(problems), seconds, message)
    return shares, _shares_text(f"{n} GPUs", "GPU", shares, message, n)


def _shares_text(what: str, one: str, shares: Sequence[int], message: float, size: int) -> str:
    each = f"{min(shares)} to {max(shares)}" if min(shares) < max(shares) else f"{shares[0]}"
    text = f"{what}; {sum(shares)} cells of columns, {each} a {one}"
    if idle := size - len(shares):
        text += f", {idle} idle: messages of {1e3 * message:.2g} ms would take longer than more of them save"
    return text


def useful_shares(n_cells: int, seconds: Sequence[float], message: float) -> list[int]:
    """Cells of each rank, from 0 on; fewer ranks than there are where more would be slower. seconds: a cell
    takes on each; message: asking all of them takes, nothing where one has all."""
    found = [(n_cells * seconds[0], [n_cells])]
    for size in range(2, min(len(seconds), n_cells) + 1):
        shares = [1] * size
        for _ in range(n_cells - size):  # a cell more to whoever is ready first with it
            k = min(range(size), key=lambda k: ((shares[k] + 1) * seconds[k], k))
            shares[k] += 1
        found.append((max(n * s for n, s in zip(shares, seconds)) + message, shares))
    return min(found, key=lambda one: (one[0], len(one[1])))[1]


def fastest(work: Callable[[], Any], times: int = 4) -> float:
    """Seconds, the least of some."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def _seconds_of_a_cell(ranks: Ranks, engine: Engine, threads: int, problem: Problem) -> list[float] | None:
    evaluate = _evaluation(engine, threads, problem)
    ranks.gather(evaluate())  # all have compiled what they need
    return ranks.gather(fastest(evaluate))


def _evaluation(engine: Engine, threads: int, problem: Problem) -> Callable[[], float]:
    evaluator = select_engine(engine, problem, threads).make(problem)
    lengths = np.full(2 * len(problem.left) + 1, 0.1)
    model = equal_rates(problem.state_sets.shape[1], problem.n_categories)
    return lambda: evaluator.log_likelihood(lengths, model)


def _exchanged(ranks: Ranks, numbers: np.ndarray) -> list[np.ndarray] | None:
    return ranks.gather(numbers)
