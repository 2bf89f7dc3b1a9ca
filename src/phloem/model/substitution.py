"""What every substitution family offers, the normalisation that they share, and eigensystems."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.record import EigenSystem, Parameter, ParameterValue, ProcessNumbers, Values

Gradient = dict[str, float | np.ndarray]

CONDITION_LIMIT = 1e6  # of eigenvectors: above, a rate matrix counts as defective


@dataclass(frozen=True, eq=False)
class Process:
    """A substitution process with every parameter set.

    rate_matrix: (S, S), rows sum to 0, one expected substitution per unit of branch length.
    frequencies: (S,) its stationary distribution. reversible: π_i Q_ij = π_j Q_ji holds. known: its
    eigensystem, where that of many processes was found in one go.
    """

    rate_matrix: np.ndarray
    frequencies: np.ndarray
    reversible: bool
    known: EigenSystem | None = None

    @cached_property
    def eigen(self) -> EigenSystem | None:
        return self.known or eigensystem(self)


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

    @property
    def example(self) -> str:
        """The term with the names of its values in braces, for messages."""
        return f"{self.label_with_values or self.label}{{{', '.join(self.slots)}}}"

    def name(self, fixed: Collection[str]) -> str:
        """As a model's name has it, without values. fixed: names of parameters that have values."""
        all_fixed = self.label_with_values and all(p.name in fixed for p in self.parameters)
        return str(self.label_with_values) if all_fixed else self.label

    def text(self, known: Mapping[str, ParameterValue]) -> str:
        """With the values that are known, so that it parses back to them."""
        numbers: dict[str, float] = {}
        for p in self.parameters:
            if p.name in known:
                numbers |= dict(zip(p.elements or (p.name,), np.atleast_1d(known[p.name])))
        if not numbers:
            return self.label
        if len(numbers) == len(self.slots):
            label = self.label_with_values or self.label
            return f"{label}{{{','.join(repr(float(numbers[s])) for s in self.slots)}}}"
        named = ",".join(f"{s}={float(numbers[s])!r}" for s in self.slots if s in numbers)
        return f"{self.label}{{{named}}}"


class SubstitutionFamily(Protocol):
    """A family of substitution models. Values are given for every parameter of every term; many sets of them
    at once, stacked along a first axis that all arrays then have, where together.py says so.

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

    off_diagonal: (..., S, S), relative rates i → j, diagonal 0; frequencies (..., S). Raises ModelError where
    nothing ever changes.
    """
    leaving = off_diagonal.sum(-1)
    mean = (frequencies * leaving).sum(-1)
    if not (mean > 0).all():
        raise ModelError("every substitution rate is 0: the model never changes state")
    return (off_diagonal - leaving[..., None] * np.eye(leaving.shape[-1])) / mean[..., None, None]


