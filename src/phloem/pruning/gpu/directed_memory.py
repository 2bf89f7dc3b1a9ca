"""Device memory of directed messages (directed_engine.py): how much, and in which arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton.language as tl

from phloem.errors import DeviceError
from phloem.hardware.gpu_device import find_device
from phloem.hardware.limits import readable_bytes
from phloem.model.record import SiteModel
from phloem.pruning.cpu.directed_ascertainment import Unseen
from phloem.pruning.gpu.buffers import processors
from phloem.pruning.gpu.cost import lacking_for_search
from phloem.pruning.gpu.evaluator import free_bytes
from phloem.pruning.interface import Problem

ROOM_BYTES = 3 << 30  # at most for what programs work in, beside the messages
_COLUMNS = 10  # a program has, of all patterns: of quartets
_UNIT = 32  # patterns, kernels/directed_patterns.UNIT
_SPANS = (256, 128, 64, 32)  # patterns at a time of nucleotides
_WASTE = 1.2  # times as many patterns as parts need with the narrowest span


@dataclass(frozen=True)
class Sizes:
    """Of seats that have the same tips. seats; models: at most, of one, a part of the data each; patterns: of
    one, with what fills parts up; categories; codes: of a part; width: states in memory; block: in a
    program, a power of two. tile: patterns of a message and of a score; span: patterns at a time where a
    program has all of them; warps of each."""

    seats: int
    models: int
    tips: int
    patterns: int
    categories: int
    codes: int
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
        """Half-edges of one tree."""
        return 4 * self.tips - 6

    @property
    def branches(self) -> int:
        return 2 * self.tips - 3

    @property
    def tiles(self) -> int:
        return -(-self.patterns // self.tile)

    @property
    def units(self) -> int:
        return -(-self.patterns // _UNIT)

    @property
    def column(self) -> int:
        """Numbers of one half-edge's message."""
        return self.categories * self.patterns * self.width

    @property
    def bytes(self) -> float:
        """Of all arrays, apart from tables of moves and the rooms of programs, which take what is left."""
        square = self.categories * self.width**2
        each = 16.0 * self.column + 4.0 * self.patterns + 4.0 * self.tiles + 32.0
        own = self.edges * each + self.branches * 16.0 * square * self.models
        return self.seats * (own + 4.0 * self.tips * self.patterns)

    @property
    def room(self) -> int:
        """Bytes of a program that has all patterns."""
        own = _COLUMNS * self.column + self.categories * (self.span + self.models) * self.width
        return 8 * own + 4 * self.patterns

    def filled(self, patterns: int) -> int:
        """Patterns of a part among several, with what fills it up."""
        return patterns if self.models == 1 else -(-patterns // self.span) * self.span


def sizes_of(problems: Sequence[Problem], seats: int = 1) -> Sizes:
    """Of seats of one tree each with these parts. DeviceError for what a search on a GPU lacks."""
    for problem in problems:
        lacking = lacking_for_search(problem)
        if lacking is not None:
            raise DeviceError(lacking, hint="Say --device cpu.")
    states = max(problem.state_sets.shape[1] for problem in problems)
    patterns = [len(problem.pattern_weights) for problem in problems]
    categories = max(problem.n_categories for problem in problems)
    codes = max(len(problem.state_sets) for problem in problems)
    own = seats, len(problems), len(problems[0].tip_codes)
    if states > 4:
        width, block, span, warps = -(-states // 4) * 4, max(16, 1 << (states - 1).bit_length()), 32, 4
    else:
        width, block, span, warps = 4, 4, *_span_of(patterns)
    total = sum(patterns) if len(patterns) == 1 else sum(-(-k // span) * span for k in patterns)
    tile_warps = 1 if states <= 4 else 4
    return Sizes(*own, total, categories, codes, width, block, 32, tile_warps, span, warps)


def _span_of(patterns: Sequence[int]) -> tuple[int, int]:
    """Of nucleotides, and warps: the widest that does not fill short parts up with much."""
    if len(patterns) == 1:
        return _SPANS[0], _SPANS[0] // 32
    taken = [sum(-(-k // span) * span for k in patterns) for span in _SPANS]
    span = next(span for span, own in zip(_SPANS, taken) if own <= _WASTE * taken[-1])
    return span, span // 32


def require_search(groups: Sequence[Sequence[Problem]], free: int | None = None) -> list[Sizes]:
    """Sizes of messages that the GPU has memory for, by default what is free now. groups: the parts of every
    set of lengths. DeviceError else, where there is no GPU, and for what a search there lacks."""
    sizes = [sizes_of(problems) for problems in groups]
    free = free_bytes(find_device()) if free is None else free
    need = sum(one.bytes for one in sizes) + sum(one.room for one in sizes)
    if need > free:
        taxa, patterns = sizes[0].tips, sum(len(one.pattern_weights) for own in groups for one in own)
        raise DeviceError(
            f"the messages of {taxa:,} taxa and {patterns:,} patterns need "
            f"{readable_bytes(need)} of the GPU's memory, and {readable_bytes(free)} are free",
            hint="Say --device cpu, or use a simpler model or fewer taxa.",
        )
    return sizes


class Seated:
    """The parts of the data of one seat. spans: where the patterns of each lie; real: places of all patterns,
    in order; weights: (P,), with zeros where nothing is; unseen: sets those of unseen characters."""

    def __init__(self, problems: Sequence[Problem], sizes: Sizes) -> None:
        self.problems, spans, first = tuple(problems), [], 0
        self.weights = np.zeros(sizes.patterns)
        for one in problems:
            n = len(one.pattern_weights)
            spans.append(slice(first, first + n))
            self.weights[spans[-1]] = one.pattern_weights
            first += sizes.filled(n)
        self.spans = spans
        self.real: slice | np.ndarray = spans[0]  # which copies nothing
        if len(spans) > 1:
            self.real = np.concatenate([np.arange(span.start, span.stop) for span in spans])
        pairs = [(span.start + np.flatnonzero(~one.ascertained), span.start + np.flatnonzero(one.ascertained))
                 for one, span in zip(problems, spans)]  # fmt: skip
        self.unseen = Unseen([pair for pair in pairs if len(pair[1])], self.weights)

    def constant(self, k: int) -> np.ndarray:
        """(P, S) of part k: whether a pattern may be one state at all tips."""
        problem = self.problems[k]
        allowed = problem.state_sets[problem.tip_codes[0]].copy()
        for codes in problem.tip_codes[1:]:
            allowed &= problem.state_sets[codes]
        return allowed


class DirectedArrays:
    """All arrays but the tables of moves (kernels/directed.py, directed_lengths.py). eigen: right and left as
    they are, for transition matrices."""

    def __init__(self, sizes: Sizes, device: torch.device) -> None:
        self.sizes, self.device = sizes, device
        n, c, w, seats = sizes, sizes.categories, sizes.width, sizes.seats
        f64, i32, models = torch.float64, torch.int32, sizes.seats * sizes.models
        empty = lambda shape, kind: torch.empty(shape, dtype=kind, device=device)  # noqa: E731
        zeros = lambda shape, kind=f64: torch.zeros(shape, dtype=kind, device=device)  # noqa: E731
        self.codes, self.state_sets = zeros((seats * n.tips, n.patterns), i32), zeros((models * n.codes, w))
        self.weights, self.invariant = zeros((seats, n.patterns)), zeros((seats, n.patterns))
        self.models = zeros((seats, n.units), i32) if n.models > 1 else None
        self.messages, self.halves = (empty((seats * n.edges, c, n.patterns, w), f64) for _ in range(2))
        self.exponents = empty((seats * n.edges, n.patterns), i32)
        self.matrices = empty((2, models, n.branches, c, w, w), f64)
        self.counters = zeros(16 + n.tiles * seats * n.edges, i32)
        self.tasks, self.ends = zeros((seats, n.edges, 8), i32), zeros((seats, 4), i32)
        self.sites, self.sums = empty((seats, n.patterns), f64), empty((seats, n.tiles), f64)
        self.process = torch.arange(c, dtype=torch.int64, device=device).repeat(models, 1)
        self.right, self.left, self.into = (zeros((models, c, w, w)) for _ in range(3))
        self.eigen = zeros((2, models, c, w, w))
        self.values, self.start = zeros((models, c, w)), zeros((models, c, w))
        self.kind = tl.float64
        self._rooms: torch.Tensor | None = None
        self.n_processors = processors(device)

    def put(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def seat(self, k: int, own: Seated) -> None:
        """Put data there. What fills up is the part's first pattern, without weight."""
        n, sizes = self.sizes.tips, self.sizes
        codes, models = np.zeros((n, sizes.patterns), np.int32), np.zeros(sizes.units, np.int32)
        sets = np.zeros((sizes.models, sizes.codes, sizes.width))
        for i, (one, span) in enumerate(zip(own.problems, own.spans)):
            number = k * sizes.models + i
            end = sizes.patterns if i == len(own.spans) - 1 else own.spans[i + 1].start
            sets[i, : len(one.state_sets), : one.state_sets.shape[1]] = one.state_sets
            codes[:, span.start : end] = one.tip_codes[:, :1]
            codes[:, span] = one.tip_codes
            codes[:, span.start : end] += number * sizes.codes
            models[span.start // _UNIT :] = number
        rows = slice(k * sizes.models * sizes.codes, (k + 1) * sizes.models * sizes.codes)
        self.state_sets[rows] = self.put(sets.reshape(-1, sizes.width))
        self.codes[k * n : (k + 1) * n] = self.put(codes)
        if self.models is not None:
            self.models[k] = self.put(models)
        self.put_weights(k, own)

    def put_weights(self, k: int, own: Seated) -> None:
        self.weights[k] = self.put(own.weights)

    def put_tree(self, k: int, tasks: np.ndarray, end: np.ndarray) -> None:
        """directed_tables.Laid.tasks and end."""
        self.tasks[k], self.ends[k] = self.put(tasks), self.put(end)

    def set_models(self, k: int, own: Seated, models: Sequence[SiteModel], rates: Sequence[float]) -> None:
        """Take the numbers of a seat's models over; lengths are multiplied by the rates. A category that a
        model lacks is scaled as the first is, and has no weight."""
        l, c, w = len(models), self.sizes.categories, self.sizes.width
        right, left = np.zeros((2, l, c, w, w)), np.zeros((2, l, c, w, w))
        into, values, start = np.zeros((l, c, w, w)), np.zeros((l, c, w)), np.zeros((l, c, w))
        share = np.zeros(self.sizes.patterns)
        for i, (model, rate, problem) in enumerate(zip(models, rates, own.problems)):
            s = problem.state_sets.shape[1]
            for j in range(c):
                real = j < len(model.rates)
                of = j if real else 0
                process = model.processes[model.process[of]]
                eigen = process.real_eigen
                assert eigen is not None
                right[0, i, j, :s, :s], left[0, i, j, :s, :s] = eigen.right, eigen.left
                right[1, i, j], left[1, i, j] = right[0, i, j].T, left[0, i, j].T
                values[i, j, :s] = eigen.values * (model.rates[of] * rate)
                start[i, j, :s] = model.weights[of] * process.root_frequencies * real
                into[i, j] = right[0, i, j] * start[i, j][:, None]
            if model.invariant:
                share[own.spans[i]] = model.invariant * (own.constant(i) @ model.invariant_frequencies)
        first = k * self.sizes.models
        rows = slice(first, first + l)
        for mine, new in (
            (self.eigen[0], right[0]), (self.eigen[1], left[0]), (self.right, right[1]), (self.left, left[1]),
            (self.into, into), (self.values, values), (self.start, start),
        ):  # fmt: skip
            mine[rows] = self.put(new)
        self.invariant[k] = self.put(share)

    def rooms(self, n: int, per_processor: int) -> tuple[int, torch.Tensor]:
        """Of so many programs at most: how many have room, and their rooms one after the other."""
        if self._rooms is None:
            free = torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else ROOM_BYTES
            most = max(1, min(ROOM_BYTES, free // 2) // self.sizes.room)
            programs = min(per_processor * self.n_processors, most)
            self._rooms = torch.empty(programs * self.sizes.room // 8 + 1, dtype=torch.float64,
                                      device=self.device)  # fmt: skip
        return min(n, len(self._rooms) * 8 // self.sizes.room), self._rooms
