"""Gradients of the chains of a forest: what lies on the device for them, and their launches."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np
import torch
import triton.language as tl

from phloem.errors import DeviceError
from phloem.hardware.gpu_device import captured, memory_errors, one_at_a_time
from phloem.model.record import SiteModelGradient
from phloem.pruning.cpu import chain_gradients as lists
from phloem.pruning.cpu.chain_evaluation import NO_ANSWER, NO_GRAPH
from phloem.pruning.cpu.chain_state import (
    N_EDITS,
    STALE,
    Device,
)
from phloem.pruning.cpu.chain_sums import no_sums
from phloem.pruning.cpu.chain_versions import CHUNK, NO_ROOM, READY
from phloem.pruning.gpu.buffers import processors
from phloem.pruning.gpu.forest_leapfrog import Leapfrog
from phloem.pruning.gpu.forest_parameters import ParameterSums
from phloem.pruning.gpu.kernels.chain_gradients import ascertained_roots, branches, cut, down, roots
from phloem.pruning.gpu.kernels.chains import upload
from phloem.pruning.gpu.kernels.root import total_log_likelihood

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest


class ForestGradients:
    """gradient() finds them for the chains of a mask. What a topology says about sums stays on the device for
    as long as the topology does (pruning/cpu/chain_sums.py)."""

    def __init__(self, forest: GpuForest) -> None:
        # The forest owns this: a reference back would keep the device's memory until a collection.
        self._forest: GpuForest = weakref.proxy(forest)
        f, h, n = forest, forest.n_chains, forest.n_nodes
        n_sets = f.chains.trees.lengths.shape[2]
        c, roots, device = f.problem.n_categories, f.root_columns, f.device
        self._pinned = device.type == "cuda"
        self._found = torch.zeros((h, n_sets, n), dtype=torch.float64, pin_memory=self._pinned)
        self._home = self._found.numpy()
        self._host = torch.zeros(1 << 16, dtype=torch.int64, pin_memory=self._pinned)
        self.first_step = lists.HEAD + 2 * h * c
        self.sums = no_sums(h, n, int(roots[:, 1].max()), 2 * f.sizes.longest)  # measured: docs/gpu.md
        empty = lambda shape, dtype: torch.empty(shape, dtype=dtype, device=device)  # noqa: E731
        width = f.sizes.width
        self.arrays = {
            "words": empty((len(self._host),), torch.int64),
            "rows": empty((0, lists.STEP), torch.int64),
            "sums": empty((0,), torch.int64),
            "q": empty((c, 0, width), f.dtype),
            "pieces": empty((c, 1, width), f.dtype),
            "partial": empty((0, c, f.sizes.chunks), torch.float64),
            "derivatives": empty((h, n - 1, c), torch.float64),
            "counters": torch.zeros(1 + 2 * h * n, dtype=torch.int32, device=device),
            "roots": torch.from_numpy(np.ascontiguousarray(roots)).to(device),
        }
        self._graphs: list[torch.cuda.CUDAGraph] = []
        self._with_parameters: dict[tuple[int, ...], torch.cuda.CUDAGraph] = {}
        self._by_model: dict[int, SiteModelGradient] = {}
        self._leapfrog: Leapfrog | None = None
        self._parameters: ParameterSums | None = None
        self.record = Device(
            self._host.numpy(),
            self._home.reshape(-1).view(np.int64),
            np.zeros(h, np.int64),
            np.zeros(5, np.int64),
            np.zeros((32, 32, 32), np.int64),
            f.record.driver,
            f.record.launching,
        )
        self._no_graphs = np.zeros_like(self.record.graphs)
        self.forget_launches()

    def forget_launches(self) -> None:
        """After arrays have moved, the forest's or these: captured launches of the old ones go."""
        arrays, limits = self.arrays, self.record.limits
        limits[:3] = arrays["q"].shape[1], arrays["pieces"].shape[1], len(arrays["sums"])
        limits[3:] = len(arrays["rows"]), self._forest.arrays["messages"].shape[1]
        self.record.graphs[:] = 0
        self._graphs.clear()
        self._with_parameters.clear()
        for other in (self._leapfrog, self._parameters):
            if other is not None:
                other.forget_launches()

    @property
    def leapfrog(self) -> Leapfrog:
        self._leapfrog = self._leapfrog or Leapfrog(self._forest)
        return self._leapfrog

    def gradient(self, mask: np.ndarray, parameters: bool = False) -> np.ndarray:
        """(H, K, N) of the chains in the mask, 0 elsewhere. parameters: for site_model_gradient, too."""
        self._number_columns()
        self._by_model = {}
        self.record.active[:] = mask
        status = self._listed(parameters)
        if status != READY:
            with one_at_a_time, memory_errors():
                while status == NO_ROOM:
                    self._grow()
                    status = self._listed(parameters)
                if status == NO_GRAPH:
                    status = self._first_launch(parameters)
        if status == NO_ANSWER:
            if self._pinned:
                torch.cuda.synchronize(self._forest.device)
            raise DeviceError("the GPU does not answer")
        found = np.where(mask[:, None, None], self._home, 0.0)
        if parameters and mask.any():
            with one_at_a_time, memory_errors():
                self._parameters = self._parameters or ParameterSums(self._forest)
                self._by_model = self._parameters.found(np.flatnonzero(mask))
        return found

    def _listed(self, parameters: bool) -> int:
        """Write the list, and have it done where this was captured; with parameters that is up to
        _first_launch."""
        record = self.record if not parameters else self.record._replace(graphs=self._no_graphs)
        tile = self._forest.sizes.pre_tile
        return lists.gradient(self._forest.chains, self.sums, record, tile, parameters)

    def site_model_gradient(self, chain: int) -> SiteModelGradient:
        """By the numbers of a chain's model, of the last gradient."""
        if chain not in self._by_model:
            raise RuntimeError("the last gradient was not asked for this chain's parameters")
        return self._by_model[chain]

    def _number_columns(self) -> None:
        """In a lazy forest, messages that lie in the columns of a node above are made anew in their own, and
        the device gets the class rows that accepting a topology made."""
        forest, trees = self._forest, self._forest.chains.trees
        if not forest.chains.shape.lazy:
            return
        if trees.pending.any() and (trees.pending & (forest.change.counts[:, N_EDITS] > 0)).any():
            raise RuntimeError("proposals are pending, whose columns are not numbered: settle them first")
        if not (trees.stale.any() or forest.chains.scratch.n_fresh.any()):
            return
        version = trees.accepted ^ trees.pending
        missing = forest.chains.scratch.n_fresh[:, 0] > 0
        stale = np.flatnonzero(missing | (trees.stale[version, np.arange(forest.n_chains)] > 0)).tolist()
        if not stale:
            return
        if forest.change.counts.any():
            raise RuntimeError("changes are not evaluated yet: evaluate and settle them first")
        for h in stale:
            x = int(np.argmax(trees.node[trees.accepted[h], h, :, STALE]))
            forest.set_branch(h, x, trees.lengths[trees.accepted[h], h, :, x])
        forest.evaluate()
        forest.settle(trees.pending)

    def _grow(self) -> None:
        """Room for everything that the list names, keeping the lists of sums."""
        words, arrays, n_words = self.record.words, self.arrays, int(self.record.words[lists.N_WORDS])
        if n_words > len(words):
            self._host = torch.zeros(n_words * 5 // 4, dtype=torch.int64, pin_memory=self._pinned)
            self.record = self.record._replace(words=self._host.numpy())
            words = self.record.words
            arrays["words"] = torch.empty_like(self._host, device=self._forest.device)
        else:
            n_rows = int(words[lists.N_ROOT] + words[lists.N_DOWN])
            wanted = {"q": (1, int(words[lists.N_Q])), "pieces": (1, int(words[lists.N_U]))}
            wanted |= {"rows": (0, n_rows), "partial": (0, n_rows), "sums": (0, int(self.sums.used[0]))}
            for name, (axis, n) in wanted.items():
                old = arrays[name]
                if old.shape[axis] < n:
                    shape = (*old.shape[:axis], n * 5 // 4, *old.shape[axis + 1 :])
                    new = torch.empty(shape, dtype=old.dtype, device=old.device)
                    if name == "sums":
                        new[: len(old)] = old
                    arrays[name] = new
        self.forget_launches()

    def _first_launch(self, parameters: bool) -> int:
        """Launch a list one by one, and capture the launches for lists of this size."""
        record, chains = self.record, self._forest.chains
        key = tuple(int(k) for k in lists.graph_key(record.words, chains.shape.parts))
        lists.expect(chains, record)
        if parameters and key in self._with_parameters:
            self._with_parameters[key].replay()
            return lists.receive(chains, self.sums, record)
        self._launch(key, parameters)
        if self._pinned:
            torch.cuda.synchronize(self._forest.device)
            graph = torch.cuda.CUDAGraph()
            with captured(graph):
                self._launch(key, parameters)
            if parameters:
                self._with_parameters[key] = graph
            else:
                self._graphs.append(graph)
                record.graphs[key] = graph.raw_cuda_graph_exec()
        return lists.receive(chains, self.sums, record)

    def _launch(self, key: tuple[int, ...], parameters: bool) -> None:
        """All launches, for lists of at most these powers of two."""
        a, forest, sizes = self.arrays, self._forest, self._forest.sizes
        upload[(1 << key[0],)](
            self._host, a["words"], a["sums"], forest.arrays["left_class"], forest.arrays["right_class"],
            a["counters"], len(a["counters"]), CHUNK=CHUNK, num_warps=4,
        )  # fmt: skip
        cut[(1 << key[1],)](
            a["words"], self.first_step, a["rows"], TILE=sizes.pre_tile, ROOT_TILE=sizes.root_tile, LANES=16,
            num_warps=1,
        )  # fmt: skip
        self.launch_down(key, self._found, parameters)

    def launch_down(self, key: tuple[int, ...], found: torch.Tensor, parameters: bool = False) -> None:
        """From the roots to the gradients, (H, K, N) into found, of a list whose steps are cut into tiles.
        parameters: keeps what derivatives of the models' numbers are made from."""
        a, forest, sizes = self.arrays, self._forest, self._forest.sizes
        self._launch_roots(parameters)
        self._launch_branches(key, parameters)
        branches[(1 << key[1],)](
            a["words"], self.first_step, a["partial"], a["derivatives"], found, forest.n_nodes - 1,
            forest.n_chains, self._found.shape[1], forest.problem.n_categories, CHUNKS=sizes.chunks,
            TILE=sizes.pre_tile, LANES=256 if self._pinned else 16, num_warps=4,
        )  # fmt: skip

    def constants(self) -> dict[str, object]:
        sizes, f64 = self._forest.sizes, self._forest.dtype == torch.float64
        return {
            "WIDTH": sizes.width,
            "BLOCK": sizes.block,
            "CHUNKS": sizes.chunks,
            "DTYPE": tl.float64 if f64 else tl.float32,
        }

    def _launch_roots(self, keep: bool) -> None:
        forest, sizes, mine = self._forest, self._forest.sizes, self.arrays
        a, n, c = forest.arrays, forest.numbers.fields, forest.problem.n_categories
        ascertained = forest.data.are_ascertained
        n_tiles = int((-(-forest.root_columns[:, 1] // sizes.root_tile)).sum())
        n_processes = n["frequencies"].shape[1]
        roots[(n_tiles,)](
            mine["rows"], mine["words"], a["messages"], a["exponents"], a["shifts"], a["left_class"],
            a["right_class"], n["process"], n_processes, n["frequencies"], n["weights"], n["invariant"],
            n["invariant_frequencies"], a["invariant_states"], a["column_weights"], a["mantissa"], a["power"],
            a["site_log"], mine["q"], c, **self.constants(), TILE=sizes.root_tile,
            UNROLL=1 if c == 1 else 4, KEEP=keep, ADJOINT=not ascertained, num_warps=4,
        )  # fmt: skip
        if ascertained:
            total_log_likelihood[(forest.n_chains,)](
                mine["roots"], a["column_weights"], a["ascertained"], a["site_log"], a["total_weight"],
                a["result"], 2, LANES=1024 if self._pinned else 16, ASCERTAINED=True, num_warps=8,
            )  # fmt: skip
            ascertained_roots[(n_tiles, c)](
                mine["rows"], mine["words"], a["exponents"], a["shifts"], n["process"], n_processes,
                n["frequencies"], n["weights"], a["column_weights"], a["ascertained"], a["mantissa"],
                a["power"], a["site_log"], a["result"], mine["q"], c, **self.constants(),
                TILE=sizes.root_tile, num_warps=4,
            )  # fmt: skip

    def _launch_branches(self, key: tuple[int, ...], keep_u: bool) -> None:
        forest, sizes, mine = self._forest, self._forest.sizes, self.arrays
        a, n, c = forest.arrays, forest.numbers.fields, forest.problem.n_categories
        programs = max(1, min(sizes.pre_programs * processors(forest.device), 1 << key[2]))
        registers = {"maxnreg": sizes.pre_registers} if sizes.pre_registers and self._pinned else {}
        down[(programs,)](
            mine["rows"], mine["words"], mine["sums"], mine["counters"], a["messages"], a["shifts"],
            mine["q"], mine["pieces"], a["transition"], n["process"], n["frequencies"].shape[1],
            n["generator"], mine["partial"], c, **self.constants(), TILE=sizes.pre_tile,
            PRODUCT="ieee" if forest.dtype == torch.float64 else "tf32x3", KEEP_U=keep_u,
            num_warps=sizes.pre_warps, **registers,
        )  # fmt: skip
