"""The GPU engine: kernels/triton behind the Evaluator contract (pruning/interface.py)."""

from __future__ import annotations

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.hardware.gpu_device import find_device, memory_errors
from phloem.model.record import SiteModel
from phloem.pruning.gpu.blocks import RESERVED_BYTES, GpuBlockEvaluator, forecast_device_bytes, plan_blocks
from phloem.pruning.gpu.buffers import RootColumns
from phloem.pruning.gpu.gradient import branch_gradient, site_model_gradient
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
    """Evaluator on one GPU. A proposal recomputes the columns, matrices and messages that it changes, in a
    second place of each (gpu_updates.py). An accepted topology that is then evaluated from scratch, as for a
    gradient, is first laid out anew."""

    name = "gpu"

    def __init__(
        self,
        problem: Problem,
        device: torch.device | None = None,
        layouts: list[TreeLayout] | None = None,
    ) -> None:
        self._problem = problem
        self._device = device or find_device()
        self._root: RootColumns | None = None
        self._lay_out(Topology.build(problem.left, problem.right), layouts)
        self._accepted: State | None = None
        self._proposed: State | None = None
        self._sites_stale = False

    def _lay_out(self, topology: Topology, layouts: list[TreeLayout] | None = None) -> None:
        n_tips = len(self._problem.tip_codes)
        left, right = topology.left[n_tips:], topology.right[n_tips:]
        with memory_errors():
            self._batch = GpuBatch(
                self._problem, left[None], right[None], self._device, layouts=layouts, root=self._root
            )
        self._topology, self._root = topology, self._batch.root
        self._updates: GpuUpdates | None = None

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        return self._evaluate("likelihood", lengths, model)

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        value = self._evaluate("parameters" if parameters else "gradient", lengths, model)
        d = self._batch.derivatives()[0]
        with memory_errors():
            site_model = site_model_gradient(self._batch, 0, lengths, model, d) if parameters else None
        return EngineGradient(value, branch_gradient(d, model), site_model)

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        self._evaluate("likelihood", lengths, model)
        with memory_errors():
            return site_branch_derivatives(self._batch, model)

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        self._evaluate("likelihood", lengths, model)
        with memory_errors():
            return second_derivatives(self._batch, model)

    def _evaluate(self, what: str, lengths: np.ndarray, model: SiteModel) -> float:
        """From scratch; becomes the accepted state."""
        self._proposed = None
        if self._accepted is not None and self._accepted.topology is not self._topology:
            self._lay_out(self._accepted.topology)
        self._accepted, self._sites_stale = None, False  # its messages are about to be overwritten
        with memory_errors():
            self._batch.evaluate(what, np.asarray(lengths, np.float64)[None], [model])
        value = self._value()
        if self._updates is not None:
            self._updates.restart()
        nodes = np.arange(self._batch.n_nodes)
        self._accepted = State(self._topology, nodes, nodes, nodes, np.array(lengths, np.float64), model)
        return value

    def _value(self) -> float:
        value = float(self._batch.log_likelihoods()[0])
        if np.isnan(value):
            raise NumericalError("the log-likelihood is not a number")
        return value

    def site_log_likelihoods(self) -> np.ndarray:
        if self._sites_stale and self._updates is not None and self._accepted is not None:
            with memory_errors():
                self._updates.redo_root(self._accepted)
            self._sites_stale = False
        return self._batch.site_log_likelihoods(0)

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        refuse_to_propose(self._proposed, left, right)
        accepted = evaluated(self._accepted)
        require_shape(lengths, model or accepted.model, self._batch.n_nodes)
        if self._updates is not None and self._updates.is_spread(accepted):
            accepted = self._gathered(accepted)
        with memory_errors():
            self._updates = self._updates or GpuUpdates(self._batch)
            self._sites_stale = True
            proposed = self._updates.propose(accepted, lengths, changed, model, left, right)
        value = self._value()
        self._proposed, self._sites_stale = proposed, False
        return value

    def _gathered(self, state: State) -> State:
        """The accepted state laid out anew, its messages side by side."""
        self._lay_out(state.topology)
        self._evaluate("likelihood", state.lengths, state.model)
        return evaluated(self._accepted)

    def accept(self) -> None:
        self._accepted, self._proposed = pending(self._proposed), None

    def reject(self) -> None:
        pending(self._proposed)
        self._proposed, self._sites_stale = None, True
