"""What loops ask of cells, and what threads do with the cells of a forest.

Loops find what they call by an address in the cell's row of numbers: so they are compiled once, whatever
cells they will meet, and of the code for four states and for any number of them only what a forest needs is
compiled, once for all loops. Forest.provide writes the addresses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types

from phloem.hardware.numba_compile import ByAddress, merged, uncounted
from phloem.pruning.cpu.cell import ANY_STATES, FOUR_STATES, evaluate, propose, settle_cell
from phloem.pruning.cpu.cell_down import gradient
from phloem.pruning.cpu.cell_neighbours import propose_along
from phloem.pruning.cpu.cell_records import CellNumbers, CellScratch, DownScratch, ForestTrees, ProposedTree
from phloem.pruning.cpu.neighbour_matrices import set_neighbours
from phloem.pruning.cpu.records import EigenScratch, Scratch
from phloem.pruning.cpu.schedule import next_task

# columns of the table of numbers behind those of CellNumbers
PROPOSE, EVALUATE, GRADIENT, CORRELATE = range(len(CellNumbers._fields), len(CellNumbers._fields) + 4)

_I, _F, _II, _FF = types.int64[::1], types.float64[::1], types.int64[:, ::1], types.float64[:, ::1]
_BOOL = types.boolean


def _record(kind, *fields):
    return types.NamedTuple(fields, kind)


_TREE = _record(ProposedTree, _I, _I, _I, _I, types.int64, types.uint8[::1], _FF, _FF)
_KERNEL = _record(Scratch, _F, _F, _F, _F, _F, _I, _F, _F)
_SCRATCH = _record(CellScratch, _KERNEL, _F, _I, _F, _F, _F, _I, _I, _II, _BOOL[::1], _F, _F)
_EIGEN = _record(EigenScratch, *[_F] * 8)
_DOWN = _record(DownScratch, _I, _I, _FF, _II, _I, _F, _EIGEN)

_value = ByAddress(_I, _I, _TREE, _BOOL, _BOOL, _SCRATCH)
_slopes = ByAddress(_I, _I, _I, _TREE, types.int64, _BOOL, _SCRATCH, _DOWN)
_matrices = ByAddress(_I, _I, types.float64, _F)
_call_value, _call_slopes, _call_matrices = _value.call, _slopes.call, _matrices.call


@uncounted
def propose_four(numbers, addresses, tree, model_changed, everything, scratch):
    return propose(numbers, addresses, tree, model_changed, everything, FOUR_STATES, scratch)


@uncounted
def propose_any(numbers, addresses, tree, model_changed, everything, scratch):
    return propose(numbers, addresses, tree, model_changed, everything, ANY_STATES, scratch)


@uncounted
def propose_along_four(numbers, addresses, tree, model_changed, everything, scratch):
    return propose_along(numbers, addresses, tree, model_changed, everything, FOUR_STATES, scratch)


@uncounted
def propose_along_any(numbers, addresses, tree, model_changed, everything, scratch):
    return propose_along(numbers, addresses, tree, model_changed, everything, ANY_STATES, scratch)


@uncounted
def evaluate_four(numbers, addresses, tree, model_changed, everything, scratch):
    return evaluate(numbers, addresses, tree, model_changed, everything, FOUR_STATES, scratch)


@uncounted
def evaluate_any(numbers, addresses, tree, model_changed, everything, scratch):
    return evaluate(numbers, addresses, tree, model_changed, everything, ANY_STATES, scratch)


@uncounted
def gradient_four(numbers, addresses, down, tree, which, parameters, scratch, room):
    return gradient(numbers, addresses, down, tree, which, parameters, FOUR_STATES, scratch, room)


@uncounted
def gradient_any(numbers, addresses, down, tree, which, parameters, scratch, room):
    return gradient(numbers, addresses, down, tree, which, parameters, ANY_STATES, scratch, room)


_MEANT = {
    PROPOSE: (_value, propose_four, propose_any),
    EVALUATE: (_value, evaluate_four, evaluate_any),
    GRADIENT: (_slopes, gradient_four, gradient_any),
}


_MEANT_ALONG = {
    PROPOSE: (_value, propose_along_four, propose_along_any),
    CORRELATE: (_matrices, set_neighbours, set_neighbours),
}


def address_of_code(column: int, four: bool, along: bool = False) -> int:
    """Of what a column of the table of numbers stands for, for cells of four states or of any others; along:
    whose sites depend on their neighbours. KeyError for what such cells do not know."""
    kind, for_four, for_any = (_MEANT_ALONG if along else _MEANT)[column]
    return kind.address(for_four if four else for_any)


@merged
def propose_cell(numbers, addresses, tree, model_changed, everything, scratch):
    """Log-likelihood of a cell at a proposed tree, which hangs from tip 0, recomputing only what differs from
    its accepted state.

    numbers, addresses: the cell's rows of the tables. model_changed: whether the proposal's slot of the model
    holds other numbers than the accepted one. everything: trust no cache (a start, a checkpoint).
    """
    return _call_value(numbers[PROPOSE], (numbers, addresses, tree, model_changed, everything, scratch))


@merged
def correlate_cell(numbers, addresses, rho, room):
    """Write what a correlation of neighbours' rates says into the slot of a cell's model that is not in use.
    room: CellScratch.along."""
    return _call_matrices(numbers[CORRELATE], (numbers, addresses, rho, room))


@merged
def evaluate_cell(numbers, addresses, tree, model_changed, everything, scratch):
    """propose_cell for trees of any form; it keeps the log-likelihoods of the patterns."""
    return _call_value(numbers[EVALUATE], (numbers, addresses, tree, model_changed, everything, scratch))


@merged
def gradient_cell(numbers, addresses, down, tree, which, parameters, scratch, room):
    """Log-likelihood of a cell's state, and its derivatives into the regions of cell_records.DownArrays.

    numbers, addresses, down: the cell's rows of the tables. which: 0, the accepted state, whose tree and
    lengths `tree` holds (not between a proposal and its settling: both write the same spare regions); 1, the
    proposal just evaluated. parameters: also by the model's numbers.
    """
    return _call_slopes(numbers[GRADIENT], (numbers, addresses, down, tree, which, parameters, scratch, room))


class Work(NamedTuple):
    """What threads do. cells: (n,) chain · L + part, in the order in which they are taken; numbers,
    addresses, downs: the tables, (H, L, ·); trees, and old_lengths (H, G, N); everything (H,), other_models
    (H, L), moved (N,): as propose_cell has them; settle: evaluate, and take the proposals over at once;
    which: whose gradient, see gradient_cell; parameters: also by the models' numbers. values:
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
def _evaluate(work, h, i, tree, scratch):
    own, at = work.numbers[h, i], work.addresses[h, i]
    everything, other = work.everything[h] != 0, work.other_models[h, i] != 0
    work.values[h, i] = evaluate_cell(own, at, tree, other, everything, scratch)
    if work.settle:
        settle_cell(own, at)


@uncounted
def evaluate_cells(counter, work, scratch):
    """What one thread does: it takes the next cell and evaluates it."""
    while True:
        task = next_task(counter)
        if task >= len(work.cells):
            break
        h, i = work.cells[task] // work.numbers.shape[1], work.cells[task] % work.numbers.shape[1]
        _evaluate(work, h, i, _tree(work, h), scratch)


@uncounted
def gradient_cells(counter, work, scratch, room):
    """Its gradient, after an evaluation if that is to be settled, while the messages are in the cache."""
    while True:
        task = next_task(counter)
        if task >= len(work.cells):
            break
        h, i = work.cells[task] // work.numbers.shape[1], work.cells[task] % work.numbers.shape[1]
        own, at, tree = work.numbers[h, i], work.addresses[h, i], _tree(work, h)
        if work.settle:
            _evaluate(work, h, i, tree, scratch)
        work.values[h, i] = gradient_cell(
            own, at, work.downs[h, i], tree, work.which, work.parameters, scratch, room
        )
