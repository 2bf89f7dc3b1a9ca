"""Distances on the CPU: popcounts of bit planes, block by block in threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from phloem.clustering.cpu import distance_blocks, distance_likelihood_blocks
from phloem.clustering.device_formula import Formula
from phloem.clustering.distance_settings import NUCLEOTIDES, DistanceSettings
from phloem.clustering.partial_characters import partial_characters
from phloem.clustering.planes import nucleotide_planes, one_hot_planes, state_planes
from phloem.data.alignment import Alignment

BLOCK_BYTES = 800_000  # of bit planes: what a core's cache keeps while a block's rows pass


def fill_triangle(
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
        planes, observed, complete = nucleotide_planes(alignment)
        partial = partial_characters(alignment, ambiguity, "nucleotide")
        return (
            lambda first, last, status: distance_blocks.nucleotide_block(
                planes, observed, complete, partial, first, last, formula.terms, formula.shape, longest,
                status, entries,
            )
        ), _width(planes)  # fmt: skip
    planes, partial = state_planes(alignment), partial_characters(alignment, ambiguity, "difference")
    return (
        lambda first, last, status: distance_blocks.difference_block(
            planes, partial, first, last, formula.corrected, formula.quadratic, formula.shape, longest,
            status, entries,
        )
    ), _width(planes)  # fmt: skip


def _likelihood_kernel(alignment: Alignment, formula: Formula, entries: np.ndarray) -> tuple[Callable, int]:
    scores, longest = formula.scores, formula.longest
    assert scores is not None
    nodes, tables, guesses = scores.nodes, scores.tables, scores.guesses
    if alignment.alphabet.kind in NUCLEOTIDES:
        planes = one_hot_planes(alignment)
        return (
            lambda first, last, status: distance_likelihood_blocks.counted_block(
                planes, first, last, tables, nodes, guesses, longest, status, entries
            )
        ), _width(planes)
    states = alignment.alphabet.n_states
    codes = np.minimum(alignment.codes, states).astype(np.uint8)
    return (
        lambda first, last, status: distance_likelihood_blocks.site_block(
            codes, states, tables, nodes, guesses, first, last, longest, status, entries
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
