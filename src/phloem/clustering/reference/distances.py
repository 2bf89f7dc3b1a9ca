"""Distances between two sequences from the counts of their site pairs: the specification.

counts[a, b] is the number of sites at which one sequence shows state a and the other b;
joint_counts says what an ambiguous character counts.
Every correction is a sum Σ_k c_k φ(w_k) with w_k linear in proportions of sites and φ(w) = -ln w, or
a (w^(-1/a) - 1) for gamma-distributed rates of shape a (Jin and Nei 1990). w_k ≤ 0: saturated, NaN.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from phloem.clustering.formula import nucleotide_terms
from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices


def joint_counts(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(S, S) counts of state pairs of two sequences (L,) of codes, under state_weights.

    A site counts the product of its two shares: A against R is half A–A and half A–G, R against R
    a quarter of each of A–A, A–G, G–A and G–G.
    """
    return np.einsum("la,lb->ab", weights[x], weights[y])


def phi(w: np.ndarray | float, shape: float | None = None) -> np.ndarray:
    """-ln w, or its gamma form; NaN where w ≤ 0."""
    w = np.where(np.asarray(w, float) > 0, w, np.nan)
    return -np.log(w) if shape is None else shape * (w ** (-1 / shape) - 1)


def nucleotide_distance(
    counts: np.ndarray, method: str, frequencies: np.ndarray, shape: float | None = None
) -> float:
    """p, jc69, k80, f84, tn93 or logdet from (4, 4) counts over A, C, G, T."""
    if method == "logdet":
        return logdet(counts)
    sites = counts.sum()
    ag, ct = counts[0, 2] + counts[2, 0], counts[1, 3] + counts[3, 1]
    tv = sites - np.trace(counts) - ag - ct
    if method == "p":
        return float((ag + ct + tv) / sites)
    terms = nucleotide_terms(method, frequencies)
    w = 1 - terms[:, 1:] @ (np.array([ag, ct, tv]) / sites)
    return float(terms[:, 0] @ phi(w, shape))


def logdet(counts: np.ndarray) -> float:
    """-¼ [ln det F - ½ Σ ln(f_i g_i)], F the joint proportions, f and g its margins.

    Lockhart et al. 1994; Lake 1994 (paralinear); exact zero for identical sequences.
    """
    if counts.sum() == np.trace(counts):
        return 0.0
    joint = counts / counts.sum()
    margins = np.prod(joint.sum(axis=0)) * np.prod(joint.sum(axis=1))
    determinant = np.linalg.det(joint)
    if determinant <= 0 or margins <= 0:
        return float("nan")
    return float(-(np.log(determinant) - np.log(margins) / 2) / 4)


def protein_distance(counts: np.ndarray, method: str, shape: float | None = None) -> float:
    """p, poisson (-ln(1 - p), Zuckerkandl and Pauling 1965) or kimura (-ln(1 - p - p²/5), Kimura 1983)."""
    p = 1 - np.trace(counts) / counts.sum()
    if method == "p":
        return float(p)
    return float(phi(1 - p - p * p / 5)) if method == "kimura" else float(phi(1 - p, shape))


def likelihood_distance(counts: np.ndarray, model: SiteModel, longest: float) -> float:
    """argmax over 0 ≤ t ≤ longest of Σ_ab counts[a, b] ln(Σ_c weight_c P_ab(rate_c t) + invariant δ_ab)."""

    def minus_log_likelihood(log_t: float) -> float:
        p = transition_matrices(np.array([np.exp(log_t)]), model)[0]
        mixture = np.einsum("c,cij->ij", model.weights, p) + model.invariant * np.eye(len(counts))
        return -float(np.sum(counts * np.log(np.maximum(mixture, 1e-300))))

    if counts.sum() == np.trace(counts):
        return 0.0
    best = minimize_scalar(
        minus_log_likelihood,
        bounds=(np.log(1e-6), np.log(longest)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(np.exp(best.x))
