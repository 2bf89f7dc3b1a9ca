"""The GPU engine: kernels/triton behind the Evaluator contract (pruning/interface.py)."""

from __future__ import annotations

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.hardware.gpu_device import find_device, memory_errors
from phloem.model.record import SiteModel
from phloem.pruning.gpu.blocks import RESERVED_BYTES, GpuBlockEvaluator, forecast_device_bytes, plan_blocks
from phloem.pruning.gpu.buffers import RootColumns
from phloem.pruning.gpu.gradient import branch_gradient, site_model_gradients
from phloem.pruning.gpu.layout import TreeLayout
from phloem.pruning.gpu.sites import second_derivatives, site_branch_derivatives
from phloem.pruning.gpu.tree_batch import GpuBatch
from phloem.pruning.gpu.updates import GpuUpdates, State
from phloem.pruning.interface import (
    EngineGradient,
    Evaluator,
    Problem,
    evaluated,
    pending,
    refuse_to_propose,
    require_shape,
)
from phloem.pruning.topology import Topology

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
    """Memory that a problem may take now."""
    if device.type != "cuda":
        return 1 << 62  # the interpreter's memory is the host's
    return max(0, torch.cuda.mem_get_info(device)[0] - RESERVED_BYTES)


def device_name(device: torch.device) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "Triton's interpreter"


class GpuEvaluator:
    """Evaluator on one GPU. What holds the messages is a batch of one tree, laid out for its topology, until
    something is proposed; from then on a forest of one chain (updates.py), whose gradients lay nothing out
    anew. Only one of the two is there at a time; derivatives by site bring the batch back."""

    name = "gpu"

    def __init__(
        self,
        problem: Problem,
        device: torch.device | None = None,
        layouts: list[TreeLayout] | None = None,
    ) -> None:
        self._problem = problem
        self._device = device or find_device()
        self._topology = Topology.build(problem.left, problem.right)
        self._root: RootColumns | None = None
        self._batch: GpuBatch | None = None
        self._updates: GpuUpdates | None = None
        self._lay_out(layouts)
        self._accepted: State | None = None
        self._is_pending = self._sites_stale = False

    def _lay_out(self, layouts: list[TreeLayout] | None = None) -> GpuBatch:
        """The batch of the accepted topology, in the place of the forest."""
        self._updates = None
        if self._batch is None:
            n_tips = len(self._problem.tip_codes)
            left, right = self._topology.left[n_tips:], self._topology.right[n_tips:]
            with memory_errors():
                self._batch = GpuBatch(
                    self._problem, left[None], right[None], self._device, layouts=layouts, root=self._root
                )
            self._root = self._batch.roots[0]
        return self._batch

    def _forest(self, model: SiteModel) -> GpuUpdates:
        """The forest with the accepted state, in the place of the batch. model: it must have room for."""
        if self._updates is None or not self._updates.holds(model):
            self._batch = self._updates = None
            with memory_errors():
                self._updates = GpuUpdates(self._problem, self._device, evaluated(self._accepted), model)
        return self._updates

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        return self._evaluate("likelihood", lengths, model)

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        self._forget_proposal()
        if self._updates is None or self._accepted is None or not self._accepted.is_at(lengths, model):
            value = self._evaluate("parameters" if parameters else "gradient", lengths, model)
        else:
            value = self._updates.value
        if self._updates is not None:
            with memory_errors():
                return EngineGradient(value, *self._updates.gradient(parameters))
        batch = self._lay_out()
        d = batch.derivatives()[0]
        with memory_errors():
            own = site_model_gradients(batch, np.asarray(lengths)[None], [model]) if parameters else [None]
        return EngineGradient(value, branch_gradient(d, model), own[0])

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        batch = self._lay_out()
        self._evaluate("likelihood", lengths, model)
        with memory_errors():
            return site_branch_derivatives(batch, model)

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        batch = self._lay_out()
        self._evaluate("likelihood", lengths, model)
        with memory_errors():
            return second_derivatives(batch, model)

    def _forget_proposal(self) -> None:
        if self._is_pending:
            self.reject()

    def _evaluate(self, what: str, lengths: np.ndarray, model: SiteModel) -> float:
        """From scratch; becomes the accepted state."""
        self._forget_proposal()
        self._accepted, self._sites_stale = None, False
        require_shape(lengths, model, len(self._topology.left))
        if self._updates is not None and self._updates.holds(model):
            with memory_errors():
                value = self._updates.from_scratch(lengths, model)
            self._accepted = self._updates.accepted
            return value
        batch = self._lay_out()
        with memory_errors():
            batch.evaluate(what, np.asarray(lengths, np.float64)[None], [model])
        value = float(batch.log_likelihoods()[0])
        if np.isnan(value):
            raise NumericalError("the log-likelihood is not a number")
        self._accepted = State(self._topology, np.arange(batch.n_nodes), np.array(lengths, np.float64), model)
        return value

    def site_log_likelihoods(self) -> np.ndarray:
        if self._updates is None:
            if self._batch is None and self._accepted is not None:  # memory ran out for a proposal
                self._evaluate("likelihood", self._accepted.lengths, self._accepted.model)
            return self._lay_out().site_log_likelihoods(0)
        if self._sites_stale:
            with memory_errors():
                self._updates.redo_root()
            self._sites_stale = False
        return self._updates.site_log_likelihoods()

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        refuse_to_propose(self._is_pending or None, left, right)
        accepted = evaluated(self._accepted)
        require_shape(lengths, model or accepted.model, len(self._topology.left))
        updates, self._sites_stale = self._forest(model or accepted.model), True
        with memory_errors():
            value = updates.propose(lengths, changed, model, left, right)
        self._is_pending, self._sites_stale = True, False
        return value

    def accept(self) -> None:
        self._settle(True)

    def reject(self) -> None:
        self._settle(False)

    def _settle(self, accept: bool) -> None:
        updates = pending(self._updates if self._is_pending else None)
        updates.settle(accept)
        self._is_pending, self._sites_stale = False, not accept
        self._accepted, self._topology = updates.accepted, updates.accepted.topology
