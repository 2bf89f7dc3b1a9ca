"""Chains of a run whose likelihood lies on a GPU: what the run needs besides its records."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.records import COMPILED, KIND, ChainData, ChainScratch, ChainShared, ChainState
from phloem.inference.mcmc.structure import ChainModel
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.chain_state import LEFT, PARENT, RIGHT, make_numbering
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.interface import Problem

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest

FIELDS = (
    "weights", "process", "invariant", "invariant_frequencies", "frequencies", "values", "right", "left",
    "generator",
)  # fmt: skip


@dataclass(frozen=True)
class DeviceChains:
    """The chains of a run on a GPU, and the threads that help with what the host does for them."""

    forest: GpuForest
    crew: Crew


class Crew:
    """Helpers of run_device.advance_device: they come when it is called, and go when nothing was to do for
    some milliseconds. What happens does not depend on them."""

    def __init__(self, scratches: tuple[ChainScratch, ...]) -> None:
        """scratches: one a thread, the caller's first."""
        self._scratches = scratches
        n = len(scratches) - 1
        self._pool = ThreadPoolExecutor(n, "phloem") if n else None
        self._at_work: list[Future | None] = [None] * n
        self._numbering: list = []

    def gather(self, data: ChainData, state: ChainState, shared: ChainShared, forest: GpuForest) -> None:
        """Have every helper at work who is not."""
        from phloem.inference.mcmc.compiled.run_device import THREADS, assist

        n = shared.crew[THREADS] = len(self._scratches)
        chains = forest.chains
        for k in range(1, n):
            there = self._at_work[k - 1]
            if self._pool is None or (there is not None and not there.done()):
                continue
            if len(self._numbering) < k:
                self._numbering.append(make_numbering(forest.n_nodes, chains.shape.n_root))
            device = chains._replace(numbering=self._numbering[k - 1]), forest.change, forest.record
            self._at_work[k - 1] = self._pool.submit(
                assist, data, state, shared, self._scratches[k], device, (k, n)
            )

    def dismiss(self, shared: ChainShared) -> None:
        """Send all home: arrays that they know are about to be replaced."""
        from phloem.inference.mcmc.compiled.run_device import LEAVE

        shared.crew[LEAVE] = 1
        for helper in self._at_work:
            if helper is not None:
                helper.result()
        shared.crew[LEAVE] = 0


def device_forest(cells: Forest, structure: ChainModel, state: ChainState, shared: ChainShared) -> GpuForest:
    """The chains' trees and data on the GPU, not evaluated yet; writes shared.fields.

    InputError for several parts; DeviceError where there is no GPU.
    """
    from phloem.pruning.gpu.forest import GpuForest

    if len(cells.parts) > 1:
        raise InputError(
            "phloem mcmc samples partitions on the CPU only",
            hint="Leave --partitions out, or choose --device cpu.",
        )
    part = cells.parts[0]
    n_chains, n_tips = len(state.slot), len(part.tip_codes)
    numbers: list[np.ndarray] = []
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for h in range(n_chains):
        number = _ordered(state.order[h, state.slot[h]], n_tips)
        node = np.empty_like(number)
        node[number] = np.arange(len(number))
        numbers.append(node)
        for side, children in zip(sides, (state.left, state.right)):
            side.append(number[children[h, state.slot[h]][node[n_tips:]]])
    left, right = np.stack(sides[0]), np.stack(sides[1])
    problem, processes = _problem(part, left, right), int(part.process.max()) + 1
    # Not lazy: on an H100, lists with hops gave values off by fractions of a log unit (docs/gpu.md).
    forest = GpuForest(problem, left, right, n_sets=structure.n_sets, n_processes=processes)
    _rename(forest, np.stack(numbers))
    shared.fields[:9], shared.fields[9] = forest.numbers.blocks[:, 0], forest.sizes.width
    assert len(forest.numbers.blocks) == len(FIELDS)
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


def start_on_device(
    forest: GpuForest, cells: Forest, structure: ChainModel, data: ChainData, state: ChainState,
    shared: ChainShared, scratch: ChainScratch,
) -> None:  # fmt: skip
    """Evaluate every chain's accepted state from scratch: state.log_likelihood and log_prior.

    Models that the compiled loop can make are made by it, so that numbers do not depend, in their last bits,
    on how they were made.
    """
    from phloem.inference.mcmc.compiled.model import set_model
    from phloem.inference.mcmc.compiled.run import chain_prior
    from phloem.inference.mcmc.compiled.run_device import write_model

    every = range(len(state.slot))
    lengths = np.stack([state.lengths[h, state.slot[h]] for h in every])
    values = [state.values[h, state.slot[h]] for h in every]
    models = [structure.site_model(0, v) for v in values]
    for h in every:
        cells.set_model(h, 0, int(cells.cells[h][0].slot[0]), models[h])
    state.log_likelihood[:] = forest.start(lengths, models)
    if data.recipes.rows[0, KIND] == COMPILED:
        for h in every:
            set_model(data.recipes, 0, values[h], data.numbers[h, 0], data.addresses[h, 0], scratch)
            write_model(data.numbers[h, 0], data.addresses[h, 0], shared.fields, forest.change, h)
            cells.cells[h][0].slot[0] = 1 - cells.cells[h][0].slot[0]
        state.log_likelihood[:] = forest.evaluate()
        forest.settle(np.ones(len(values), bool))
    for h in every:
        state.log_prior[h] = chain_prior(data, state, h, int(state.slot[h]))


def work_on_device(
    there: DeviceChains, structure: ChainModel, data: ChainData, state: ChainState, shared: ChainShared,
    scratch: ChainScratch, n_generations: int, task: int,
) -> None:  # fmt: skip
    """All chains by n_generations; Python only sets models that the compiled loop cannot make, and grows
    arrays."""
    from phloem.inference.mcmc.compiled.run_device import (
        EVALUATE,
        FINISHED,
        MODELS_WAIT,
        PROPOSE,
        SETTLE,
        TASK,
        advance_device,
    )

    resume, forest = PROPOSE, there.forest
    shared.crew[TASK] = task
    while True:
        there.crew.gather(data, state, shared, forest)
        device = forest.chains, forest.change, forest.record
        status = advance_device(data, state, shared, scratch, device, n_generations, resume)
        if status == FINISHED:
            return
        if status == MODELS_WAIT:
            for h in np.flatnonzero(shared.waits):
                forest.set_model(int(h), structure.site_model(0, state.values[h, 1 - state.slot[h]]))
            resume = EVALUATE
        else:
            there.crew.dismiss(shared)
            forest.evaluate()
            resume = SETTLE
