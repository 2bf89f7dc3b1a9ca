"""Chains of a run whose likelihood lies on a GPU: what the run needs besides its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from phloem.errors import DeviceError
from phloem.hardware.ranks import ranks
from phloem.inference.mcmc.records import COMPILED, KIND, ChainData, ChainScratch, ChainShared, ChainState
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import dealt, relative_speeds
from phloem.inference.mcmc.structure import ChainModel
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.chain_state import LEFT, PARENT, RIGHT
from phloem.pruning.cpu.chain_tables import table_row
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.grid import fastest
from phloem.pruning.interface import Problem

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest

FIELDS = (
    "weights", "process", "invariant", "invariant_frequencies", "frequencies", "values", "right", "left",
    "generator",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Chains first to end - 1 of a run, which one thread has; k, the thread's number. forests: one for all
    parts of one layout, a chain of which is a part of one of the group's (run_device.cell_of). on_stream: of
    every forest, a context in which its work is given to the GPU in an order of its own, beside others."""

    k: int
    first: int
    end: int
    forests: tuple[GpuForest, ...]
    on_stream: tuple[Callable[[], AbstractContextManager], ...]


@dataclass(frozen=True, eq=False)
class DeviceChains:
    """The chains of a run on a GPU, and the helpers of its threads: they come when there is something to do,
    and stay some milliseconds longer (compiled/run_device.py)."""

    groups: tuple[Group, ...]
    scratches: tuple[ChainScratch, ...]
    pool: ThreadPoolExecutor | None
    at_work: list[Future | None]
    away: np.ndarray

    def dismiss(self, shared: ChainShared) -> None:
        """Send the helpers home, and wait until they are gone."""
        from phloem.inference.mcmc.compiled.run_device import LEAVE

        shared.crew[LEAVE] = 1
        for helper in self.at_work:
            if helper is not None:
                helper.result()
        shared.crew[LEAVE] = 0


# Groups of one GPU: of as many chains as there are, and of four or more chains each.
SMALL_TREE, MOST_GROUPS, MOST_OF_FOUR = 2_000, 8, 16
STREAMS = 8  # forests of a group that the GPU may work on at the same time


