"""Sequences of ancestors at a run's start, and where they cannot be sampled."""

from __future__ import annotations

import numpy as np

from phloem.density import clocks
from phloem.errors import InputError
from phloem.inference.mcmc.recipes import Observations, recipes_of
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.time.ancestors.sequences import (
    Memory,
    masks_of,
    memory_of,
    packed,
    parsimonious,
)
from phloem.inference.time.records import TimeState
from phloem.inference.time.structure import TimeModel

SUMMED = {"ancestors": 0, "walk": 0, "joining": 0}
"""addresses, where ancestors are not sampled."""


def addresses(model: TimeModel) -> dict[str, int]:
    """Of the compiled code, by fields of TimeData."""
    from phloem.inference.time.ancestors.chain import answer
    from phloem.inference.time.compiled.by_address import ANCESTORS, JOINING, WALK

    found = SUMMED | {"ancestors": ANCESTORS.address(answer)}
    joining = model.tree_prior.joining
    if joining is not None and can_walk(model):
        from phloem.inference.time.ancestors.walk import walk

        found |= {"walk": WALK.address(walk), "joining": JOINING.address(joining)}
    return found


def can_walk(model: TimeModel) -> bool:
    """Whether changes of a few heights change the density where they are alone (walk.py)."""
    free = all(c.age is None and not c.together and not c.clock for c in model.clades)
    clock = model.clock in (clocks.STRICT, clocks.BY_CV, clocks.BY_LOG)
    return free and clock and model.trait is None and model.tree_prior.joining is not None


def ancestral_memory(
    observed: Observations, model: TimeModel, state: TimeState, stored: bool
) -> tuple[Memory, TimeState]:
    """Sequences of ancestors as the state has them, where it was stored, else as parsimony does; and the
    state whose arrays they are. InputError where they cannot be sampled."""
    require_ancestors(model.engine)
    masks, s = masks_of(observed), int(state.slot[0])
    rates = model.engine.site_model(0, model.engine.space.start()).rates
    ancestors, category = state.sequences, state.category
    if not stored:
        states = parsimonious(masks, state.left[s], state.right[s], state.order[s])
        ancestors, category = packed(states), np.full(masks.shape[1], int(np.argmax(rates)), np.uint8)
    memory = memory_of(masks, ancestors, category, len(rates))
    return memory, state._replace(sequences=memory.words[len(masks) :], category=memory.category)


def require_ancestors(engine: ChainModel) -> None:
    """InputError where sequences of ancestors cannot be sampled under a substitution model."""
    model, told = engine.site_model(0, engine.space.start()), ""
    if len(engine.parts) > 1:
        told = "one part, and there are several"
    elif engine.parts[0].model.datatype != "dna" or len(model.invariant_frequencies) != 4:
        told = "nucleotides"
    elif engine.unseen:
        told = "all columns, and +ASC leaves some unseen"
    elif model.invariant > 0.0:
        told = "sites that can change, without +I"
    elif len(model.processes) > 1 or (model.rates <= 0.0).any() or int(model.length_class.max()) > 0:
        told = "one process with rates above 0"
    elif model.processes[0].real_eigen is None or recipes_of(engine).rows[0, KIND] != COMPILED:
        told = "reversible models of one matrix"
    if told:
        raise InputError(f"sequences of ancestors are sampled of {told}", hint="Choose --engine patterns.")
