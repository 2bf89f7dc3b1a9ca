"""H trees over one data set, or over the parts of one, evaluated together on one GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.hardware.gpu_device import captured
from phloem.model.record import SiteModel
from phloem.pruning.cpu.column_classes import column_classes
from phloem.pruning.gpu import step_schedule as schedule
from phloem.pruning.gpu.buffers import RootColumns, roots_of, total_weights
from phloem.pruning.gpu.launch import Launcher
from phloem.pruning.gpu.layout import TreeLayout, tree_layout
from phloem.pruning.gpu.models import ModelNumbers, padded_matrices
from phloem.pruning.gpu.step_schedule import Tiling, tiling
from phloem.pruning.interface import Problem, require_shape
from phloem.pruning.tree_data import TreeData


class GpuBatch:
    """Buffers, schedules and captured graphs for H chains, which differ in topology, lengths and model, and
    may differ in their data.

    problem: of all chains, or one a chain, of one layout (tree_data.layout_key). lefts, rights: (H, T-1).
    layouts: of the chains, where they are known already. pool: byte arrays to lay the messages into, by name
    (buffers.SHARED); batches that are evaluated one after the other may share them. total_weight: of all
    patterns, where the problem is one block of more of them (its own otherwise). root: columns of the only
    problem, where they are known already; they are the same whatever the topology.
    """

    def __init__(
        self,
        problem: Problem | Sequence[Problem],
        lefts: np.ndarray,
        rights: np.ndarray,
        device: torch.device,
        sizes: Tiling | None = None,
        layouts: list[TreeLayout] | None = None,
        pool: dict[str, torch.Tensor] | None = None,
        total_weight: float | None = None,
        root: RootColumns | None = None,
    ) -> None:
        problems = [problem] * len(lefts) if isinstance(problem, Problem) else list(problem)
        self.data, self.device = TreeData.of(problems), device
        problem = self.problem = problems[0]
        self.total_weights = total_weights(self.data) if total_weight is None else np.array([total_weight])
        self.sizes = sizes or tiling(problem.state_sets.shape[1], problem.precision)
        self.layouts = layouts or [
            layout_of(own, self.sizes, a, b) for own, a, b in zip(problems, lefts, rights)
        ]
        self.pool = {} if pool is None else pool
        columns = [layout.classes.pattern_column for layout in self.layouts]
        self.roots = [root] if root is not None else roots_of(self.data, columns, self.sizes.width)
        self.chains = _place(self.layouts)
        self.n_nodes, self.n_chains = 2 * len(problem.tip_codes) - 1, len(self.layouts)
        dtype = torch.float64 if problem.precision == "float64" else torch.float32
        self.numbers = self._room_for_models(1)
        self._shape: tuple[int, ...] = ()  # of the last lengths that were all right
        self.launch = Launcher(self, dtype)
        self._graphs: dict[tuple[str, bool], Callable[[], None] | None] = {}
        self._sums: dict[tuple[bool], tuple[torch.cuda.CUDAGraph, torch.Tensor] | None] = {}

    @property
    def parts(self) -> int:
        return self.problem.n_categories * self.sizes.chunks

    def _room_for_models(self, n_processes: int) -> ModelNumbers:
        shape = (self.n_chains, self.n_nodes, self.problem.n_categories)
        return ModelNumbers(shape, n_processes, self.sizes.width, self.device)

    def _load(self, lengths: np.ndarray, models: list[SiteModel]) -> bool:
        """Start the copy of what an evaluation is about; whether its matrices are made on the device.

        NumericalError where a length is not finite.
        """
        for i in self.numbers.others(models) if lengths.shape == self._shape else range(len(models)):
            require_shape(lengths[i], models[i], self.n_nodes)
        self._shape = lengths.shape
        _require_finite(lengths)
        n_processes = max([len(model.processes) for model in models])
        if n_processes > self.numbers.n_processes:
            self.numbers = self._room_for_models(n_processes)
            self.forget_graphs()
        self.numbers.load(lengths, models)
        return self.numbers.all_real

    def evaluate(self, what: str, lengths: np.ndarray, models: list[SiteModel]) -> None:
        """Run "likelihood", "gradient" or "parameters" from scratch. lengths: (H, N), or (H, K, N).

        NumericalError where a length is not finite.
        """
        on_device = self._load(lengths, models)
        if not on_device:
            self._upload_matrices(lengths, models)
        self._replay((what, on_device))

    def forget_graphs(self) -> None:
        """After arrays have moved."""
        self._graphs.clear()
        self._sums.clear()

    def replayed(self, key: tuple[bool], compute: Callable[[], torch.Tensor]) -> torch.Tensor:
        """What compute makes of the batch's arrays, and of nothing else: captured from the second time on."""
        if key not in self._sums or self.device.type != "cuda":
            self._sums[key] = None
            return compute()
        known = self._sums[key]
        if known is None:
            graph = torch.cuda.CUDAGraph()
            with captured(graph):
                result = compute()
            known = self._sums[key] = graph, result
        known[0].replay()
        return known[1]

    def _replay(self, key: tuple[str, bool]) -> None:
        """Launch one by one what is done for the first time, then replay it."""
        if key not in self._graphs or self.device.type != "cuda":
            self.launch.run(*key)
            self._graphs[key] = None
        else:
            replay = self._graphs[key] or self._capture(key)
            self._graphs[key] = replay
            replay()
        self.launch.fetch()

    def _capture(self, key: tuple[str, bool]) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        with captured(graph):
            self.launch.run(*key)
        return graph.replay

    def _upload_matrices(self, lengths: np.ndarray, models: list[SiteModel]) -> None:
        """Without a real eigensystem the host exponentiates."""
        transition, n = self.launch.arrays["transition"], self.n_nodes - 1
        for h, model in enumerate(models):
            made = padded_matrices(lengths[h][..., :-1], model, self.sizes.width)
            transition[h * n : (h + 1) * n] = made.to(self.device, transition.dtype)

    # What the last evaluation found

    def log_likelihoods(self) -> np.ndarray:
        return self.launch.host_result()[:, 0]

    def log_likelihood_parts(self) -> tuple[float, float]:
        """The first chain's log-likelihood and what it lost by rounding (nothing known of it where patterns
        are ascertained)."""
        value, beside = self.launch.host_result()[0, :2].tolist()
        exact = np.isfinite(value) and not self.data.are_ascertained
        return value, beside if exact else 0.0

    def derivatives(self) -> np.ndarray:
        """D[chain, branch, category] (pruning/reference/recursion.py)."""
        return self.launch.host_result()[:, 2:].reshape(self.n_chains, self.n_nodes - 1, -1)

    def site_log_likelihoods(self, chain: int) -> np.ndarray:
        """(P,) log-likelihoods of the patterns."""
        place = self.chains[chain]
        classes = place.layout.classes
        first = place.first_root
        columns = self.launch.arrays["site_log"][first : first + classes.size(self.n_nodes - 1)]
        return columns.cpu().numpy()[classes.pattern_column]


def _require_finite(lengths: np.ndarray) -> None:
    """The kernels clamp transition probabilities at 0, which makes 0 of what is not a number."""
    if not np.isfinite(lengths[..., :-1]).all():
        raise NumericalError("a branch length is not a finite number")


def layout_of(problem: Problem, sizes: Tiling, left: np.ndarray, right: np.ndarray) -> TreeLayout:
    """The layout of one chain's topology; left, right: (T-1,)."""
    classes = column_classes(left, right, problem.tip_codes, problem.repeats)
    return tree_layout(classes, sizes.pre_tile, sizes.longest)


def _place(layouts: list[TreeLayout]) -> list[schedule.Chain]:
    """Lay chains one after the other in every buffer."""
    n_nodes = layouts[0].classes.n_nodes
    chains = []
    column = pre = entry = root = partial = 0
    for h, layout in enumerate(layouts):
        chains.append(schedule.Chain(layout, h, len(layouts), column, pre, entry, root, partial))
        column += int(layout.classes.offset[-1])
        pre += int(layout.pre_offset[-1])
        entry += len(layout.entry_parent)
        root += layout.classes.size(n_nodes - 1)
        partial += int(layout.tile_offset[-1])
    return chains
