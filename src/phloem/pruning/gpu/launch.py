"""The launches of an evaluation over a batch's device arrays."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton.language as tl

from phloem.pruning.gpu import step_schedule as schedule
from phloem.pruning.gpu.buffers import DeviceArrays, processors
from phloem.pruning.gpu.kernels.postorder import postorder
from phloem.pruning.gpu.kernels.preorder import preorder
from phloem.pruning.gpu.kernels.root import branch_sums, root_adjoint, site_likelihoods, total_log_likelihood
from phloem.pruning.gpu.kernels.transition import transition_adjoint, transition_matrices

if TYPE_CHECKING:
    from phloem.pruning.gpu.tree_batch import GpuBatch


class Launcher:
    """run() issues the launches of one evaluation on the current stream."""

    def __init__(self, batch: GpuBatch, dtype: torch.dtype) -> None:
        # The batch owns this launcher: a reference back would keep the device's memory until a collection.
        self._batch: GpuBatch = weakref.proxy(batch)
        self._dtype, self.arrays = dtype, DeviceArrays(batch, dtype)
        self._adjoint_jobs: dict[tuple[int, int], torch.Tensor] = {}
        self._places: torch.Tensor | None = None
        result = self.arrays["result"]
        self._host_result = torch.empty(
            result.shape, dtype=result.dtype, pin_memory=batch.device.type == "cuda"
        )
        ranges = [
            schedule.branch_ranges(chain, batch.problem.n_categories, 2 + chain.index * self.arrays.n_result)
            for chain in batch.chains
        ]
        self._ranges = self.arrays.to_device(np.concatenate(ranges))
        self.constants = self._compile_constants()

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
        return max(1, min(per_processor * processors(self._batch.device), n_steps * self._batch.parts))

    def run(self, what: str, on_device: bool) -> None:
        """Issue the launches. on_device: matrices are made there."""
        lists = self.arrays.full
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
            jobs, n["times"], n["process"], self._batch.numbers.n_processes, n["values"], n["right"],
            n["left"],
            self._batch.problem.state_sets.shape[1], self.arrays["transition"], counters, len(counters), c,
            **constants, num_warps=sizes.matrix_warps,
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
        q = a.preorder_vectors("q") if adjoint else a["messages"]
        site_likelihoods[(len(lists["root"]),)](
            lists["root"], lists["sizes"], a["messages"], a["exponents"], a["shifts"], a["left_class"],
            a["right_class"], n["process"], b.numbers.n_processes, n["frequencies"], n["weights"],
            n["invariant"], n["invariant_frequencies"], a["invariant_states"],
            a["column_weights"], a["mantissa"], a["power"], a["site_log"], q, b.problem.n_categories,
            **self.constants, TILE=b.sizes.root_tile, UNROLL=1 if b.problem.n_categories == 1 else 4,
            KEEP=keep,
            ADJOINT=adjoint, num_warps=4,
        )  # fmt: skip

    def _total(self) -> None:
        a = self.arrays
        total_log_likelihood[(self._batch.n_chains,)](
            a.chains, a["column_weights"], a["ascertained"], a["site_log"], a["total_weight"],
            a["result"], a.n_result, LANES=self._lanes, ASCERTAINED=self._ascertained, num_warps=8,
        )  # fmt: skip

    def _sums(self) -> None:
        a, b = self.arrays, self._batch
        n_totals = 0 if self._ascertained else b.n_chains
        branch_sums[(n_totals + len(self._ranges), b.problem.n_categories)](
            self._ranges, a["partial"], a.chains, n_totals, a["column_weights"], a["ascertained"],
            a["site_log"], a["total_weight"], a["result"], a.n_result, b.problem.n_categories,
            CHUNKS=b.sizes.chunks, LANES=self._lanes, num_warps=8,
        )  # fmt: skip

    @property
    def _lanes(self) -> int:
        """Partial sums of a long sum; the interpreter adds lane by lane."""
        return 1024 if self._batch.device.type == "cuda" else 16

    @property
    def _ascertained(self) -> bool:
        return self._batch.data.are_ascertained

    def _root_adjoint(self, lists: dict[str, torch.Tensor]) -> None:
        a, n, b = self.arrays, self._batch.numbers.device, self._batch
        root_adjoint[(len(lists["root"]), b.problem.n_categories)](
            lists["root"], lists["sizes"], a["exponents"], a["shifts"], n["process"], b.numbers.n_processes,
            n["frequencies"], n["weights"],
            a["column_weights"], a["ascertained"], a["mantissa"], a["power"], a["site_log"], a["result"],
            a.n_result, a.preorder_vectors("q"), b.problem.n_categories,
            **self.constants, TILE=b.sizes.root_tile, ASCERTAINED=self._ascertained, num_warps=4,
        )  # fmt: skip

    def _preorder(self, lists: dict[str, torch.Tensor], keep_u: bool) -> None:
        a, b, sizes = self.arrays, self._batch, self._batch.sizes
        u = a.preorder_vectors("u") if keep_u else a["q"]
        grid = (self._programs(sizes.pre_programs, len(lists["pre"])),)
        preorder[grid](
            lists["pre"], lists["sizes"], a["counters"], a["messages"], a["shifts"], a["q"],
            u, a["transition"], b.numbers.device["process"], b.numbers.n_processes,
            b.numbers.device["generator"], a["pre_class"], a["entry_parent"],
            a["entry_sibling"], a["partial"], b.problem.n_categories,
            **self.constants, TILE=sizes.pre_tile, PRODUCT=self.product, KEEP_U=keep_u,
            num_warps=sizes.pre_warps, **self._registers(sizes.pre_registers),
        )  # fmt: skip

    @property
    def places(self) -> torch.Tensor:
        """(H, 5) int64 on the device: gradient.Adjoints.places."""
        if self._places is None:
            root = np.array([self._batch.n_nodes - 1])
            rows = [
                [c.index, int(c.column(root)[0]), c.first_root, c.layout.classes.size(root[0]), c.index]
                for c in self._batch.chains
            ]
            self._places = self.arrays.to_device(np.array(rows, np.int64))
        return self._places

    def adjoint(self, nodes: np.ndarray) -> torch.Tensor:
        """d log L / d P of some branches of every chain: (H, n, C, W, W) float64. Needs run("parameters")."""
        a, b, sizes = self.arrays, self._batch, self._batch.sizes
        c, w = b.problem.n_categories, sizes.width
        out = self.arrays.empty((b.n_chains, len(nodes), c, w, w), torch.float64)
        key = int(nodes[0]), len(nodes)
        if key not in self._adjoint_jobs:
            rows = np.concatenate([schedule.adjoint_jobs(chain, nodes) for chain in b.chains])
            self._adjoint_jobs[key] = self.arrays.to_device(rows)
        jobs = self._adjoint_jobs[key]
        constants = self._matrix_constants(max(16, sizes.block))
        transition_adjoint[(len(jobs), c, constants["CHUNKS"] ** 2)](
            jobs, a.full["sizes"], a["messages"], a["shifts"], a["u"], a["pre_class"], a["left_class"],
            a["right_class"], a["state_sets"], out, c, **constants, TILE=32, STRIDE=1, num_warps=4,
        )  # fmt: skip
        return out

    def fetch(self) -> None:
        """Copy the result home and wait for it."""
        self._host_result.copy_(self.arrays["result"], non_blocking=True)
        if self._batch.device.type == "cuda":
            torch.cuda.current_stream(self._batch.device).synchronize()

    def host_result(self) -> np.ndarray:
        """(H, 2 + branches · C) of the last fetch, as DeviceArrays says."""
        return self._host_result.numpy()
