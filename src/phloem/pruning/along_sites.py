"""The likelihood of sites whose neighbours have correlated rates, by evaluators of one category each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from phloem.errors import ModelError, NumericalError
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.pruning.interface import EngineGradient, Evaluator, Problem, evaluated
from phloem.pruning.site_order import (
    SiteOrder,
    SitesTogether,
    Together,
    powers_adjoint,
    powers_of,
)


class Reweighted(Evaluator, Protocol):
    """An evaluator whose patterns can count as often as one likes."""

    def reweight(self, pattern_weights: np.ndarray) -> None: ...


class AlongSites:
    """Evaluator (pruning/interface.py) of a problem whose sites have an order.

    Of every category an evaluator finds the likelihoods of the patterns as if all sites were of it, and
    `together` sums over the sequences of categories. The gradient of the whole is Σ over sites and categories
    of the category's posterior times the gradient of the site's log-likelihood in it: the gradient of every
    category's evaluator whose patterns count as often as they are of it. Where a site is impossible in a
    category (of rate 0, as the lowest of a gamma distribution of a small shape is by rounding), that says
    nothing of this rate; lengths and processes do not move such a likelihood.
    """

    def __init__(self, problem: Problem, make: Callable[[Problem], Reweighted], together: Together) -> None:
        assert problem.order is not None
        if problem.ascertained.any():
            raise ModelError("patterns that cannot be observed have no place among neighbours")
        self._order: SiteOrder = problem.order
        one = replace(problem, n_categories=1, order=None)
        self._inner = [make(one) for _ in range(problem.n_categories)]
        self._n_patterns, self._sum = problem.tip_codes.shape[1], together
        self.name = self._inner[0].name
        self._accepted: tuple[SiteModel, SitesTogether] | None = None
        self._proposed: tuple[SiteModel, SitesTogether] | None = None

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        self._proposed = None
        powers_of(model, self._order)  # says that there are none, before anything is evaluated
        for inner, own in zip(self._inner, self._models(model)):
            inner.log_likelihood(lengths, own)
        self._accepted = model, self._together(model)
        return self._accepted[1].log_likelihood

    def site_log_likelihoods(self) -> np.ndarray:
        """(P,) of every pattern as if it were the only site there is: they do not add up to the whole."""
        model, _ = self._last()
        return np.logaddexp.reduce(self._by_category() + np.log(model.weights), axis=1)

    def site_categories(self) -> np.ndarray:
        """(C, L) posterior probability of every category at every site, given all sites."""
        return self._last()[1].shares.T

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        value, found = self.log_likelihood(lengths, model), self._last()[1]
        each = []
        for c, (inner, own) in enumerate(zip(self._inner, self._models(model))):
            inner.reweight(np.bincount(self._order.pattern, found.shares[:, c], self._n_patterns))
            each.append(inner.gradient(lengths, own, parameters))
        lengths_slope = np.sum([g.branch_lengths for g in each], axis=0)
        by_model = self._site_model_gradient(model, found, each) if parameters else None
        return EngineGradient(value, lengths_slope, by_model)

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        raise _not_of_sites("derivatives by site")

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        raise _not_of_sites("second derivatives")

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        old, _ = self._last()
        given = [None] * len(self._inner) if model is None else self._models(model)
        done = list[Reweighted]()
        try:
            for inner, own in zip(self._inner, given):
                inner.propose(lengths, changed, own, left, right)
                done.append(inner)
        except NumericalError:
            for inner in done:
                inner.reject()
            raise
        self._proposed = model or old, self._together(model or old)
        return self._proposed[1].log_likelihood

    def accept(self) -> None:
        for inner in self._inner:
            inner.accept()
        self._accepted, self._proposed = self._proposed, None

    def reject(self) -> None:
        for inner in self._inner:
            inner.reject()
        self._proposed = None

    def _last(self) -> tuple[SiteModel, SitesTogether]:
        return evaluated(self._proposed or self._accepted)

    def _models(self, model: SiteModel) -> list[SiteModel]:
        """Of every category on its own."""
        whole = replace(model, neighbours=None, weights=np.ones(1), process=np.zeros(1, np.int64))
        whole = replace(whole, length_class=np.zeros(1, np.int64))
        return [replace(whole, rates=model.rates[c : c + 1]) for c in range(len(self._inner))]

    def _by_category(self) -> np.ndarray:
        """(P, C) log-likelihoods of patterns, of the last evaluation."""
        return np.stack([inner.site_log_likelihoods() for inner in self._inner], axis=1)

    def _together(self, model: SiteModel) -> SitesTogether:
        matrices = powers_of(model, self._order)
        return self._sum(self._order, self._by_category(), model.weights, matrices)

    def _site_model_gradient(
        self, model: SiteModel, found: SitesTogether, each: Sequence[EngineGradient]
    ) -> SiteModelGradient:
        """weights: those of the first site's category."""
        assert model.neighbours is not None
        own = [g.site_model for g in each if g.site_model is not None]
        process = ProcessGradient(
            np.sum([g.processes[0].rate_matrix for g in own], axis=0),
            np.sum([g.processes[0].root_frequencies for g in own], axis=0),
        )
        return SiteModelGradient(
            processes=(process,),
            rates=np.array([float(g.rates[0]) for g in own]),
            weights=found.shares[0] / model.weights,
            invariant=0.0,
            invariant_frequencies=np.zeros_like(model.invariant_frequencies),
            neighbours=powers_adjoint(model.neighbours, self._order.distances, found.pairs),
        )


def _not_of_sites(what: str) -> ModelError:
    return ModelError(
        f"there are no {what} under +AG: a site's likelihood depends on its neighbours",
        hint="Write +G in place of +AG here.",
    )
