"""Problems larger than the device's memory: blocks of columns, one after the other in the same buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import fsum

import numpy as np
import torch

from phloem.errors import DeviceError, NumericalError
from phloem.hardware.gpu_device import memory_errors
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.pruning.gpu.buffers import (
    LARGEST_NODE,
    SHARED,
    RootColumns,
    batch_sizes,
    device_arrays,
    largest_node,
)
from phloem.pruning.gpu.gradient import branch_gradient, site_model_gradients
from phloem.pruning.gpu.layout import TreeLayout
from phloem.pruning.gpu.sites import second_derivatives, site_branch_derivatives
from phloem.pruning.gpu.step_schedule import tiling
from phloem.pruning.gpu.tree_batch import GpuBatch, layout_of
from phloem.pruning.interface import EngineGradient, Problem, evaluated, pending, refuse_to_propose

# Left to the driver, to PyTorch's allocator and to the kernels themselves.
RESERVED_BYTES = 512 << 20
MOST_BLOCKS = 4096


def forecast_device_bytes(problem: Problem, gradient: bool = True, parameters: bool = False) -> int:
    """Bytes of device memory an evaluator of this problem allocates (PyTorch's count, without the CUDA
    context)."""
    tiles = tiling(problem.state_sets.shape[1], problem.precision)
    layout = layout_of(problem, tiles, problem.left, problem.right)
    return forecast_layout_bytes(problem, layout, gradient, parameters)


def forecast_layout_bytes(
    problem: Problem, layout: TreeLayout, gradient: bool = True, parameters: bool = True
) -> int:
    """The same of a layout that is known."""
    return sum(_arrays(problem, layout, gradient, parameters).values())


def _arrays(problem: Problem, layout: TreeLayout, gradient: bool, parameters: bool) -> dict[str, int]:
    tiles = tiling(problem.state_sets.shape[1], problem.precision)
    sizes = batch_sizes([layout], tiles, problem.n_categories, len(problem.state_sets))
    return device_arrays(sizes, tiles, problem.precision, gradient, parameters)


def plan_blocks(problem: Problem, available_bytes: int) -> list[tuple[np.ndarray, TreeLayout]]:
    """Patterns of every block (one block: all of them) and its layout; DeviceError with the numbers if none
    will do."""
    tiles = tiling(problem.state_sets.shape[1], problem.precision)
    most = min(MOST_BLOCKS, max(1, int((~problem.ascertained).sum())))
    n_blocks, needed = 1, 0
    while n_blocks <= most:
        patterns = split_patterns(problem.ascertained, n_blocks)
        first = layout_of(block_of(problem, patterns[0]), tiles, problem.left, problem.right)
        arrays = _arrays(block_of(problem, patterns[0]), first, True, True)
        shared = sum(arrays[name] for name in SHARED)
        needed = shared + (sum(arrays.values()) - shared) * n_blocks
        if needed <= available_bytes and largest_node([first], tiles) <= LARGEST_NODE:
            rest = [layout_of(block_of(problem, p), tiles, problem.left, problem.right) for p in patterns[1:]]
            return list(zip(patterns, [first, *rest]))
        n_blocks *= 2
    raise DeviceError(
        f"the problem needs {needed / 2**30:.2f} GiB of device memory in {n_blocks} block(s) of columns and "
        f"{available_bytes / 2**30:.2f} GiB are free; use --precision float32, --engine cpu or a larger GPU"
    )


def split_patterns(ascertained: np.ndarray, n_blocks: int) -> list[np.ndarray]:
    """Patterns of every block; those that stand for unobservable ones are all in the first, so that it alone
    corrects for them (with the weight of all blocks)."""
    hidden, rest = np.flatnonzero(ascertained), np.array_split(np.flatnonzero(~ascertained), n_blocks)
    return [np.sort(np.concatenate([hidden, rest[0]])), *rest[1:]]


def block_of(problem: Problem, patterns: np.ndarray) -> Problem:
    """The problem of some of its patterns, given by their numbers."""
    return replace(
        problem,
        tip_codes=problem.tip_codes[:, patterns],
        pattern_weights=problem.pattern_weights[patterns],
        ascertained=problem.ascertained[patterns],
    )


@dataclass(frozen=True)
class _State:
    """An evaluated state. left, right: (T-1,) children; layouts: of every block on that topology."""

    lengths: np.ndarray
    model: SiteModel
    left: np.ndarray
    right: np.ndarray
    layouts: list[TreeLayout]


class GpuBlockEvaluator:
    """Evaluator of a problem in blocks. Every proposal is evaluated from scratch: nothing of a block
    survives the next one; of another topology, blocks are laid out anew. Block totals and what they lost by
    rounding are added exactly rounded (math.fsum), so that the log-likelihood is that of one block, bit for
    bit; derivatives, whose distinct columns are other ones in blocks, are so to rounding."""

    name = "gpu"

    def __init__(
        self, problem: Problem, blocks: list[tuple[np.ndarray, TreeLayout]], device: torch.device
    ) -> None:
        self._problem, self._device = problem, device
        self._patterns = [patterns for patterns, _ in blocks]
        self._parts = [block_of(problem, patterns) for patterns in self._patterns]
        self._roots: list[RootColumns | None] = [None] * len(blocks)
        self._pool: dict[str, torch.Tensor] = {}
        self._at = problem.left, problem.right, [layout for _, layout in blocks]
        self._batches = self._build()
        self._accepted: _State | None = None
        self._proposed: _State | None = None
        self._site_log = np.empty(problem.tip_codes.shape[1])

    def _build(self) -> list[GpuBatch]:
        """The blocks of the accepted topology."""
        left, right, layouts = self._at
        with memory_errors():
            self._reserve(layouts)
            return [self._batch(k, left, right, layout) for k, layout in enumerate(layouts)]

    def _reserve(self, layouts: list[TreeLayout]) -> None:
        """Room in the arrays that all blocks share. Where there is none, the blocks that use these are given
        up first, and made again when they are needed."""
        if largest_node(layouts, tiling(self._problem.state_sets.shape[1], self._problem.precision)) > (
            LARGEST_NODE
        ):
            raise DeviceError("a node of this tree has too many columns for the GPU; use --engine cpu")
        n_bytes = {name: len(array) for name, array in self._pool.items()}
        wanted = dict.fromkeys(SHARED, 0) | n_bytes
        for part, layout in zip(self._parts, layouts):
            arrays = _arrays(part, layout, True, True)
            wanted = {name: max(wanted[name], arrays[name]) for name in SHARED}
        if wanted == n_bytes:
            return
        self._batches = []
        self._pool.clear()
        try:
            self._fill_pool(wanted)
        except torch.OutOfMemoryError:
            self._pool.clear()
            self._fill_pool(n_bytes)
            raise

    def _fill_pool(self, n_bytes: dict[str, int]) -> None:
        for name, n in n_bytes.items():
            self._pool[name] = torch.empty(n, dtype=torch.uint8, device=self._device)

    def _batch(self, k: int, left: np.ndarray, right: np.ndarray, layout: TreeLayout) -> GpuBatch:
        made = GpuBatch(
            self._parts[k], left[None], right[None], self._device, layouts=[layout], pool=self._pool,
            total_weight=fsum(self._problem.pattern_weights), root=self._roots[k],
        )  # fmt: skip
        self._roots[k] = made.roots[0]
        return made

    def _blocks(self) -> Iterator[tuple[np.ndarray, GpuBatch]]:
        """Patterns and batch of every block of the accepted topology."""
        self._batches = self._batches or self._build()
        return zip(self._patterns, self._batches)

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        self._forget()
        value = self._evaluate(self._blocks(), lengths, model, self._site_log)
        self._accept_at(lengths, model)
        return value

    def _forget(self) -> None:
        """What was evaluated: its messages are about to be overwritten."""
        self._proposed = self._accepted = None

    def _accept_at(self, lengths: np.ndarray, model: SiteModel) -> None:
        self._accepted = _State(np.array(lengths, np.float64), model, *self._at)

    def site_log_likelihoods(self) -> np.ndarray:
        return self._site_log.copy()

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        self._forget()
        what = "parameters" if parameters else "gradient"
        values: list[float] = []
        branches, models = [], []
        for patterns, batch in self._blocks():
            values += self._evaluate_block(batch, patterns, what, lengths, model, self._site_log)
            d = batch.derivatives()[0].copy()
            branches.append(branch_gradient(d, model))
            if parameters:
                models += site_model_gradients(batch, np.asarray(lengths)[None], [model])
        self._accept_at(lengths, model)
        return EngineGradient(fsum(values), np.sum(branches, axis=0), _sum_models(models) if models else None)

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        found = np.empty((*np.shape(lengths), self._problem.tip_codes.shape[1]))
        for patterns, batch in self._evaluated(lengths, model):
            found[..., patterns] = site_branch_derivatives(batch, model)
        return found

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        return np.sum([second_derivatives(b, model) for _, b in self._evaluated(lengths, model)], axis=0)

    def _evaluated(self, lengths, model: SiteModel) -> Iterator[tuple[np.ndarray, GpuBatch]]:
        """Every block while its messages are on the device."""
        self._forget()
        for patterns, batch in self._blocks():
            self._evaluate_block(batch, patterns, "likelihood", lengths, model, self._site_log)
            yield patterns, batch
        self._accept_at(lengths, model)

    def _evaluate(
        self, blocks: Iterable[tuple[np.ndarray, GpuBatch]], lengths: np.ndarray, model: SiteModel,
        site_log: np.ndarray,
    ) -> float:  # fmt: skip
        parts: list[float] = []
        for patterns, batch in blocks:
            parts += self._evaluate_block(batch, patterns, "likelihood", lengths, model, site_log)
        return fsum(parts)

    def _evaluate_block(
        self, batch: GpuBatch, patterns: np.ndarray, what: str, lengths: np.ndarray, model: SiteModel,
        site_log: np.ndarray,
    ) -> tuple[float, float]:  # fmt: skip
        """A block's log-likelihood in two parts; its patterns' go to site_log (P,)."""
        with memory_errors():
            batch.evaluate(what, np.asarray(lengths, np.float64)[None], [model])
        site_log[patterns] = batch.site_log_likelihoods(0)
        value, rest = batch.log_likelihood_parts()
        if np.isnan(value):
            raise NumericalError("the log-likelihood is not a number")
        return value, rest

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        refuse_to_propose(self._proposed, left, right)
        accepted, site_log = evaluated(self._accepted), np.empty_like(self._site_log)
        at, model = self._at, model or accepted.model
        blocks: Iterable[tuple[np.ndarray, GpuBatch]]
        if left is None:
            blocks = self._blocks()
        else:
            tiles = tiling(self._problem.state_sets.shape[1], self._problem.precision)
            at = left, right, [layout_of(part, tiles, left, right) for part in self._parts]
            blocks = self._one_by_one(*at)
        value = self._evaluate(blocks, lengths, model, site_log)
        self._site_log_before, self._site_log = self._site_log, site_log
        self._proposed = _State(np.array(lengths, np.float64), model, *at)
        return value

    def _one_by_one(
        self, left: np.ndarray, right: np.ndarray, layouts: list[TreeLayout]
    ) -> Iterator[tuple[np.ndarray, GpuBatch]]:
        """The blocks of another topology, each gone before the next one is made: those of the accepted one
        stay."""
        with memory_errors():
            self._reserve(layouts)
        for k, layout in enumerate(layouts):
            with memory_errors():
                batch = self._batch(k, left, right, layout)
            yield self._patterns[k], batch

    def accept(self) -> None:
        proposed = self._accepted = pending(self._proposed)
        if proposed.layouts is not self._at[2]:
            self._at, self._batches = (proposed.left, proposed.right, proposed.layouts), []
        self._proposed = None

    def reject(self) -> None:
        pending(self._proposed)
        self._proposed, self._site_log = None, self._site_log_before


def _sum_models(models: list[SiteModelGradient]) -> SiteModelGradient:
    def total(of) -> np.ndarray:
        return np.sum([of(m) for m in models], axis=0)

    return SiteModelGradient(
        processes=tuple(
            ProcessGradient(
                total(lambda m, k=k: m.processes[k].rate_matrix),
                total(lambda m, k=k: m.processes[k].root_frequencies),
            )
            for k in range(len(models[0].processes))
        ),
        rates=total(lambda m: m.rates),
        weights=total(lambda m: m.weights),
        invariant=fsum(m.invariant for m in models),
        invariant_frequencies=total(lambda m: m.invariant_frequencies),
    )
