"""The cells of chains as trees of forests on GPUs: those of both samplers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.chain_state import LEFT, PARENT, RIGHT
from phloem.pruning.interface import Problem

if TYPE_CHECKING:
    from phloem.pruning.gpu.forest import GpuForest

FIELDS = (
    "weights", "process", "invariant", "invariant_frequencies", "frequencies", "values", "right", "left",
    "generator",
)  # fmt: skip


def layouts_of(parts: Sequence[Part], own: range | None = None) -> list[list[int]]:
    """Numbers of the cells that share a forest, those of one number of states and of categories; own: among
    these, all by default."""
    found: dict[tuple, list[int]] = {}
    for i in range(len(parts)) if own is None else own:
        part = parts[i]
        found.setdefault((part.state_sets.shape[1], len(part.process), part.repeats), []).append(i)
    return list(found.values())


def device_fields(forests: Sequence[GpuForest], layouts: Sequence[Sequence[int]]) -> np.ndarray:
    """(L, 13) int64 of every cell: where the device wants its model (run_device.write_model), and which tree
    of which forest it is (run_device.place_of). layouts: the cells of every forest."""
    fields = np.zeros((sum(map(len, layouts)), 13), np.int64)
    for i, (own, forest) in enumerate(zip(layouts, forests)):
        assert len(forest.numbers.blocks) == len(FIELDS)
        for number, cell in enumerate(own):
            fields[cell, :9] = forest.numbers.blocks[:, 0]
            fields[cell, 9:] = forest.sizes.width, i, number, len(own)
    return fields


def forest_of(
    parts: Sequence[Part], trees: Sequence[tuple[np.ndarray, ...]], beside: int,
    precision: str = "float64",
) -> GpuForest:  # fmt: skip
    """Chains over cells of one layout, all cells of a chain side by side. trees: of every chain (N,) nodes
    from the tips up, left and right children. beside: forests that the GPU works on at the same time.
    precision: of messages and transition matrices."""
    from phloem.pruning.gpu.forest import GpuForest

    n_tips, numbers = len(parts[0].tip_codes), []
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for order, *both in trees:
        number = _ordered(order, n_tips)
        node = np.empty_like(number)
        node[number] = np.arange(len(number))
        numbers.append(node)
        for side, children in zip(sides, both):
            side.append(number[children[node[n_tips:]]])
    left, right, each = np.stack(sides[0]), np.stack(sides[1]), np.repeat(np.arange(len(trees)), len(parts))
    problems = [replace(_problem(part, left, right), precision=precision) for part in parts]
    forest = GpuForest(
        problems * len(left), left[each], right[each],
        n_sets=max(int(part.length_class.max()) for part in parts) + 1,
        n_processes=max(int(part.process.max()) for part in parts) + 1,
        lazy=True, beside=beside,
    )  # fmt: skip
    _rename(forest, np.stack(numbers)[each])
    return forest


def _ordered(order: np.ndarray, n_tips: int) -> np.ndarray:
    """(N,) new number of every node: tips as they are, children below parents."""
    number = np.arange(len(order))
    inner = order[order >= n_tips]
    number[inner] = np.arange(n_tips, len(order))
    return number


def _problem(part: Part, left: np.ndarray, right: np.ndarray) -> Problem:
    return Problem(
        tip_codes=np.ascontiguousarray(part.tip_codes),
        state_sets=np.asarray(part.state_sets, bool),
        pattern_weights=np.asarray(part.weights, np.float64),
        ascertained=np.asarray(part.unobservable, bool),
        left=left[0].astype(np.int32),
        right=right[0].astype(np.int32),
        n_categories=len(part.process),
        repeats=part.repeats,
    )


def _rename(forest: GpuForest, names: np.ndarray) -> None:
    """Give every node of the forest's trees the number that the chains know it by. names: (H, N)."""
    trees, places = forest.chains.trees, forest.chains.places
    for h, name in enumerate(names):
        node, of = trees.node[:, h].copy(), places.of[h].copy()
        for column in (LEFT, RIGHT, PARENT):
            there = node[..., column] >= 0
            node[..., column][there] = name[node[..., column][there]]
        trees.node[:, h, name] = node
        places.of[h][:, name] = of
