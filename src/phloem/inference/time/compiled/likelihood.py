"""The likelihood of a dated tree: from numbers and branch lengths to the engine's cells, and its derivatives
the other way, by branch lengths and by the numbers of a substitution model, in one backward pass."""

from __future__ import annotations

import math
from typing import NamedTuple

from phloem.density.traits import FRESH, Lineage
from phloem.density.traits import SLOPES as TRAIT_SLOPES
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.model import leads, model_differs, set_model
from phloem.inference.mcmc.compiled.propose import mark_moved
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.time.ancestors.sequences import SLOPES as ANCESTORS_SLOPES
from phloem.inference.time.ancestors.sequences import TAKE, VALUE
from phloem.inference.time.compiled.ancestors import ask_ancestors
from phloem.inference.time.compiled.by_address import ANSWER, TRAIT
from phloem.inference.time.compiled.density import add_table_slopes, prior_of
from phloem.inference.time.compiled.model_slopes import add_model_slopes
from phloem.inference.time.compiled.working import working_of
from phloem.inference.time.records import (
    CALLER,
    EVERYTHING,
    LAST_LIKELIHOOD,
    LAST_PRIOR,
    LAST_WORKING,
    OF_LIKELIHOOD,
    OF_PRIOR,
    OF_WORKING,
    OTHER_MODEL,
    PARAMETERS,
    PROPOSED,
    REORDERED,
    SLOPES,
    TAKEN,
    UNDEFINED,
)
from phloem.pruning.cpu.cell import settle_cell
from phloem.pruning.cpu.cell_loops import evaluate_cell, gradient_cell
from phloem.pruning.cpu.cell_records import D_LENGTHS, SLOT, ProposedTree
from phloem.pruning.cpu.storage import float64_at, int64_at

log_trait, answer = TRAIT.call, ANSWER.call
SAME, WRITTEN, BY_CALLER = range(3)  # what is to be done about a proposal's model


@uncounted
def set_engine_numbers(data, values, engine):
    """The substitution model's numbers (e,) from the chain's: shares of rates up to a factor."""
    for i in range(engine.shape[0]):
        k = data.model_from[i]
        engine[i] = values[k] if k >= 0 else 1.0


@uncounted
def mark_topology(data, state, scratch):
    """Mark what a proposed topology changed in scratch.moved; returns whether it changed anything."""
    old, new, changed = state.slot[0], 1 - state.slot[0], False
    before, left, right = (state.left[old], state.right[old]), state.left[new], state.right[new]
    keys, new_keys, moved = scratch.keys, scratch.new_keys, scratch.moved
    mark_moved(data.n_tips, before, left, right, state.order[new], keys, new_keys, moved)
    for x in range(data.n_tips, moved.shape[0]):
        changed = changed or moved[x] != 0
    return changed


@uncounted
def propose_model(data, state, scratch, everything):
    """Write the models of the proposal into the cells' spare slots where they are others, or everything is
    asked for. Returns SAME, WRITTEN, or BY_CALLER: one is another that only Python can make."""
    old, new, found = state.slot[0], 1 - state.slot[0], SAME
    set_engine_numbers(data, state.values[old], scratch.engine[0])
    set_engine_numbers(data, state.values[new], scratch.engine[1])
    for part in range(data.recipes.rows.shape[0]):  # of those that other processes have alone, too
        differs = model_differs(data.recipes, part, scratch.engine[0], scratch.engine[1])
        if data.recipes.rows[part, KIND] != COMPILED:
            found = BY_CALLER if differs else found
        elif differs or everything:
            found = max(found, WRITTEN)
    for cell in range(data.part_of.shape[0]):
        part = data.part_of[cell]
        if not leads(data.part_of, cell):
            continue
        if data.recipes.rows[part, KIND] == COMPILED and is_other(data, scratch, part, everything):
            set_model(
                data.recipes, part, scratch.engine[1], data.numbers[cell], data.addresses[cell], scratch
            )
    return found


