"""Characters of two states whose frequencies differ from one character to the next.

Which state of a character is called 0 is nobody's affair, so its frequency has a symmetric beta(a, a), cut
into classes of equal weight, each represented by its median: MrBayes' prset symdirihyperpr. Where a is small
most characters are far from even. Wright, Lloyd and Hillis 2016, Systematic Biology 65:602.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.model.beta_medians import beta_medians, beta_medians_derivatives
from phloem.model.mixture import MixtureGradient, MixtureNumbers
from phloem.model.record import Parameter, Values
from phloem.model.substitution import (
    Gradient,
    SubstitutionFamily,
    Term,
    reversible_adjoint,
    reversible_processes,
)

SHAPE = "alpha_symdir"
_EITHER_WAY = 1.0 - np.eye(2)  # exchangeabilities of two states
_RAREST = 1e-12  # a state that is rarer is as good as never there


@dataclass(frozen=True, eq=False)
class BetaFrequencies:
    """A Mixture (model/mixture.py) of processes on two states that differ in their frequencies alone; each
    has one substitution per unit of branch length. label: the model's, in its string."""

    label: str
    n_processes: int

    @property
    def n_states(self) -> int:
        return 2

    @property
    def families(self) -> tuple[SubstitutionFamily, ...]:
        return ()

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        shape = Parameter(SHAPE, "positive", start=1.0, lower=1e-4, upper=200.0)
        return Term(self.label), Term(f"+FB{self.n_processes}", (shape,))

    def evaluate(self, values: Values) -> MixtureNumbers:
        n = self.n_processes
        processes = reversible_processes(_EITHER_WAY, self.frequencies(values))
        return MixtureNumbers(processes, np.full(n, 1.0 / n), np.ones(n))

    def backpropagate(self, values: Values, gradient: MixtureGradient) -> Gradient:
        """By the frequency of state 0, that of state 1 being the rest, and on to a, which is both of a beta's
        numbers."""
        a, frequencies = float(values[SHAPE]), self.frequencies(values)
        by_a = np.sum(beta_medians_derivatives(a, a, self.n_processes), axis=0)
        by_a[frequencies.min(1) <= _RAREST] = 0.0
        by_matrix, by_root = np.array(gradient.rate_matrices), np.array(gradient.frequencies)
        _, of_both = reversible_adjoint(_EITHER_WAY, frequencies, by_matrix, by_root)
        return {SHAPE: float((of_both[:, 0] - of_both[:, 1]) @ by_a)}

    def frequencies(self, values: Values) -> np.ndarray:
        """(n, 2) of the two states in every class; classes of the upper half mirror those of the lower."""
        a, n = float(values[SHAPE]), self.n_processes
        rare = np.clip(beta_medians(a, a, n)[: (n + 1) // 2], _RAREST, 0.5)
        lower = np.stack([rare, 1.0 - rare], axis=1)
        return np.concatenate([lower, lower[: n // 2][::-1, ::-1]])
