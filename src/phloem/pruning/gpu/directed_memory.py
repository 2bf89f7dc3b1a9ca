"""Device memory of directed messages (directed.py): how much, and in which arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton.language as tl

from phloem.errors import DeviceError
from phloem.hardware.gpu_device import find_device
from phloem.hardware.limits import readable_bytes
from phloem.model.record import SiteModel
from phloem.pruning.gpu.buffers import padded_state_sets, processors
from phloem.pruning.gpu.cost import lacking_for_search
from phloem.pruning.gpu.evaluator import free_bytes
from phloem.pruning.interface import Problem

ROOM_BYTES = 3 << 30  # at most for what programs work in, beside the messages
_COLUMNS = 10  # a program has, of all patterns: of quartets


@dataclass(frozen=True)
class Sizes:
    """tips, patterns, categories; width: states in memory; block: in a program, a power of two. tile:
    patterns of a message and of a score; span: patterns at a time where a program has all of them; warps of
    each."""

    tips: int
    patterns: int
    categories: int
    width: int
    block: int
    tile: int
    tile_warps: int
    span: int
    span_warps: int

    @property
    def of_tiles(self) -> dict[str, Any]:
        """How kernels are compiled whose programs have a tile of patterns."""
        return self._compiled(self.tile, self.tile_warps)

    @property
    def of_spans(self) -> dict[str, Any]:
        """Of programs that have all patterns."""
        return self._compiled(self.span, self.span_warps)

    def _compiled(self, tile: int, warps: int) -> dict[str, Any]:
        stages = 1 if self.block > 32 else 3  # matrices of 64 states have no room to be fetched ahead
        own = {"WIDTH": self.width, "BLOCK": self.block, "TILE": tile}
        return own | {"num_warps": warps, "num_stages": stages}

    @property
    def edges(self) -> int:
        return 4 * self.tips - 6

    @property
    def branches(self) -> int:
        return 2 * self.tips - 3

    @property
    def tiles(self) -> int:
        return -(-self.patterns // self.tile)

    @property
    def column(self) -> int:
        """Numbers of one half-edge's message."""
        return self.categories * self.patterns * self.width

    @property
    def bytes(self) -> float:
        """Of all arrays, apart from tables of moves and the rooms of programs, which take what is left."""
        square = self.categories * self.width**2
        each = 16.0 * self.column + 4.0 * self.patterns + 4.0 * self.tiles + 128.0
        return self.edges * each + self.branches * 16.0 * square + 4.0 * self.tips * self.patterns

    @property
    def room(self) -> int:
        """Bytes of a program that has all patterns."""
        own = _COLUMNS * self.column + self.categories * (self.span + 1) * self.width
        return 8 * own + 4 * self.patterns


