"""Leapfrog steps over the branch lengths of chains, all but the first of them in one captured graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from phloem.errors import DeviceError, NumericalError
from phloem.hardware.gpu_device import captured, memory_errors
from phloem.pruning.cpu import chain_evaluation as generation
from phloem.pruning.cpu import chain_gradients as lists
from phloem.pruning.cpu.chain_state import N_BRANCHES
from phloem.pruning.gpu.kernels.chain_gradients import leap

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest


class Leap(NamedTuple):
    """Where steps ended: values (H,), and momenta and gradients (H, K, N) at the lengths that are now
    proposed. Chains that took no part have their accepted value and zeros."""

    values: np.ndarray
    momenta: np.ndarray
    gradients: np.ndarray


class Leapfrog:
    """run() proposes the lengths that n steps of p += ε/2 ∇, q += ε M⁻¹ p, p += ε/2 ∇ lead to, with q the
    effective lengths, ∇ the gradient of the log-likelihood and M diagonal (Neal 2011, section 2.3). A length
    below 0 is reflected there, with its momentum.

    The first step is an ordinary proposal with an ordinary gradient: it leaves both lists on the device. In
    each further one a kernel moves the lengths and writes the times of the matrices into the list itself.
    """

    def __init__(self, forest: GpuForest) -> None:
        """forest: which does not keep it alive, as ForestGradients'."""
        self._forest = forest
        shape = (*forest.change.lengths.shape,)
        new = lambda shape: torch.zeros(shape, dtype=torch.float64, device=forest.device)  # noqa: E731
        self._moving = new((3, *shape))  # lengths, momenta, gradients
        self._inverse_mass, self._step = new(shape), new(shape[:1])
        self._graphs: dict[tuple[tuple[int, ...], ...], torch.cuda.CUDAGraph] = {}

    def forget_launches(self) -> None:
        self._graphs.clear()

    def run(
        self, momenta: np.ndarray, step: np.ndarray, inverse_mass: np.ndarray, n: int, mask: np.ndarray
    ) -> Leap:
        """momenta, inverse_mass: (H, K, N); step: (H,) ε; n: steps, 1 or more; mask: (H,)."""
        forest, trees, change = self._forest, self._forest.chains.trees, self._forest.change
        if forest.on_host:
            raise DeviceError("leapfrog steps on a GPU want models with a real eigensystem")
        if trees.pending.any() or change.counts.any():
            raise RuntimeError("proposals are pending: settle them first")
        every, taking_part = np.arange(forest.n_chains), np.asarray(mask, bool)[:, None, None]
        epsilon = np.asarray(step, np.float64)[:, None, None]
        p = np.where(taking_part, momenta, 0.0)
        p[..., -1] = 0.0  # the root has no branch
        p += epsilon / 2 * forest.gradient(mask)
        q = trees.lengths[trees.accepted, every] + epsilon * inverse_mass * p
        q, p = np.abs(q), np.where(q < 0, -p, p)
        for h in np.flatnonzero(mask):
            change.branches[h], change.lengths[h] = np.arange(forest.n_nodes), q[h]
            change.counts[h, N_BRANCHES] = forest.n_nodes - 1
        values, gradients = forest.evaluate(), forest.gradient(mask)
        if n > 1 and np.any(mask):
            p, gradients = self._on_device((q, p, gradients), (step, inverse_mass), n - 1, mask)
            values = forest.values()
        return Leap(values, p + epsilon / 2 * gradients, gradients)

    def _on_device(self, moving, fixed, n: int, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """n more steps of what is pending: (momenta half a step before the end, gradients)."""
        forest, trees = self._forest, self._forest.chains.trees
        self._moving.copy_(torch.from_numpy(np.stack(moving)))
        self._step.copy_(torch.from_numpy(np.array(fixed[0], np.float64)))
        self._inverse_mass.copy_(torch.from_numpy(np.array(np.broadcast_to(fixed[1], moving[0].shape))))
        parts = forest.chains.shape.parts
        up = tuple(int(k) for k in generation.graph_key(forest.record.words, parts))
        down = tuple(int(k) for k in lists.graph_key(forest.gradients.record.words, parts))
        if forest.device.type != "cuda":
            self._steps(n, up, down)
        else:
            if (up, down, (n,)) not in self._graphs:
                graph = torch.cuda.CUDAGraph()
                with memory_errors(), captured(graph):
                    self._steps(n, up, down)
                self._graphs[up, down, (n,)] = graph
            self._graphs[up, down, (n,)].replay()
        q, p, gradients = self._moving.cpu().numpy()
        found = forest.record.found.view(np.float64)
        for h in np.flatnonzero(mask):
            trees.lengths[1 - trees.accepted[h], h] = q[h]
            trees.value[1 - trees.accepted[h], h] = found[h]
        if np.isnan(found[np.asarray(mask, bool)]).any():
            forest.settle(np.zeros(forest.n_chains))
            raise NumericalError("the log-likelihood of a chain, some leapfrog steps on, is not a number")
        return p, gradients

    def _steps(self, n: int, up: tuple[int, ...], down: tuple[int, ...]) -> None:
        """The launches of n steps."""
        forest, gradients = self._forest, self._forest.gradients
        q, p, force = self._moving
        for _ in range(n):
            leap[(1 << up[1],)](
                forest.arrays["words"], gradients.arrays["words"], q, p, force, self._step,
                self._inverse_mass, forest.n_nodes - 1, forest.n_chains, q.shape[1],
                forest.problem.n_categories, num_warps=1,
            )  # fmt: skip
            forest.arrays["counters"].zero_()
            gradients.arrays["counters"].zero_()
            forest.launch_up(up)
            gradients.launch_down(down, force)
