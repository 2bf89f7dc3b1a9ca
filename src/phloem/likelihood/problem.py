"""From patterns, tree, model and parameter values to the engine's problem; what comes back is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.data.patterns import SitePatterns
from phloem.data.translation import distances
from phloem.data.unseen import Unseen, could_be_unseen, unseen_patterns
from phloem.errors import InputError, ModelError, NumericalError
from phloem.model.model import Model
from phloem.pruning.interface import Problem
from phloem.pruning.site_order import SiteOrder

# The record that TreeLikelihood.gradient returns.


@dataclass(frozen=True, eq=False)
class Gradient:
    """The log-likelihood and its derivatives, all from one backward pass.

    branch_names: B names. branch_lengths: (B,) d/d length, in the same order, or (K, B) where the model
    has K sets of branch lengths (+H). branch_rates: (B,) d/d rate of
    the branch, where a branch's effective length is length × rate.
    parameters: by element name (kappa, rate_AC, frequency_A, alpha, …); those of a simplex are in softmax
    coordinates z, x = softmax(z) (docs/architecture.md), and sum to 0.
    root_frequencies: (S,) d/d entry of the root distribution, entries taken as independent; None for a
    mixture of processes, each of which has its own.
    Without parameters asked for, parameters is empty and root_frequencies None.
    """

    log_likelihood: float
    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    branch_rates: np.ndarray
    parameters: dict[str, float]
    root_frequencies: np.ndarray | None

    def __repr__(self) -> str:
        sizes = f"{len(self.branch_names):,} branches, {len(self.parameters):,} numbers of the model"
        return f"Gradient(log_likelihood={self.log_likelihood:.6f}; {sizes})"


# NaN and -inf never leave silently: what is impossible is named.


def require_possible(value: float, sites: Callable[[], np.ndarray], patterns: SitePatterns) -> float:
    """The log-likelihood if it is finite, else a NumericalError. sites: site log-likelihoods by pattern."""
    if np.isfinite(value):
        return float(value)
    by_pattern = sites()[: len(patterns.weights)]
    wrong = np.flatnonzero(~np.isfinite(by_pattern[patterns.site_pattern]))
    if not len(wrong):
        raise NumericalError(f"the log-likelihood is {value}: no character that can be seen is possible here")
    more = f" and {len(wrong) - 1} others" if len(wrong) > 1 else ""
    found = by_pattern[patterns.site_pattern[wrong[0]]]
    raise NumericalError(
        f"site {wrong[0] + 1}{more} has likelihood 0 (log-likelihood {found})"
        "\n  hint: Taxa that differ are joined by branches of length zero, a state that occurs has frequency"
        " zero, or a parameter is extreme."
    )


def require_finite(gradient: Gradient) -> Gradient:
    """The gradient if every number in it is finite, else a NumericalError that names the first one not."""
    wrong = np.argwhere(~np.isfinite(gradient.branch_lengths))
    if len(wrong):
        name, value = gradient.branch_names[wrong[0][-1]], gradient.branch_lengths[tuple(wrong[0])]
        raise NumericalError(f"the derivative of branch '{name}' is {value}")
    for parameter, value in gradient.parameters.items():
        if not np.isfinite(value):
            raise NumericalError(f"the derivative of parameter '{parameter}' is {value}")
    return gradient


# From site patterns, a tree and a model to the engine's problem.


def engine_problem(
    patterns: SitePatterns,
    model: Model,
    children: tuple[np.ndarray, np.ndarray],
    precision: str = "float64",
    repeats: bool = True,
    distance: np.ndarray | None = None,
) -> Problem:
    """The fixed part of a likelihood. Patterns come first, in their order; unobservable ones follow.

    distance: site_distances, from those who evaluate models under which neighbours depend on each other; for
    others these models are a ModelError.

    A state of the model shows one state of the alphabet (observed_state; several show the same one under
    covarion and other Markov-modulated models), so a character allows every model state that shows one of its
    own. Errors: ModelError where model and alphabet differ, InputError for a site that +ASC says is never
    seen.
    """
    _check_states(patterns.alphabet, model)
    order = None
    if distance is None:
        refuse_along_sites(model, "this analysis")
    elif model.along_sites is not None:
        order = SiteOrder(patterns.site_pattern.astype(np.int64), distance)
    codes, weights = patterns.codes, patterns.weights
    hidden = np.zeros(len(weights), bool)
    if model.unseen:
        unseen = unseen_patterns(len(patterns.taxa), patterns.alphabet.n_states, model.unseen)
        _refuse_unseen_sites(patterns, model.unseen)
        codes = np.hstack([codes, unseen.astype(codes.dtype)])
        weights = np.append(weights, np.zeros(unseen.shape[1]))
        hidden = np.append(hidden, np.ones(unseen.shape[1], bool))
    return Problem(
        tip_codes=np.ascontiguousarray(codes),
        state_sets=np.ascontiguousarray(patterns.state_sets[:, model.observed_state]),
        pattern_weights=weights,
        ascertained=hidden,
        left=children[0],
        right=children[1],
        n_categories=model.n_categories,
        precision=precision,
        repeats=repeats,
        order=order,
    )


def site_distances(model: Model, alignment: Alignment) -> np.ndarray | None:
    """(L,) of every site from the one before it, where neighbours depend on each other."""
    return None if model.along_sites is None else distances(alignment)


def refuse_along_sites(model: Model, what: str) -> None:
    """ModelError where the model's sites depend on their neighbours, for what takes them as independent."""
    if model.along_sites is not None:
        raise ModelError(
            f"{what} takes sites as independent; under {model.name} the rates of neighbours are correlated",
            hint="Write +G in place of +AG; phloem ml --fixed-tree, likelihood, mcmc and simulate know +AG.",
        )


def _check_states(alphabet: Alphabet, model: Model) -> None:
    shown = int(model.observed_state.max()) + 1
    if shown != alphabet.n_states:
        raise ModelError(
            f"model {model.name} has {shown} observable states, the {alphabet.kind} alignment has "
            f"{alphabet.n_states}",
            hint="Choose a model for this data type, or set the data type.",
        )


def _refuse_unseen_sites(patterns: SitePatterns, unseen: Unseen) -> None:
    """InputError where what is known of a character leaves open that it is one that nobody records."""
    possible = could_be_unseen(patterns.codes, patterns.state_sets, unseen)
    sites = np.flatnonzero(possible[patterns.site_pattern]) + 1
    if len(sites):
        listed = ", ".join(str(site) for site in sites[:10]) + (", …" if len(sites) > 10 else "")
        kind, under = "constant", "+ASC (Mkv)"
        hint = "Leave +ASC out, or remove these characters (--sites names those to keep)."
        if unseen == "uninformative":
            kind, under = "uninformative", "+ASC{informative}"
        if unseen == "uninformative" or len(unseen) == patterns.alphabet.n_states:
            others = "informative" if unseen == "uninformative" else "variable"
            hint = f"Say --sites {others}, which keeps the others alone, or leave +ASC out."
        raise InputError(
            f"{len(sites)} of {len(patterns.site_pattern)} characters are {kind}, or would be but for "
            f"missing data; under {under} none can occur: {listed}",
            site=int(sites[0]),
            hint=hint,
        )
