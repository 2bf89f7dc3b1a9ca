"""What threads do with the cells of a forest: each takes the next one, until there is none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.pruning.cpu.cell import evaluate_cell, settle_cell
from phloem.pruning.cpu.cell_down import gradient_of
from phloem.pruning.cpu.cell_records import ForestTrees, ProposedTree
from phloem.pruning.cpu.schedule import next_task


class Work(NamedTuple):
    """What threads do. cells: (n,) chain · L + part, in the order in which they are taken; numbers,
    addresses, downs: the tables, (H, L, ·); trees, and old_lengths (H, G, N); everything (H,), other_models
    (H, L), moved (N,): as cell.propose_cell has them; settle: evaluate, and take the proposals over at once;
    which: whose gradient, see cell_down.gradient_cell; parameters: also by the models' numbers. values:
    (H, L), out."""

    cells: np.ndarray
    numbers: np.ndarray
    addresses: np.ndarray
    downs: np.ndarray
    trees: ForestTrees
    old_lengths: np.ndarray
    everything: np.ndarray
    other_models: np.ndarray
    moved: np.ndarray
    settle: bool
    which: int
    parameters: bool
    values: np.ndarray


@merged
def _tree(work, h):
    trees = work.trees
    return ProposedTree(
        trees.left[h], trees.right[h], trees.parent[h], trees.order[h], 0, work.moved, trees.lengths[h],
        work.old_lengths[h],
    )  # fmt: skip


@merged
def _evaluate(work, h, i, tree, kind, scratch):
    own, at = work.numbers[h, i], work.addresses[h, i]
    everything, other = work.everything[h] != 0, work.other_models[h, i] != 0
    work.values[h, i] = evaluate_cell(own, at, tree, other, everything, kind, scratch)
    if work.settle:
        settle_cell(own, at)


@uncounted
def evaluate_cells(counter, work, kind, scratch):
    """What one thread does: it takes the next cell and evaluates it. kind: cell.FOUR_STATES or ANY_STATES."""
    while True:
        task = next_task(counter)
        if task >= len(work.cells):
            break
        h, i = work.cells[task] // work.numbers.shape[1], work.cells[task] % work.numbers.shape[1]
        _evaluate(work, h, i, _tree(work, h), kind, scratch)


@uncounted
def gradient_cells(counter, work, kind, scratch, room):
    """Its gradient, after an evaluation if that is to be settled, while the messages are in the cache."""
    while True:
        task = next_task(counter)
        if task >= len(work.cells):
            break
        h, i = work.cells[task] // work.numbers.shape[1], work.cells[task] % work.numbers.shape[1]
        own, at, tree = work.numbers[h, i], work.addresses[h, i], _tree(work, h)
        if work.settle:
            _evaluate(work, h, i, tree, kind, scratch)
        work.values[h, i] = gradient_of(
            own, at, work.downs[h, i], tree, work.which, work.parameters, kind, scratch, room
        )
