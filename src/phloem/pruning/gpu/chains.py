"""The chain axis: H trees with topologies, lengths and models of their own, evaluated in one go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.model.record import SiteModel
from phloem.pruning.gpu.gradient import branch_gradient
from phloem.pruning.gpu.tree_batch import GpuBatch
from phloem.pruning.interface import Problem


@dataclass(frozen=True)
class ChainGradients:
    """log_likelihoods: (H,); branch_lengths: (H, N) d/d effective length, root 0."""

    log_likelihoods: np.ndarray
    branch_lengths: np.ndarray


class GpuChains:
    """H chains over one data set. left, right: (H, T-1), as Problem's for every chain.

    Results do not depend on which chains share a batch: each chain's sums have an order of their own.
    """

    def __init__(self, problem: Problem, left: np.ndarray, right: np.ndarray, device: torch.device) -> None:
        self._problem, self._device = problem, device
        self.set_topologies(left, right)

    def set_topologies(self, left: np.ndarray, right: np.ndarray) -> None:
        """Lay out new topologies; the captured graphs of the old ones go."""
        self._batch = GpuBatch(self._problem, np.asarray(left), np.asarray(right), self._device)

    def log_likelihoods(self, lengths: np.ndarray, models: list[SiteModel]) -> np.ndarray:
        """(H,) log-likelihoods. lengths: (H, N) effective branch lengths; models: one a chain."""
        self._batch.evaluate("likelihood", np.asarray(lengths, np.float64), models)
        return self._values()

    def gradients(self, lengths: np.ndarray, models: list[SiteModel]) -> ChainGradients:
        self._batch.evaluate("gradient", np.asarray(lengths, np.float64), models)
        branches = [branch_gradient(d, m) for d, m in zip(self._batch.derivatives(), models)]
        return ChainGradients(self._values(), np.stack(branches))

    def _values(self) -> np.ndarray:
        values = self._batch.log_likelihoods().copy()
        if np.isnan(values).any():
            raise NumericalError("the log-likelihood of a chain is not a number")
        return values
