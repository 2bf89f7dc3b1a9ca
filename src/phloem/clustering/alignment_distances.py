"""Pairwise distances of the sequences of an alignment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phloem.clustering import popcount_distances
from phloem.clustering.deletion import measured_sites
from phloem.clustering.device_formula import Formula
from phloem.clustering.distance_settings import NUCLEOTIDES, DistanceSettings, check_settings
from phloem.clustering.formula import formula_for
from phloem.clustering.outcome import as_status, check_status, record_of
from phloem.clustering.partial_characters import device_weights, whole_weights
from phloem.clustering.select import select_distance_device
from phloem.data.alignment import Alignment
from phloem.data.distance_matrix import DistanceMatrix
from phloem.data.distance_triangle import DistanceTriangle, entries_in_square, new_entries

CPU_SECONDS = 3.3e-13  # per pair, site and state
PAIR_SECONDS = 5e-9  # per pair, for its formula
COUNTED_SECONDS = 5e-8  # per pair, by maximum likelihood from sixteen counts
LIKELIHOOD_SECONDS = 6e-10  # per pair and site, by maximum likelihood


def pairwise_distances(
    alignment: Alignment, settings: DistanceSettings | None = None, progress: Callable | None = None
) -> DistanceMatrix:
    """All pairwise distances; the matrix's settings hold the choices and how many pairs were saturated.

    progress(done, total) is called now and then. Raises InputError for a method that does not fit the data,
    for two sequences without a common site, and for saturated pairs where these are to be errors.
    """
    return _measure(alignment, settings, progress, entries_in_square).matrix()


def pairwise_triangle(
    alignment: Alignment, settings: DistanceSettings | None = None, progress: Callable | None = None
) -> DistanceTriangle:
    """The same, every pair once, in half the memory."""
    return _measure(alignment, settings, progress, new_entries)


def _measure(
    alignment: Alignment,
    settings: DistanceSettings | None,
    progress: Callable | None,
    allocate: Callable[[int, str], np.ndarray],
) -> DistanceTriangle:
    """allocate(n, precision): memory for the entries of n taxa."""
    settings = settings or DistanceSettings()
    check_settings(settings, alignment.alphabet.kind)
    alignment = measured_sites(alignment, settings)
    n, formula = alignment.n_taxa, formula_for(alignment, settings)
    entries = allocate(n, settings.precision)
    device = select_distance_device(
        settings.device, distance_seconds(alignment, settings), lacking_on_gpu(alignment, settings)
    )[0]
    if device == "gpu":
        status = _on_gpu(alignment, settings, formula, entries, progress)
    else:
        status = popcount_distances.fill_triangle(alignment, settings, formula, entries, progress)
    check_status(alignment, settings, status)
    return DistanceTriangle(
        alignment.taxa, entries, alignment.source, record_of(settings, alignment.n_sites, status)
    )


def distance_seconds(alignment: Alignment, settings: DistanceSettings) -> float:
    """Forecast for two cores; sixteen counts cost three times the few that other distances need."""
    n, sites, states = alignment.n_taxa, alignment.n_sites, alignment.alphabet.n_states
    if settings.method == "ml" and alignment.alphabet.kind not in NUCLEOTIDES:
        return LIKELIHOOD_SECONDS * n * n * sites
    formula = COUNTED_SECONDS if settings.method == "ml" else PAIR_SECONDS
    counting = CPU_SECONDS * (3 if settings.method in ("ml", "logdet") else 1)
    return n * n * (formula + counting * sites * states)


def lacking_on_gpu(alignment: Alignment, settings: DistanceSettings) -> str | None:
    """What the GPU kernels lack for these distances, if anything."""
    if settings.ambiguity == "partial" and whole_weights(alignment, settings.ambiguity) is None:
        return "averages over sets of so many states"
    return None


def _on_gpu(
    alignment: Alignment,
    settings: DistanceSettings,
    formula: Formula,
    entries: np.ndarray,
    progress: Callable | None,
) -> np.ndarray:
    """Fill the entries; returns status (4,) as popcount_distances does."""
    from phloem.clustering.gpu.streams import fill_triangle

    weights = device_weights(alignment, settings.ambiguity)
    nucleotides = alignment.alphabet.kind in NUCLEOTIDES
    return as_status(
        fill_triangle(alignment.codes, weights, nucleotides, formula, entries, progress=progress)
    )
