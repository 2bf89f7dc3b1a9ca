"""The parts of an alignment on one tree and one GPU: parts of one layout are the trees of one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.hardware.gpu_device import find_device, memory_errors
from phloem.model.record import SiteModel
from phloem.pruning.gpu.blocks import forecast_layout_bytes
from phloem.pruning.gpu.evaluator import free_bytes
from phloem.pruning.gpu.gradient import branch_gradients, site_model_gradients
from phloem.pruning.gpu.layout import TreeLayout
from phloem.pruning.gpu.models import has_real_eigensystems
from phloem.pruning.gpu.step_schedule import tiling
from phloem.pruning.gpu.tree_batch import GpuBatch, layout_of
from phloem.pruning.interface import EngineGradient, Problem
from phloem.pruning.tree_data import layout_key


class GpuPartCells:
    """parts: the numbers of those that are evaluated here, all that fit into the device's memory together;
    those of one layout in one sequence of launches. Lengths (N,) and models are given for every part there
    is."""

    def __init__(
        self,
        problems: Sequence[Problem],
        models: Sequence[SiteModel],
        parts: Sequence[int],
        available_bytes: int | None = None,
    ) -> None:
        """available_bytes: of device memory, by default what is free."""
        device = find_device()
        left = free_bytes(device) if available_bytes is None else available_bytes
        groups: dict[tuple, list[int]] = {}
        layouts: dict[int, TreeLayout] = {}
        for i in parts:
            problem = problems[i]
            tiles = tiling(problem.state_sets.shape[1], problem.precision)
            layout = layout_of(problem, tiles, problem.left, problem.right)
            needed = forecast_layout_bytes(problem, layout)
            if needed <= left:
                left, layouts[i] = left - needed, layout
                key = (*layout_key(problem), has_real_eigensystems(models[i]))
                groups.setdefault(key, []).append(i)
        self.parts = tuple(i for own in groups.values() for i in own)
        self._groups = list(groups.values())
        self._place = {i: (g, k) for g, own in enumerate(self._groups) for k, i in enumerate(own)}
        with memory_errors():
            self._batches = [self._batch(own, problems, layouts, device) for own in self._groups]

    def _batch(self, own: list[int], problems: Sequence[Problem], layouts, device) -> GpuBatch:
        sides = ([getattr(problems[i], side) for i in own] for side in ("left", "right"))
        left, right = (np.stack(side) for side in sides)
        return GpuBatch([problems[i] for i in own], left, right, device, layouts=[layouts[i] for i in own])

    def log_likelihoods(self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel]) -> np.ndarray:
        """Of the parts here, in their order."""
        values = list[float]()
        for own, batch in zip(self._groups, self._batches):
            values += self._evaluated("likelihood", own, batch, lengths, models)[0].tolist()
        return np.array(values)

    def gradients(
        self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel], parameters: bool
    ) -> list[EngineGradient]:
        """Of the parts here, in their order."""
        found, what = list[EngineGradient](), "parameters" if parameters else "gradient"
        for own, batch in zip(self._groups, self._batches):
            values, at, of = self._evaluated(what, own, batch, lengths, models)
            by_model: Sequence = [None] * len(own)
            if parameters:
                with memory_errors():
                    by_model = site_model_gradients(batch, at, of)
            by_length = branch_gradients(batch.derivatives(), of)
            found += map(EngineGradient, values.tolist(), by_length, by_model)
        return found

    def _evaluated(
        self, what: str, own: list[int], batch: GpuBatch, lengths: Sequence[np.ndarray],
        models: Sequence[SiteModel],
    ) -> tuple[np.ndarray, np.ndarray, list[SiteModel]]:  # fmt: skip
        """Values of a group's parts from scratch, with their lengths and models."""
        at, of = np.array([lengths[i] for i in own], np.float64), [models[i] for i in own]
        with memory_errors():
            batch.evaluate(what, at, of)
        return batch.log_likelihoods().copy(), at, of

    def site_log_likelihoods(self, part: int) -> np.ndarray:
        """(P,) of the last evaluation."""
        group, k = self._place[part]
        return self._batches[group].site_log_likelihoods(k)
