"""State frequencies counted in an alignment, and model strings read with them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment
from phloem.model.grammar import parse_model
from phloem.model.model import Model

_MOST_ROUNDS, _SETTLED = 1000, 1e-12


def empirical_frequencies(alignment: Alignment) -> np.ndarray:
    """(S,) frequencies of the states. Missing characters do not count; a partly ambiguous one counts for the
    states it allows in proportion to their frequencies (expectation-maximisation, run until it settles)."""
    n_states = alignment.alphabet.n_states
    counts = np.bincount(alignment.codes.ravel(), minlength=len(alignment.state_sets)).astype(np.float64)
    counts[n_states] = 0.0
    frequencies = np.full(n_states, 1.0 / n_states)
    if not counts.any():
        return frequencies
    ambiguous = alignment.state_sets[n_states + 1 :]
    for _ in range(_MOST_ROUNDS):
        total = ambiguous @ frequencies
        share = counts[n_states + 1 :] / np.where(total > 0, total, 1.0)
        new = counts[:n_states] + frequencies * (share @ ambiguous)
        new /= new.sum()
        settled = np.abs(new - frequencies).max() < _SETTLED
        frequencies = new
        if settled:
            break
    return frequencies


def model_for_alignment(text: str, alignment: Alignment, gamma: Literal["mean", "median"] = "mean") -> Model:
    """Read a model string for the alignment's data type; a bare +F means the frequencies counted in it.

    gamma: what +G means where the string does not say. Errors: ModelError with the place in the string.
    """
    alphabet = alignment.alphabet
    return parse_model(
        text,
        datatype=alphabet.kind,
        states=alphabet.states,
        empirical_frequencies=empirical_frequencies(alignment),
        gamma=gamma,
    )
