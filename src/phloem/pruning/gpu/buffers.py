"""Device memory of the GPU engine: how much, and in which arrays."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

import numpy as np
import torch

from phloem.pruning.gpu import step_schedule as schedule
from phloem.pruning.gpu.layout import TreeLayout
from phloem.pruning.gpu.step_schedule import Tiling, critical_path_first
from phloem.pruning.interface import Problem
from phloem.pruning.tree_data import TreeData, set_of

if TYPE_CHECKING:
    from phloem.pruning.gpu.tree_batch import GpuBatch

# How much device memory a problem takes, before any of it is allocated.


# Offsets inside one node's messages are 32-bit in the kernels.
LARGEST_NODE = 2**31 - 1


@dataclass(frozen=True)
class Sizes:
    """What decides how much memory a batch takes."""

    n_chains: int
    n_nodes: int
    n_categories: int
    n_columns: int
    n_pre_columns: int
    n_entries: int
    n_root_columns: int
    n_partials: int
    n_steps: int
    n_codes: int


def batch_sizes(layouts: list[TreeLayout], tiles: Tiling, n_categories: int, n_codes: int) -> Sizes:
    """The sizes of a batch of these topologies, one layout a chain."""
    n_nodes = layouts[0].classes.n_nodes
    root = n_nodes - 1
    post = sum(int((-(-np.diff(l.classes.offset)[:-1] // tiles.post_tile)).sum()) for l in layouts)
    partials = sum(int(l.tile_offset[-1]) for l in layouts)
    return Sizes(
        n_chains=len(layouts),
        n_nodes=n_nodes,
        n_categories=n_categories,
        n_columns=sum(int(l.classes.offset[-1]) for l in layouts),
        n_pre_columns=sum(int(l.pre_offset[-1]) for l in layouts),
        n_entries=sum(len(l.entry_parent) for l in layouts),
        n_root_columns=sum(l.classes.size(root) for l in layouts),
        n_partials=partials,
        n_steps=post + partials + sum(-(-l.classes.size(root) // tiles.root_tile) for l in layouts),
        n_codes=n_codes,
    )


def largest_node(layouts: list[TreeLayout], tiles: Tiling) -> int:
    """Elements of the largest node's messages in one category, either pass."""
    columns = max(int(np.diff(l.classes.offset).max()) for l in layouts)
    pre_columns = max(int(np.diff(l.pre_offset).max()) for l in layouts)
    return max(columns, pre_columns) * tiles.width


def device_arrays(
    n: Sizes, tiles: Tiling, precision: str, gradient: bool, parameters: bool
) -> dict[str, int]:
    """Bytes of every array on the device. The first six are shared by the column blocks of a split
    problem."""
    real = 8 if precision == "float64" else 4
    c, w = n.n_categories, tiles.width
    matrices = n.n_chains * (n.n_nodes - 1) * c * w * w
    q = c * n.n_pre_columns * w * real
    return {
        "messages": c * n.n_columns * w * real,
        "exponents": c * n.n_columns * 4,
        "shifts": c * n.n_columns * 4,
        "q": q if gradient or parameters else 0,
        "u": q if parameters else 0,
        "transition": matrices * real,
        "adjoint": min(matrices * 8, ADJOINT_BYTES) * 8 if parameters else 0,
        "classes": (2 * n.n_columns + n.n_pre_columns + 2 * n.n_entries) * 4,
        "steps": n.n_steps * 16 * 8,
        "partial": n.n_partials * c * tiles.chunks * 8,
        "root": n.n_root_columns * (8 + 1 + w + 8 + 4 + 8),
        "models": n.n_chains * (n.n_nodes * c + 3 * w * w + 3 * w + 3 * c + 1) * 8,
        "state_sets": n.n_codes * w * real,
        "lists": n.n_chains * n.n_nodes * ((4 + 3) * 8 + 2 * 4),
        "result": n.n_chains * (2 + n.n_nodes * c) * 8,
    }


