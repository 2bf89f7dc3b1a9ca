"""Chains of a run whose likelihood lies on a GPU: what the run needs besides its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from phloem.errors import DeviceError
from phloem.hardware.ranks import ranks
from phloem.inference.mcmc.device_forest import device_fields, forest_of, layouts_of
from phloem.inference.mcmc.records import COMPILED, KIND, ChainData, ChainScratch, ChainShared, ChainState
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Columns, dealt, dealt_cells, relative_speeds
from phloem.inference.mcmc.structure import ChainModel
from phloem.model.record import SiteModel
from phloem.pruning.cpu.cell_memory import Part, cell_work
from phloem.pruning.cpu.chain_tables import table_row
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.grid import fastest

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest


@dataclass(frozen=True)
class Group:
    """Chains first to end - 1 of a run, which one thread has; k, the thread's number. forests: on each of the
    group's GPUs one for all cells of one layout there, a chain of which is a cell of one of the group's
    (run_device.place_of). on_stream: of every forest, a context in which its work is given to its GPU in an
    order of its own, beside others."""

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
    columns_of: Columns | None = None,
) -> DeviceChains:  # fmt: skip
    """The chains' trees and data on GPUs, evaluated from scratch; writes shared.fields, log_likelihood and
    log_prior of the state. cells: those here. scratches: one a thread, as many as GPUs at least; settings: of
    all runs that are at work at the same time. number: of the run. columns_of: where other processes have
    cells of the chains, which one thread then asks for. DeviceError where there are fewer GPUs than
    settings.gpus.
    """
    from phloem.hardware.gpu_device import require_gpus

    _, state, shared = records
    n_chains = len(state.slot)
    require_gpus(settings.gpus)
    speeds = gpu_speeds(settings.gpus)
    gpus = gpus_of_run(number, settings.n_runs, settings.gpus, speeds)
    runs = -(-settings.n_runs // (settings.gpus * ranks().size))  # that share a GPU
    a_gpu = _groups_a_gpu(cells.parts, n_chains // len(gpus), runs, settings.precision)
    a_chain = gpus_a_chain(len(gpus), n_chains, len(cells.parts))
    n = 1 if columns_of else min(len(scratches), n_chains, a_gpu * len(gpus))
    if a_chain > 1:
        n = n_chains
        places = [(gpus[k * a_chain : (k + 1) * a_chain], runs) for k in range(n)]
    else:
        own = dealt(n, min(n, len(gpus)), speeds[gpus.start : gpus.stop])
        places = [(range(g, g + 1), len(here) * runs) for g, here in zip(gpus, own) for _ in here]
    work, few = [cell_work(cell) for cell in cells.parts], len(places[0][0])
    layouts = [layouts_of(cells.parts, there) for there in dealt_cells(work, few, speeds[:few])]
    data = cells.parts, layouts, state, settings.precision
    groups = tuple(
        _group((k, *chains), place, *data)
        for k, (chains, place) in enumerate(zip(pairwise(k * n_chains // n for k in range(n + 1)), places))
    )
    shared.fields[:] = device_fields(groups[0].forests, [of for there in layouts for of in there])
    pool = ThreadPoolExecutor(n - 1, "phloem") if n > 1 else None
    there = DeviceChains(groups, scratches[:n], pool, [None] * n, np.zeros(n, np.int64))
    _start(there, cells, structure, records, columns_of)
    return there


def gpus_a_chain(n_gpus: int, n_chains: int, n_cells: int) -> int:
    """How many of the GPUs of a run share a chain: where there are more of them than chains, each some of its
    cells."""
    return min(n_gpus // n_chains, n_cells) if n_gpus > n_chains else 1


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
    place: tuple[int, ...], at: tuple[range, int], parts: Sequence[Part],
    layouts: Sequence[list[list[int]]], state: ChainState, precision: str,
) -> Group:  # fmt: skip
    """place: fields of Group. at: its GPUs, and how many groups each works for. layouts: on each, the cells
    of every forest."""
    from phloem.hardware.gpu_device import own_stream

    (k, first, end), (gpus, beside) = place, at
    trees = [
        (state.order[h, s], state.left[h, s], state.right[h, s])
        for h, s in zip(range(first, end), state.slot[first:end])
    ]
    forests: list[GpuForest] = []
    on_stream: list[Callable[[], AbstractContextManager]] = []
    for gpu, cells in zip(gpus, layouts):
        streams = [own_stream(gpu) for _ in range(min(len(cells), STREAMS))]
        for i, of in enumerate(cells):
            on_stream.append(streams[i % len(streams)])
            with on_stream[-1]():
                forests.append(forest_of([parts[c] for c in of], trees, beside * len(streams), precision))
    return Group(k, first, end, tuple(forests), tuple(on_stream))


def _start(
    there: DeviceChains, cells: Forest, structure: ChainModel,
    records: tuple[ChainData, ChainState, ChainShared], columns_of: Columns | None,
) -> None:  # fmt: skip
    """Evaluate every chain's accepted state from scratch: state.log_likelihood and log_prior.

    Models that the compiled loop can make are made by it, so that numbers do not depend, in their last bits,
    on how they were made.
    """
    from phloem.inference.mcmc.compiled.run import chain_prior

    data, state, shared = records
    for group in there.groups:
        models = _first_models(there.scratches[0], group, (cells, structure, data, state))
        own = shared.cell_values[group.first : group.end, data.first_cell :]
        for i in range(len(group.forests)):
            here = np.flatnonzero(shared.fields[:, 10] == i)
            own[:, here] = _start_forest(group, here, (cells, data, state, shared), models)
        _flip(group, data, cells)
    if columns_of is not None:
        columns_of.gather(shared.cell_values.T, drawn_of(state, range(len(state.slot))))
    state.log_likelihood[:] = np.cumsum(shared.cell_values, axis=1)[:, -1]  # in the loop's order
    for h in range(len(state.slot)):
        state.log_prior[h] = chain_prior(data, state, h, int(state.slot[h]))


def _first_models(scratch: ChainScratch, group: Group, run: tuple) -> dict[tuple[int, int], SiteModel]:
    """The models of the parts here, by chain and part; what the compiled loop makes of them is in the slot
    that is not in use."""
    from phloem.inference.mcmc.compiled.model import set_model

    cells, structure, data, state = run
    found = {}
    for h in range(group.first, group.end):
        for part, cell in _leading(data):
            values = state.values[h, state.slot[h]]
            found[h, part] = structure.site_model(part, values)
            cells.set_model(h, cell, int(cells.cells[h][cell].slot[0]), found[h, part])
            if data.recipes.rows[part, KIND] == COMPILED:
                own = data.numbers[h, cell], data.addresses[h, cell]
                set_model(data.recipes, part, values, *own, scratch)
    return found


def _leading(data: ChainData) -> list[tuple[int, int]]:
    """The parts here, and the first cell of each: the others share its model."""
    parts, first = np.unique(data.part_of, return_index=True)
    return list(zip(parts.tolist(), first.tolist()))


def _flip(group: Group, data: ChainData, cells: Forest) -> None:
    """Models that the compiled loop has made are those in use from now on."""
    for h in range(group.first, group.end):
        for part, cell in _leading(data):
            if data.recipes.rows[part, KIND] == COMPILED:
                slot = cells.cells[h][cell].slot
                slot[0] = 1 - slot[0]


def _start_forest(group: Group, here: np.ndarray, run: tuple, models: dict) -> np.ndarray:
    """(chains, n) log-likelihoods of the cells of a forest for the chains of a group."""
    from phloem.inference.mcmc.compiled.run_device import write_model

    cells, data, state, shared = run
    i = int(shared.fields[here[0], 10])
    forest = group.forests[i]
    every = [(h, cell) for h in range(group.first, group.end) for cell in here.tolist()]
    n_sets, lengths = forest.change.lengths.shape[1], []
    for h, cell in every:
        first, slot = cells.parts[cell].first_lengths, state.slot[h]
        used = np.minimum(np.arange(n_sets), cells.parts[cell].length_class.max())  # others are nobody's
        lengths.append(state.lengths[h, slot, first + used])
    with group.on_stream[i]():
        found = forest.start(np.stack(lengths), [models[h, int(data.part_of[cell])] for h, cell in every])
        for k, (h, cell) in enumerate(every):
            if data.recipes.rows[data.part_of[cell], KIND] == COMPILED:
                own = data.numbers[h, cell], data.addresses[h, cell]
                write_model(*own, shared.fields[cell], forest.change, k)
        if forest.change.counts.any():
            found = forest.evaluate()
            forest.settle(np.ones(len(every), bool))
    return found.reshape(group.end - group.first, len(here))


def drawn_of(state: ChainState, chains: range) -> list[float]:
    """What processes that share chains must have drawn alike: of each, before or after a proposal."""
    own = slice(chains.start, chains.stop)
    return [*state.lengths[own].sum((1, 2, 3)), *state.values[own].sum((1, 2))]


def work_on_device(
    there: DeviceChains, structure: ChainModel, data: ChainData, state: ChainState, shared: ChainShared,
    n_generations: int, task: int, columns_of: Columns | None = None,
) -> None:  # fmt: skip
    """All chains by n_generations, whose swaps are drawn (shared.pair). columns_of: as of
    chains_on_device."""
    from phloem.inference.mcmc.compiled.run_device import set_goal

    set_goal(shared.crew, n_generations, task, len(there.groups), there.away)
    run = structure, data, state, shared, columns_of
    for group in there.groups[1:]:
        if there.away[group.k] and there.pool is not None:
            there.at_work[group.k] = there.pool.submit(_serve, there, run, group)
    _serve(there, run, there.groups[0])


def _serve(there: DeviceChains, run: tuple, group: Group) -> None:
    """A thread's work; Python only sets models that the compiled loop cannot make, and grows arrays."""
    from phloem.inference.mcmc.compiled.run_device import (
        AWAY,
        COLLECT,
        COLUMNS_WAIT,
        EVALUATE,
        FINISHED,
        MODELS_WAIT,
        PROPOSE,
        SETTLE,
        STOPPED,
        work,
    )

    _, data, state, shared, columns_of = run
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
            elif status == COLUMNS_WAIT:
                chains = range(group.first, group.end)
                columns_of.gather(shared.cell_values[group.first : group.end].T, drawn_of(state, chains))
                resume = SETTLE
            else:
                for forest, on_stream in zip(forests, group.on_stream):
                    if forest.change.counts.any() and not forest.chains.trees.pending.any():
                        with on_stream():
                            forest.evaluate()
                resume = COLLECT
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
    structure, data, state, shared, _ = run
    for h in range(group.first, group.end):
        old, new = state.values[h, state.slot[h]], state.values[h, 1 - state.slot[h]]
        made: dict[int, SiteModel] = {}
        for cell, part in enumerate(data.part_of.tolist() if shared.waits[h] else ()):
            differs = (old != new) & (data.recipes.reads[part] != 0)
            if data.recipes.rows[part, KIND] != COMPILED and differs.any():
                model = made[part] = made.get(part) or structure.site_model(part, new)
                i, number, n_cells = shared.fields[cell, 10:].tolist()
                group.forests[i].set_model((h - group.first) * n_cells + number, model)