def sizes_of(problem: Problem) -> Sizes:
    """DeviceError for what a search on a GPU lacks."""
    lacking = lacking_for_search(problem)
    if lacking is not None:
        raise DeviceError(lacking, hint="Say --device cpu.")
    (tips, patterns), states = problem.tip_codes.shape, problem.state_sets.shape[1]
    if states <= 4:
        return Sizes(tips, patterns, problem.n_categories, 4, 4, 32, 1, 256, 8)
    width = -(-states // 4) * 4
    block = max(16, 1 << (states - 1).bit_length())
    return Sizes(tips, patterns, problem.n_categories, width, block, 32, 4, 32, 4)


def require_search(problem: Problem, free: int | None = None) -> Sizes:
    """Sizes of messages that the GPU has memory for, by default what is free now. DeviceError else, where
    there is no GPU, and for what a search there lacks."""
    sizes = sizes_of(problem)
    free = free_bytes(find_device()) if free is None else free
    need = sizes.bytes + sizes.room
    if need > free:
        raise DeviceError(
            f"the messages of {sizes.tips:,} taxa and {sizes.patterns:,} patterns need "
            f"{readable_bytes(need)} of the GPU's memory, and {readable_bytes(free)} are free",
            hint="Say --device cpu, or use a simpler model or fewer taxa.",
        )
    return sizes


class DirectedArrays:
    """All arrays but the tables of moves. numbers: right, left, into, transposed; values; start
    (kernels/directed_lengths.py), and eigen: right and left as they are, for transition matrices."""

    def __init__(self, problem: Problem, sizes: Sizes, device: torch.device) -> None:
        self.sizes, self.device = sizes, device
        n, c, w = sizes, sizes.categories, sizes.width
        f64, i32 = torch.float64, torch.int32
        empty = lambda shape, kind: torch.empty(shape, dtype=kind, device=device)  # noqa: E731
        self.codes = self.put(problem.tip_codes.astype(np.int32))
        self.state_sets = padded_state_sets(problem.state_sets, w, f64).to(device)
        self.weights = self.put(np.asarray(problem.pattern_weights, np.float64))
        self.invariant = torch.zeros(n.patterns, dtype=f64, device=device)
        self.messages, self.halves = (empty((n.edges, c, n.patterns, w), f64) for _ in range(2))
        self.exponents = empty((n.edges, n.patterns), i32)
        self.matrices = empty((2, n.branches, c, w, w), f64)
        self.counters = torch.zeros(16 + n.tiles * n.edges, dtype=i32, device=device)
        self.sites, self.sums = empty((n.patterns,), f64), empty((n.tiles,), f64)
        self.lengths, self.dampings, self.moved = (torch.zeros(n.branches, dtype=f64, device=device)
                                                   for _ in range(3))  # fmt: skip
        jobs = np.zeros((2 * n.branches, 4), np.int64)
        jobs[:, 0] = jobs[:, 1] = np.arange(2 * n.branches)
        self.jobs = self.put(jobs)
        self.process = torch.arange(c, dtype=torch.int64, device=device)
        self.states, self.kind = problem.state_sets.shape[1], tl.float64
        allowed = problem.state_sets[problem.tip_codes[0]].copy()
        for codes in problem.tip_codes[1:]:
            allowed &= problem.state_sets[codes]
        self._constant = allowed
        self.right, self.left, self.into = (
            torch.zeros((c, w, w), dtype=f64, device=device) for _ in range(3)
        )
        self.eigen = torch.zeros((2, c, w, w), dtype=f64, device=device)
        self.values, self.start = (torch.zeros((c, w), dtype=f64, device=device) for _ in range(2))
        self._rooms: torch.Tensor | None = None
        self.n_processors = processors(device)

    def put(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def set_model(self, model: SiteModel, rate: float) -> None:
        """Take the numbers of a model over; lengths are multiplied by the rate."""
        c, w, s = self.sizes.categories, self.sizes.width, self.states
        right, left = np.zeros((2, c, w, w)), np.zeros((2, c, w, w))
        into, values, start = np.zeros((c, w, w)), np.zeros((c, w)), np.zeros((c, w))
        for k in range(c):
            process = model.processes[model.process[k]]
            eigen = process.real_eigen
            assert eigen is not None
            right[0, k, :s, :s], left[0, k, :s, :s] = eigen.right, eigen.left
            right[1, k], left[1, k] = right[0, k].T, left[0, k].T
            values[k, :s] = eigen.values * (model.rates[k] * rate)
            start[k, :s] = model.weights[k] * process.root_frequencies
            into[k] = right[0, k] * start[k][:, None]
        share = model.invariant * (self._constant @ model.invariant_frequencies)
        for own, new in (
            (self.eigen[0], right[0]), (self.eigen[1], left[0]), (self.right, right[1]), (self.left, left[1]),
            (self.into, into), (self.values, values), (self.start, start), (self.invariant, share),
        ):  # fmt: skip
            own.copy_(torch.from_numpy(new))

    def rooms(self, n: int, per_processor: int) -> tuple[int, torch.Tensor]:
        """Of so many programs at most: how many have room, and their rooms one after the other."""
        if self._rooms is None:
            free = torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else ROOM_BYTES
            most = max(1, min(ROOM_BYTES, free // 2) // self.sizes.room)
            programs = min(per_processor * self.n_processors, most)
            self._rooms = torch.empty(programs * self.sizes.room // 8 + 1, dtype=torch.float64,
                                      device=self.device)  # fmt: skip
        return min(n, len(self._rooms) * 8 // self.sizes.room), self._rooms