# Adjoints of transition matrices held at a time: 20,000 branches at S = 256 in float64 would need 10 GB a
# category. Their transform by the eigensystem holds seven more of the same size.
ADJOINT_BYTES = 128 << 20
SHARED = ("messages", "exponents", "shifts", "q", "u", "transition")


# What the root's distinct columns carry.


@dataclass(frozen=True)
class RootColumns:
    """column_weights: (K,) float64; ascertained: (K,) uint8; invariant_states: (K, width) uint8, the states
    that every tip allows."""

    column_weights: np.ndarray
    ascertained: np.ndarray
    invariant_states: np.ndarray


def roots_of(data: TreeData, columns: Sequence[np.ndarray], width: int) -> list[RootColumns]:
    """root_columns of every tree; they are the same whatever the topology. columns: of each, (P,)."""
    known: dict[int, RootColumns] = {}
    for problem, column in zip(data.problems, columns):
        if id(problem) not in known:
            known[id(problem)] = root_columns(problem, column, int(column.max()) + 1, width)
    return [known[id(problem)] for problem in data.problems]


def root_columns(problem: Problem, column: np.ndarray, n: int, width: int) -> RootColumns:
    """Weights, ascertainment and invariant states by distinct column.

    column: (P,) the root column of every pattern, of n; width: states with padding.
    """
    representative = np.empty(n, np.int64)
    representative[column[::-1]] = np.arange(len(column))[::-1]
    allowed = np.ones((n, problem.state_sets.shape[1]), bool)
    for codes in problem.tip_codes:
        allowed &= problem.state_sets[codes[representative]]
    states = np.zeros((n, width), np.uint8)
    states[:, : allowed.shape[1]] = allowed
    ascertained = np.zeros(n, np.uint8)
    ascertained[column] = problem.ascertained
    return RootColumns(np.bincount(column, problem.pattern_weights, n), ascertained, states)


def total_weights(data: TreeData) -> np.ndarray:
    """(H,) weight of all patterns of every tree."""
    known = {id(problem): fsum(problem.pattern_weights) for problem in set_of(data.problems)}
    return np.array([known[id(problem)] for problem in data.problems])


# Device arrays of a batch: messages and matrices, the layouts they belong to, and lists of steps.


