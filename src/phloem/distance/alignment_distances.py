"""Pairwise distances of the sequences of an alignment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.distance_matrix import DistanceMatrix
from phloem.distance.partial_characters import partial_characters
from phloem.distance.planes import nucleotide_planes, one_hot_planes, state_planes
from phloem.engine.select import Device, select_distance_device
from phloem.errors import InputError, NumericalError
from phloem.kernels.numba import distance_blocks, distance_likelihood_blocks
from phloem.kernels.reference.distance import Ambiguity, nucleotide_terms, state_weights
from phloem.kernels.reference.distance_tables import score_tables
from phloem.model.record import SiteModel

DistanceMethod = Literal["p", "jc69", "k80", "f84", "tn93", "logdet", "poisson", "kimura", "ml"]
Deletion = Literal["pairwise", "complete"]
Saturated = Literal["longest", "error"]
NUCLEOTIDE_METHODS = ("p", "jc69", "k80", "f84", "tn93", "logdet", "ml")
OTHER_METHODS = ("p", "poisson", "kimura", "ml")
CPU_SECONDS = 3.3e-13  # per pair, site and state
BLOCK_BYTES = 800_000  # of bit planes: what a core's cache keeps while a block's rows pass


@dataclass(frozen=True)
class DistanceSettings:
    """How to measure distances.

    method: p (proportion of differing sites), jc69, k80, f84, tn93, logdet for nucleotides; p, poisson,
        kimura for amino acids and other states; ml under `model` for any.
    shape: gamma shape of rates across sites in jc69, k80, f84, tn93 and poisson, or None for equal rates.
    ambiguity: a partly ambiguous character counts as missing, or as an even mixture of the states it allows
        (reference.distance.state_weights; not for ml).
    deletion: leave out a site for the pairs that lack it, or for all. A missing character lacks it.
    saturated: a pair without a finite distance, or farther than `longest`, gets `longest`, or is an error.
    longest: expected substitutions per site.
    frequencies: of A, C, G, T for f84 and tn93; None takes those of the alignment.
    model: numbers of a reversible model, for ml.
    precision: of the matrix. threads: CPU threads.
    device: see engine.select.select_distance_device; the GPU has all but maximum likelihood.
    """

    method: DistanceMethod = "jc69"
    shape: float | None = None
    ambiguity: Ambiguity = "missing"
    deletion: Deletion = "pairwise"
    saturated: Saturated = "longest"
    longest: float = 5.0
    frequencies: tuple[float, float, float, float] | None = None
    model: SiteModel | None = None
    precision: Literal["float32", "float64"] = "float64"
    threads: int = 2
    device: Device = "cpu"


def pairwise_distances(
    alignment: Alignment, settings: DistanceSettings | None = None, progress: Callable | None = None
) -> DistanceMatrix:
    """All pairwise distances; the matrix's settings hold the choices and how many pairs were saturated.

    progress(done, total) is called now and then. Raises InputError for a method that does not fit the data,
    for two sequences without a common site, and for saturated pairs where these are to be errors.
    """
    settings = settings or DistanceSettings()
    nucleotides = alignment.alphabet.kind in ("dna", "rna")
    _check(settings, nucleotides, alignment.alphabet.kind)
    if settings.deletion == "complete":
        alignment = _complete_sites(alignment, settings.ambiguity)
    n = alignment.n_taxa
    values = np.zeros((n, n), settings.precision)
    missing = "maximum-likelihood distances" if settings.method == "ml" else None
    if settings.ambiguity == "average":
        missing = "averages over ambiguous characters"
    forecast = CPU_SECONDS * n * n * alignment.n_sites * alignment.alphabet.n_states
    if select_distance_device(settings.device, forecast, missing)[0] == "gpu":
        status = _on_gpu(alignment, settings, nucleotides, values)
    else:
        block, width = _block_kernel(alignment, settings, nucleotides, values)
        status = _run(block, n, width, settings.threads, progress)
    _report(alignment, settings, status)
    _mirror(values, settings.threads)
    return DistanceMatrix(alignment.taxa, values, alignment.source, _record(alignment, settings, status))


def _check(settings: DistanceSettings, nucleotides: bool, kind: str) -> None:
    methods = NUCLEOTIDE_METHODS if nucleotides else OTHER_METHODS
    if settings.method not in methods:
        raise InputError(
            f"there is no distance '{settings.method}' for {kind} data",
            hint=f"Use one of {', '.join(methods)}.",
        )
    if settings.shape is not None:
        if not (settings.shape > 0 and np.isfinite(settings.shape)):
            raise InputError(f"the gamma shape must be positive, not {settings.shape}", hint="Try 0.5 or 1.")
        if settings.method in ("p", "logdet", "kimura", "ml"):
            raise InputError(
                f"the {settings.method} distance has no gamma form",
                hint="Leave the shape out; for ml name it in the model, as in LG+G4{0.8}.",
            )
    if settings.method == "ml" and settings.model is None:
        raise InputError(
            "maximum-likelihood distances need a model", hint="Name one, such as LG or HKY{2.5}+F."
        )
    if settings.method == "ml" and settings.ambiguity == "average":
        raise InputError(
            "maximum-likelihood distances do not average over ambiguous characters",
            hint="Let them count as missing, or choose another distance.",
        )
    if not settings.longest > 0:
        raise InputError("the longest distance must be positive", hint="The usual one is 5.")


def _complete_sites(alignment: Alignment, ambiguity: Ambiguity) -> Alignment:
    """Without the sites at which any sequence counts as missing."""
    known = state_weights(alignment.state_sets, ambiguity).sum(axis=1) > 0
    keep = np.all(known[alignment.codes], axis=0)
    if not keep.any():
        raise InputError(
            "no site is observed in every sequence",
            file=alignment.source,
            hint="Use pairwise deletion, or leave out the most incomplete sequences.",
        )
    return Alignment(
        alignment.taxa, alignment.alphabet, np.ascontiguousarray(alignment.codes[:, keep]),
        alignment.state_sets, alignment.source, alignment.settings,
    )  # fmt: skip


def observed_frequencies(alignment: Alignment, ambiguity: Ambiguity = "missing") -> np.ndarray:
    """(S,) proportions of the states, each character counting by its state_weights."""
    counts = np.zeros(len(alignment.state_sets))
    for row in alignment.codes:
        counts += np.bincount(row, minlength=len(counts))
    states = counts @ state_weights(alignment.state_sets, ambiguity)
    return states / states.sum()


def _block_kernel(
    alignment: Alignment, settings: DistanceSettings, nucleotides: bool, values: np.ndarray
) -> tuple[Callable, int]:
    """(kernel(first, last, status), block width) that fills columns first … last-1 of the lower triangle."""
    longest, shape, ambiguity = settings.longest, settings.shape or 0.0, settings.ambiguity
    if settings.method == "ml":
        return _likelihood_kernel(alignment, settings, nucleotides, values)
    if settings.method == "logdet":
        planes, partial = one_hot_planes(alignment), partial_characters(alignment, ambiguity, "joint")
        return (
            lambda first, last, status: distance_blocks.logdet_block(
                planes, partial, first, last, longest, status, values
            )
        ), _width(planes)
    if nucleotides:
        (planes, observed, complete), terms = nucleotide_planes(alignment), _terms(alignment, settings)
        partial = partial_characters(alignment, ambiguity, "nucleotide")
        return (
            lambda first, last, status: distance_blocks.nucleotide_block(
                planes, observed, complete, partial, first, last, terms, shape, longest, status, values
            )
        ), _width(planes)
    planes, quadratic = state_planes(alignment), 0.2 if settings.method == "kimura" else 0.0
    partial = partial_characters(alignment, ambiguity, "difference")
    return (
        lambda first, last, status: distance_blocks.difference_block(
            planes, partial, first, last, settings.method != "p", quadratic, shape, longest, status, values
        )
    ), _width(planes)


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


def _on_gpu(
    alignment: Alignment, settings: DistanceSettings, nucleotides: bool, values: np.ndarray
) -> np.ndarray:
    """Fill the lower triangle; returns status (4,) as _run does."""
    from phloem.engine.gpu_distance_alignment import Formula, fill_lower_triangle

    quadratic = 0.2 if settings.method == "kimura" else 0.0
    formula = Formula(
        _terms(alignment, settings) if nucleotides and settings.method != "logdet" else None,
        settings.method == "logdet", settings.method != "p", quadratic, settings.shape or 0.0,
        settings.longest,
    )  # fmt: skip
    saturated, empty, pair = fill_lower_triangle(
        alignment.codes, alignment.alphabet.n_states, nucleotides, formula, values
    ).tolist()
    return np.array([saturated, empty, max(pair, 0) >> 32, max(pair, 0) & 0xFFFFFFFF])


def _likelihood_kernel(
    alignment: Alignment, settings: DistanceSettings, nucleotides: bool, values: np.ndarray
) -> tuple[Callable, int]:
    model, longest = settings.model, settings.longest
    assert model is not None
    flux = model.frequencies[:, None] * model.rate_matrix
    if not np.allclose(flux, flux.T, atol=1e-9):
        raise InputError("distances need a reversible model", hint="Use GTR or a special case of it.")
    if len(model.frequencies) != alignment.alphabet.n_states:
        raise InputError(
            f"the model has {len(model.frequencies)} states, the data {alignment.alphabet.n_states}",
            hint="Use a model of the same states.",
        )
    nodes, tables, guesses = score_tables(model, longest, missing=not nucleotides)
    if nucleotides:
        planes = one_hot_planes(alignment)
        return (
            lambda first, last, status: distance_likelihood_blocks.counted_block(
                planes, first, last, tables, nodes, guesses, longest, status, values
            )
        ), _width(planes)
    states = alignment.alphabet.n_states
    codes = np.minimum(alignment.codes, states).astype(np.uint8)
    return (
        lambda first, last, status: distance_likelihood_blocks.site_block(
            codes, states, tables, nodes, guesses, first, last, longest, status, values
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


def _report(alignment: Alignment, settings: DistanceSettings, status: np.ndarray) -> None:
    saturated, empty, i, j = status.tolist()
    if empty:
        raise InputError(
            f"'{alignment.taxa[j]}' and '{alignment.taxa[i]}' have no site in common"
            + (f", as have {empty - 1} other pairs" if empty > 1 else ""),
            file=alignment.source,
            hint="Leave out the most incomplete sequences.",
        )
    if saturated and settings.saturated == "error":
        raise NumericalError(
            f"{saturated} pairs are saturated: no {settings.method} distance up to {settings.longest:g}"
        )


def _mirror(values: np.ndarray, threads: int) -> None:
    n = len(values)
    edges = np.unique((np.sqrt(np.linspace(0, 1, 4 * threads + 1)) * n).astype(int)).tolist()
    with ThreadPoolExecutor(threads) as workers:
        list(workers.map(lambda a, b: distance_blocks.mirror_block(values, a, b), edges[:-1], edges[1:]))


def _record(alignment: Alignment, settings: DistanceSettings, status: np.ndarray) -> dict[str, object]:
    return {
        "distance": settings.method,
        "gamma_shape": settings.shape,
        "deletion": settings.deletion,
        "ambiguous_characters": settings.ambiguity,
        "sites": alignment.n_sites,
        "saturated_pairs": int(status[0]),
        "saturated": f"set to {settings.longest:g}" if settings.saturated == "longest" else "error",
        "precision": settings.precision,
    }
