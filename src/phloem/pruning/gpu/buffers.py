"""What the GPU engine uploads for every evaluation."""

from __future__ import annotations

import numpy as np
import torch

from phloem.model.record import SiteModel
from phloem.pruning.interface import Problem


class ModelNumbers:
    """Numbers of H models and H sets of branch lengths, in one block that travels in one copy.

    Views, float64: lengths (H, N), rates, weights (H, C), invariant (H,), frequencies, values (H, W),
    right, left, generator = Qᵀ (H, W, W). Everything outside a model's states is 0.
    """

    def __init__(
        self, n_chains: int, n_nodes: int, n_categories: int, width: int, device: torch.device
    ) -> None:
        h, w, c = n_chains, width, n_categories
        shapes = {
            "lengths": (h, n_nodes),
            "rates": (h, c),
            "weights": (h, c),
            "invariant": (h,),
            "frequencies": (h, w),
            "values": (h, w),
            "right": (h, w, w),
            "left": (h, w, w),
            "generator": (h, w, w),
        }
        sizes = [-(-int(np.prod(shape)) // 2) * 2 for shape in shapes.values()]
        self._host = torch.zeros(sum(sizes), dtype=torch.float64, pin_memory=device.type == "cuda")
        self._device = torch.zeros(sum(sizes), dtype=torch.float64, device=device)
        ends = np.cumsum(sizes)
        self._n_lengths = sizes[0]
        self.host: dict[str, np.ndarray] = {}
        self.device: dict[str, torch.Tensor] = {}
        for (name, shape), end, size in zip(shapes.items(), ends, sizes):
            place = slice(int(end - size), int(end - size) + int(np.prod(shape)))
            self.host[name] = self._host.numpy()[place].reshape(shape)
            self.device[name] = self._device[place].view(shape)
        self._models: list[SiteModel | None] = [None] * h

    def load(self, lengths: np.ndarray, models: list[SiteModel]) -> None:
        """Start the copy of lengths, and of the models where they are other objects than last time."""
        self.host["lengths"][:] = lengths
        changed = [i for i, m in enumerate(models) if m is not self._models[i]]
        for i in changed:
            self._set_model(i, models[i])
        n = len(self._host) if changed else self._n_lengths
        self._device[:n].copy_(self._host[:n], non_blocking=True)

    def _set_model(self, i: int, model: SiteModel) -> None:
        process, host = model.single, self.host
        s = len(process.frequencies)
        host["rates"][i], host["weights"][i] = model.rates, model.weights
        host["invariant"][i] = model.invariant
        host["frequencies"][i, :s] = process.root_frequencies
        host["generator"][i, :s, :s] = process.rate_matrix.T
        eigen = process.real_eigen
        if eigen is not None:
            host["values"][i, :s] = eigen.values
            host["right"][i, :s, :s] = eigen.right
            host["left"][i, :s, :s] = eigen.left
        self._models[i] = model


def padded_state_sets(problem: Problem, width: int, dtype: torch.dtype) -> torch.Tensor:
    """(codes, width) allowed states as 0 and 1, zeros behind the states."""
    sets = np.zeros((len(problem.state_sets), width))
    sets[:, : problem.state_sets.shape[1]] = problem.state_sets
    return torch.from_numpy(sets).to(dtype)
