"""The GPU engine: kernels/triton behind the Evaluator contract (engine/interface.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from phloem.engine import gpu_schedule as schedule
from phloem.engine.gpu_batch import GpuBatch
from phloem.engine.gpu_blocks import RESERVED_BYTES, GpuBlockEvaluator, forecast_device_bytes, plan_blocks
from phloem.engine.gpu_device import find_device
from phloem.engine.gpu_gradient import site_model_gradient
from phloem.engine.gpu_layout import TreeLayout
from phloem.engine.gpu_sites import second_derivatives, site_branch_derivatives
from phloem.engine.interface import EngineGradient, Evaluator, Problem
from phloem.errors import DeviceError, NumericalError
from phloem.model.record import SiteModel

__all__ = ["GpuEvaluator", "device_name", "find_device", "forecast_device_bytes", "make_evaluator"]


def make_evaluator(problem: Problem, available_bytes: int | None = None) -> Evaluator:
    """An evaluator on the GPU, in blocks of columns where memory (by default what is free) is short."""
    device = find_device()
    if available_bytes is None:
        available_bytes = free_bytes(device)
    blocks = plan_blocks(problem, available_bytes)
    if len(blocks) == 1:
        return GpuEvaluator(problem, device, [blocks[0][1]])
    return GpuBlockEvaluator(problem, blocks, device)


def free_bytes(device: torch.device) -> int:
    if device.type != "cuda":
        return 1 << 62  # the interpreter's memory is the host's
    return max(0, torch.cuda.mem_get_info(device)[0] - RESERVED_BYTES)


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "Triton's interpreter"


# Message elements (two slots) below which a proposal is evaluated whole: a captured graph takes 0.07 ms where
# listing, uploading and launching the steps above one branch takes 0.6 to 1 ms.
WHOLE_ELEMENTS = 60_000_000


class GpuEvaluator:
    """Evaluator on one GPU. A proposal on the same topology goes into a second slot: whole where the problem
    is small, else only the changed matrices and the steps above them. A new topology gets its own buffers."""

    name = "gpu"

    def __init__(
        self,
        problem: Problem,
        device: torch.device | None = None,
        layouts: list[TreeLayout] | None = None,
    ) -> None:
        self._problem = problem
        self._device = device or find_device()
        self._batch = self._make_batch(problem.left, problem.right, 1, layouts)
        self._chain = self._batch.chains[0]
        self._accepted: tuple[np.ndarray, SiteModel] | None = None
        self._proposed: tuple[np.ndarray, SiteModel] | None = None
        self._before: tuple[GpuBatch, schedule.Chain] | None = None
        self._sites_stale = False

    def _make_batch(self, left: np.ndarray, right: np.ndarray, slots: int, layouts=None) -> GpuBatch:
        try:
            return GpuBatch(self._problem, left[None], right[None], self._device, slots, layouts=layouts)
        except torch.OutOfMemoryError as error:
            raise DeviceError(f"the GPU's memory does not hold this problem: {error}") from error

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        return self._evaluate("likelihood", lengths, model)

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        value = self._evaluate("parameters" if parameters else "gradient", lengths, model)
        d = self._batch.derivatives()[0]
        site_model = site_model_gradient(self._batch, 0, lengths, model, d) if parameters else None
        return EngineGradient(value, np.append(d @ model.rates, 0.0), site_model)

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        self._evaluate("likelihood", lengths, model)
        return site_branch_derivatives(self._batch)

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        self._evaluate("likelihood", lengths, model)
        return second_derivatives(self._batch)

    def _evaluate(self, what: str, lengths: np.ndarray, model: SiteModel) -> float:
        self._proposed = self._before = None
        self._chain, self._sites_stale = self._batch.chains[0], False
        self._batch.evaluate(what, np.asarray(lengths, np.float64)[None], [model])
        self._accepted = (np.array(lengths, np.float64), model)
        return self._value()

    def _value(self) -> float:
        value = float(self._batch.log_likelihoods()[0])
        if np.isnan(value):
            raise NumericalError("the log-likelihood is not a number")
        return value

    def site_log_likelihoods(self) -> np.ndarray:
        if self._sites_stale:
            self._recompute(self._chain, np.zeros(self._batch.n_nodes, bool), np.zeros(0, np.int64))
            self._sites_stale = False
        return self._batch.site_log_likelihoods(0)

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        if self._proposed is not None:
            raise RuntimeError("a proposal is pending: accept or reject it first")
        if self._accepted is None:
            raise RuntimeError("nothing was evaluated yet: call log_likelihood first")
        before = (self._batch, self._chain)
        self._proposed = (np.array(lengths, np.float64), model or self._accepted[1])
        try:
            value = self._evaluate_proposal(changed, model, left, right)
        except Exception:
            (self._batch, self._chain), self._proposed, self._before = before, None, None
            self._sites_stale = True
            raise
        return value

    def _evaluate_proposal(self, changed, model, left, right) -> float:
        self._before = (self._batch, self._chain)
        if left is not None or right is not None:
            return self._propose_topology(left, right)
        if self._batch.slots == 1:
            self._grow()
        if self._batch.launch.arrays["messages"].numel() < WHOLE_ELEMENTS:
            return self._propose_whole()
        every = np.arange(self._batch.n_nodes - 1)
        branches = every if model is not None else np.setdiff1d(changed, [self._batch.n_nodes - 1])
        self._chain = self._flip(branches)
        dirty = self._chain.message_slot != self._before[1].message_slot
        self._recompute(self._chain, dirty, branches)
        return self._value()

    def _propose_whole(self) -> float:
        """Everything, into the other slot, by a captured graph."""
        assert self._proposed is not None
        slot = 1 - int(self._chain.message_slot[-1])
        self._chain = schedule.in_slot(self._chain, slot)
        self._batch.evaluate("likelihood", self._proposed[0][None], [self._proposed[1]], slot)
        return self._value()

    def _propose_topology(self, left, right) -> float:
        if left is None or right is None or self._proposed is None:
            raise ValueError("a changed topology needs both left and right")
        self._batch = self._make_batch(left, right, self._batch.slots)
        self._chain = self._batch.chains[0]
        self._batch.evaluate("likelihood", self._proposed[0][None], [self._proposed[1]])
        return self._value()

    def _grow(self) -> None:
        """Twice the messages, from the first proposal on; the accepted state is computed anew."""
        assert self._accepted is not None
        classes = self._batch.layouts[0].classes
        self._batch = self._make_batch(classes.left, classes.right, 2)
        self._batch.evaluate("likelihood", self._accepted[0][None], [self._accepted[1]])
        self._chain = self._batch.chains[0]
        self._before = (self._batch, self._chain)

    def _flip(self, branches: np.ndarray) -> schedule.Chain:
        """The changed matrices, and the messages from there to the root, go to their other slots."""
        dirty = np.zeros(self._batch.n_nodes, bool)
        dirty[branches] = dirty[-1] = True
        for x in range(self._batch.n_nodes - 1):
            if dirty[x]:
                dirty[self._chain.layout.parent[x]] = True
        matrix = self._chain.matrix_slot.copy()
        matrix[branches] ^= 1
        return replace(self._chain, message_slot=self._chain.message_slot ^ dirty, matrix_slot=matrix)

    def _recompute(self, chain: schedule.Chain, dirty: np.ndarray, branches: np.ndarray) -> None:
        batch, state = self._batch, self._proposed or self._accepted
        assert state is not None
        jobs = schedule.matrix_jobs(chain, branches)
        items = schedule.postorder_items(chain, batch.sizes, batch.parts, dirty)
        roots = schedule.root_items(chain, batch.sizes)
        batch.evaluate_dirty(state[0][None], [state[1]], jobs, items, roots)

    def accept(self) -> None:
        if self._proposed is None:
            raise RuntimeError("no proposal is pending")
        self._accepted, self._proposed, self._before = self._proposed, None, None

    def reject(self) -> None:
        if self._proposed is None or self._before is None:
            raise RuntimeError("no proposal is pending")
        (self._batch, self._chain), self._proposed, self._before = self._before, None, None
        self._sites_stale = True