@uncounted
def is_other(data, scratch, part, everything):
    """Whether a part's model was written for the proposal; scratch.engine has the numbers of both."""
    if everything and data.recipes.rows[part, KIND] == COMPILED:
        return True
    return model_differs(data.recipes, part, scratch.engine[0], scratch.engine[1])


@uncounted
def evaluate(data, state, scratch, model_changed, reordered, everything):
    """Log-likelihoods of the proposal's slot by the cells here, into scratch.of_cells; these compute what
    differs from the accepted state. model_changed: whether some part's did; scratch.engine then has the
    numbers of both."""
    old, new = state.slot[0], 1 - state.slot[0]
    tree = ProposedTree(
        state.left[new], state.right[new], state.parent[new], state.order[new], reordered, scratch.moved,
        state.lengths[new], state.lengths[old],
    )  # fmt: skip
    for cell in range(data.numbers.shape[0]):
        own, at = data.numbers[cell], data.addresses[cell]
        changed = model_changed and is_other(data, scratch, data.part_of[cell], everything)
        value = evaluate_cell(own, at, tree, changed, everything, scratch.cell)
        scratch.of_cells[data.first_cell + cell, 0] = value


@uncounted
def slopes(data, state, scratch, proposed, parameters):
    """Log-likelihoods by the cells here, and their derivatives by branch lengths and, with parameters, by the
    model's numbers, else 0, into scratch.of_cells. proposed: of the proposal that was evaluated last (1), or
    of the accepted state, which the proposal's slot holds a copy of (0)."""
    old, new, n = state.slot[0], 1 - state.slot[0], state.parent.shape[1]
    tree = ProposedTree(
        state.left[new], state.right[new], state.parent[new], state.order[new], 0, scratch.moved,
        state.lengths[new], state.lengths[old],
    )  # fmt: skip
    for cell in range(data.numbers.shape[0]):
        own, at, down = data.numbers[cell], data.addresses[cell], data.downs[cell]
        found = scratch.of_cells[data.first_cell + cell]
        found[0] = gradient_cell(own, at, down, tree, proposed, parameters, scratch.cell, scratch.down)
        by_class = float64_at(down[D_LENGTHS], (1, n))
        for x in range(n):
            found[1 + x] = by_class[0, x]
        for i in range(1 + n, found.shape[0]):
            found[i] = 0.0
        if parameters:
            add_model_slopes(data, data.part_of[cell], own, at, down, scratch, proposed, found[1 + n :])


@uncounted
def add_cells(data, scratch, with_slopes):
    """The log-likelihood from scratch.of_cells; with slopes its derivatives by branch lengths into
    scratch.by_length, of every clock, and by the model's numbers into scratch.by_engine. Cells are added in
    their order, whichever process has them."""
    of_cells, by_length, by_engine, total = scratch.of_cells, scratch.by_length, scratch.by_engine, 0.0
    n = by_length.shape[1]
    if with_slopes:
        by_length[:], by_engine[:] = 0.0, 0.0
    for cell in range(of_cells.shape[0]):
        total += of_cells[cell, 0]
        if with_slopes:
            for x in range(n):
                by_length[data.clock_of[cell], x] += of_cells[cell, 1 + x]
            for i in range(by_engine.shape[0]):
                by_engine[i] += of_cells[cell, 1 + n + i]
    return total


class Wanted(NamedTuple):
    """What assess is asked for. likelihood: whether it changed, or its slopes are wanted; of the proposal
    (proposed), else of the accepted state, of which the proposal's slot is a copy. model_changed, reordered,
    everything: as cell_records.ProposedTree and cell_loops have them. slopes: derivatives of all that
    the Hamiltonian move `which` changes; parameters: of the likelihood by the model's numbers, too. answered:
    the likelihood is in scratch.last, and its derivatives where slopes would write them. whole: not a step
    between two of the likelihood's."""

    likelihood: bool
    proposed: bool
    model_changed: bool
    reordered: bool
    everything: bool
    slopes: bool
    which: int
    parameters: bool
    answered: bool
    whole: bool


