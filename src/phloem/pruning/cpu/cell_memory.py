"""Memory of cells: what a part of the data fixes, and the arrays of every chain's copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from phloem.model.autocorrelated_rates import class_edges
from phloem.pruning.cpu.cell_records import CellArrays, CellNumbers, CellScratch, DownArrays, DownScratch
from phloem.pruning.cpu.column_classes import table_entries
from phloem.pruning.cpu.records import EigenScratch, Scratch, Shape
from phloem.pruning.cpu.storage import BATCH, rows_for, shape_of_sizes, state_sets
from phloem.pruning.site_order import SiteOrder

# Up to here no product of four states' messages can leave double precision (docs/mcmc.md): on a branch of
# 1e-8 a state changes with 1e-8 or so. With more states a change can need several steps, 1e-24 for a codon.
UNGUARDED_TIPS = 24


@dataclass(frozen=True, eq=False)
class Part:
    """What is fixed of one partition. tip_codes (T, P): rows of state_sets (n_codes, S) bool; weights (P,);
    unobservable (P,) bool: patterns that stand for those that could not be seen (weight 0). process,
    length_class: (C,) of every category. first_lengths: the first row of a chain's lengths that it uses.
    repeats: work on distinct columns. model_of: an earlier part whose model it shares, or -1. order: of the
    sites, where the categories of neighbours depend on each other."""

    tip_codes: np.ndarray
    state_sets: np.ndarray
    weights: np.ndarray
    unobservable: np.ndarray
    process: np.ndarray
    length_class: np.ndarray
    first_lengths: int = 0
    repeats: bool = True
    model_of: int = -1
    order: SiteOrder | None = None


RANGE_ENTRIES, RANGE_COLUMNS = 16_000, 15
"""A range of columns has at least so many entries of messages, some ten microseconds a node, and so many
columns a state, so that transition matrices, which every range makes for itself, are a small part of it."""


DEVICE_WORK, MOST_ON_DEVICES = 5e9, 8
"""The same of devices: entries of messages, of a whole tree, times states, twenty more for passing each; and
how many there are at most, since the host lists what is to be done for every range (docs/gpu.md)."""


def column_ranges(part: Part, number: int, on_device: bool = False) -> list[Part]:
    """A large part as several ranges of its columns, on a grid that depends on the data alone, and on whether
    devices evaluate them. number: that the first gets; the others share its model. Columns that could not be
    seen keep a part together, and so do neighbours that depend on each other."""
    n_patterns = part.tip_codes.shape[1]
    sizes = n_patterns, part.state_sets.shape[1], len(part.process)
    n = n_device_ranges(len(part.tip_codes), *sizes) if on_device else n_ranges(*sizes)
    if n < 2 or part.unobservable.any() or part.order is not None:
        return [part]
    ends = [n_patterns * k // n for k in range(n + 1)]
    return [
        replace(
            part,
            tip_codes=np.ascontiguousarray(part.tip_codes[:, begin:end]),
            weights=part.weights[begin:end],
            unobservable=part.unobservable[begin:end],
            model_of=number if begin else part.model_of,
        )
        for begin, end in pairwise(ends)
    ]


def n_ranges(n_patterns: int, n_states: int, n_categories: int) -> int:
    """Of a part without columns that could not be seen; 0 or 1: it stays in one."""
    return n_patterns // max(RANGE_ENTRIES // (n_states * n_categories), RANGE_COLUMNS * n_states)


def n_device_ranges(n_tips: int, n_patterns: int, n_states: int, n_categories: int) -> int:
    """n_ranges on devices, which come in powers of two."""
    work = n_patterns * (n_tips - 1) * n_categories * n_states * (n_states + 20)
    return 1 << max(1, min(MOST_ON_DEVICES, int(work // DEVICE_WORK))).bit_length() - 1


def cell_work(part: Part) -> float:
    """Of a cell, as far as the number of its columns says: entries of messages, times states."""
    return float(part.tip_codes.shape[1] * len(part.process) * part.state_sets.shape[1] ** 2)


def cell_scratch(parts: Sequence[Part]) -> CellScratch:
    """What one thread works in, large enough for every cell."""
    shapes = [cell_layout(part) for part in parts]
    patterns = max(part.tip_codes.shape[1] for part in parts)
    nodes = 2 * len(parts[0].tip_codes) - 1
    padded, states = max(s.padded for s in shapes), max(s.states for s in shapes)
    categories, width = max(s.categories for s in shapes), max(s.blocks * s.width for s in shapes)
    codes, along = max(len(part.state_sets) for part in parts), [p for p in parts if p.order is not None]
    kernel = Scratch(
        rows=_zeros(max(BATCH * padded + 64, width)),
        more_rows=_zeros(BATCH * padded + 64),
        scaled=_zeros(states * (states + 6)),
        matrix=aligned(max(s.matrix for s in shapes)),
        parts=np.empty(categories + 1),
        powers=np.empty(categories + 1, np.int64),
        root=aligned(width),
        growth=aligned(max(states, 16)),
    )
    return CellScratch(
        kernel=kernel,
        mantissa=np.empty(patterns),
        power=np.empty(patterns, np.int64),
        site_log=np.empty(patterns),
        site_weights=np.empty(patterns),
        tip=aligned(codes * width),
        table=np.full(table_entries(patterns), -1, np.int64),
        base=np.zeros(1, np.int64),
        todo=np.empty((nodes, 2), np.int64),
        dirty=np.zeros(nodes, np.bool_),
        relative=np.empty(max((p.tip_codes.shape[1] * len(p.process) for p in along), default=0)),
        along=np.empty(3 * (categories + 1) ** 2),
    )


def down_scratch(parts: Sequence[Part]) -> DownScratch:
    """What one thread needs besides for ways down."""
    shapes = [cell_layout(part) for part in parts]
    nodes = 2 * len(parts[0].tip_codes) - 1
    matrix, states = max(max(s.matrix, 64) for s in shapes), max(s.states for s in shapes)
    processes = max(int(part.process.max()) + 1 for part in parts)
    return DownScratch(
        messages_at=np.zeros(nodes, np.int64),
        size=np.zeros(nodes, np.int64),
        up=aligned(max(s.blocks for s in shapes), matrix),
        rate_first=np.zeros((processes, states + 1), np.int64),
        rate_states=np.zeros(processes * states * states, np.int64),
        rate_values=np.zeros(processes * states * states),
        eigen=EigenScratch(
            adjoint=aligned(matrix),
            share=np.zeros(4),
            right=aligned(matrix),
            left=aligned(matrix),
            half=aligned(matrix),
            basis=aligned(matrix),
            growth=aligned(states),
            pairs=aligned(max(40, states)),
        ),
    )


def aligned(*shape: int, dtype=np.float64) -> np.ndarray:
    """Uninitialised, from the start of a cache line on: columns of 128 bytes then touch two lines, not three,
    which halves the time of the four-state kernels."""
    size, each = int(np.prod(shape)), np.dtype(dtype).itemsize
    whole = np.empty(size * each + 63, np.uint8)
    first = -whole.ctypes.data % 64
    return whole[first : first + size * each].view(dtype).reshape(shape)


def _zeros(size: int) -> np.ndarray:
    """Products read a few rows too many: denormal numbers there would cost forty times the product."""
    array = aligned(size)
    array[:] = 0.0
    return array


def cell_layout(part: Part) -> Shape:
    """The kernels' layout of a part."""
    return shape_of_sizes(part.state_sets.shape[1], len(part.process), "float64", lanes=4)


