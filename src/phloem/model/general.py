"""Models over any number of states, reversible, irreversible and Mk: traits, places, GTR20, UNREST."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from phloem.errors import ModelError
from phloem.model.frequencies import FrequencyModel
from phloem.model.record import Parameter, Values
from phloem.model.substitution import (
    Gradient,
    Process,
    Term,
    normalised,
    normalised_adjoint,
    reversible_adjoint,
    reversible_process,
)


def pair_name(first: str, second: str) -> str:
    """rate_AC for one-letter states; rate_0_1 and rate_north_south else, so that rate_12 is a category's."""
    letters = all(len(s) == 1 and s.isalpha() for s in (first, second))
    return f"rate_{first}{second}" if letters else f"rate_{first}_{second}"


@dataclass(frozen=True, eq=False)
class ReversibleModel:
    """Q_ij ∝ r_ij π_j with a rate for every pair i < j; that of the last pair is 1 (Tavaré 1986).

    start: (S, S) exchangeabilities that free ones start from; None: all equal.
    """

    label: str
    states: tuple[str, ...]
    frequencies: FrequencyModel
    start: np.ndarray | None = None

    @property
    def n_states(self) -> int:
        return len(self.states)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        rows, columns = np.triu_indices(self.n_states, 1)
        names = tuple(pair_name(self.states[i], self.states[j]) for i, j in zip(rows[:-1], columns[:-1]))
        rates = _rates("exchangeabilities", names, pair_name(self.states[-2], self.states[-1]))
        if self.start is not None:
            by_pair = self.start[rows, columns]
            rates = (replace(rates[0], start=by_pair[:-1] / by_pair[-1]),)
        return Term(self.label, rates, reference=True), self.frequencies.term

    def exchangeability(self, values: Values) -> np.ndarray:
        n, rows, columns = self.n_states, *np.triu_indices(self.n_states, 1)
        free = np.asarray(values["exchangeabilities"] if n > 2 else [])
        r = np.zeros((*free.shape[:-1], n, n))
        r[..., rows[:-1], columns[:-1]], r[..., rows[-1], columns[-1]] = free, 1.0
        return r + r.swapaxes(-2, -1)

    def evaluate(self, values: Values) -> Process:
        return reversible_process(self.exchangeability(values), self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        pi = self.frequencies.evaluate(values)
        d_r, d_pi = reversible_adjoint(self.exchangeability(values), pi, d_rate_matrix, d_frequencies)
        rows, columns = np.triu_indices(self.n_states, 1)
        by_pair = (d_r + d_r.swapaxes(-2, -1))[..., rows, columns]
        result: Gradient = {"exchangeabilities": by_pair[..., :-1]} if self.n_states > 2 else {}
        return result | self.frequencies.backpropagate(values, d_pi)


@dataclass(frozen=True)
class IrreversibleModel:
    """Q_ij of its own for every ordered pair, rows first, that of the last pair is 1 (UNREST of Yang 1994).

    Its frequencies are the stationary ones of Q.
    """

    label: str
    states: tuple[str, ...]

    @property
    def n_states(self) -> int:
        return len(self.states)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        pairs = [(a, b) for a in self.states for b in self.states if a != b]
        names = tuple(pair_name(a, b) for a, b in pairs[:-1])
        rates = _rates("transition_rates", names, pair_name(*pairs[-1]))
        return (Term(self.label, rates, reference=True),)

    def off_diagonal(self, values: Values) -> np.ndarray:
        n = self.n_states
        q = np.zeros((n, n))
        q[~np.eye(n, dtype=bool)] = np.append(values["transition_rates"], 1.0)
        return q

    def evaluate(self, values: Values) -> Process:
        off = self.off_diagonal(values)
        pi, _ = stationary_distribution(off)
        return Process(normalised(off, pi), pi, False)

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        off = self.off_diagonal(values)
        pi, inverse = stationary_distribution(off)
        d_off, d_pi = normalised_adjoint(off, pi, d_rate_matrix)
        moved = -np.outer(pi, inverse @ (d_pi + d_frequencies))
        d_off = d_off + moved - np.diag(moved)[:, None]
        return {"transition_rates": d_off[~np.eye(self.n_states, dtype=bool)][:-1]}


@dataclass(frozen=True)
class MkModel:
    """All changes at one rate, times the frequency of the new state; ordered: between neighbours only (Lewis
    2001)."""

    label: str
    states: tuple[str, ...]
    frequencies: FrequencyModel
    ordered: bool = False

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def terms(self) -> tuple[Term, ...]:
        return Term(self.label), self.frequencies.term

    @property
    def exchangeability(self) -> np.ndarray:
        n = self.n_states
        if self.ordered:
            return np.eye(n, k=1) + np.eye(n, k=-1)
        return np.ones((n, n)) - np.eye(n)

    def evaluate(self, values: Values) -> Process:
        return reversible_process(self.exchangeability, self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        pi = self.frequencies.evaluate(values)
        _, d_pi = reversible_adjoint(self.exchangeability, pi, d_rate_matrix, d_frequencies)
        return self.frequencies.backpropagate(values, d_pi)


def stationary_distribution(off_diagonal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """π with π Q = 0, Σ π = 1, and M⁻¹ with M = Q + c 11ᵀ, through which dπ = -π dQ M⁻¹.

    π M = c 1ᵀ, and M is invertible exactly when π is unique. ModelError otherwise.
    """
    n = len(off_diagonal)
    scale = off_diagonal.sum() / n
    m = off_diagonal - np.diag(off_diagonal.sum(1)) + scale
    if not np.linalg.cond(m) < 1e13:
        raise ModelError(
            "the rates have no unique stationary distribution",
            hint="Let every state be reached from one state.",
        )
    inverse = np.linalg.inv(m)
    pi = np.maximum(scale * inverse.sum(0), 0.0)
    return pi / pi.sum(), inverse


def _rates(name: str, elements: tuple[str, ...], reference: str) -> tuple[Parameter, ...]:
    if not elements:
        return ()
    return (Parameter(name, "positive", elements, start=np.ones(len(elements)), reference=reference),)