@uncounted
def assess(data, state, scratch, wanted):
    """Log prior and log-likelihood of the proposal's slot, each times its power, -inf outside; without it in
    scratch.last. With slopes also derivatives: by heights and numbers of the priors in scratch.by_height and
    by_value, of the likelihood as slopes leaves them, times their powers. Where the caller is to find the
    likelihood, scratch.asked says what of it, and nan is returned, which is never a value: what is no number,
    or overflows, is -inf, and scratch.pending[UNDEFINED] then says so."""
    new, likelihood = 1 - state.slot[0], state.log_likelihood[0]
    prior = prior_of(data, state, scratch, new)
    if data.trait_density != 0 and wanted.whole and prior > -math.inf:
        prior += trait_of(data, state, scratch, wanted)
        scratch.last[LAST_PRIOR] = prior
    scratch.pending[UNDEFINED] = not prior < math.inf
    if scratch.pending[UNDEFINED] != 0.0:
        scratch.last[LAST_PRIOR] = prior
    if prior > -math.inf:
        if wanted.slopes:
            add_table_slopes(data.priors, data.blocks, state.values[new], wanted.which, scratch.by_value, 1.0)
            set_engine_numbers(data, state.values[new], scratch.engine[1])
            weigh_prior_slopes(scratch)
        if wanted.likelihood and data.use_data != 0:
            if wanted.answered and data.on_device != 0:
                likelihood = add_cells(data, scratch, wanted.slopes)
            elif data.ancestors != 0:
                likelihood = sampled_ancestors(data, state, scratch, wanted)
            elif data.on_device != 0:
                likelihood = ask(data, state, scratch, wanted)
                if likelihood != likelihood:
                    return math.nan
            else:
                if not wanted.answered and ask_cells(data, state, scratch, wanted):
                    return math.nan
                likelihood = add_cells(data, scratch, wanted.slopes)
            if wanted.slopes:
                weigh_slopes(scratch)
            scratch.pending[UNDEFINED] = not prior < math.inf or not likelihood < math.inf
        working = working_of(data, state, scratch, new, wanted.which, wanted.slopes)
        scratch.last[LAST_WORKING] = working
        prior = scratch.power[OF_PRIOR] * prior + scratch.power[OF_LIKELIHOOD] * likelihood
        if scratch.power[OF_WORKING] > 0.0:
            prior += scratch.power[OF_WORKING] * working
    scratch.last[LAST_LIKELIHOOD] = likelihood
    return prior if prior < math.inf else -math.inf  # what overflows, or is no number, is no state to be in


@uncounted
def ask_cells(data, state, scratch, wanted):
    """What is wanted, by the cells here, into scratch.of_cells; returns whether others are elsewhere, which
    the caller is to ask for as scratch.asked says."""
    if wanted.proposed:
        evaluate(data, state, scratch, wanted.model_changed, int(wanted.reordered), wanted.everything)
    if wanted.slopes:
        slopes(data, state, scratch, int(wanted.proposed), wanted.parameters)
    scratch.asked[OTHER_MODEL], scratch.asked[SLOPES] = wanted.model_changed, wanted.slopes
    return data.numbers.shape[0] < scratch.of_cells.shape[0]


@uncounted
def trait_of(data, state, scratch, wanted):
    """Of the trait on the proposal: prior of its routes and likelihood; its slopes where they are wanted."""
    old, new = state.slot[0], 1 - state.slot[0]
    before = Lineage(
        state.parent[old], state.left[old], state.right[old], state.order[old], state.heights[old]
    )
    now = Lineage(state.parent[new], state.left[new], state.right[new], state.order[new], state.heights[new])
    asked = (FRESH if wanted.everything else 0) | (TRAIT_SLOPES if wanted.slopes else 0)
    own = (data.trait, before, now, state.values[old], state.values[new], scratch.trait, new, asked)
    return log_trait(data.trait_density, own)


