"""The Mk model of discrete characters, unordered and ordered (Lewis 2001)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.model.frequency_models import FrequencyModel
from phloem.model.parameter import Values
from phloem.model.substitution import Gradient, Process, Term, reversible_adjoint, reversible_process


@dataclass(frozen=True)
class MkModel:
    """All changes at one rate, times the frequency of the new state; ordered: between neighbours only."""

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
