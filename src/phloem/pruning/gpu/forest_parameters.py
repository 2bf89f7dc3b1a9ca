"""Gradients of the numbers of the models of a forest's chains, in launches that are captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from phloem.hardware.gpu_device import captured
from phloem.model.record import SiteModelGradient
from phloem.pruning.cpu import chain_gradients as lists
from phloem.pruning.cpu.chain_state import COLUMNS_IN, LEFT, MESSAGE, MESSAGE_IN, RIGHT, ROWS
from phloem.pruning.gpu.gradient import (
    COLUMN,
    FIRST_ROOT,
    MODEL,
    N_ROOT,
    RESULT,
    Adjoints,
    branch_blocks,
    parameter_sums,
    read_sums,
)
from phloem.pruning.gpu.kernels.transition import transition_adjoint
from phloem.pruning.gpu.models import has_real_eigensystems

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest


class ParameterSums:
    """Derivatives by the numbers of the models of some chains: on the device, from what the way down kept.

    What the launches are about lies in one buffer that they bring up, so that they are captured for any
    chains of the same number.
    """

    def __init__(self, forest: GpuForest) -> None:
        """forest: which does not keep it alive, as ForestGradients'."""
        self._forest = forest
        h, n, c = forest.n_chains, forest.n_nodes - 1, forest.problem.n_categories
        shapes = {"jobs": (h, n, 8), "places": (h, 5), "columns": (3,), "times": (h, n, c)}
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
        self._host = torch.zeros(int(ends[-1]), dtype=torch.int64, pin_memory=forest.device.type == "cuda")
        self._there = torch.zeros(int(ends[-1]), dtype=torch.int64, device=forest.device)
        self._words: dict[str, np.ndarray] = {}
        self._arrays: dict[str, torch.Tensor] = {}
        for (name, shape), end in zip(shapes.items(), ends.tolist()):
            place = slice(end - int(np.prod(shape)), end)
            self._words[name] = self._host.numpy()[place].reshape(shape)
            self._arrays[name] = self._there[place].view(shape)
        self._words["times"] = self._words["times"].view(np.float64)
        self._arrays["times"] = self._arrays["times"].view(torch.float64)
        self._captured: dict[tuple[int, bool], tuple[torch.cuda.CUDAGraph, tuple[torch.Tensor, ...]]] = {}

    def forget_launches(self) -> None:
        """After arrays have moved."""
        self._captured.clear()

    def found(self, chains: np.ndarray) -> dict[int, SiteModelGradient]:
        """The gradient of every chain whose model was set by set_model, right after the gradient of all of
        them by lengths."""
        forest, trees = self._forest, self._forest.chains.trees
        version = (trees.accepted ^ trees.pending)[chains]
        self._describe(chains, version)
        models = [forest.models[2 * h + trees.model_in[v, h]] for h, v in zip(chains.tolist(), version)]
        what = self._adjoints(len(chains))
        sums, derivatives = self._done(what, all(m is None or has_real_eigensystems(m) for m in models))
        at, named = [], []
        for k, (h, v, model) in enumerate(zip(chains.tolist(), version, models)):
            if model is not None:
                lengths = trees.lengths[v, h, : model.n_length_classes]
                at.append((lengths if len(lengths) > 1 else lengths[0], model, derivatives[h]))
                named.append((k, h))
        gradients = read_sums(sums, what, [k for k, _ in named], at)
        return dict(zip((h for _, h in named), gradients))

    def _describe(self, chains: np.ndarray, version: np.ndarray) -> None:
        """Write what the launches are about."""
        forest, words = self._forest, self._forest.gradients.record.words
        trees, n = forest.chains.trees, len(chains)
        node, places = trees.node[version, chains], forest.chains.places.of[chains]
        every, nodes = np.arange(n)[:, None], np.arange(forest.n_nodes)
        message = places[every, node[:, :, MESSAGE_IN], nodes, MESSAGE]
        classes = places[every, node[:, :, COLUMNS_IN], nodes, ROWS]
        self._words["jobs"][:n] = self._of_branches(node, message, classes)
        self._words["columns"][:] = words[[lists.N_MESSAGES, lists.N_MESSAGES, lists.N_U]]
        of = self._words["places"][:n]
        of[:, MODEL], of[:, COLUMN] = 2 * chains + trees.model_in[version, chains], message[:, -1]
        of[:, [FIRST_ROOT, N_ROOT]], of[:, RESULT] = forest.root_columns[chains], chains
        lengths, sets = trees.lengths[version, chains], trees.length_set[version, chains]
        by_category = np.take_along_axis(lengths, sets[:, :, None], 1)
        times = by_category * trees.rates[version, chains][:, :, None]
        self._words["times"][:n] = times[:, :, :-1].swapaxes(1, 2)

    def _of_branches(self, node: np.ndarray, message: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """(n, B, 8) for kernels/transition.py: transition_adjoint, from the steps of the list."""
        gradients, n = self._forest.gradients, node.shape[1] - 1
        words, first = gradients.record.words, gradients.first_step
        steps = words[first : first + lists.STEP * words[lists.N_STEPS]].reshape(-1, lists.STEP)
        steps = steps[steps[:, lists.KIND] <= lists.INTERNAL]
        by_branch = np.argsort(steps[:, lists.MATRIX] % (self._forest.n_chains * n))
        of = steps[by_branch].reshape(len(node), n, lists.STEP)
        every, children = np.arange(len(node))[:, None], np.maximum(node[:, :-1, [LEFT, RIGHT]], 0)
        jobs = np.empty((len(node), n, 8), np.int64)
        jobs[..., [0, 1, 2, 3, 7]] = of[..., [lists.KIND, lists.U, lists.SIZE, lists.OWN, lists.LIST]]
        jobs[..., 4], jobs[..., 5] = message[every, children[..., 0]], message[every, children[..., 1]]
        jobs[..., 6] = classes[:, :-1]
        return jobs

    def _adjoints(self, n: int) -> Adjoints:
        arrays = self._arrays
        return Adjoints(
            adjoint=lambda nodes: self._adjoint(n, nodes),
            times=arrays["times"][:n],
            places=arrays["places"][:n],
            columns=arrays["columns"],
            width=self._forest.sizes.width,
            ascertained=self._forest.data.are_ascertained,
        )

    def _adjoint(self, n: int, nodes: np.ndarray) -> torch.Tensor:
        """(n, b, C, W, W) d log L / d P of some branches of every chain."""
        forest, a, mine = self._forest, self._forest.arrays, self._forest.gradients.arrays
        sizes, c, w = forest.sizes, forest.problem.n_categories, forest.sizes.width
        block = max(16, sizes.block)
        jobs = self._arrays["jobs"][:n, int(nodes[0]) : int(nodes[-1]) + 1].contiguous()
        shape = (*jobs.shape[:2], c, w, w)
        out = torch.empty(shape, dtype=torch.float64, device=forest.device)
        chunks = -(-w // block)
        constants = forest.gradients.constants() | {"BLOCK": block, "CHUNKS": chunks}
        transition_adjoint[(shape[0] * shape[1], c, chunks**2)](
            jobs, self._arrays["columns"], a["messages"], a["shifts"], mine["pieces"],
            mine["sums"].view(torch.int32), a["left_class"], a["right_class"], a["state_sets"], out, c,
            **constants, TILE=32, STRIDE=2, num_warps=4,
        )  # fmt: skip
        return out

    def _done(self, what: Adjoints, on_device: bool) -> tuple[np.ndarray, np.ndarray]:
        """What parameter_sums finds, and the derivatives by branch and category, at home."""
        forest, key = self._forest, (len(what.places), on_device)

        def launch(out: tuple[torch.Tensor, ...] | None) -> tuple[torch.Tensor, ...]:
            self._there.copy_(self._host, non_blocking=True)
            sums = parameter_sums(what, forest.arrays, forest.numbers.fields, on_device)
            found = sums, forest.gradients.arrays["derivatives"]
            out = out or tuple(torch.empty(x.shape, dtype=x.dtype, pin_memory=x.is_cuda) for x in found)
            for home, x in zip(out, found):
                home.copy_(x, non_blocking=True)
            return out

        if key in self._captured:
            graph, out = self._captured[key]
            graph.replay()
        else:
            out = launch(None)
        if forest.device.type == "cuda":
            torch.cuda.current_stream(forest.device).synchronize()
            # A graph keeps the memory of what it makes on the way: only where that is little.
            if key not in self._captured and len(branch_blocks(what)) == 1:
                graph = torch.cuda.CUDAGraph()
                kept = tuple(torch.empty_like(x, pin_memory=True) for x in out)
                with captured(graph):
                    launch(kept)
                self._captured[key] = graph, kept
        return out[0].numpy(), out[1].numpy()