def chains_on_device(
    cells: Forest, structure: ChainModel, records: tuple[ChainData, ChainState, ChainShared],
    scratches: tuple[ChainScratch, ...], settings: ChainSettings, number: int = 0,
) -> DeviceChains:  # fmt: skip
    """The chains' trees and data on GPUs, evaluated from scratch; writes shared.fields, log_likelihood and
    log_prior of the state. cells: one a part. scratches: one a thread, as many as GPUs at least; settings: of
    all runs that are at work at the same time. number: of the run. DeviceError where there are fewer GPUs
    than settings.gpus.
    """
    from phloem.hardware.gpu_device import require_gpus

    _, state, shared = records
    n_chains = len(state.slot)
    require_gpus(settings.gpus)
    layouts = layouts_of(cells.parts)
    speeds = gpu_speeds(settings.gpus)
    gpus = gpus_of_run(number, settings.n_runs, settings.gpus, speeds)
    runs = -(-settings.n_runs // (settings.gpus * ranks().size))  # that share a GPU
    a_gpu = _groups_a_gpu(cells.parts, n_chains // len(gpus), runs, settings.precision)
    n = min(len(scratches), n_chains, a_gpu * len(gpus))
    data = cells.parts, layouts, state, settings.precision
    own = dealt(n, min(n, len(gpus)), speeds[gpus.start : gpus.stop])
    places = [(gpu, len(groups) * runs) for gpu, groups in zip(gpus, own) for _ in groups]
    groups = tuple(
        _group((k, *chains), place, *data)
        for k, (chains, place) in enumerate(zip(pairwise(k * n_chains // n for k in range(n + 1)), places))
    )
    shared.fields[:] = device_fields(groups[0].forests, layouts)
    pool = ThreadPoolExecutor(n - 1, "phloem") if n > 1 else None
    there = DeviceChains(groups, scratches[:n], pool, [None] * n, np.zeros(n, np.int64))
    _start(there, cells, structure, *records)
    return there


def gpus_of_run(number: int, n_runs: int, n_gpus: int, speeds: Sequence[float] = ()) -> range:
    """Those that have the chains of a run: whole runs lie on a GPU where there are as many runs as GPUs or
    more, else a run's groups of chains are dealt to several. speeds: of the GPUs, nothing where they are
    alike."""
    first = number * n_gpus // n_runs
    if speeds and n_runs >= n_gpus:
        first = next(k for k, runs in enumerate(dealt(n_runs, n_gpus, speeds)) if number in runs)
        return range(first, first + 1)
    return range(first, max(first + 1, (number + 1) * n_gpus // n_runs))


@cache
def gpu_speeds(n_gpus: int) -> tuple[float, ...]:
    """Of the first GPUs that this process sees, measured; nothing where they are alike."""
    from phloem.hardware.gpu_device import find_device, on_gpu, products

    seconds = []
    for k in range(n_gpus if n_gpus > 1 and find_device().type == "cuda" else 0):
        with on_gpu(k):
            work = products(2_000)
            work()
            seconds.append(fastest(work, 10))
    return relative_speeds(seconds) if seconds else ()


def layouts_of(parts: Sequence[Part]) -> list[list[int]]:
    """The parts that share a forest: those of one number of states and of categories."""
    found: dict[tuple, list[int]] = {}
    for i, part in enumerate(parts):
        found.setdefault((part.state_sets.shape[1], len(part.process), part.repeats), []).append(i)
    return list(found.values())


def device_fields(forests: Sequence[GpuForest], layouts: Sequence[Sequence[int]]) -> np.ndarray:
    """(L, 13) int64 of every part: where the device wants its model (run_device.write_model), and which tree
    of which forest it is (run_device.cell_of)."""
    fields = np.zeros((sum(map(len, layouts)), 13), np.int64)
    for i, (own, forest) in enumerate(zip(layouts, forests)):
        assert len(forest.numbers.blocks) == len(FIELDS)
        for number, part in enumerate(own):
            fields[part, :9] = forest.numbers.blocks[:, 0]
            fields[part, 9:] = forest.sizes.width, i, number, len(own)
    return fields


def _groups_a_gpu(parts: Sequence[Part], n_chains: int, n_runs: int, precision: str) -> int:
    """Groups of a run's chains on a GPU that has so many of them, and of as many other runs (docs/gpu.md has
    the measurements)."""
    if _are_small(parts, precision):
        return MOST_GROUPS
    few = max(1, MOST_GROUPS // n_runs)
    if n_chains < 2 * few:
        return max(1, n_chains // 4)
    return max(few, min(MOST_OF_FOUR // n_runs, n_chains // 4))


def _are_small(parts: Sequence[Part], precision: str) -> bool:
    """Whether a chain's parts leave most of a GPU idle, by the steps of its whole tree: then threads with
    chains of their own pay, however few, and so they do where the host has many parts to list. In one launch
    a few chains of large data fill up what others leave, and none waits for another's launch."""
    from phloem.pruning.gpu.step_schedule import tree_steps

    sizes = [(p.tip_codes, p.state_sets.shape[1], len(p.process)) for p in parts]
    return sum(tree_steps(*own, precision) for own in sizes) <= SMALL_TREE * len(parts)


def _group(
    place: tuple[int, ...], at: tuple[int, int], parts: Sequence[Part], layouts: list[list[int]],
    state: ChainState, precision: str,
) -> Group:  # fmt: skip
    """place: fields of Group. at: its GPU, and how many groups this works for."""
    from phloem.hardware.gpu_device import own_stream

    (k, first, end), (gpu, beside) = place, at
    trees = [
        (state.order[h, s], state.left[h, s], state.right[h, s])
        for h, s in zip(range(first, end), state.slot[first:end])
    ]
    streams = [own_stream(gpu) for _ in range(min(len(layouts), STREAMS))]
    forests, on_stream = [], tuple(streams[i % len(streams)] for i in range(len(layouts)))
    for of, on in zip(layouts, on_stream):
        with on():
            forests.append(forest_of([parts[i] for i in of], trees, beside * len(streams), precision))
    return Group(k, first, end, tuple(forests), on_stream)


def forest_of(
    parts: Sequence[Part], trees: Sequence[tuple[np.ndarray, ...]], beside: int,
    precision: str = "float64",
) -> GpuForest:  # fmt: skip
    """Chains over parts of one layout, all parts of a chain side by side. trees: of every chain (N,) nodes
    from the tips up, left and right children. beside: forests that the GPU works on at the same time.
    precision: of messages and transition matrices."""
    from phloem.pruning.gpu.forest import GpuForest

    n_tips, numbers = len(parts[0].tip_codes), []
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for order, *both in trees:
        number = _ordered(order, n_tips)
        node = np.empty_like(number)
        node[number] = np.arange(len(number))
        numbers.append(node)
        for side, children in zip(sides, both):
            side.append(number[children[node[n_tips:]]])
    left, right, each = np.stack(sides[0]), np.stack(sides[1]), np.repeat(np.arange(len(trees)), len(parts))
    problems = [replace(_problem(part, left, right), precision=precision) for part in parts]
    forest = GpuForest(
        problems * len(left), left[each], right[each],
        n_sets=max(int(part.length_class.max()) for part in parts) + 1,
        n_processes=max(int(part.process.max()) for part in parts) + 1,
        lazy=True, beside=beside,
    )  # fmt: skip
    _rename(forest, np.stack(numbers)[each])
    return forest


def _ordered(order: np.ndarray, n_tips: int) -> np.ndarray:
    """(N,) new number of every node: tips as they are, children below parents."""
    number = np.arange(len(order))
    inner = order[order >= n_tips]
    number[inner] = np.arange(n_tips, len(order))
    return number


def _problem(part: Part, left: np.ndarray, right: np.ndarray) -> Problem:
    return Problem(
        tip_codes=np.ascontiguousarray(part.tip_codes),
        state_sets=np.asarray(part.state_sets, bool),
        pattern_weights=np.asarray(part.weights, np.float64),
        ascertained=np.asarray(part.unobservable, bool),
        left=left[0].astype(np.int32),
        right=right[0].astype(np.int32),
        n_categories=len(part.process),
        repeats=part.repeats,
    )


def _rename(forest: GpuForest, names: np.ndarray) -> None:
    """Give every node of the forest's trees the number that the chains know it by. names: (H, N)."""
    trees, places = forest.chains.trees, forest.chains.places
    for h, name in enumerate(names):
        node, of = trees.node[:, h].copy(), places.of[h].copy()
        for column in (LEFT, RIGHT, PARENT):
            there = node[..., column] >= 0
            node[..., column][there] = name[node[..., column][there]]
        trees.node[:, h, name] = node
        places.of[h][:, name] = of


def _start(
    there: DeviceChains, cells: Forest, structure: ChainModel, data: ChainData, state: ChainState,
    shared: ChainShared,
) -> None:  # fmt: skip
    """Evaluate every chain's accepted state from scratch: state.log_likelihood and log_prior.

    Models that the compiled loop can make are made by it, so that numbers do not depend, in their last bits,
    on how they were made.
    """
    from phloem.inference.mcmc.compiled.run import chain_prior

    n_parts = len(cells.parts)
    for group in there.groups:
        found = np.zeros((n_parts, group.end - group.first))
        for i in range(len(group.forests)):
            own = [part for part in range(n_parts) if shared.fields[part, 10] == i]
            values = _start_forest(there.scratches[0], group, own, (cells, structure, data, state, shared))
            found[own] = values.reshape(-1, len(own)).T
        state.log_likelihood[group.first : group.end] = np.cumsum(found, axis=0)[-1]  # in the loop's order
        for h in range(group.first, group.end):
            state.log_prior[h] = chain_prior(data, state, h, int(state.slot[h]))


def _start_forest(scratch: ChainScratch, group: Group, parts: list[int], run: tuple) -> np.ndarray:
    """The log-likelihoods of the parts of a forest for the chains of a group, chain after chain."""
    from phloem.inference.mcmc.compiled.model import set_model
    from phloem.inference.mcmc.compiled.run_device import write_model

    cells, structure, data, state, shared = run
    i = int(shared.fields[parts[0], 10])
    forest, every = group.forests[i], [(h, part) for h in range(group.first, group.end) for part in parts]
    n_sets, lengths, models = forest.change.lengths.shape[1], [], []
    for h, part in every:
        first, slot = cells.parts[part].first_lengths, state.slot[h]
        used = np.minimum(np.arange(n_sets), cells.parts[part].length_class.max())  # others are nobody's
        lengths.append(state.lengths[h, slot, first + used])
        models.append(structure.site_model(part, state.values[h, slot]))
        cells.set_model(h, part, int(cells.cells[h][part].slot[0]), models[-1])
    with group.on_stream[i]():
        found = forest.start(np.stack(lengths), models)
        for k, (h, part) in enumerate(every):
            if data.recipes.rows[part, KIND] == COMPILED:
                own = data.numbers[h, part], data.addresses[h, part]
                set_model(data.recipes, part, state.values[h, state.slot[h]], *own, scratch)
                write_model(*own, shared.fields[part], forest.change, k)
                cells.cells[h][part].slot[0] = 1 - cells.cells[h][part].slot[0]
        if forest.change.counts.any():
            found = forest.evaluate()
            forest.settle(np.ones(len(every), bool))
    return found


def work_on_device(
    there: DeviceChains, structure: ChainModel, data: ChainData, state: ChainState, shared: ChainShared,
    n_generations: int, task: int,
) -> None:  # fmt: skip
    """All chains by n_generations, whose swaps are drawn (shared.pair)."""
    from phloem.inference.mcmc.compiled.run_device import set_goal

    set_goal(shared.crew, n_generations, task, len(there.groups), there.away)
    run = structure, data, state, shared
    for group in there.groups[1:]:
        if there.away[group.k] and there.pool is not None:
            there.at_work[group.k] = there.pool.submit(_serve, there, run, group)
    _serve(there, run, there.groups[0])


def _serve(there: DeviceChains, run: tuple, group: Group) -> None:
    """A thread's work; Python only sets models that the compiled loop cannot make, and grows arrays."""
    from phloem.inference.mcmc.compiled.run_device import (
        AWAY,
        EVALUATE,
        FINISHED,
        MODELS_WAIT,
        PROPOSE,
        SETTLE,
        STOPPED,
        work,
    )

    _, data, state, shared = run
    resume, forests = PROPOSE, group.forests
    numbers, scratch = (group.k, group.first, group.end), there.scratches[group.k]
    try:
        while True:
            rows = np.stack([table_row(f.chains, f.change, f.record) for f in forests])
            with group.on_stream[0]():  # helps a new thread to the GPU, too
                status = work(data, state, shared, scratch, rows, numbers, resume)
            if status in (FINISHED, AWAY):
                return
            if status == STOPPED:
                break
            if status == MODELS_WAIT:
                with group.on_stream[0]():
                    _set_models(group, run)
                resume = EVALUATE
            else:
                for forest, on_stream in zip(forests, group.on_stream):
                    if forest.change.counts.any() and not forest.chains.trees.pending.any():
                        with on_stream():
                            forest.evaluate()
                resume = SETTLE
    except BaseException:
        shared.stop[0] = 1  # others would wait for this group's chains
        raise
    if group.k == 0:
        for helper in there.at_work:
            if helper is not None:
                helper.result()  # raises what went wrong
        raise DeviceError("a thread of the chains on the GPU has failed")


def _set_models(group: Group, run: tuple) -> None:
    """Models of proposals that the compiled loop cannot make."""
    structure, data, state, shared = run
    for h in range(group.first, group.end):
        old, new = state.values[h, state.slot[h]], state.values[h, 1 - state.slot[h]]
        for part in range(len(data.recipes.rows) if shared.waits[h] else 0):
            differs = (old != new) & (data.recipes.reads[part] != 0)
            if data.recipes.rows[part, KIND] != COMPILED and differs.any():
                i, number, n_parts = shared.fields[part, 10:].tolist()
                chain = (h - group.first) * n_parts + number
                group.forests[i].set_model(chain, structure.site_model(part, new))
