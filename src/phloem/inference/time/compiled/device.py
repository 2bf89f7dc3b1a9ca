"""What a chain over dated trees asks of its likelihood on a device, written as changes of a forest of one."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.run_device import write_model
from phloem.inference.time.records import (
    EVERYTHING,
    LAST_LIKELIHOOD,
    OTHER_MODEL,
    REORDERED,
    TAKEN,
)
from phloem.pruning.cpu.cell_records import SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.chain_evaluation import evaluate
from phloem.pruning.cpu.chain_state import N_BRANCHES, N_EDITS
from phloem.pruning.cpu.chain_tables import chains_at, change_at, device_at, trees_at
from phloem.pruning.cpu.chain_versions import READY, settle_version
from phloem.pruning.cpu.storage import int64_at


@uncounted
def settle_asked(row, asked):
    """Take what was proposed last over, or forget it, as the chain has decided since. row: of the forest
    (chain_tables.py)."""
    settle_version(chains_at(row), change_at(row), 0, asked[TAKEN])
    asked[TAKEN] = 0


@uncounted
def evaluate_asked(row, asked, last, tree, lengths, slot, model):
    """The log-likelihood of the proposal, into last[LAST_LIKELIHOOD]. tree: left, right (2, N); lengths (2,
    1, N); slot of the accepted state. model: numbers and addresses of the cell that has the proposal's in the
    slot that is not in use, and where the device wants them (run_device.write_model), -1 where the caller has
    set the model. READY, or why not."""
    old, new, change = slot[0], 1 - slot[0], change_at(row)
    left, right = tree
    for x in range(left.shape[1]):  # left and right, too, stay as the chain has them, as on a resume
        other = left[new, x] != left[old, x] or right[new, x] != right[old, x]
        if other and asked[REORDERED] != 0 and asked[EVERYTHING] == 0:
            n = change.counts[0, N_EDITS]
            change.edits[0, n, 0], change.edits[0, n, 1], change.edits[0, n, 2] = (
                x,
                left[new, x],
                right[new, x],
            )
            change.counts[0, N_EDITS] = n + 1
    for x in range(left.shape[1] - 1):
        if asked[EVERYTHING] != 0 or lengths[old, 0, x] != lengths[new, 0, x]:
            change.branches[0, change.counts[0, N_BRANCHES]] = x
            change.counts[0, N_BRANCHES] += 1
            change.lengths[0, 0, x] = lengths[new, 0, x]
    if asked[OTHER_MODEL] != 0 and model[2][0] >= 0:
        write_model(model[0], model[1], model[2], change, 0)
        write_generators(model[0], model[1], model[2], change.numbers[0])
    status = evaluate(chains_at(row), change, device_at(row))
    note_value(row, last)
    return status


@uncounted
def answer_there(row, asked, last, tree, lengths, slot, model):
    """What was decided, then the log-likelihood of the proposal, nan where it must be asked for again, by
    Python: nothing was captured for a list of this size, arrays must grow, or it is no number. Arguments of
    evaluate_asked."""
    settle_asked(row, asked)
    if evaluate_asked(row, asked, last, tree, lengths, slot, model) != READY:
        return math.nan
    return last[LAST_LIKELIHOOD]


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
                    row[i] += by * (model.right[m, i, k] if n.padded == 4 else model.right[m, k, i])


@uncounted
def note_value(row, last):
    """The forest's value of the proposal, or where nothing is pending of the accepted state."""
    trees = trees_at(row)
    version = 1 - trees.accepted[0] if trees.pending[0] != 0 else trees.accepted[0]
    last[LAST_LIKELIHOOD] = trees.value[version, 0]


@uncounted
def note_model(addresses, asked):
    """Say in the cell which of its models the slopes are of (likelihood.add_model_slopes)."""
    slot = int64_at(addresses[SLOT], (2,))
    slot[1] = 1 - slot[0] if asked[OTHER_MODEL] != 0 else slot[0]