class DeviceArrays(dict[str, torch.Tensor]):
    """The arrays by name. full: lists of the steps of an evaluation from scratch. chains: (H, 2) int64, first
    root column of every chain and how many it has. n_result: entries of a chain's row of "result", which are
    the log-likelihood, a number beside it (kernels/root.py), and a derivative for every branch and
    category."""

    def __init__(self, batch: GpuBatch, dtype: torch.dtype) -> None:
        super().__init__()
        # The batch owns this: a reference back would keep the device's memory until a collection.
        self._batch: GpuBatch = weakref.proxy(batch)
        self._dtype = dtype
        self._allocate_messages()
        self._upload_layout()
        self._upload_root()
        self.full = self._full_lists()
        self.n_result = 2 + (batch.n_nodes - 1) * batch.problem.n_categories
        self["result"] = self.empty((batch.n_chains, self.n_result), torch.float64)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A new array, unnamed."""
        return torch.empty(shape, dtype=dtype, device=self._batch.device)

    def _large(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """An array that column blocks of one problem share, where the batch was given a pool for it."""
        pool = self._batch.pool.get(name)
        if pool is None:
            return self.empty(shape, dtype)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return pool[:n_bytes].view(dtype).view(shape)

    def to_device(self, array: np.ndarray) -> torch.Tensor:
        """A copy, unnamed."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._batch.device)

    def _allocate_messages(self) -> None:
        b, sizes = self._batch, self._batch.sizes
        c, w = b.problem.n_categories, sizes.width
        self._n_columns = sum(int(l.classes.offset[-1]) for l in b.layouts)
        self._n_pre_columns = sum(int(l.pre_offset[-1]) for l in b.layouts)
        n_partials = sum(int(l.tile_offset[-1]) for l in b.layouts)
        n_matrices = b.n_chains * (b.n_nodes - 1)
        self["messages"] = self._large("messages", (c, self._n_columns, w), self._dtype)
        self["exponents"] = self._large("exponents", (c, self._n_columns), torch.int32)
        self["shifts"] = self._large("shifts", (c, self._n_columns), torch.int32)
        self["transition"] = self._large("transition", (n_matrices, c, w, w), self._dtype)
        self["partial"] = self.empty((n_partials, c, sizes.chunks), torch.float64)
        self["counters"] = torch.zeros(2 + 2 * b.n_chains * b.n_nodes, dtype=torch.int32, device=b.device)

    def _upload_layout(self) -> None:
        layouts, data = self._batch.layouts, self._batch.data
        classes = [data.classes(k, l.classes) for k, l in enumerate(layouts)]
        for name in ("left_class", "right_class"):
            self[name] = self.to_device(np.concatenate([getattr(own, name) for own in classes]))
        for name in ("pre_class", "entry_parent", "entry_sibling"):
            self[name] = self.to_device(np.concatenate([getattr(l, name) for l in layouts]))
        sets = padded_state_sets(data.state_sets, self._batch.sizes.width, self._dtype)
        self["state_sets"] = sets.to(self._batch.device)

    def _upload_root(self) -> None:
        b = self._batch
        for name in ("column_weights", "ascertained", "invariant_states"):
            self[name] = self.to_device(np.concatenate([getattr(root, name) for root in b.roots]))
        n = len(self["column_weights"])
        for name in ("mantissa", "site_log"):
            self[name] = self.empty((n,), torch.float64)
        self["power"] = self.empty((n,), torch.int32)
        self["total_weight"] = self.to_device(b.total_weights)
        rows = [[c.first_root, c.layout.classes.size(b.n_nodes - 1)] for c in b.chains]
        self.chains = self.to_device(np.array(rows, np.int64))

    def _full_lists(self) -> dict[str, torch.Tensor]:
        """Steps of an evaluation from scratch."""
        b, chains, branches = self._batch, self._batch.chains, np.arange(self._batch.n_nodes - 1)
        lists = {
            "jobs": np.concatenate([schedule.matrix_jobs(c, branches) for c in chains]),
            "post": critical_path_first(
                np.concatenate([schedule.postorder_items(c, b.sizes, b.parts) for c in chains]),
                chains,
                max(1, b.sizes.post_programs * processors(b.device) // b.parts),
            ),
            "root": np.concatenate([schedule.root_items(c, b.sizes) for c in chains]),
            "pre": schedule.in_level_order([schedule.preorder_items(c, b.sizes, b.parts) for c in chains]),
        }
        n = [self._n_columns, len(lists["post"]), self._n_pre_columns, len(lists["pre"])]
        lists["sizes"] = np.array(n, np.int64)
        return {name: self.to_device(rows) for name, rows in lists.items()}

    def preorder_vectors(self, name: str) -> torch.Tensor:
        """Array q or u, (C, pre-order columns, WIDTH), made when first needed."""
        if name not in self:
            shape = (self._batch.problem.n_categories, self._n_pre_columns, self._batch.sizes.width)
            self[name] = self._large(name, shape, self._dtype)
        return self[name]


def processors(device: torch.device) -> int:
    """Multiprocessors of the device; the interpreter runs one program after the other."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def padded_state_sets(state_sets: np.ndarray, width: int, dtype: torch.dtype) -> torch.Tensor:
    """(codes, width) allowed states as 0 and 1, zeros behind the states."""
    sets = np.zeros((len(state_sets), width))
    sets[:, : state_sets.shape[1]] = state_sets
    return torch.from_numpy(sets).to(dtype)
