"""The numbers of a correction for an alignment, the same for every device."""

from __future__ import annotations

import numpy as np

from phloem.clustering.device_formula import Formula, ScoreTables
from phloem.clustering.distance_settings import NUCLEOTIDES, DistanceSettings
from phloem.clustering.reference.distance import nucleotide_terms, state_weights
from phloem.clustering.reference.distance_tables import score_tables
from phloem.data.alignment import Alignment, Ambiguity
from phloem.errors import InputError


def formula_for(alignment: Alignment, settings: DistanceSettings) -> Formula:
    """How counts of this alignment become distances."""
    nucleotides, method = alignment.alphabet.kind in NUCLEOTIDES, settings.method
    return Formula(
        terms=_terms(alignment, settings) if nucleotides and method not in ("logdet", "ml") else None,
        logdet=method == "logdet",
        corrected=method != "p",
        quadratic=0.2 if method == "kimura" else 0.0,
        shape=settings.shape or 0.0,
        longest=settings.longest,
        scores=_scores(alignment, settings) if method == "ml" else None,
    )


def observed_frequencies(alignment: Alignment, ambiguity: Ambiguity = "missing") -> np.ndarray:
    """(S,) proportions of the states, each character counting by its state_weights."""
    counts = np.zeros(len(alignment.state_sets))
    for row in alignment.codes:
        counts += np.bincount(row, minlength=len(counts))
    states = counts @ state_weights(alignment.state_sets, ambiguity)
    return states / states.sum()


def _terms(alignment: Alignment, settings: DistanceSettings) -> np.ndarray:
    if settings.method == "p":
        return np.empty((0, 4))
    if settings.method in ("jc69", "k80"):
        return nucleotide_terms(settings.method, np.full(4, 0.25))
    frequencies = settings.frequencies or observed_frequencies(alignment, settings.ambiguity)
    if min(frequencies) <= 0:
        raise InputError(
            f"{settings.method} needs all four nucleotides, and one has frequency zero",
            file=alignment.source,
            hint="Use jc69 or k80, or give the frequencies.",
        )
    return nucleotide_terms(settings.method, np.asarray(frequencies, float))


def _scores(alignment: Alignment, settings: DistanceSettings) -> ScoreTables:
    model, states = settings.model, alignment.alphabet.n_states
    assert model is not None
    process = model.single
    flux = process.frequencies[:, None] * process.rate_matrix
    if not np.allclose(flux, flux.T, atol=1e-9):
        raise InputError("distances need a reversible model", hint="Use GTR or a special case of it.")
    if len(process.frequencies) != states:
        raise InputError(
            f"the model has {len(process.frequencies)} states, the data {states}",
            hint="Use a model of the same states.",
        )
    missing = alignment.alphabet.kind not in NUCLEOTIDES
    return ScoreTables(*score_tables(model, settings.longest, missing))
