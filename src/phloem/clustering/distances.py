"""Pairwise distances of the sequences of an alignment.

On the CPU popcounts of bit planes, block by block in threads; on a GPU see gpu.streams.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from phloem.clustering.arrays import (
    device_weights,
    nucleotide_planes,
    one_hot_planes,
    partial_characters,
    state_planes,
    whole_weights,
)
from phloem.clustering.cpu import distance_blocks, distance_likelihood
from phloem.clustering.formula import Formula, formula_for, state_weights
from phloem.clustering.settings import NUCLEOTIDES, DistanceSettings, check_settings, select_distance_device
from phloem.data.alignment import Alignment
from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle, entries_in_square, new_entries
from phloem.errors import InputError, require_type


class NoCommonSite(InputError):
    """Two sequences that no site compares have no distance."""


def as_status(counted: np.ndarray) -> np.ndarray:
    """(4,) saturated pairs, pairs without a common site, and one such (i, j), from a GPU's (3,)."""
    saturated, empty, pair = counted.tolist()
    return np.array([saturated, empty, max(pair, 0) >> 32, max(pair, 0) & 0xFFFFFFFF])


def check_status(alignment: Alignment, settings: DistanceSettings, status: np.ndarray) -> None:
    """Raise for pairs without a common site, and for saturated ones where these are to be errors."""
    saturated, empty, i, j = status.tolist()
    if empty:
        raise NoCommonSite(
            f"'{alignment.taxa[j]}' and '{alignment.taxa[i]}' have no site in common"
            + (f" ({empty:,} such pairs)" if empty > 1 else ""),
            file=alignment.source,
            hint=f"Leave out the most incomplete sequences: {_most_incomplete(alignment)}.",
        )
    if saturated and settings.saturated == "error":
        raise InputError(
            f"{saturated:,} pairs are saturated: no {settings.method} distance up to {settings.longest:g}",
            file=alignment.source,
            hint="Leave out the most distant sequences, or set such pairs to the longest distance.",
        )


def _most_incomplete(alignment: Alignment) -> str:
    """Up to three sequences of which least is known, and of how many sites."""
    known = (alignment.codes < alignment.alphabet.n_states).sum(axis=1)
    least = np.argsort(known, kind="stable")[:3].tolist()
    return ", ".join(f"'{alignment.taxa[i]}' is known at {known[i]:,}" for i in least)


def record_of(settings: DistanceSettings, sites: int, status: np.ndarray) -> dict[str, object]:
    """The choices that shaped a matrix."""
    return {
        "distance": settings.method,
        "gamma_shape": settings.shape,
        "deletion": settings.deletion,
        "ambiguous_characters": settings.ambiguity,
        "sites": sites,
        "saturated_pairs": int(status[0]),
        "saturated": f"set to {settings.longest:g}" if settings.saturated == "longest" else "error",
        "precision": settings.precision,
    }


def measured_sites(alignment: Alignment, settings: DistanceSettings) -> Alignment:
    """The alignment without the sites that complete deletion leaves out; InputError where it leaves none."""
    if settings.deletion != "complete":
        return alignment
    known = state_weights(alignment.state_sets, settings.ambiguity).sum(axis=1) > 0
    keep = np.flatnonzero(np.all(known[alignment.codes], axis=0))
    if not len(keep):
        raise InputError(
            "no site is observed in every sequence",
            file=alignment.source,
            hint="Use pairwise deletion, or leave out the most incomplete sequences.",
        )
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, keep]), places=None)


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
    require_type("the alignment", alignment, Alignment, "Read it: read_alignment(file).")
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
        status = _on_cpu(alignment, settings, formula, entries, progress)
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
    """Fill the entries; returns status (4,) as _on_cpu does."""
    from phloem.clustering.gpu.alignment import fill_triangle

    weights = device_weights(alignment, settings.ambiguity)
    nucleotides = alignment.alphabet.kind in NUCLEOTIDES
    return as_status(
        fill_triangle(alignment.codes, weights, nucleotides, formula, entries, progress=progress)
    )