def _rows(part: Part) -> tuple[np.ndarray, int]:
    """(2N,) first row of every region, and their number: a tip has a row a code, others one a pattern."""
    n_tips, n_patterns = part.tip_codes.shape
    each = np.full(2 * n_tips - 1, rows_for(n_patterns))
    each[:n_tips] = rows_for(len(part.state_sets))
    ends = np.cumsum(np.tile(each, 2))
    return np.concatenate([[0], ends[:-1]]).astype(np.int64), int(ends[-1])


def cell_sizes(part: Part, hangs: bool) -> list[int]:
    """A row of the table of numbers."""
    shape, (n_tips, n_patterns), rows = cell_layout(part), part.tip_codes.shape, _rows(part)[1]
    return list(
        CellNumbers(
            tips=n_tips,
            patterns=n_patterns,
            codes=len(part.state_sets),
            states=shape.states,
            categories=shape.categories,
            padded=shape.padded,
            blocks=shape.blocks,
            width=shape.width,
            exponents=shape.exponents,
            matrix=shape.matrix,
            processes=int(part.process.max()) + 1,
            first_lengths=part.first_lengths,
            length_classes=int(part.length_class.max()) + 1,
            message_rows=rows,
            column_rows=rows,
            guarded=int(not hangs or shape.states != 4 or n_tips > UNGUARDED_TIPS),
            ascertained=int(part.unobservable.any()),
            repeats=int(part.repeats),
            hangs=int(hangs),
            sites=0 if part.order is None else len(part.order.pattern),
            distances=0 if part.order is None else len(part.order.distances),
        )
    )


def cell_bytes(part: Part) -> int:
    """Of what one chain's copy has, of every column of every node. Memory of which nothing was written is not
    taken from the system: columns that look alike below a node are one."""
    shape, (n_tips, n_patterns) = cell_layout(part), part.tip_codes.shape
    row = shape.blocks * (8 * shape.width + 4 * shape.exponents) + 8  # messages, exponents, two classes
    matrices = 8 * shape.blocks * shape.matrix * (4 * n_tips - 2)
    return _rows(part)[1] * row + matrices + 8 * (n_tips - 1) * n_patterns


