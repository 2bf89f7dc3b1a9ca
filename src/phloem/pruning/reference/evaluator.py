"""The engine made of the NumPy reference kernels: slow, readable, the yardstick of every other engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from phloem.errors import NumericalError
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.model.transition import rate_matrix_adjoints, transition_matrices
from phloem.pruning.interface import (
    ColumnClasses,
    EngineGradient,
    Problem,
    evaluated,
    pending,
    refuse_to_propose,
    require_shape,
)
from phloem.pruning.reference.recursion import (
    RootAdjoint,
    branch_derivatives,
    branch_second_derivatives,
    by_length_class,
    column_classes,
    node_posteriors,
    postorder,
    preorder,
    root_adjoint,
    site_branch_derivatives,
    site_log_likelihoods,
    total_log_likelihood,
)
from phloem.pruning.site_order import refuse_neighbours


@dataclass(frozen=True)
class RootColumns:
    """What the root's distinct columns carry: weights (K,), ascertained (K,), invariant_states (K, S)."""

    weights: np.ndarray
    ascertained: np.ndarray
    invariant_states: np.ndarray


@dataclass(frozen=True)
class Evaluation:
    """One evaluated state: everything the pre-order pass needs, so that accept and reject only swap it."""

    classes: ColumnClasses
    root: RootColumns
    lengths: np.ndarray
    model: SiteModel
    transition: np.ndarray
    messages: list[np.ndarray]
    exponents: list[np.ndarray]
    site_log: np.ndarray
    log_likelihood: float
    site_weights: np.ndarray


class ReferenceEvaluator:
    """Evaluator (pruning/interface.py) in NumPy: propose recomputes everything, accept and reject swap."""

    name = "reference"

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._classes, self._root = _columns(problem, problem.left, problem.right)
        self._accepted: Evaluation | None = None
        self._proposed: Evaluation | None = None

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        self._proposed = None
        self._accepted = self._evaluate(self._classes, self._root, lengths, model)
        return self._accepted.log_likelihood

    def site_log_likelihoods(self) -> np.ndarray:
        state = self._last()
        return state.site_log[state.classes.pattern_column]

    def reweight(self, pattern_weights: np.ndarray) -> None:
        """Let every pattern (P,) count so often from the next evaluation on."""
        n_root = len(self._root.weights)
        weights = np.bincount(self._classes.pattern_column, pattern_weights, n_root)
        self._root = replace(self._root, weights=weights)

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        self.log_likelihood(lengths, model)
        state = self._last()
        root, sets = _root_adjoint(state, state.site_weights), self._problem.state_sets
        adjoint, _ = preorder(state.classes, state.transition, state.messages, state.exponents, sets, root.q)
        d = branch_derivatives(adjoint, state.transition, model)
        site_model = None
        if parameters:
            lengths = state.lengths[..., :-1]
            d_q = rate_matrix_adjoints(adjoint, lengths, model)
            site_model = SiteModelGradient(
                processes=tuple(map(ProcessGradient, d_q, root.root_frequencies)),
                rates=np.einsum("cx,xc->c", model.by_category(lengths), d),
                weights=root.weights,
                invariant=root.invariant,
                invariant_frequencies=root.invariant_frequencies,
            )
        by_category = np.vstack([d * model.rates, np.zeros(model.n_categories)]).T  # no branch above the root
        return EngineGradient(state.log_likelihood, by_length_class(by_category, model), site_model)

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        state, first, _ = self._unsummed(lengths, model)
        return first[..., state.classes.pattern_column]

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        state, first, second = self._unsummed(lengths, model)
        root = state.root
        return branch_second_derivatives(first, second, root.weights, root.ascertained, state.site_log)

    def node_posteriors(self, lengths: np.ndarray, model: SiteModel) -> Iterator[tuple[int, np.ndarray]]:
        """Every node with (P, S), the marginal posterior of its states, rows sum to 1; parents first."""
        self.log_likelihood(lengths, model)
        state = self._last()
        q = _root_adjoint(state, np.ones_like(state.site_log)).q
        passed = state.classes, state.transition, state.messages, state.exponents
        constant = model.invariant * state.root.invariant_states * model.invariant_frequencies
        allowed = constant.any(axis=1)  # elsewhere 1 / L may overflow, and does not matter
        constant = constant * np.exp(-np.where(allowed, state.site_log, 0.0))[:, None]
        for node, variable in node_posteriors(*passed, q, self._problem.state_sets):
            yield node, (variable + constant)[state.classes.pattern_column]

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        refuse_to_propose(self._proposed, left, right)
        state = self._last()
        classes, root = state.classes, state.root
        if left is not None:
            classes, root = _columns(self._problem, left, right)
        self._proposed = self._evaluate(classes, root, lengths, model or state.model)
        return self._proposed.log_likelihood

    def accept(self) -> None:
        self._accepted, self._proposed = pending(self._proposed), None
        self._classes, self._root = self._accepted.classes, self._accepted.root

    def reject(self) -> None:
        pending(self._proposed)
        self._proposed = None

    def _last(self) -> Evaluation:
        return evaluated(self._proposed or self._accepted)

    def _unsummed(self, lengths, model):
        self.log_likelihood(lengths, model)
        state = self._last()
        q = _root_adjoint(state, np.ones_like(state.site_log)).q
        first, second = site_branch_derivatives(
            state.classes, state.transition, state.messages, state.exponents, q, model
        )
        return state, first, second

    def _evaluate(self, classes, root: RootColumns, lengths, model: SiteModel) -> Evaluation:
        refuse_neighbours(model, "the reference")
        lengths = np.array(lengths, np.float64)
        require_shape(lengths, model, classes.n_nodes)
        precision = np.dtype(self._problem.precision)
        transition = transition_matrices(lengths[..., :-1], model).astype(precision)
        messages, exponents = postorder(classes, transition, self._problem.state_sets)
        with np.errstate(divide="ignore"):  # an impossible column is -inf here, an error in TreeLikelihood
            site_log = site_log_likelihoods(messages[-1], exponents[-1], model, root.invariant_states)
        value, site_weights = total_log_likelihood(site_log, root.weights, root.ascertained)
        if np.isnan(value):
            raise NumericalError("the log-likelihood is not a number")
        return Evaluation(
            classes, root, lengths, model, transition, messages, exponents, site_log, value, site_weights
        )


def _root_adjoint(state: Evaluation, weights: np.ndarray) -> RootAdjoint:
    partials, exponents = state.messages[-1], state.exponents[-1]
    return root_adjoint(
        partials, exponents, state.model, state.root.invariant_states, state.site_log, weights
    )


def _columns(problem: Problem, left: np.ndarray, right: np.ndarray) -> tuple[ColumnClasses, RootColumns]:
    classes = column_classes(left, right, problem.tip_codes, problem.repeats)
    n_root = classes.size(classes.n_nodes - 1)
    column = classes.pattern_column
    allowed = np.ones((len(column), problem.state_sets.shape[1]), bool)
    for codes in problem.tip_codes:
        allowed &= problem.state_sets[codes]
    ascertained, invariant_states = np.zeros(n_root, bool), np.empty((n_root, allowed.shape[1]), bool)
    ascertained[column], invariant_states[column] = problem.ascertained, allowed
    return classes, RootColumns(
        np.bincount(column, problem.pattern_weights, n_root), ascertained, invariant_states
    )
