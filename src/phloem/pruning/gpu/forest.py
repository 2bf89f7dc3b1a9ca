"""H chains on one GPU: proposals and values of all of them in one go, each accepted or rejected by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import triton.language as tl

from phloem.errors import DeviceError, NumericalError
from phloem.hardware.gpu_device import captured, find_device, graph_launcher, memory_errors, one_at_a_time
from phloem.model.record import SiteModel, SiteModelGradient
from phloem.pruning.cpu import chain_evaluation as generation
from phloem.pruning.cpu import chain_state as state
from phloem.pruning.cpu import chain_steps as lists
from phloem.pruning.cpu.chain_columns import LOW
from phloem.pruning.gpu.buffers import (
    LARGEST_NODE,
    padded_state_sets,
    processors,
    roots_of,
    total_weights,
)
from phloem.pruning.gpu.forest_gradient import ForestGradients
from phloem.pruning.gpu.kernels.chains import matrices_and_rows, up_to_the_values, upload
from phloem.pruning.gpu.models import PackedModels, has_real_eigensystems, padded_matrices
from phloem.pruning.gpu.step_schedule import Tiling, tiling
from phloem.pruning.interface import Problem
from phloem.pruning.tree_data import TreeData

# Programs of steps that a multiprocessor gets from all forests that share the device, fewer than it has room
# for, so that short launches of one need not wait for the steps of another; and the least of one forest.
SHARED_PROGRAMS, LEAST_PROGRAMS = 2, 64


class GpuForest:
    """H chains over one data set, or each over a data set of its own (the parts of an alignment): topologies,
    branch lengths and models of their own.

    Fill `change` (pruning/cpu/chain_state.py: which branches, which nodes have other children, which model),
    or let set_branch, set_children and set_model do it; evaluate() finds the values of all chains that have a
    change, in one go, and settle(accept) accepts or rejects each. Compiled code may do the same with
    `chains`, `change` and chain_evaluation.evaluate. A chain's values do not depend on the others.
    """

    def __init__(
        self, problem: Problem | Sequence[Problem], left: np.ndarray, right: np.ndarray,
        device: torch.device | None = None, n_sets: int = 1, n_processes: int = 1, lazy: bool = False,
        beside: int = 1,
    ) -> None:  # fmt: skip
        """problem: of all chains, or one a chain, of one layout (tree_data.layout_key). left, right: (H,
        T-1), children of every chain's internal nodes, children below parents. n_sets: sets of branch lengths
        of a chain; n_processes: of a model, at most. lazy: the columns of another topology are numbered when
        it is accepted, which is cheaper where most are not; what a node's message was evaluated in is then
        known to the next evaluation only (chain_state.STALE). beside: forests that the device is to work on
        at the same time, each in a part of it."""
        self.data = TreeData.of([problem] * len(left) if isinstance(problem, Problem) else problem)
        self.device, self._beside = device or find_device(), beside
        problem = self.problem = self.data.problems[0]
        self.n_chains, self.n_nodes = len(left), 2 * len(problem.tip_codes) - 1
        self.sizes: Tiling = tiling(problem.state_sets.shape[1], problem.precision)
        self.dtype = torch.float64 if problem.precision == "float64" else torch.float32
        c, width = problem.n_categories, self.sizes.width
        self.numbers = PackedModels(2 * self.n_chains, n_processes, c, width, self.device)
        self._n_sets, self.n_processes = n_sets, n_processes
        # Models by their place: what set_model packed there last.
        self.models: list[SiteModel | None] = [None] * (2 * self.n_chains)
        trees, places, self._root_columns = state.build_state(
            self.data, np.asarray(left), np.asarray(right), n_sets
        )
        n_root = int(places.of[:, 0, -1, state.SIZE].max())
        if n_root * width > LARGEST_NODE:
            raise DeviceError(
                f"{n_root:,} distinct columns of {width} states are too many for chains on a GPU",
                hint="Use the CPU, or fewer columns.",
            )
        parts = c * self.sizes.chunks
        shape = state.ListShape(self.sizes.post_tile, self.sizes.root_tile, parts, problem.repeats, lazy)
        scratch, numbering = (
            state.make_scratch(self.n_chains, self.n_nodes),
            state.make_numbering(self.n_nodes, n_root),
        )
        self.chains = state.Chains(trees, places, scratch, shape, self.numbers.blocks, numbering)
        self.change = state.no_change(self.n_chains, self.n_nodes, n_sets, c, self.numbers.n_words)
        self._has_state = self.on_host = False  # on_host: matrices of some models are made there
        self._gradients: ForestGradients | None = None
        with memory_errors():
            self._allocate()

    def _allocate(self) -> None:
        problem, device, h, n = self.problem, self.device, self.n_chains, self.n_nodes
        c, w, places = problem.n_categories, self.sizes.width, self.chains.places
        pinned = device.type == "cuda"
        self._host = torch.zeros(self._room_for_words(1 << 12), dtype=torch.int64, pin_memory=pinned)
        self._found = torch.zeros(h, dtype=torch.float64, pin_memory=pinned)
        self._values = self._found.numpy()
        empty = lambda shape, dtype: torch.empty(shape, dtype=dtype, device=device)  # noqa: E731
        n_columns = int(places.used[1])
        # (H, 2) of every chain, its first one among the root columns of all, and how many it has.
        self.root_columns = places.of[:, 0, -1, [state.FIRST_ROOT, state.SIZE]]
        roots, n_root = roots_of(self.data, self._root_columns, w), int(self.root_columns[:, 1].sum())
        self.arrays = {
            "messages": empty((c, n_columns, w), self.dtype),
            "exponents": empty((c, n_columns), torch.int32),
            "shifts": empty((c, n_columns), torch.int32),
            "transition": empty((h * (n - 1), c, w, w), self.dtype),
            "left_class": torch.from_numpy((places.rows & LOW).astype(np.int32)).to(device),
            "right_class": torch.from_numpy((places.rows >> 32).astype(np.int32)).to(device),
            "counters": torch.zeros(2 + h * (n + 1), dtype=torch.int32, device=device),
            "state_sets": padded_state_sets(self.data.state_sets, w, self.dtype).to(device),
            "mantissa": empty((n_root,), torch.float64),
            "site_log": empty((n_root,), torch.float64),
            "power": empty((n_root,), torch.int32),
            "total_weight": torch.from_numpy(total_weights(self.data)).to(device),
            "result": empty((h, 2), torch.float64),
            "words": empty((len(self._host),), torch.int64),
            "rows": empty((0, lists.STEP), torch.int64),
        }
        for name in ("column_weights", "ascertained", "invariant_states"):
            array = np.concatenate([getattr(root, name) for root in roots])
            self.arrays[name] = torch.from_numpy(array).to(device)
        self._graphs: list[torch.cuda.CUDAGraph] = []
        self.record = state.Device(
            self._host.numpy(),
            self._values.view(np.int64),
            np.zeros(h, np.int64),
            np.zeros(4, np.int64),
            np.zeros((32, 32, 32), np.int64),
            *graph_launcher(device),
        )
        self._note_sizes()

    def _note_sizes(self) -> None:
        """After arrays have moved: captured launches of the old ones go."""
        arrays, record = self.arrays, self.record
        n = [
            arrays["messages"].shape[1],
            *(len(arrays[name]) for name in ("left_class", "rows", "transition")),
        ]
        record.limits[:] = n
        record.words[lists.N_COLUMNS] = record.limits[0]
        record.graphs[:] = 0
        self._graphs.clear()
        if self._gradients is not None:
            self._gradients.forget_launches()

    def _room_for_words(self, payload: int) -> int:
        """Words of a list with every node of every chain in it, and of what is copied."""
        each = lists.STEP + self.problem.n_categories
        models = self.n_chains * (self.numbers.n_words + lists.COPY * (len(self.numbers.blocks) + 2))
        return lists.HEAD + self.n_chains * (self.n_nodes + 1) * each + models + payload

    # What a proposal says

    def set_branch(self, chain: int, node: int, length: float | np.ndarray) -> None:
        """Another length of the branch above a node; (K,) where a chain has K sets of lengths."""
        change = self.change
        change.branches[chain, change.counts[chain, state.N_BRANCHES]] = node
        change.counts[chain, state.N_BRANCHES] += 1
        change.lengths[chain, :, node] = length

    def set_branches(self, chain: int, nodes: np.ndarray, lengths: np.ndarray) -> None:
        """The same of several nodes, and nothing before: lengths (K, n), or (n,) where K is 1."""
        change = self.change
        change.branches[chain, : len(nodes)], change.counts[chain, state.N_BRANCHES] = nodes, len(nodes)
        change.lengths[chain][:, nodes] = lengths

    def set_children(self, chain: int, node: int, left: int, right: int) -> None:
        """Other children of an internal node; what it had must be somebody's child again in the end."""
        change = self.change
        change.edits[chain, change.counts[chain, state.N_EDITS]] = node, left, right
        change.counts[chain, state.N_EDITS] += 1

    def set_model(self, chain: int, model: SiteModel) -> None:
        if len(model.processes) > self.n_processes or model.n_length_classes > self._n_sets:
            raise ValueError(
                f"a model of {len(model.processes)} processes over {model.n_length_classes} set(s) of branch "
                f"lengths, where chains have {self.n_processes} and {self._n_sets}"
            )
        change = self.change
        change.numbers[chain] = 0.0
        self.numbers.pack(model, change.numbers[chain])
        change.rates[chain], change.length_set[chain] = model.rates, model.length_class
        change.counts[chain, state.MODEL] = 1
        trees = self.chains.trees
        self.models[2 * chain + 1 - trees.model_in[trees.accepted[chain], chain]] = model
        if not has_real_eigensystems(model):
            self.on_host = True
            self._note_sizes()

    def start(self, lengths: np.ndarray, models: list[SiteModel]) -> np.ndarray:
        """(H,) values of all chains from scratch, which become the accepted state. lengths: (H, N) or (H, K,
        N)."""
        trees = self.chains.trees
        lengths = np.asarray(lengths, np.float64).reshape(self.n_chains, -1, self.n_nodes)
        # The first evaluation uses place 0; the root stays in its only place.
        trees.node[:, :, :-1, [state.MESSAGE_IN, state.MATRIX_IN]] = 1
        trees.model_in[:] = 1
        for h, model in enumerate(models):
            self.set_branches(h, np.arange(self.n_nodes - 1), lengths[h, :, :-1])
            self.set_model(h, model)
        self._has_state = False
        values = self._evaluate()
        self.settle(np.ones(self.n_chains, bool))
        self._has_state = True
        return values

    def evaluate(self) -> np.ndarray:
        """(H,) log-likelihoods of the proposals; of chains without a change, the accepted ones.

        NumericalError where a length or a value is no number: nothing is pending then.
        """
        if not self._has_state:
            raise RuntimeError("nothing was evaluated yet: call start first")
        return self._evaluate()

    def _evaluate(self) -> np.ndarray:
        if self.chains.trees.pending.any():
            raise RuntimeError("proposals are pending: settle them first")
        try:
            status = generation.evaluate(self.chains, self.change, self.record)
            if status != generation.READY:
                with one_at_a_time, memory_errors():
                    self._evaluate_after(status)
        except BaseException:
            self.settle(np.zeros(self.n_chains))  # nothing is pending, and the changes are forgotten
            raise
        return self.values()

    def _evaluate_after(self, status: int) -> None:
        while status == generation.NO_ROOM:
            self._grow()
            status = generation.evaluate(self.chains, self.change, self.record)
        if status == generation.NO_GRAPH:
            status = self._first_launch()
        if status != generation.READY:
            self._give_up(status)

    def values(self) -> np.ndarray:
        """(H,) log-likelihoods: of what a chain proposes, else of what it accepted."""
        trees = self.chains.trees
        version = np.where(trees.pending != 0, 1 - trees.accepted, trees.accepted)
        return trees.value[version, np.arange(self.n_chains)]

    def site_log_likelihoods(self, chain: int) -> np.ndarray:
        """(P,) log-likelihoods of the patterns, of the chain's last evaluation, accepted or not."""
        first, n = self.root_columns[chain].tolist()
        return self.arrays["site_log"][first : first + n].cpu().numpy()[self._root_columns[chain]]

    def gradient(self, mask: np.ndarray | None = None, parameters: bool = False) -> np.ndarray:
        """(H, K, N) d log L / d effective length of the branch above each node (root 0), from the messages
        that are there: those of a chain's proposal where one is pending, else of what it accepted.

        mask: (H,) chains that take part, all by default; zeros elsewhere. A chain's numbers do not depend on
        the others. parameters: by the numbers of the models, too: site_model_gradient then has them.
        RuntimeError while something is pending in a lazy forest, where proposals have no columns of theirs.
        """
        mask = np.ones(self.n_chains, bool) if mask is None else np.asarray(mask, bool)
        return self.gradients.gradient(mask, parameters)

    def site_model_gradient(self, chain: int) -> SiteModelGradient:
        """By the numbers of a chain's model, of the last gradient, which was asked for parameters too."""
        return self.gradients.site_model_gradient(chain)

    @property
    def gradients(self) -> ForestGradients:
        """Gradients, and leapfrog steps along them (gradients.leapfrog)."""
        if not self._has_state:
            raise RuntimeError("nothing was evaluated yet: call start first")
        if self._gradients is None:
            with memory_errors():
                self._gradients = ForestGradients(self)
        return self._gradients

    def _give_up(self, status: int) -> None:
        if status == generation.NO_NUMBER:
            raise NumericalError("a branch length, or the log-likelihood of a chain, is not a finite number")
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        raise DeviceError("the GPU does not answer")

    def settle(self, accept: np.ndarray) -> None:
        """Accept or reject the proposal of every chain. accept: (H,)."""
        generation.settle(self.chains, self.change, np.asarray(accept, np.int64))

    # Memory

    def _grow(self) -> None:
        """Room for everything that the list names, keeping what is there."""
        places, words, arrays = self.chains.places, self.record.words, self.arrays
        if words[lists.N_WORDS] > len(words):
            n_words = int(words[lists.N_WORDS]) * 3 // 2
            self._host = torch.zeros(n_words, dtype=torch.int64, pin_memory=self.device.type == "cuda")
            arrays["words"] = torch.empty(n_words, dtype=torch.int64, device=self.device)
            self.record = self.record._replace(words=self._host.numpy())
        wanted = int(places.used[0] + places.used[2])
        if wanted > len(places.rows):
            more = np.zeros(wanted * 3 // 2 - len(places.rows), np.int64)
            places = places._replace(rows=np.concatenate([places.rows, more]))
            self.chains = self.chains._replace(places=places)
        sizes = {
            **dict.fromkeys(("messages", "exponents", "shifts"), (1, int(places.used[1]))),
            **dict.fromkeys(("left_class", "right_class"), (0, len(self.chains.places.rows))),
            "rows": (0, int(words[lists.N_ROWS])),
            "transition": (0, int(words[lists.N_MATRICES])),
        }
        larger: dict[str, torch.Tensor] = {}
        for name, (axis, n) in sizes.items():
            exact = name in ("left_class", "right_class", "transition")
            if arrays[name].shape[axis] < n:
                larger[name] = self._enlarged(arrays[name], axis, n if exact else n + n // 2)
        arrays.update(larger)
        self._note_sizes()

    def _enlarged(self, old: torch.Tensor, axis: int, n: int) -> torch.Tensor:
        shape = (*old.shape[:axis], n, *old.shape[axis + 1 :])
        new = torch.empty(shape, dtype=old.dtype, device=self.device)
        new.narrow(axis, 0, old.shape[axis]).copy_(old)
        return new

    # Launches

    def _first_launch(self) -> int:
        """Launch a list one by one, and capture the launches for lists of this size."""
        words, record = self.record.words, self.record
        key = tuple(int(k) for k in generation.graph_key(words, self.chains.shape.parts))
        generation.expect_values(record)
        if self.on_host:
            self._matrices_of_host()
        self._launch(key)
        if self.device.type == "cuda" and not self.on_host:
            torch.cuda.synchronize(self.device)
            graph = torch.cuda.CUDAGraph()
            with captured(graph):
                self._launch(key)
            self._graphs.append(graph)
            record.graphs[key] = graph.raw_cuda_graph_exec()
        return generation.await_values(self.chains.trees, record)

    def _matrices_of_host(self) -> None:
        """Make the matrices that a list wants of models without a real eigensystem: no kernel does."""
        words, trees = self.record.words, self.chains.trees
        steps = words[lists.HEAD : lists.HEAD + lists.STEP * words[lists.N_STEPS]].reshape(-1, lists.STEP)
        wanted = steps[steps[:, lists.TIMES] >= 0]
        for place in np.unique(wanted[:, lists.WITH_MODEL]).tolist():
            model, h = self.models[place], place // 2
            if model is None or has_real_eigensystems(model):
                continue
            own = (steps[:, lists.TIMES] >= 0) & (steps[:, lists.WITH_MODEL] == place)
            matrix = steps[own, lists.MATRIX]
            lengths = trees.lengths[1 - trees.accepted[h], h, : model.n_length_classes]
            lengths = lengths[:, matrix % (self.n_nodes - 1)]
            made = padded_matrices(lengths if len(lengths) > 1 else lengths[0], model, self.sizes.width)
            places = torch.from_numpy(matrix).to(self.device)
            self.arrays["transition"][places] = made.to(self.device, self.dtype)
            steps[own, lists.TIMES] = -1

    def _launch(self, key: tuple[int, ...]) -> None:
        """The three launches, for lists of at most these powers of two."""
        a = self.arrays
        upload[(1 << key[0],)](
            self._host, a["words"], self.numbers.buffer.view(torch.int64), a["left_class"], a["right_class"],
            a["counters"], len(a["counters"]), CHUNK=generation.CHUNK, num_warps=4,
        )  # fmt: skip
        self.launch_up(key)

    def launch_up(self, key: tuple[int, ...]) -> None:
        """From the times of matrices to the values, of a list that is on the device."""
        a, n, sizes, c = self.arrays, self.numbers.fields, self.sizes, self.problem.n_categories
        cuda, dtype = self.device.type == "cuda", tl.float64 if self.dtype == torch.float64 else tl.float32
        block = sizes.matrix_block
        chunks = -(-sizes.width // block)
        matrices_and_rows[(1 << key[1], c, chunks**2)](
            a["words"], a["rows"], n["process"], self.n_processes, n["values"], n["right"], n["left"],
            self.problem.state_sets.shape[1],
            a["transition"], c, POST_TILE=sizes.post_tile, ROOT_TILE=sizes.root_tile,
            WIDTH=sizes.width, BLOCK=block, CHUNKS=chunks, DTYPE=dtype, num_warps=sizes.matrix_warps,
        )  # fmt: skip
        most = sizes.post_programs * processors(self.device)
        if self._beside > 1:
            most = max(LEAST_PROGRAMS, SHARED_PROGRAMS * processors(self.device) // self._beside)
        programs = max(1, min(most, 1 << key[2]))
        registers = {"maxnreg": sizes.post_registers} if sizes.post_registers and cuda else {}
        up_to_the_values[(programs,)](
            a["rows"], a["words"], a["counters"], a["messages"], a["exponents"], a["shifts"], a["transition"],
            a["left_class"], a["right_class"], a["state_sets"], n["process"], self.n_processes,
            n["frequencies"],
            n["weights"], n["invariant"], n["invariant_frequencies"], a["invariant_states"],
            a["column_weights"], a["ascertained"], a["mantissa"], a["power"], a["site_log"],
            a["total_weight"], a["result"], self._found, c,
            WIDTH=sizes.width, BLOCK=sizes.block, CHUNKS=sizes.chunks, TILE=sizes.post_tile,
            ROOT_TILE=sizes.root_tile, DTYPE=dtype,
            PRODUCT="ieee" if self.dtype == torch.float64 else "tf32x3", UNROLL=1 if c == 1 else 4,
            LANES=1024 if cuda else 16, ASCERTAINED=self.data.are_ascertained,
            LAZY=self.chains.shape.lazy, num_warps=sizes.post_warps, **registers,
        )  # fmt: skip
