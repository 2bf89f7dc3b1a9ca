"""Small random problems, and the likelihood by summing over every assignment of internal states."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.linalg import expm

from phloem.model.record import EigenSystem, SiteModel
from phloem.pruning.interface import Problem


def random_model(rng, n_states, rates=(1.0,), invariant=0.0, reversible=True, root=None) -> SiteModel:
    """A random rate matrix of one expected substitution per unit; irreversible ones carry no eigensystem."""
    frequencies = rng.dirichlet(np.full(n_states, 3.0))
    q = rng.gamma(2.0, size=(n_states, n_states))
    if reversible:
        q = (q + q.T) * frequencies
    np.fill_diagonal(q, 0.0)
    np.fill_diagonal(q, -q.sum(1))
    if not reversible:
        frequencies = np.linalg.lstsq(
            np.vstack([q.T, np.ones(n_states)]), np.eye(n_states + 1)[-1], rcond=None
        )[0]
    q /= -(frequencies @ np.diag(q))
    weights = rng.dirichlet(np.full(len(rates), 5.0)) * (1.0 - invariant)
    eigen = eigensystem(q, frequencies) if reversible else None
    root = frequencies if root is None else root
    return SiteModel(q, frequencies, root, eigen, np.array(rates, float), weights, invariant)


def eigensystem(q, frequencies) -> EigenSystem:
    """Of a reversible rate matrix, through its symmetric form."""
    root = np.sqrt(frequencies)
    values, vectors = np.linalg.eigh(q * root[:, None] / root)
    return EigenSystem(values, vectors / root[:, None], vectors.T * root)


def random_topology(rng, n_tips: int) -> tuple[np.ndarray, np.ndarray]:
    """left, right (T-1,) of internal node T+k: two random subtrees joined at each step."""
    free, children = list(range(n_tips)), []
    for k in range(n_tips - 1):
        pair = rng.choice(len(free), 2, replace=False)
        children.append([free[i] for i in pair])
        free = [x for i, x in enumerate(free) if i not in pair] + [n_tips + k]
    left, right = np.array(children, np.int32).T
    return left, right


def random_problem(
    rng, n_tips, n_states, n_patterns=7, ambiguous=False, ascertained=False, **options
) -> Problem:
    """Random tip codes and weights; ascertained adds one constant pattern a state, as Mkv does."""
    state_sets = [np.eye(n_states, dtype=bool), np.ones((1, n_states), bool)]
    n_codes = n_states
    if ambiguous:
        partly = rng.random((3, n_states)) < 0.5
        partly[np.arange(3), rng.integers(0, n_states, 3)] = True
        state_sets.append(partly)
        n_codes = n_states + 4
    codes = rng.integers(0, n_codes, (n_tips, n_patterns)).astype(np.uint8)
    codes[:, 0] = 0  # one constant pattern, so that invariable sites matter
    weights, hidden = rng.integers(1, 5, n_patterns).astype(float), np.zeros(n_patterns, bool)
    if ascertained:
        constant = np.repeat(np.arange(n_states, dtype=np.uint8)[None], n_tips, 0)
        codes = np.hstack([codes[:, 1:], constant])
        weights = np.append(weights[1:], np.zeros(n_states))
        hidden = weights == 0
    left, right = random_topology(rng, n_tips)
    return Problem(codes, np.vstack(state_sets), weights, hidden, left, right, 1, **options)


def brute_force_site_likelihoods(problem: Problem, lengths, model: SiteModel) -> np.ndarray:
    """(P,) L = Σ_c w_c Σ over internal states of π_root Π_branches P[parent, child], + invariable sites."""
    n_tips, n_patterns = problem.tip_codes.shape
    n_states, n_internal = len(model.rate_matrix), n_tips - 1
    branches = [(n_tips + k, int(c)) for k in range(n_internal) for c in (problem.left[k], problem.right[k])]
    total = np.zeros(n_patterns)
    for rate, weight in zip(model.rates, model.weights):
        p = {x: expm(model.rate_matrix * rate * lengths[x]) for _, x in branches}
        for states in product(range(n_states), repeat=n_internal):
            term = np.full(n_patterns, weight * model.root_frequencies[states[-1]])
            for above, x in branches:
                row = p[x][states[above - n_tips]]
                term *= (
                    row[states[x - n_tips]] if x >= n_tips else problem.state_sets[problem.tip_codes[x]] @ row
                )
            total += term
    allowed = np.all(problem.state_sets[problem.tip_codes], axis=0)
    return total + model.invariant * (allowed @ model.root_frequencies)


def brute_force_log_likelihood(problem: Problem, lengths, model: SiteModel) -> float:
    """Σ w log L_p, minus W log(1 - Σ_hidden L_p) where patterns are ascertained."""
    site = brute_force_site_likelihoods(problem, lengths, model)
    seen = ~problem.ascertained
    value = problem.pattern_weights[seen] @ np.log(site[seen])
    if problem.ascertained.any():
        value -= problem.pattern_weights.sum() * np.log1p(-site[problem.ascertained].sum())
    return float(value)


def central_difference(function, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Gradient of function at x by central differences."""
    out = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        h = np.zeros(x.shape)
        h[i] = step
        out[i] = (function(x + h) - function(x - h)) / (2 * step)
    return out
