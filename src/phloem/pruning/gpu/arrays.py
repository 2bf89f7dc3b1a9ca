"""Device arrays of a batch: messages and matrices, the layouts they belong to, and lists of steps."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np
import torch

from phloem.pruning.gpu import step_schedule as schedule
from phloem.pruning.gpu.buffers import padded_state_sets
from phloem.pruning.gpu.order import critical_path_first

if TYPE_CHECKING:
    from phloem.pruning.gpu.tree_batch import GpuBatch


class DeviceArrays(dict[str, torch.Tensor]):
    """The arrays by name. full: lists of the steps of an evaluation from scratch. chains: (H, 2) int64, first
    root column of every chain and how many it has. n_result: entries of a chain's row of "result", which are
    the log-likelihood, a number beside it (kernels/totals.py), and a derivative for every branch and
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

    def grow(self, n_columns: int, n_class_rows: int, n_matrices: int) -> None:
        """Make room, keeping what is there; nothing has changed if memory runs out. Graphs of the old arrays
        must go."""
        room = dict.fromkeys(("messages", "exponents", "shifts"), (1, n_columns))
        room |= dict.fromkeys(("left_class", "right_class"), (0, n_class_rows))
        larger: dict[str, torch.Tensor] = {}
        for name, (dim, n) in (room | {"transition": (0, n_matrices)}).items():
            old = self[name]
            if old.shape[dim] < n:
                larger[name] = self.empty((*old.shape[:dim], n, *old.shape[dim + 1 :]), old.dtype)
                larger[name].narrow(dim, 0, old.shape[dim]).copy_(old)
        self.update(larger)
        self._n_columns = self["messages"].shape[1]
        self.full["sizes"][0] = self._n_columns

    def _upload_layout(self) -> None:
        layouts, problem = self._batch.layouts, self._batch.problem
        for name in ("left_class", "right_class"):
            self[name] = self.to_device(np.concatenate([getattr(l.classes, name) for l in layouts]))
        for name in ("pre_class", "entry_parent", "entry_sibling"):
            self[name] = self.to_device(np.concatenate([getattr(l, name) for l in layouts]))
        sets = padded_state_sets(problem, self._batch.sizes.width, self._dtype)
        self["state_sets"] = sets.to(self._batch.device)

    def _upload_root(self) -> None:
        b = self._batch
        for name in ("column_weights", "ascertained", "invariant_states"):
            self[name] = self.to_device(np.concatenate([getattr(b.root, name)] * b.n_chains))
        n = len(self["column_weights"])
        for name in ("mantissa", "site_log"):
            self[name] = self.empty((n,), torch.float64)
        self["power"] = self.empty((n,), torch.int32)
        self["total_weight"] = self.to_device(np.array([b.total_weight]))
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
