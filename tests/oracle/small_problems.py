"""Small random problems, and the likelihood by summing over every assignment of internal states."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from scipy.linalg import expm

from phloem.model.record import EigenSystem, ProcessNumbers, SiteModel, SiteModelGradient
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
    process = ProcessNumbers(q, frequencies, root, eigen)
    return SiteModel.of_one(process, np.array(rates, float), weights, invariant)


def random_mixture(rng, n_states, n_processes=3, n_lengths=1, invariant=0.0, reversible=True) -> SiteModel:
    """Every process twice, at random rates and weights, in random order; n_lengths sets of branch lengths."""
    processes = tuple(random_model(rng, n_states, reversible=reversible).single for _ in range(n_processes))
    process = rng.permutation(np.repeat(np.arange(n_processes), 2))
    c = len(process)
    weights, rates = rng.dirichlet(np.full(c, 5.0)) * (1.0 - invariant), rng.gamma(3.0, 0.3, c)
    length_class = rng.permutation(np.arange(c) % n_lengths)
    constant = rng.dirichlet(np.full(n_states, 3.0))
    return SiteModel(processes, process, rates, weights, length_class, invariant, constant)


def with_process(model: SiteModel, k: int = 0, **changes) -> SiteModel:
    """The model with fields of process k replaced; where it is the only one, invariable sites follow it."""
    processes = list(model.processes)
    processes[k] = replace(processes[k], **changes)
    constant = model.invariant_frequencies
    if len(processes) == 1:
        constant = processes[0].root_frequencies
    return replace(model, processes=tuple(processes), invariant_frequencies=constant)


def named_arrays(gradient: SiteModelGradient) -> dict[str, np.ndarray]:
    """Every derivative by the model's numbers, by name."""
    arrays = {name: getattr(gradient, name) for name in ("rates", "weights", "invariant_frequencies")}
    for k, process in enumerate(gradient.processes):
        arrays |= {f"{name} {k}": getattr(process, name) for name in ("rate_matrix", "root_frequencies")}
    return {name: np.asarray(array) for name, array in (arrays | {"invariant": gradient.invariant}).items()}


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
    """(P,) L = Σ_c w_c Σ over internal states of π_root Π_branches P[parent, child], + invariable sites.

    lengths: (N,) or (K, N)."""
    n_tips, n_patterns = problem.tip_codes.shape
    n_states, n_internal = problem.state_sets.shape[1], n_tips - 1
    branches = [(n_tips + k, int(c)) for k in range(n_internal) for c in (problem.left[k], problem.right[k])]
    total = np.zeros(n_patterns)
    for c, (rate, weight) in enumerate(zip(model.rates, model.weights)):
        process, own = model.processes[model.process[c]], np.atleast_2d(lengths)[model.length_class[c]]
        p = {x: expm(process.rate_matrix * rate * own[x]) for _, x in branches}
        for states in product(range(n_states), repeat=n_internal):
            term = np.full(n_patterns, weight * process.root_frequencies[states[-1]])
            for above, x in branches:
                row = p[x][states[above - n_tips]]
                term *= (
                    row[states[x - n_tips]] if x >= n_tips else problem.state_sets[problem.tip_codes[x]] @ row
                )
            total += term
    allowed = np.all(problem.state_sets[problem.tip_codes], axis=0)
    return total + model.invariant * (allowed @ model.invariant_frequencies)


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
