"""Sequences of ancestors at a run's start, and where they cannot be sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.density import clocks
from phloem.errors import InputError
from phloem.inference.mcmc.recipes import Observations, recipes_of
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.time.ancestors.larger.memory import (
    CodedMemory,
    as_words,
    coded_memory,
    codes_of,
    likely_codes,
)
from phloem.inference.time.ancestors.larger.memory import table_of as coded_table
from phloem.inference.time.ancestors.sequences import (
    Memory,
    masks_of,
    memory_of,
    packed,
    parsimonious,
)
from phloem.inference.time.ancestors.sequences import table_of as nucleotide_table
from phloem.inference.time.records import TimeState
from phloem.inference.time.structure import TimeModel
from phloem.model.record import SiteModel

MOST_STATES_OF_ALL = 64

SUMMED = {"ancestors": 0, "walk": 0, "joining": 0}
"""addresses, where ancestors are not sampled."""


def addresses(model: TimeModel) -> dict[str, int]:
    """Of the compiled code, by fields of TimeData."""
    from phloem.inference.time.compiled.by_address import ANCESTORS, JOINING, WALK

    if not of_nucleotides(model.engine):
        from phloem.inference.time.ancestors.larger.chain import answer_coded

        return SUMMED | {"ancestors": ANCESTORS.address(answer_coded)}
    from phloem.inference.time.ancestors.chain import answer

    found = SUMMED | {"ancestors": ANCESTORS.address(answer)}
    joining = model.tree_prior.joining
    if joining is not None and can_walk(model):
        from phloem.inference.time.ancestors.walk import walk

        found |= {"walk": WALK.address(walk), "joining": JOINING.address(joining)}
    return found


def can_walk(model: TimeModel) -> bool:
    """Whether changes of a few heights change the density where they are alone (walk.py)."""
    free = all(c.age is None and not c.together and not c.clock for c in model.clades)
    clock = model.clock in (clocks.STRICT, *clocks.LOG_NORMAL)
    alone = free and clock and model.trait is None and model.tree_prior.joining is not None
    return alone and of_nucleotides(model.engine)


def of_nucleotides(engine: ChainModel) -> bool:
    """Whether sequences are of four states, which have code of their own."""
    return engine.parts[0].model.n_states == 4


def _site_model(engine: ChainModel) -> SiteModel:
    return engine.site_model(0, engine.space.start())


def ancestral_memory(
    observed: Observations, model: TimeModel, state: TimeState, stored: bool
) -> tuple[Memory | CodedMemory, TimeState]:
    """Sequences of ancestors as the state has them, where it was stored, else as parsimony does; and the
    state whose arrays they are. InputError where they cannot be sampled."""
    require_ancestors(model.engine)
    observed = telling(observed)
    s, rates = int(state.slot[0]), _site_model(model.engine).rates
    tree = state.left[s], state.right[s], state.order[s]
    kept = (state.sequences, state.category) if stored else None
    made = _nucleotide_memory if of_nucleotides(model.engine) else _coded_memory
    memory = made(observed, tree, rates, kept)
    n_tips = (len(memory.words) + 1) // 2
    return memory, state._replace(sequences=memory.words[n_tips:], category=memory.category)


def telling(observed: Observations) -> Observations:
    """The patterns of which a taxon says something. The others multiply the likelihood by 1, but their
    ancestors would hold each other in the state that they began with, as neighbours do on short branches, and
    frequencies would be learnt from states that no sequence has. InputError where none is left."""
    says = np.logical_not(np.all(observed.code_sets, axis=1))
    kept = says[observed.codes].any(axis=0)
    if not kept.any():
        raise InputError(
            "sequences of ancestors are sampled of data, and every character is unknown",
            hint="Choose --engine patterns.",
        )
    sites = None if observed.sites is None else observed.sites[kept]
    return replace(observed, codes=observed.codes[:, kept], weights=observed.weights[kept], sites=sites)


_Tree = tuple[np.ndarray, np.ndarray, np.ndarray]
_Kept = tuple[np.ndarray, np.ndarray] | None


def _nucleotide_memory(observed: Observations, tree: _Tree, rates: np.ndarray, kept: _Kept) -> Memory:
    """tree: left, right, order. kept: words of ancestors and categories; None: of the fewest changes, all
    sites at the highest rate."""
    masks = masks_of(observed)
    if kept is None:
        kept = packed(parsimonious(masks, *tree)), _highest(rates, masks)
    return memory_of(masks, *kept, len(rates))


def _coded_memory(observed: Observations, tree: _Tree, rates: np.ndarray, kept: _Kept) -> CodedMemory:
    codes, sets = codes_of(observed)
    if kept is None:
        kept = as_words(likely_codes(codes, sets, tree)), _highest(rates, codes)
    return coded_memory((codes, sets), *kept, len(rates))


def _highest(rates: np.ndarray, tips: np.ndarray) -> np.ndarray:
    return np.full(tips.shape[1], int(np.argmax(rates)), np.uint8)


def table_of(memory: Memory | CodedMemory | None) -> np.ndarray:
    """Sizes and addresses, as compiled code has them."""
    return coded_table(memory) if isinstance(memory, CodedMemory) else nucleotide_table(memory)


def require_ancestors(engine: ChainModel) -> None:
    """InputError where sequences of ancestors cannot be sampled under a substitution model."""
    model, told = _site_model(engine), ""
    if len(engine.parts) > 1:
        told = "one part, and there are several"
    elif not 4 <= len(model.invariant_frequencies) <= MOST_STATES_OF_ALL:
        told = f"4 to {MOST_STATES_OF_ALL} states, nucleotides, amino acids and codons"
    elif engine.parts[0].model.unseen:
        told = "all columns, and +ASC leaves some unseen"
    elif model.invariant > 0.0:
        told = "sites that can change, without +I"
    elif len(model.processes) > 1 or (model.rates <= 0.0).any() or int(model.length_class.max()) > 0:
        told = "one process with rates above 0"
    elif model.processes[0].real_eigen is None or recipes_of(engine).rows[0, KIND] != COMPILED:
        told = "reversible models of one matrix"
    if told:
        raise InputError(f"sequences of ancestors are sampled of {told}", hint="Choose --engine patterns.")
