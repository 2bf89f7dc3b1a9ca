"""What a chain over dated trees asks of its likelihood on a device, written as changes of forests whose trees
are the parts of the data."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.run_device import (
    cell_of,
    evaluate_parts,
    settle_parts,
    value_of,
    write_model,
)
from phloem.inference.time.records import (
    EVERYTHING,
    LAST_LIKELIHOOD,
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
    (chain_tables.py); fields: of the parts (run_device.cell_of)."""
    settle_parts(rows, fields, 0, asked[TAKEN])
    asked[TAKEN] = 0


@uncounted
def evaluate_asked(rows, asked, last, tree, lengths, slot, model):
    """The log-likelihood of the proposal, into last[LAST_LIKELIHOOD], which has that of the accepted state.
    tree: left, right (2, N); lengths (2, K, N); slot of the accepted state. model: numbers and addresses of
    the cells that have the proposal's in the slots that are not in use, fields, whose first is -1 where the
    caller sets the part's model, and whether a part's is another. READY, or why not."""
    fields = model[2]
    for part in range(len(fields)):
        write_part(rows, part, asked, tree, lengths, slot, model)
    status = evaluate_parts(rows)
    note_value(rows, fields, last)
    return status


@uncounted
def write_part(rows, part, asked, tree, lengths, slot, model):
    """What the proposal changes for one part; arguments of evaluate_asked."""
    numbers, addresses, fields, others = model
    i, k = cell_of(fields, part, 0)
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
    own = cell_numbers(numbers[part]).first_lengths
    for x in range(left.shape[1] - 1):
        if asked[EVERYTHING] != 0 or lengths[old, own, x] != lengths[new, own, x]:
            change.branches[k, change.counts[k, N_BRANCHES]] = x
            change.counts[k, N_BRANCHES] += 1
            change.lengths[k, 0, x] = lengths[new, own, x]
    if asked[OTHER_MODEL] != 0 and others[part] != 0 and fields[part, 0] >= 0:
        write_model(numbers[part], addresses[part], fields[part], change, k)
        write_generators(numbers[part], addresses[part], fields[part], change.numbers[k])


@uncounted
def answer_there(rows, asked, last, tree, lengths, slot, model):
    """What was decided, then the log-likelihood of the proposal, nan where it must be asked for again, by
    Python: nothing was captured for a list of this size, arrays must grow, or it is no number. Arguments of
    evaluate_asked."""
    settle_asked(rows, model[2], asked)
    if evaluate_asked(rows, asked, last, tree, lengths, slot, model) != READY:
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
                    row[i] += by * (model.right[m, i, k] if n.states == 4 else model.right[m, k, i])


@uncounted
def note_value(rows, fields, last):
    """The forests' value of the proposal; the accepted state's stays where no part's tree changed."""
    last[LAST_LIKELIHOOD] = value_of(rows, fields, 0, last[LAST_LIKELIHOOD])


@uncounted
def note_model(addresses, asked, other):
    """Say in a part's cell which of its models the slopes are of (model_slopes.add_model_slopes). other: that
    the proposal's is another than the accepted one."""
    slot = int64_at(addresses[SLOT], (2,))
    slot[1] = 1 - slot[0] if asked[OTHER_MODEL] != 0 and other != 0 else slot[0]
