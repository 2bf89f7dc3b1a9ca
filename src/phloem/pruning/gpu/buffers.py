"""What the GPU engine uploads for every evaluation."""

from __future__ import annotations

import numpy as np
import torch

from phloem.model.record import SiteModel
from phloem.pruning.interface import Problem


class ModelNumbers:
    """Numbers of H models of R processes, and the times of their branches, in one block that travels in one
    copy.

    Views, float64: times (H, N, C) = rate · length, rates, weights (H, C), invariant (H,),
    invariant_frequencies (H, W), frequencies, values (H, R, W), right, left, generator = Qᵀ (H, R, W, W);
    int64: process (H, C). Everything outside a model's states is 0.
    """

    def __init__(
        self, shape: tuple[int, int, int], n_processes: int, width: int, device: torch.device
    ) -> None:
        """shape: (H, N, C)."""
        h, n, c = shape
        w, r, self.n_processes = width, n_processes, n_processes
        shapes = {
            "times": (h, n, c),
            "rates": (h, c),
            "weights": (h, c),
            "process": (h, c),
            "invariant": (h,),
            "invariant_frequencies": (h, w),
            "frequencies": (h, r, w),
            "values": (h, r, w),
            "right": (h, r, w, w),
            "left": (h, r, w, w),
            "generator": (h, r, w, w),
        }
        sizes = [-(-int(np.prod(shape)) // 2) * 2 for shape in shapes.values()]
        self._host = torch.zeros(sum(sizes), dtype=torch.float64, pin_memory=device.type == "cuda")
        self._device = torch.zeros(sum(sizes), dtype=torch.float64, device=device)
        ends = np.cumsum(sizes)
        self._n_times = sizes[0]
        self.host: dict[str, np.ndarray] = {}
        self.device: dict[str, torch.Tensor] = {}
        for (name, of), end, size in zip(shapes.items(), ends, sizes):
            place = slice(int(end - size), int(end - size) + int(np.prod(of)))
            self.host[name] = self._host.numpy()[place].reshape(of)
            self.device[name] = self._device[place].view(of)
        self.host["process"] = self.host["process"].view(np.int64)
        self.device["process"] = self.device["process"].view(torch.int64)
        self._models: list[SiteModel | None] = [None] * h
        self.all_real = False

    def load(self, lengths: np.ndarray, models: list[SiteModel]) -> None:
        """Start the copy of lengths, and of the models where they are other objects than last time."""
        for i, model in enumerate(models):
            if model.n_length_classes == 1:
                np.multiply(lengths[i][:, None], model.rates, out=self.host["times"][i])
            else:
                np.multiply(model.by_category(lengths[i]).T, model.rates, out=self.host["times"][i])
        changed = [i for i, m in enumerate(models) if m is not self._models[i]]
        for i in changed:
            self._set_model(i, models[i])
        if changed:
            self.all_real = all(has_real_eigensystems(model) for model in models)
        n = len(self._host) if changed else self._n_times
        self._device[:n].copy_(self._host[:n], non_blocking=True)

    def _set_model(self, i: int, model: SiteModel) -> None:
        host = self.host
        host["rates"][i], host["weights"][i], host["process"][i] = model.rates, model.weights, model.process
        host["invariant"][i] = model.invariant
        s = len(model.invariant_frequencies)
        host["invariant_frequencies"][i, :s] = model.invariant_frequencies
        for k, process in enumerate(model.processes):
            host["frequencies"][i, k, :s] = process.root_frequencies
            host["generator"][i, k, :s, :s] = process.rate_matrix.T
            eigen = process.real_eigen
            if eigen is not None:
                host["values"][i, k, :s] = eigen.values
                host["right"][i, k, :s, :s] = eigen.right
                host["left"][i, k, :s, :s] = eigen.left
        self._models[i] = model


def has_real_eigensystems(model: SiteModel) -> bool:
    """Whether the kernels can exponentiate all processes."""
    return all(process.real_eigen is not None for process in model.processes)


def padded_state_sets(problem: Problem, width: int, dtype: torch.dtype) -> torch.Tensor:
    """(codes, width) allowed states as 0 and 1, zeros behind the states."""
    sets = np.zeros((len(problem.state_sets), width))
    sets[:, : problem.state_sets.shape[1]] = problem.state_sets
    return torch.from_numpy(sets).to(dtype)
