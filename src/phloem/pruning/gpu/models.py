"""Numbers of models on the device: how they are laid out, and what brings them there."""

from __future__ import annotations

import numpy as np
import torch

from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices
from phloem.pruning.site_order import refuse_neighbours


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
        for model in models:
            refuse_neighbours(model, "the GPU engine")
        if lengths.ndim == 2:  # one set of branch lengths
            rates = np.array([model.rates for model in models])
            np.multiply(lengths[:, :, None], rates[:, None], out=self.host["times"])
        else:
            for i, model in enumerate(models):
                np.multiply(model.by_category(lengths[i]).T, model.rates, out=self.host["times"][i])
        changed = self.others(models)
        for i in changed:
            self._set_model(i, models[i])
        if changed:
            self.all_real = all([has_real_eigensystems(model) for model in models])
        n = len(self._host) if changed else self._n_times
        self._device[:n].copy_(self._host[:n], non_blocking=True)

    def others(self, models: list[SiteModel]) -> list[int]:
        """The numbers of those that are not what was loaded last."""
        return [i for i, model in enumerate(models) if model is not self._models[i]]

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


class PackedModels:
    """The numbers of models on the device, two places for every chain, and how one model is laid out.

    blocks: (F, 3) int64 of every field: first word in a packed model, words, and place of the first model's
    on the device, where the same field of all models lies together. fields: their views on the device, of the
    names and shapes of buffers.ModelNumbers.
    """

    def __init__(self, n_models: int, n_processes: int, n_categories: int, width: int, device) -> None:
        w, c, r = width, n_categories, n_processes
        self._shape = r, w
        shapes = {
            "weights": (c,),
            "process": (c,),
            "invariant": (1,),
            "invariant_frequencies": (w,),
            "frequencies": (r, w),
            "values": (r, w),
            "right": (r, w, w),
            "left": (r, w, w),
            "generator": (r, w, w),
        }
        size = np.array([int(np.prod(shape)) for shape in shapes.values()], np.int64)
        room = (n_models * size + 1) // 2 * 2
        place = np.cumsum(room) - room
        self.blocks = np.stack([np.cumsum(size) - size, size, place], 1)
        self.n_words = int(size.sum())
        self.buffer = torch.zeros(int(room.sum()), dtype=torch.float64, device=device)
        self.fields = {
            name: self.buffer[int(at) : int(at) + n_models * int(n)].view(n_models, *shape)
            for (name, shape), at, n in zip(shapes.items(), place, size)
        }
        self.fields["process"] = self.fields["process"].view(torch.int64)

    def pack(self, model: SiteModel, words: np.ndarray) -> None:
        """Write a model into (n_words,) words; everything outside its states is 0."""
        (r, w), s = self._shape, len(model.invariant_frequencies)
        weights, process, invariant, constant, *of_processes = np.split(words, self.blocks[1:, 0])
        weights[:], process.view(np.int64)[:], invariant[:] = model.weights, model.process, model.invariant
        constant[:s] = model.invariant_frequencies
        frequencies, values, right, left, generator = of_processes
        for k, numbers in enumerate(model.processes):
            frequencies.reshape(r, w)[k, :s] = numbers.root_frequencies
            generator.reshape(r, w, w)[k, :s, :s] = numbers.rate_matrix.T
            eigen = numbers.real_eigen
            if eigen is not None:  # else the host makes the matrices
                values.reshape(r, w)[k, :s] = eigen.values
                right.reshape(r, w, w)[k, :s, :s], left.reshape(r, w, w)[k, :s, :s] = eigen.right, eigen.left


def padded_matrices(lengths: np.ndarray, model: SiteModel, width: int) -> torch.Tensor:
    """(B, C, W, W) transition matrices made by the host, for models without a real eigensystem, transposed
    as kernels/transition.py leaves them. lengths: (B,), or (K, B)."""
    p, s = transition_matrices(lengths, model), len(model.invariant_frequencies)
    padded = np.zeros((*p.shape[:2], width, width))
    padded[:, :, :s, :s] = p.swapaxes(2, 3)
    return torch.from_numpy(padded)
