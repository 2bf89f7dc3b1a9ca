"""What a chain over dated trees asks of its likelihood on a device, written as changes of forests whose trees
are the cells of the data."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.run_device import (
    cell_value,
    evaluate_cells,
    place_of,
    settle_cells,
    write_model,
)
from phloem.inference.time.records import (
    EVERYTHING,
    OTHER_MODEL,
    REORDERED,
    TAKEN,
)
from phloem.pruning.cpu.cell_records import SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.chain_state import N_BRANCHES, N_EDITS
from phloem.pruning.cpu.chain_tables import change_at
from phloem.pruning.cpu.chain_versions import READY
from phloem.pruning.cpu.storage import int64_at


@uncounted
def settle_asked(rows, fields, asked):
    """Take what was proposed last over, or forget it, as the chain has decided since. rows: of the forests
    (chain_tables.py); fields: of the cells (run_device.place_of)."""
    settle_cells(rows, fields, 0, asked[TAKEN])
    asked[TAKEN] = 0


@uncounted
def evaluate_asked(rows, asked, of_cells, tree, lengths, slot, model):
    """The log-likelihoods of the proposal by cells, (L, ·), into the first column of of_cells. tree: left,
    right (2, N); lengths (2, K, N); slot of the accepted state. model: numbers and addresses of the cells
    that have the proposal's in the slots that are not in use, fields, whose first is -1 where the caller sets
    the cell's model, and whether a cell's is another. READY, or why not."""
    fields = model[2]
    for cell in range(len(fields)):
        write_cell(rows, cell, asked, tree, lengths, slot, model)
    status = evaluate_cells(rows)
    note_values(rows, fields, of_cells)
    return status


@uncounted
def write_cell(rows, cell, asked, tree, lengths, slot, model):
    """What the proposal changes for one cell; arguments of evaluate_asked."""
    numbers, addresses, fields, others = model
    i, k = place_of(fields, cell, 0)
    old, new, change = slot[0], 1 - slot[0], change_at(rows[i])
    left, right = tree
    if asked[REORDERED] != 0 and asked[EVERYTHING] == 0:
        for x in range(left.shape[1]):  # left and right, too, stay as the chain has them, as on a resume
            if left[new, x] != left[old, x] or right[new, x] != right[old, x]:
                n = change.counts[k, N_EDITS]
                change.edits[k, n, 0], change.edits[k, n, 1], change.edits[k, n, 2] = (
                    x,
                    left[new, x],
                    right[new, x],
                )
                change.counts[k, N_EDITS] = n + 1
    own = cell_numbers(numbers[cell]).first_lengths
    for x in range(left.shape[1] - 1):
        if asked[EVERYTHING] != 0 or lengths[old, own, x] != lengths[new, own, x]:
            change.branches[k, change.counts[k, N_BRANCHES]] = x
            change.counts[k, N_BRANCHES] += 1
            change.lengths[k, 0, x] = lengths[new, own, x]
    if asked[OTHER_MODEL] != 0 and others[cell] != 0 and fields[cell, 0] >= 0:
        write_model(numbers[cell], addresses[cell], fields[cell], change, k)
        write_generators(numbers[cell], addresses[cell], fields[cell], change.numbers[k])


@uncounted
def answer_there(rows, asked, of_cells, tree, lengths, slot, model):
    """What was decided, then the log-likelihood of the proposal, nan where it must be asked for again, by
    Python: nothing was captured for a list of this size, arrays must grow, or it is no number. Arguments of
    evaluate_asked; all cells are here."""
    settle_asked(rows, model[2], asked)
    if evaluate_asked(rows, asked, of_cells, tree, lengths, slot, model) != READY:
        return math.nan
    total = 0.0
    for cell in range(len(of_cells)):
        total += of_cells[cell, 0]
    return total


@uncounted
def write_generators(numbers, addresses, fields, words):
    """Qᵀ of every process, which only gradients ask for: from its eigensystem, as write_model has it."""
    n, w = cell_numbers(numbers), fields[9]
    model = cell_model(n, addresses, 1 - int64_at(addresses[SLOT], (2,))[0])
    for m in range(n.processes):
        for j in range(n.states):
            row = words[fields[8] + (m * w + j) * w : fields[8] + (m * w + j) * w + n.states]
            for i in range(n.states):
                row[i] = 0.0
            for k in range(n.states):
                by = model.left[m, k, j] * model.values[m, k]
                for i in range(n.states):
                    row[i] += by * (model.right[m, i, k] if n.states == 4 else model.right[m, k, i])


@uncounted
def note_values(rows, fields, of_cells):
    """The forests' values of the proposal, or of the accepted state where it changes nothing of a cell."""
    for cell in range(len(fields)):
        of_cells[cell, 0] = cell_value(rows, fields, cell, 0)


@uncounted
def note_model(addresses, asked, other):
    """Say in a cell which of its models the slopes are of (model_slopes.add_model_slopes). other: that the
    proposal's is another than the accepted one."""
    slot = int64_at(addresses[SLOT], (2,))
    slot[1] = 1 - slot[0] if asked[OTHER_MODEL] != 0 and other != 0 else slot[0]