@uncounted
def sampled_ancestors(data, state, scratch, wanted):
    """The likelihood together with sequences of ancestors; derivatives as slopes has them."""
    value, changed = state.log_likelihood[0], int(wanted.model_changed)
    if wanted.proposed:
        flags = (changed, int(wanted.reordered), int(wanted.everything), 0, 0)
        value = ask_ancestors(data, state, scratch, VALUE, flags, 1 - state.slot[0])
    if wanted.slopes:
        flags = (changed, 0, 0, int(wanted.proposed), int(wanted.parameters))
        ask_ancestors(data, state, scratch, ANCESTORS_SLOPES, flags, 1 - state.slot[0])
        for i in range(scratch.by_engine.shape[0]):
            scratch.by_engine[i] = 0.0
        if wanted.parameters:
            own = data.numbers[0], data.addresses[0], data.downs[0]
            proposed = int(wanted.proposed)
            add_model_slopes(data, 0, own[0], own[1], own[2], scratch, proposed, scratch.by_engine)
    return value


@uncounted
def weigh_slopes(scratch):
    """Derivatives of the likelihood to those of its power."""
    for c in range(scratch.by_length.shape[0]):
        for x in range(scratch.by_length.shape[1]):
            scratch.by_length[c, x] *= scratch.power[OF_LIKELIHOOD]
    for i in range(scratch.by_engine.shape[0]):
        scratch.by_engine[i] *= scratch.power[OF_LIKELIHOOD]


@uncounted
def weigh_prior_slopes(scratch):
    """Derivatives of the prior to those of its power; those of a trait are weighed where they are added."""
    power = scratch.power[OF_PRIOR]
    for i in range(scratch.by_value.shape[0]):
        scratch.by_value[i] *= power
    for x in range(scratch.by_height.shape[0]):
        scratch.by_height[x] *= power
        for c in range(scratch.by_deviation.shape[0]):
            scratch.by_deviation[c, x] *= power


@uncounted
def ask(data, state, scratch, wanted):
    """Say what of the likelihood is wanted; returns it where the device can be asked from here, else nan, and
    the caller is to write it into scratch.of_cells."""
    asked = scratch.asked
    asked[PROPOSED], asked[OTHER_MODEL] = wanted.proposed, wanted.model_changed
    asked[REORDERED], asked[EVERYTHING] = wanted.reordered, wanted.everything
    asked[SLOPES], asked[PARAMETERS] = wanted.slopes, wanted.parameters
    by_caller, others = False, scratch.others
    for cell in range(others.shape[0] if wanted.proposed else 0):
        part = data.part_of[cell]
        others[cell] = wanted.model_changed and is_other(data, scratch, part, wanted.everything)
        by_caller = by_caller or (others[cell] != 0 and data.recipes.rows[part, KIND] != COMPILED)
    if data.on_device == CALLER or wanted.everything or wanted.slopes or by_caller:
        return math.nan
    own, tree = (data.numbers, data.addresses, scratch.fields, others), (state.left, state.right)
    of_cells = scratch.of_cells
    return answer(data.on_device, (scratch.there, asked, of_cells, tree, state.lengths, state.slot, own))


@uncounted
def settle(data, state, scratch, model_changed):
    """Take the proposal of every cell over; or tell the caller to do that, before anything else is asked.
    With ancestors these are drawn now, and scratch.last has the log-likelihood with them."""
    if data.ancestors != 0:
        flags = (int(model_changed), 0, 0, 0, 0)
        now = 1 - state.slot[0]
        scratch.last[LAST_LIKELIHOOD] = ask_ancestors(data, state, scratch, TAKE, flags, now)
    elif data.on_device != 0:
        scratch.asked[TAKEN] = 1
        for cell in range(scratch.others.shape[0] if model_changed else 0):
            slot = int64_at(data.addresses[cell][SLOT], (2,))
            other = scratch.others[cell] != 0 and leads(data.part_of, cell)
            slot[0] = 1 - slot[0] if other else slot[0]
    else:
        for cell in range(data.numbers.shape[0]):
            settle_cell(data.numbers[cell], data.addresses[cell])
