"""How counts of site pairs become distances: the equations, and their numbers for an alignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.clustering.settings import NUCLEOTIDES, DistanceSettings
from phloem.data.alignment import Alignment, Ambiguity
from phloem.errors import InputError
from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices


def state_weights(state_sets: np.ndarray, ambiguity: Ambiguity) -> np.ndarray:
    """(codes, S): the share of a site that each code gives to each state.

    A plain state gives 1, a wholly missing character nothing. A partly ambiguous code gives nothing
    (missing), or 1/k to each of the k states that it allows (partial; as HyPhy's and tn93's AVERAGE do).
    """
    sizes = state_sets.sum(axis=1)
    known = sizes == 1
    if ambiguity == "partial":
        known = sizes < state_sets.shape[1]
    return np.where(known[:, None], state_sets / sizes[:, None], 0.0)


def nucleotide_terms(method: str, frequencies: np.ndarray) -> np.ndarray:
    """(K, 4): c_k and the slopes of 1 - w_k with respect to A↔G, C↔T and transversion proportions.

    jc69: Jukes and Cantor 1969. k80: Kimura 1980. f84: Felsenstein and Churchill 1996, eqs 19–21 (and
    PHYLIP's dnadist). tn93: Tamura and Nei 1993, eq. 7. frequencies: of A, C, G, T.
    """
    a, c, g, t = frequencies
    r, y = a + g, c + t
    if method == "jc69":
        return np.array([[3 / 4, 4 / 3, 4 / 3, 4 / 3]])
    if method == "k80":
        return np.array([[1 / 2, 2, 2, 1], [1 / 4, 0, 0, 2]])
    if method == "f84":
        big_a, big_b, big_c = c * t / y + a * g / r, c * t + a * g, r * y
        slope = (big_a - big_b) / (2 * big_a * big_c)
        return np.array(
            [[2 * big_a, 0.5 / big_a, 0.5 / big_a, slope], [2 * (big_b + big_c - big_a), 0, 0, 0.5 / big_c]]
        )
    if method == "tn93":
        k1, k2 = 2 * a * g / r, 2 * c * t / y
        k3 = 2 * (r * y - a * g * y / r - c * t * r / y)
        return np.array([[k1, 1 / k1, 0, 0.5 / r], [k2, 0, 1 / k2, 0.5 / y], [k3, 0, 0, 0.5 / (r * y)]])
    raise ValueError(method)


SHORTEST = 1e-5
STEP = 0.05  # of ln t between nodes


def score_tables(
    model: SiteModel, longest: float, missing: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nodes, tables, guesses) for distances up to `longest` (expected substitutions per site).

    nodes: (K,) x = ln t. tables: (K, cells, 2) float32 of d ln M_ab / dx and d² ln M_ab / dx² with
    M = Σ_c weight_c P(rate_c t) + invariant I; cells = S², or (S+1)² with zeros for unobserved if missing.
    guesses: (4097,) node whose expected proportion of differing sites is nearest to k / 4096.
    """
    nodes = np.log(SHORTEST) + STEP * np.arange(int(np.ceil(np.log(longest / SHORTEST) / STEP)) + 1)
    t = np.exp(nodes)
    p = transition_matrices(t, model)
    q = model.single.rate_matrix
    first = np.einsum("c,ij,xcjk->xik", model.weights * model.rates, q, p, optimize=True)
    second = np.einsum("c,ij,xcjk->xik", model.weights * model.rates**2, q @ q, p, optimize=True)
    mixture = np.einsum("c,xcij->xij", model.weights, p) + model.invariant * np.eye(p.shape[-1])
    mixture = np.maximum(mixture, 1e-14)
    slope, t = first / mixture, t[:, None, None]
    score, bend = t * slope, t * slope + t * t * (second / mixture - slope * slope)
    s = p.shape[-1]
    width = s + 1 if missing else s
    tables = np.zeros((len(nodes), width, width, 2), np.float32)
    tables[:, :s, :s, 0], tables[:, :s, :s, 1] = score, bend
    expected = 1 - np.einsum("i,xii->x", model.single.frequencies, mixture)
    guesses = np.searchsorted(expected, np.arange(4097) / 4096).clip(0, len(nodes) - 1)
    return nodes, tables.reshape(len(nodes), width * width, 2), guesses


@dataclass(frozen=True)
class ScoreTables:
    """Score of a pair of sequences on a grid of distances (score_tables).

    nodes: (K,) ln t, evenly spaced. tables: (K, cells, 2) float32. guesses: first node to look at, on a
    uniform grid of proportions of differing sites.
    """

    nodes: np.ndarray
    tables: np.ndarray
    guesses: np.ndarray


@dataclass(frozen=True)
class Formula:
    """How counts become a distance.

    scores: maximum likelihood by these tables; else terms: (K, 4) of nucleotide_terms;
    else logdet; else φ(1 - p - quadratic p²) if corrected, else p. shape: gamma shape, 0 for equal rates.
    longest: what saturated pairs get.
    """

    terms: np.ndarray | None = None
    logdet: bool = False
    corrected: bool = False
    quadratic: float = 0.0
    shape: float = 0.0
    longest: float = 5.0
    scores: ScoreTables | None = None


def formula_for(alignment: Alignment, settings: DistanceSettings) -> Formula:
    """How counts of this alignment become distances."""
    nucleotides, method = alignment.alphabet.kind in NUCLEOTIDES, settings.method
    if method == "logdet":
        _require_every_state(alignment, settings.ambiguity)
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


def _require_every_state(alignment: Alignment, ambiguity: Ambiguity) -> None:
    """InputError for a sequence that lacks a state: the determinant of its pairs is zero, however alike."""
    weights = state_weights(alignment.state_sets, ambiguity)
    for taxon, row in zip(alignment.taxa, alignment.codes):
        counts = np.bincount(row, minlength=len(weights)) @ weights
        if counts.any() and not counts.all():
            lacking = alignment.alphabet.states[int(counts.argmin())]
            raise InputError(
                f"logdet needs every nucleotide in every sequence, and '{taxon}' has no {lacking}",
                file=alignment.source,
                taxon=taxon,
                hint="Use another distance, or leave this sequence out.",
            )


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
