"""What every substitution family offers, and the normalisation that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.parameter import Parameter, Values

Gradient = dict[str, float | np.ndarray]


@dataclass(frozen=True, eq=False)
class Process:
    """A substitution process with every parameter set.

    rate_matrix: (S, S), rows sum to 0, one expected substitution per unit of branch length.
    frequencies: (S,) its stationary distribution. reversible: π_i Q_ij = π_j Q_ji holds.
    """

    rate_matrix: np.ndarray
    frequencies: np.ndarray
    reversible: bool


@dataclass(frozen=True, eq=False)
class Term:
    """One piece of a model string: a label, its parameters, and the order of their values in braces.

    order: names of elements (or of scalar parameters) as written in braces; empty: as the parameters come.
    reference: accept one value more than there are; all are then divided by it (RAxML-NG writes all rates).
    label_with_values: the label when the values are given (`+FO` is written `+F{…}` once it has values).
    """

    label: str
    parameters: tuple[Parameter, ...] = ()
    order: tuple[str, ...] = ()
    reference: bool = False
    label_with_values: str | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of all single values, in the order of the braces."""
        return self.order or tuple(e for p in self.parameters for e in (p.elements or (p.name,)))


class SubstitutionFamily(Protocol):
    """A family of substitution models. Values are given for every parameter of every term.

    backpropagate turns derivatives with respect to the entries of rate_matrix (S, S) and of frequencies (S,),
    all taken as independent, into derivatives by parameter name (simplex ones in softmax coordinates).
    """

    @property
    def n_states(self) -> int: ...

    @property
    def terms(self) -> tuple[Term, ...]: ...

    def evaluate(self, values: Values) -> Process: ...

    def backpropagate(
        self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray
    ) -> Gradient: ...


def normalised(off_diagonal: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Rate matrix with rows that sum to 0 and -Σ_i π_i Q_ii = 1.

    off_diagonal: (S, S), relative rates i → j, diagonal 0. Raises ModelError where nothing ever changes.
    """
    leaving = off_diagonal.sum(1)
    mean = frequencies @ leaving
    if not mean > 0:
        raise ModelError("every substitution rate is 0: the model never changes state")
    return (off_diagonal - np.diag(leaving)) / mean


def normalised_adjoint(off_diagonal, frequencies, d_rate_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Backward of normalised: derivatives with respect to off_diagonal (diagonal 0) and frequencies.

    With G_ij = D_ij - D_ii, s = Σ_i≠j G_ij q_ij and μ = Σ_i π_i Σ_j q_ij:
    d/dq_ij = G_ij / μ - π_i s / μ², d/dπ_i = -(Σ_j q_ij) s / μ².
    """
    leaving = off_diagonal.sum(1)
    mean = frequencies @ leaving
    g = d_rate_matrix - np.diag(d_rate_matrix)[:, None]
    shared = np.sum(g * off_diagonal) / mean**2
    d_off = g / mean - frequencies[:, None] * shared
    np.fill_diagonal(d_off, 0.0)
    return d_off, -leaving * shared


def reversible_process(exchangeability: np.ndarray, frequencies: np.ndarray) -> Process:
    """Q_ij ∝ r_ij π_j with r symmetric (Tavaré 1986), normalised."""
    return Process(normalised(exchangeability * frequencies, frequencies), frequencies, True)


def reversible_adjoint(exchangeability, frequencies, d_rate_matrix, d_frequencies):
    """Backward of reversible_process: derivatives by r (S, S; entries independent) and π (S,)."""
    d_off, d_pi = normalised_adjoint(exchangeability * frequencies, frequencies, d_rate_matrix)
    return d_off * frequencies, d_frequencies + d_pi + np.sum(d_off * exchangeability, axis=0)
