"""`phloem mcmc --predictive N`: what the data would look like if the model were right, beside what they do.

For draws of the posterior, an alignment is evolved down the drawn tree with the drawn numbers, and loses the
characters that the data miss (Bollback 2002, Mol. Biol. Evol. 19:1171).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.analysis.mcmc_data import ChainInput
from phloem.analysis.mcmc_draws import Draw, Drawn, Told, tree_of
from phloem.data.alignment import Alignment
from phloem.errors import InputError
from phloem.likelihood.simulation import evolved_like
from phloem.summary.predictive import Check, check_of, site_statistics

ENDING = "predictive.tsv"
STREAM = 0x9E  # of the random numbers, beside those of starts and chains


def require_simulated(unrecorded: Sequence[int]) -> None:
    """InputError where +ASC is no condition on a process. unrecorded: of every part, see
    inference.mcmc.recipes.observations."""
    if any(unrecorded):
        raise InputError(
            "--asc mrbayes corrects characters of any number of states as if of two, as no process does",
            hint="Leave --predictive out, or take --asc lewis.",
        )


def predictive_checks(data: ChainInput, drawn: Drawn, n: int, seed: int, told: Told) -> tuple[Check, ...]:
    """Of n draws of all runs, evenly chosen; of as many as there are at most. Of several parts, each with its
    name in braces."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
    draws = [draw for run in drawn.evenly(-(-n // len(drawn.runs))) for draw in run]
    names = [part.name for part in data.structure.parts]
    found: dict[str, list[tuple[float, float]]] = {}
    observed = [_statistics(data.alignments[name].codes, data.alignments[name]) for name in names]
    for k, draw in enumerate(draws, 1):
        for part, name in enumerate(names):
            own = data.alignments[name]
            for key, value in _statistics(_evolved(data, part, own, draw, rng), own).items():
                title = f"{key}{{{name}}}" if len(names) > 1 else key
                found.setdefault(title, []).append((observed[part][key], value))
        told("simulated data", k, len(draws))
    return tuple(check_of(name, np.array(pairs)) for name, pairs in found.items())


def _statistics(codes: np.ndarray, alignment: Alignment) -> dict[str, float]:
    return site_statistics(codes, alignment.alphabet.n_states)


def _evolved(
    data: ChainInput, part: int, alignment: Alignment, draw: Draw, rng: np.random.Generator
) -> np.ndarray:
    """(T, L) codes of a simulated alignment of a part, in the order of its taxa."""
    structure, sets = data.structure, data.structure.sets[part]
    site_model = structure.site_model(part, structure.values_of(draw.numbers))
    lengths = np.atleast_2d(draw.lengths)[sets.start : sets.stop]
    own = lengths if len(lengths) > 1 else lengths[0]
    model = structure.parts[part].model
    tree, shown = tree_of(data, draw), model.observed_state
    return evolved_like(alignment, tree, own, site_model, shown, rng, model.unseen)