def normalised_adjoint(off_diagonal, frequencies, d_rate_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Backward of normalised: derivatives with respect to off_diagonal (diagonal 0) and frequencies.

    With G_ij = D_ij - D_ii, s = Σ_i≠j G_ij q_ij and μ = Σ_i π_i Σ_j q_ij:
    d/dq_ij = G_ij / μ - π_i s / μ², d/dπ_i = -(Σ_j q_ij) s / μ².
    """
    leaving = off_diagonal.sum(-1)
    mean = (frequencies * leaving).sum(-1)
    diagonal = np.arange(leaving.shape[-1])
    g = d_rate_matrix - d_rate_matrix[..., diagonal, diagonal][..., None]
    shared = (g * off_diagonal).sum((-2, -1)) / mean**2
    d_off = g / mean[..., None, None] - frequencies[..., None] * shared[..., None, None]
    d_off[..., diagonal, diagonal] = 0.0
    return d_off, -leaving * shared[..., None]


def reversible_process(exchangeability: np.ndarray, frequencies: np.ndarray) -> Process:
    """Q_ij ∝ r_ij π_j with r symmetric (Tavaré 1986), normalised."""
    off_diagonal = exchangeability * frequencies[..., None, :]
    return Process(normalised(off_diagonal, frequencies), frequencies, True)


def reversible_adjoint(exchangeability, frequencies, d_rate_matrix, d_frequencies):
    """Backward of reversible_process: derivatives by r (..., S, S; entries independent) and π (..., S)."""
    across = frequencies[..., None, :]
    d_off, d_pi = normalised_adjoint(exchangeability * across, frequencies, d_rate_matrix)
    return d_off * across, d_frequencies + d_pi + (d_off * exchangeability).sum(-2)


def reversible_processes(exchangeability: np.ndarray, frequencies: np.ndarray) -> tuple[Process, ...]:
    """reversible_process for each row of frequencies (M, S), all above 0, with their eigensystems."""
    whole = reversible_process(exchangeability, frequencies)
    eigen = whole.eigen
    assert eigen is not None
    found = zip(whole.rate_matrix, frequencies, eigen.values, eigen.right, eigen.left)
    return tuple(Process(q, pi, True, EigenSystem(*own)) for q, pi, *own in found)


def eigensystem(process: Process) -> EigenSystem | None:
    """Q = right · diag(values) · left, or None where Q is (nearly) defective.

    Reversible processes go through the symmetric matrix √π Q 1/√π, always real and well conditioned.
    """
    if not process.reversible:
        return _general(process.rate_matrix)
    if (process.frequencies > 0).all():
        return EigenSystem(*_symmetric(process.rate_matrix, process.frequencies))
    return _with_unreachable_states(process.rate_matrix, process.frequencies)


def _symmetric(q: np.ndarray, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    root = np.sqrt(pi)
    similar = q * (root[..., None] / root[..., None, :])
    values, u = np.linalg.eigh((similar + similar.swapaxes(-2, -1)) / 2)
    values[..., -1] = 0.0
    return np.minimum(values, 0.0), u / root[..., None], u.swapaxes(-2, -1) * root[..., None, :]


def _with_unreachable_states(q: np.ndarray, pi: np.ndarray) -> EigenSystem | None:
    """Where states of frequency 0 are left but never entered, Q is block triangular: [[Q_pp, 0], [Q_zp,
    D_z]].

    The eigenvectors of Q_pp are continued into the states z by Q_zp u / (λ - d_z); each z
    adds its unit vector.
    """
    p, z = np.flatnonzero(pi > 0), np.flatnonzero(pi == 0)
    if np.count_nonzero(q[:, z]) > len(z):
        return _general(q)
    values_p, u, u_inverse = _symmetric(q[np.ix_(p, p)], pi[p])
    values_z = q[z, z]
    gap = values_p - values_z[:, None]
    entering = q[np.ix_(z, p)] @ u
    degenerate = np.abs(gap) < 1e-6
    if (degenerate & (np.abs(entering) > 1e-12)).any():
        return None
    w = np.where(degenerate, 0.0, entering / np.where(degenerate, 1.0, gap))
    right, left = np.zeros_like(q), np.zeros_like(q)
    n = len(p)
    right[p, :n], right[z, :n], right[z, np.arange(n, len(q))] = u, w, 1.0
    left[:n, p] = u_inverse
    left[n:, p] = -w @ u_inverse
    left[np.arange(n, len(q)), z] = 1.0
    return EigenSystem(np.concatenate([values_p, values_z]), right, left)


def without_unreachable_states(process: ProcessNumbers) -> ProcessNumbers:
    """The process with a real eigensystem, for a likelihood whose root has its stationary distribution.

    States of frequency 0 are then nowhere on the tree, and how they are left does not matter: here they never
    are. A rate matrix with them can be defective, or its eigenvalues meet and round to a complex pair; one
    with a real eigensystem is returned as it is, and so is one without such states.
    """
    p = process.frequencies > 0
    if process.real_eigen is not None or p.all() or process.root_frequencies[~p].any():
        return process
    states, n, size = np.concatenate([np.flatnonzero(p), np.flatnonzero(~p)]), int(p.sum()), len(p)
    inside, right, left = states[:n], np.zeros((size, size)), np.zeros((size, size))
    values, u, u_inverse = _symmetric(process.rate_matrix[np.ix_(inside, inside)], process.frequencies[p])
    right[inside, :n], left[:n, inside] = u, u_inverse
    right[states[n:], np.arange(n, size)] = left[np.arange(n, size), states[n:]] = 1.0
    eigen = EigenSystem(np.concatenate([values, np.zeros(size - n)]), right, left)
    return replace(process, eigen=eigen)


def _general(q: np.ndarray) -> EigenSystem | None:
    values, right = np.linalg.eig(q)
    if not np.linalg.cond(right) < CONDITION_LIMIT:
        return None
    return EigenSystem(values, right, np.linalg.inv(right))