def shared_arrays(part: Part) -> dict[str, np.ndarray]:
    """What the chains of a partition share, by field of CellArrays."""
    sets, start = state_sets(part.state_sets), _rows(part)[0]
    allowed = np.all(np.asarray(part.state_sets, bool)[part.tip_codes], axis=0)
    states = np.zeros(part.state_sets.size, np.int64)
    states[: len(sets.states)] = sets.states
    return {
        "tip_codes": np.ascontiguousarray(part.tip_codes, np.int32),
        "set_first": sets.first,
        "set_states": states,
        "weights": np.ascontiguousarray(part.weights, np.float64),
        "unobservable": np.ascontiguousarray(part.unobservable, np.uint8),
        "invariant_states": np.ascontiguousarray(allowed, np.uint8).reshape(-1),
        "column_start": start,
        "message_start": start,
        "process": np.ascontiguousarray(part.process, np.int64),
        "length_class": np.ascontiguousarray(part.length_class, np.int64),
        "site_pattern": np.array(() if part.order is None else part.order.pattern, np.int64),
        "site_step": np.array(() if part.order is None else part.order.step, np.int64),
        "site_distances": np.array(() if part.order is None else part.order.distances, np.int64),
        "class_edges": class_edges(len(part.process)),
    }


def cell_arrays(part: Part, shared: dict[str, np.ndarray], messages: dict[str, np.ndarray]) -> CellArrays:
    """Memory of one chain's copy; tips have their columns already. messages: message_arrays."""
    shape, (n_tips, n_patterns) = cell_layout(part), part.tip_codes.shape
    n_codes, n_nodes, s, c = len(part.state_sets), 2 * n_tips - 1, shape.states, shape.categories
    m, (_, rows) = int(part.process.max()) + 1, _rows(part)
    numbers, inverse = (s, shape.padded), (s, s if s == 4 else -(-s // 6) * 6)
    size, left = np.zeros(2 * n_nodes, np.int64), np.empty(rows, np.int32)
    for x in range(n_tips):  # a tip's classes are its codes
        first = shared["column_start"][x]
        size[x], left[first : first + n_codes] = n_codes, np.arange(n_codes)
    at = np.tile(np.arange(n_nodes), (2, 3, 1))
    return CellArrays(
        **shared,
        at=np.ascontiguousarray(at, np.int64),
        size=size,
        version=np.zeros(2 * n_nodes, np.int64),
        class_of=np.empty((2 * (n_tips - 1), n_patterns), np.int32),
        left=left,
        right=np.empty(rows, np.int32),
        **messages,
        eigenvalues=np.zeros((2, m, s)),
        eigen_right=np.zeros((2, m, *numbers)),
        eigen_left=np.zeros((2, m, *inverse)),
        root_frequencies=np.zeros((2, m, s)),
        rates=np.zeros((2, c)),
        category_weights=np.zeros((2, c)),
        invariant=np.zeros(2),
        invariant_frequencies=np.zeros((2, s)),
        slot=np.zeros(2, np.int64),
        log_likelihood=np.zeros(2),
        site_log=np.zeros(n_patterns),
        neighbours=np.zeros((2, 0 if part.order is None else len(part.order.distances), c, c)),
    )


def message_arrays(parts: Sequence[Part]) -> dict[str, np.ndarray]:
    """What the way up writes, by field of CellArrays, with room for any one of the parts."""
    values, taken, rescaled, matrices = np.max([_entries(part) for part in parts], 0)
    return {
        "values": aligned(values),
        "taken": np.zeros(taken, np.int32),
        "rescaled": np.zeros(rescaled, np.uint8),
        "matrices": aligned(matrices),
    }


def pre_order_vectors(parts: Sequence[Part]) -> np.ndarray:
    """Room for DownArrays.q of any one of the parts."""
    return aligned(max(_entries(part)[0] for part in parts))


def _entries(part: Part) -> tuple[int, int, int, int]:
    """Of values, taken, rescaled and matrices."""
    shape, rows, regions = cell_layout(part), _rows(part)[1], 4 * len(part.tip_codes) - 2
    each = rows * shape.width, rows * shape.exponents, regions, regions * shape.matrix
    return tuple(shape.blocks * entries for entries in each)  # type: ignore[return-value]


def down_arrays(part: Part, q: np.ndarray) -> DownArrays:
    """Memory of its way down."""
    shape, (_, rows), n_nodes = cell_layout(part), _rows(part), 2 * len(part.tip_codes) - 1
    m, k = int(part.process.max()) + 1, int(part.length_class.max()) + 1
    return DownArrays(
        q=q,
        first=np.empty(rows, np.int32),
        left_order=np.empty(rows, np.int32),
        left_sibling=np.empty(rows, np.int32),
        right_order=np.empty(rows, np.int32),
        right_sibling=np.empty(rows, np.int32),
        sorted_by=np.full(2 * n_nodes, -1, np.int64),
        lengths=np.zeros((k, n_nodes)),
        rates=np.zeros(shape.categories),
        weights=np.zeros(shape.categories),
        root_frequencies=np.zeros((m, shape.states)),
        invariant=np.zeros(shape.states + 1),
        rate_matrix=np.zeros((m, 16 if shape.states == 4 else shape.matrix)),
    )