BLOCK_BYTES = 800_000  # of bit planes: what a core's cache keeps while a block's rows pass


def _on_cpu(
    alignment: Alignment,
    settings: DistanceSettings,
    formula: Formula,
    entries: np.ndarray,
    progress: Callable | None,
) -> np.ndarray:
    """All distances to the entries of a triangle (data.distance_triangle).

    Returns (4,) int64: saturated pairs, pairs without a common site, and one of these.
    """
    block, width = _block_kernel(alignment, settings, formula, entries)
    return _run(block, alignment.n_taxa, width, settings.threads, progress)


def _block_kernel(
    alignment: Alignment, settings: DistanceSettings, formula: Formula, entries: np.ndarray
) -> tuple[Callable, int]:
    """(kernel(first, last, status), block width) that fills columns first … last-1 of the triangle."""
    longest, ambiguity = settings.longest, settings.ambiguity
    if formula.scores is not None:
        return _likelihood_kernel(alignment, formula, entries)
    if formula.logdet:
        planes, partial = one_hot_planes(alignment), partial_characters(alignment, ambiguity, "joint")
        return (
            lambda first, last, status: distance_blocks.logdet_block(
                planes, partial, first, last, longest, status, entries
            )
        ), _width(planes)
    if formula.terms is not None:
        partial = partial_characters(alignment, ambiguity, "nucleotide")
        sites = distance_blocks.Sites(*nucleotide_planes(alignment), partial)
        return (
            lambda first, last, status: distance_blocks.nucleotide_block(
                sites, formula.terms, formula.shape, longest, first, last, status, entries
            )
        ), _width(sites.planes)
    planes, partial = state_planes(alignment), partial_characters(alignment, ambiguity, "difference")
    correction = distance_blocks.Correction(formula.corrected, formula.quadratic, formula.shape, longest)
    return (
        lambda first, last, status: distance_blocks.difference_block(
            planes, partial, correction, first, last, status, entries
        )
    ), _width(planes)


def _likelihood_kernel(alignment: Alignment, formula: Formula, entries: np.ndarray) -> tuple[Callable, int]:
    assert formula.scores is not None
    longest = formula.longest
    scores = distance_likelihood.Scores(formula.scores.tables, formula.scores.nodes, formula.scores.guesses)
    if alignment.alphabet.kind in NUCLEOTIDES:
        planes = one_hot_planes(alignment)
        return (
            lambda first, last, status: distance_likelihood.counted_block(
                planes, scores, first, last, longest, status, entries
            )
        ), _width(planes)
    states = alignment.alphabet.n_states
    codes = np.minimum(alignment.codes, states).astype(np.uint8)
    return (
        lambda first, last, status: distance_likelihood.site_block(
            codes, states, scores, first, last, longest, status, entries
        )
    ), 64


def _width(planes: np.ndarray) -> int:
    """Columns of a block whose planes stay in a core's cache, a multiple of 32."""
    return max(192, BLOCK_BYTES // (8 * planes.shape[1] * max(planes.shape[2], 1)) // 32 * 32)


def _run(block: Callable, n: int, width: int, threads: int, progress: Callable | None) -> np.ndarray:
    """Run all blocks in threads; returns the summed status (4,)."""
    firsts = list(range(0, n, min(width, max(32, -(-n // (4 * threads) // 32) * 32))))
    edges = [*firsts, n]
    statuses = np.zeros((len(firsts), 4), np.int64)
    with ThreadPoolExecutor(threads) as workers:
        jobs = [
            workers.submit(block, a, b, status)
            for a, b, status in zip(edges[:-1], edges[1:], statuses, strict=True)
        ]
        for done, job in enumerate(jobs, start=1):
            job.result()
            if progress is not None:
                progress(done, len(jobs))
    empty = statuses[statuses[:, 1] > 0]
    where = empty[0, 2:] if len(empty) else np.zeros(2, np.int64)
    return np.concatenate([statuses[:, :2].sum(axis=0), where])
