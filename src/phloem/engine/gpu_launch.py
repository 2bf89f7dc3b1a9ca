"""Device arrays of a batch and the launches over them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton.language as tl

from phloem.engine import gpu_schedule as schedule
from phloem.engine.gpu_buffers import padded_state_sets
from phloem.engine.gpu_order import critical_path_first
from phloem.kernels.triton.adjoint import transition_adjoint
from phloem.kernels.triton.postorder import postorder
from phloem.kernels.triton.preorder import preorder
from phloem.kernels.triton.root import branch_sums, root_adjoint, site_likelihoods, total_log_likelihood
from phloem.kernels.triton.transition import transition_matrices

if TYPE_CHECKING:
    from phloem.engine.gpu_batch import GpuBatch


class Launcher:
    """Owns the device arrays; run() issues the launches of one evaluation on the current stream."""

    def __init__(self, batch: GpuBatch, dtype: torch.dtype) -> None:
        # The batch owns this launcher: a reference back would keep the device's memory until a collection.
        self._batch: GpuBatch = weakref.proxy(batch)
        self._dtype = dtype
        self.arrays: dict[str, torch.Tensor] = {}
        self._allocate_messages()
        self._upload_layout()
        self._upload_root()
        self._full = self._full_lists()
        self._adjoint_jobs: dict[tuple[int, int, int], torch.Tensor] = {}
        self._n_result = 2 + (batch.n_nodes - 1) * batch.problem.n_categories
        self.arrays["result"] = self._empty((batch.n_chains, self._n_result), torch.float64)
        pinned = batch.device.type == "cuda"
        self._host_result = torch.empty(
            (batch.n_chains, self._n_result), dtype=torch.float64, pin_memory=pinned
        )
        ranges = [
            schedule.branch_ranges(chain, batch.problem.n_categories, 2 + chain.index * self._n_result)
            for chain in batch.chains
        ]
        self._ranges = self._to_device(np.concatenate(ranges))
        self._states = torch.full(
            (batch.n_chains,), batch.problem.state_sets.shape[1], dtype=torch.int32, device=batch.device
        )
        self.constants = self._compile_constants()

    def _empty(self, shape, dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=self._batch.device)

    def _large(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """An array that column blocks of one problem share, where the batch was given a pool for it."""
        pool = self._batch.pool.get(name)
        if pool is None:
            return self._empty(shape, dtype)
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return pool[:n_bytes].view(dtype).view(shape)

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._batch.device)

    def _allocate_messages(self) -> None:
        b, sizes = self._batch, self._batch.sizes
        c, w = b.problem.n_categories, sizes.width
        self._n_columns = sum(int(l.classes.offset[-1]) for l in b.layouts)
        self._n_pre_columns = sum(int(l.pre_offset[-1]) for l in b.layouts)
        n_partials = sum(int(l.tile_offset[-1]) for l in b.layouts)
        n_matrices = b.n_chains * (b.n_nodes - 1)
        self.arrays["messages"] = self._large("messages", (c, self._n_columns, w), self._dtype)
        self.arrays["exponents"] = self._large("exponents", (c, self._n_columns), torch.int32)
        self.arrays["shifts"] = self._large("shifts", (c, self._n_columns), torch.int32)
        self.arrays["transition"] = self._large("transition", (n_matrices, c, w, w), self._dtype)
        self.arrays["partial"] = self._empty((n_partials, c, sizes.chunks), torch.float64)
        self.arrays["counters"] = torch.zeros(
            2 + 2 * b.n_chains * b.n_nodes, dtype=torch.int32, device=b.device
        )

    def grow(self, n_columns: int, n_class_rows: int, n_matrices: int) -> None:
        """Make room, keeping what is there; nothing has changed if memory runs out. Graphs of the old arrays
        must go."""
        room = dict.fromkeys(("messages", "exponents", "shifts"), (1, n_columns))
        room |= dict.fromkeys(("left_class", "right_class"), (0, n_class_rows))
        larger: dict[str, torch.Tensor] = {}
        for name, (dim, n) in (room | {"transition": (0, n_matrices)}).items():
            old = self.arrays[name]
            if old.shape[dim] < n:
                larger[name] = self._empty((*old.shape[:dim], n, *old.shape[dim + 1 :]), old.dtype)
                larger[name].narrow(dim, 0, old.shape[dim]).copy_(old)
        self.arrays.update(larger)
        self._n_columns = self.arrays["messages"].shape[1]
        self._full["sizes"][0] = self._n_columns

    def _upload_layout(self) -> None:
        layouts, problem = self._batch.layouts, self._batch.problem
        for name in ("left_class", "right_class"):
            self.arrays[name] = self._to_device(np.concatenate([getattr(l.classes, name) for l in layouts]))
        for name in ("pre_class", "entry_parent", "entry_sibling"):
            self.arrays[name] = self._to_device(np.concatenate([getattr(l, name) for l in layouts]))
        sets = padded_state_sets(problem, self._batch.sizes.width, self._dtype)
        self.arrays["state_sets"] = sets.to(self._batch.device)

    def _upload_root(self) -> None:
        b = self._batch
        for name in ("column_weights", "ascertained", "invariant_states"):
            self.arrays[name] = self._to_device(np.concatenate([getattr(b.root, name)] * b.n_chains))
        n = len(self.arrays["column_weights"])
        for name, dtype in (
            ("mantissa", torch.float64),
            ("power", torch.int32),
            ("site_log", torch.float64),
        ):
            self.arrays[name] = self._empty(n, dtype)
        self.arrays["total_weight"] = self._to_device(np.array([b.total_weight]))
        rows = [[c.first_root, c.layout.classes.size(b.n_nodes - 1)] for c in b.chains]
        self._chains = self._to_device(np.array(rows, np.int64))

    def _full_lists(self) -> dict[str, torch.Tensor]:
        """Steps of an evaluation from scratch."""
        b, chains, branches = self._batch, self._batch.chains, np.arange(self._batch.n_nodes - 1)
        lists = {
            "jobs": np.concatenate([schedule.matrix_jobs(c, branches) for c in chains]),
            "post": critical_path_first(
                np.concatenate([schedule.postorder_items(c, b.sizes, b.parts) for c in chains]),
                chains,
                max(1, b.sizes.post_programs * self._processors // b.parts),
            ),
            "root": np.concatenate([schedule.root_items(c, b.sizes) for c in chains]),
            "pre": schedule.in_level_order([schedule.preorder_items(c, b.sizes, b.parts) for c in chains]),
        }
        n = [self._n_columns, len(lists["post"]), self._n_pre_columns, len(lists["pre"])]
        lists["sizes"] = np.array(n, np.int64)
        return {name: self._to_device(rows) for name, rows in lists.items()}

    def _compile_constants(self) -> dict[str, Any]:
        sizes = self._batch.sizes
        f64 = self._dtype == torch.float64
        return {
            "WIDTH": sizes.width,
            "BLOCK": sizes.block,
            "CHUNKS": sizes.chunks,
            "DTYPE": tl.float64 if f64 else tl.float32,
        }

    @property
    def product(self) -> str:
        """float32 products as three tf32 products keep float32's digits; "ieee" leaves the tensor cores
        unused."""
        return "ieee" if self._dtype == torch.float64 else "tf32x3"

    def _programs(self, per_processor: int, n_steps: int) -> int:
        return max(1, min(per_processor * self._processors, n_steps * self._batch.parts))

    @property
    def _processors(self) -> int:
        """Multiprocessors of the device; the interpreter runs one program after the other."""
        if self._batch.device.type != "cuda":
            return 1
        return torch.cuda.get_device_properties(self._batch.device).multi_processor_count

    def run(self, what: str, on_device: bool, lists: dict[str, torch.Tensor] | None = None) -> None:
        """Issue the launches. on_device: matrices are made there. lists: of an update, else everything."""
        lists = lists or self._full
        keep = what == "parameters"
        if on_device:
            self._matrices(lists["jobs"])
        else:
            self.arrays["counters"].zero_()
        self._postorder(lists)
        adjoint = what != "likelihood"
        self._root(lists, keep, adjoint and not self._ascertained)
        if self._ascertained or not adjoint:
            self._total()
        if adjoint:
            if self._ascertained:
                self._root_adjoint(lists)
            self._preorder(lists, keep)
            self._sums()

    def _matrices(self, jobs: torch.Tensor) -> None:
        n, c = self._batch.numbers.device, self._batch.problem.n_categories
        counters = self.arrays["counters"]
        sizes = self._batch.sizes
        constants = self._matrix_constants(sizes.matrix_block)
        transition_matrices[(len(jobs), c, constants["CHUNKS"] ** 2)](
            jobs, n["lengths"], n["rates"], n["values"], n["right"], n["left"], self._states,
            self.arrays["transition"], counters, len(counters), c, **constants, num_warps=sizes.matrix_warps,
        )  # fmt: skip

    def _matrix_constants(self, block: int) -> dict[str, Any]:
        """Constants of a kernel over whole matrices, in tiles of `block` states (tl.dot wants 16 at
        least)."""
        width = self._batch.sizes.width
        return {**self.constants, "BLOCK": block, "CHUNKS": -(-width // block)}

    def _postorder(self, lists: dict[str, torch.Tensor]) -> None:
        a, sizes = self.arrays, self._batch.sizes
        grid = (self._programs(sizes.post_programs, len(lists["post"])),)
        postorder[grid](
            lists["post"], lists["sizes"], a["counters"], a["messages"], a["exponents"], a["shifts"],
            a["transition"],
            a["left_class"], a["right_class"], a["state_sets"], self._batch.problem.n_categories,
            **self.constants, TILE=sizes.post_tile, PRODUCT=self.product,
            num_warps=sizes.post_warps,
            **self._registers(sizes.post_registers),
        )  # fmt: skip

    def _registers(self, limit: int) -> dict[str, int]:
        """A register limit, where the compiler knows one (NVIDIA)."""
        return (
            {"maxnreg": limit}
            if limit and self._batch.device.type == "cuda" and torch.version.hip is None
            else {}
        )

    def _root(self, lists: dict[str, torch.Tensor], keep: bool, adjoint: bool) -> None:
        a, n, b = self.arrays, self._batch.numbers.device, self._batch
        site_likelihoods[(len(lists["root"]),)](
            lists["root"], lists["sizes"], a["messages"], a["exponents"], a["shifts"], a["left_class"],
            a["right_class"], n["frequencies"], n["weights"], n["invariant"], a["invariant_states"],
            a["column_weights"], a["mantissa"], a["power"], a["site_log"], self._q() if adjoint else
            a["messages"], b.problem.n_categories,
            **self.constants, TILE=b.sizes.root_tile, UNROLL=1 if b.problem.n_categories == 1 else 4,
            KEEP=keep,
            ADJOINT=adjoint, num_warps=4,
        )  # fmt: skip

    def _q(self) -> torch.Tensor:
        if "q" not in self.arrays:
            shape = (self._batch.problem.n_categories, self._n_pre_columns, self._batch.sizes.width)
            self.arrays["q"] = self._large("q", shape, self._dtype)
        return self.arrays["q"]

    def _total(self) -> None:
        a = self.arrays
        total_log_likelihood[(self._batch.n_chains,)](
            self._chains, a["column_weights"], a["ascertained"], a["site_log"], a["total_weight"],
            a["result"], self._n_result, LANES=self._lanes, ASCERTAINED=self._ascertained, num_warps=8,
        )  # fmt: skip

    def _sums(self) -> None:
        a, b = self.arrays, self._batch
        n_totals = 0 if self._ascertained else b.n_chains
        branch_sums[(n_totals + len(self._ranges), b.problem.n_categories)](
            self._ranges, a["partial"], self._chains, n_totals, a["column_weights"], a["ascertained"],
            a["site_log"], a["total_weight"], a["result"], self._n_result, b.problem.n_categories,
            CHUNKS=b.sizes.chunks, LANES=self._lanes, num_warps=8,
        )  # fmt: skip

    @property
    def _lanes(self) -> int:
        """Partial sums of a long sum; the interpreter adds lane by lane."""
        return 1024 if self._batch.device.type == "cuda" else 16

    @property
    def _ascertained(self) -> bool:
        return bool(self._batch.problem.ascertained.any())

    def _root_adjoint(self, lists: dict[str, torch.Tensor]) -> None:
        a, n, b = self.arrays, self._batch.numbers.device, self._batch
        root_adjoint[(len(lists["root"]), b.problem.n_categories)](
            lists["root"], lists["sizes"], a["exponents"], a["shifts"], n["frequencies"], n["weights"],
            a["column_weights"], a["ascertained"], a["mantissa"], a["power"], a["site_log"], a["result"],
            self._n_result, self._q(), b.problem.n_categories,
            **self.constants, TILE=b.sizes.root_tile, ASCERTAINED=self._ascertained, num_warps=4,
        )  # fmt: skip

    def _preorder(self, lists: dict[str, torch.Tensor], keep_u: bool) -> None:
        a, b, sizes = self.arrays, self._batch, self._batch.sizes
        if keep_u and "u" not in a:
            a["u"] = self._large("u", tuple(a["q"].shape), self._dtype)
        grid = (self._programs(sizes.pre_programs, len(lists["pre"])),)
        preorder[grid](
            lists["pre"], lists["sizes"], a["counters"], a["messages"], a["shifts"], a["q"],
            a["u"] if keep_u else a["q"], a["transition"], b.numbers.device["generator"], a["pre_class"],
            a["entry_parent"], a["entry_sibling"], a["partial"], b.problem.n_categories,
            **self.constants, TILE=sizes.pre_tile, PRODUCT=self.product, KEEP_U=keep_u,
            num_warps=sizes.pre_warps, **self._registers(sizes.pre_registers),
        )  # fmt: skip

    def adjoint(self, chain: schedule.Chain, nodes: np.ndarray) -> torch.Tensor:
        """d log L / d P of some branches: (n, C, W, W) float64. Needs run("parameters")."""
        a, b, sizes = self.arrays, self._batch, self._batch.sizes
        c, w = b.problem.n_categories, sizes.width
        out = self._empty((len(nodes), c, w, w), torch.float64)
        key = (chain.index, int(nodes[0]), len(nodes))
        if key not in self._adjoint_jobs:
            self._adjoint_jobs[key] = self._to_device(schedule.adjoint_jobs(chain, nodes))
        jobs = self._adjoint_jobs[key]
        constants = self._matrix_constants(max(16, sizes.block))
        transition_adjoint[(len(nodes), c, constants["CHUNKS"] ** 2)](
            jobs, self._full["sizes"], a["messages"], a["shifts"], a["u"], a["pre_class"], a["left_class"],
            a["right_class"], a["state_sets"], out, c,
            **constants, TILE=32, num_warps=4,
        )  # fmt: skip
        return out

    def fetch(self) -> None:
        self._host_result.copy_(self.arrays["result"], non_blocking=True)
        if self._batch.device.type == "cuda":
            torch.cuda.current_stream(self._batch.device).synchronize()

    def host_result(self) -> np.ndarray:
        return self._host_result.numpy()
