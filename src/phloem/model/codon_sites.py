"""Codon models whose ω differs among sites: M1a, M2a, M3, M7 and M8 of codeml.

Nielsen and Yang 1998, Genetics 148:929; Yang, Nielsen, Goldman and Pedersen 2000, Genetics 155:431; Wong,
Yang, Goldman and Nielsen 2004, Genetics 168:1041 (M1a, M2a). Every class is a GY94 process; all are divided
by the same number, so that a codon of the alignment undergoes one substitution per unit of branch length on
average and a class of larger ω evolves faster, as in codeml.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.beta_medians import beta_medians, beta_medians_derivatives
from phloem.model.codon import OfCodons, kappa_parameter
from phloem.model.frequencies import CodonTable, FrequencyModel
from phloem.model.mixture import WEIGHTS, MixtureGradient, MixtureNumbers, mixture_weights
from phloem.model.record import Parameter, Values, softmax_gradient
from phloem.model.substitution import Gradient, Process, SubstitutionFamily, Term


class OmegaClasses(Protocol):
    """The distribution of ω over sites: omegas (K,) and weights (K,) that sum to 1, from parameters."""

    @property
    def label(self) -> str: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]: ...

    def backpropagate(self, values: Values, d_omegas: np.ndarray, d_weights: np.ndarray) -> Gradient: ...


@dataclass(frozen=True)
class NearlyNeutral:
    """M1a: ω_1 < 1 and ω_2 = 1; with positive selection (M2a) also ω_3 ≥ 1."""

    positive: bool

    @property
    def label(self) -> str:
        return "M2a" if self.positive else "M1a"

    @property
    def n_classes(self) -> int:
        return 3 if self.positive else 2

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        start = np.array([0.6, 0.3, 0.1]) if self.positive else np.array([0.7, 0.3])
        first = Parameter("omega_1", "unit", start=0.1)
        above = (_above_one("omega_3"),) if self.positive else ()
        return first, *above, mixture_weights(self.n_classes, start)

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        omegas = [float(values["omega_1"]), 1.0]
        if self.positive:
            omegas.append(_checked(values, "omega_3"))
        return np.array(omegas), np.asarray(values[WEIGHTS])

    def backpropagate(self, values: Values, d_omegas: np.ndarray, d_weights: np.ndarray) -> Gradient:
        result: Gradient = {"omega_1": float(d_omegas[0])}
        if self.positive:
            result["omega_3"] = float(d_omegas[2])
        return result | {WEIGHTS: softmax_gradient(np.asarray(values[WEIGHTS]), d_weights)}


@dataclass(frozen=True)
class FreeOmegas:
    """M3: K classes of any ω and weight."""

    n_classes: int

    @property
    def label(self) -> str:
        return f"M3K{self.n_classes}"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        numbers = range(1, self.n_classes + 1)
        start = np.geomspace(0.02, 1.5, self.n_classes)
        omegas = Parameter("omegas", "positive", tuple(f"omega_{i}" for i in numbers), start=start)
        return omegas, mixture_weights(self.n_classes)

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(values["omegas"]), np.asarray(values[WEIGHTS])

    def backpropagate(self, values: Values, d_omegas: np.ndarray, d_weights: np.ndarray) -> Gradient:
        return {"omegas": d_omegas, WEIGHTS: softmax_gradient(np.asarray(values[WEIGHTS]), d_weights)}


@dataclass(frozen=True)
class BetaOmegas:
    """M7: ω from a beta(p, q) distribution, cut into classes of equal weight, each represented by its median.

    With positive selection (M8) a share of the sites has ω_s ≥ 1 instead. n_beta: the beta's classes.
    """

    n_beta: int
    positive: bool

    @property
    def label(self) -> str:
        return f"{'M8' if self.positive else 'M7'}K{self.n_beta}"

    @property
    def n_classes(self) -> int:
        return self.n_beta + self.positive

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        p = Parameter("beta_p", "positive", start=0.5, lower=0.005, upper=99.0)
        q = Parameter("beta_q", "positive", start=1.5, lower=0.005, upper=99.0)
        if not self.positive:
            return p, q
        return p, q, _above_one("omega_s"), mixture_weights(2, np.array([0.9, 0.1]))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        omegas = beta_medians(float(values["beta_p"]), float(values["beta_q"]), self.n_beta)
        weights = np.full(self.n_beta, 1.0 / self.n_beta)
        if not self.positive:
            return omegas, weights
        share = np.asarray(values[WEIGHTS])
        return np.append(omegas, _checked(values, "omega_s")), np.append(share[0] * weights, share[1])

    def backpropagate(self, values: Values, d_omegas: np.ndarray, d_weights: np.ndarray) -> Gradient:
        p, q, n = float(values["beta_p"]), float(values["beta_q"]), self.n_beta
        by_p, by_q = beta_medians_derivatives(p, q, n)
        result: Gradient = {"beta_p": float(d_omegas[:n] @ by_p), "beta_q": float(d_omegas[:n] @ by_q)}
        if not self.positive:
            return result
        d_share = np.array([d_weights[:n].mean(), d_weights[n]])
        weights = softmax_gradient(np.asarray(values[WEIGHTS]), d_share)
        return result | {"omega_s": float(d_omegas[n]), WEIGHTS: weights}


@dataclass(frozen=True, eq=False)
class CodonSites(OfCodons):
    """A Mixture (model/mixture.py) of GY94 processes that share κ and π and differ in ω.

    With q_k the unscaled rates of class k and μ = Σ_k w_k Σ_i π_i Σ_j q_kij, Q_k = (q_k - rows' sums) / μ.
    """

    table: CodonTable
    frequencies: FrequencyModel
    classes: OmegaClasses

    @property
    def n_processes(self) -> int:
        return self.classes.n_classes

    @property
    def families(self) -> tuple[SubstitutionFamily, ...]:
        return ()

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        head = Term(self.classes.label, (*self.classes.parameters, kappa_parameter()))
        return head, self.frequencies.term

    def evaluate(self, values: Values) -> MixtureNumbers:
        omegas, weights = self.classes.evaluate(values)
        pi, rates = self.frequencies.evaluate(values), self._rates(values, omegas)
        leaving = rates @ pi
        mean = weights @ leaving @ pi
        if not mean > 0:
            raise ModelError("every substitution rate is 0: the model never changes state")
        matrices = (r * pi - np.diag(out) for r, out in zip(rates, leaving))
        processes = tuple(Process(q / mean, pi, True) for q in matrices)
        return MixtureNumbers(processes, weights, np.ones(len(omegas)))

    def backpropagate(self, values: Values, gradient: MixtureGradient) -> Gradient:
        """With G_kij = D_kij - D_kii and s = Σ_k Σ_ij G_kij q_kij: d/dq_kij = G_kij / μ - w_k π_i s / μ²,
        d/dπ_i = -Σ_k w_k Σ_j q_kij s / μ² beside that through q_kij = r_kij π_j, d/dw_k = -μ_k s / μ²."""
        omegas, weights = self.classes.evaluate(values)
        pi, rates = self.frequencies.evaluate(values), self._rates(values, omegas)
        leaving = rates @ pi
        mean = weights @ leaving @ pi
        d = np.stack(gradient.rate_matrices)
        g = d - np.diagonal(d, axis1=1, axis2=2)[:, :, None]
        shared = np.sum(g * rates * pi) / mean**2
        d_off = g / mean - weights[:, None, None] * pi[:, None] * shared
        d_pi = (
            np.sum(gradient.frequencies, axis=0) - weights @ leaving * shared + np.sum(d_off * rates, (0, 1))
        )
        by_class = [
            self.changes.gradient(float(values["kappa"]), float(omega), d_k * pi)
            for omega, d_k in zip(omegas, d_off)
        ]
        d_omegas = np.array([found["omega"] for found in by_class])
        result = self.classes.backpropagate(values, d_omegas, gradient.weights - leaving @ pi * shared)
        result["kappa"] = float(sum(found["kappa"] for found in by_class))
        return result | self.frequencies.backpropagate(values, d_pi)

    def _rates(self, values: Values, omegas: np.ndarray) -> np.ndarray:
        """r (K, S, S), symmetric, diagonal 0."""
        kappa = float(values["kappa"])
        return np.stack([self.changes.rates(kappa, float(omega)) for omega in omegas])


def _above_one(name: str) -> Parameter:
    return Parameter(name, "positive", start=2.0, lower=1.0, upper=999.0)


def _checked(values: Values, name: str) -> float:
    value = float(values[name])
    if not value >= 1:
        raise ModelError(
            f"'{name}' is {value:g}; the class under positive selection has 1 or more",
            hint="Use M3 for classes of any omega.",
        )
    return value
