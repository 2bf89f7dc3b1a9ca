"""Models whose rate switches along a branch between hidden classes; the covarion model is one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.mixture import MixtureGradient, MixtureNumbers
from phloem.model.record import Parameter, Values, simplex, softmax_gradient
from phloem.model.site_rates import Categories, mean_one, mean_one_adjoint
from phloem.model.substitution import Gradient, Process, SubstitutionFamily, Term


class Switching(Protocol):
    """k hidden classes: relative rates ρ (k,) of mean 1 over weights w (k,), and switching rates G (k, k).

    evaluate returns (ρ, w, G); G's rows sum to 0 and w is its stationary distribution.
    backpropagate takes the derivatives of all three, entries independent.
    """

    @property
    def n_classes(self) -> int: ...

    @property
    def term(self) -> Term: ...

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    def backpropagate(self, values: Values, d_rates, d_weights, d_generator) -> Gradient: ...


@dataclass(frozen=True)
class Covarion:
    """Class 1 is on, class 2 is off and has rate 0 (Tuffley and Steel 1998).

    switch_on is the rate off → on, switch_off on → off, both per unit of branch length; a site is on with
    probability switch_on / (switch_on + switch_off).
    """

    n_classes: int = 2

    @property
    def term(self) -> Term:
        return Term("+COV", (Parameter("switch_on", "positive"), Parameter("switch_off", "positive")))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        on, off = float(values["switch_on"]), float(values["switch_off"])
        if not on > 0:
            raise ModelError("'switch_on' must be above 0: else no site ever changes")
        total = on + off
        return np.array([total / on, 0.0]), np.array([on, off]) / total, np.array([[-off, off], [on, -on]])

    def backpropagate(self, values: Values, d_rates, d_weights, d_generator) -> Gradient:
        on, off = float(values["switch_on"]), float(values["switch_off"])
        share = (d_weights[0] - d_weights[1]) / (on + off) ** 2
        d_on = -d_rates[0] * off / on**2 + off * share + d_generator[1, 0] - d_generator[1, 1]
        d_off = d_rates[0] / on - on * share + d_generator[0, 1] - d_generator[0, 0]
        return {"switch_on": float(d_on), "switch_off": float(d_off)}


@dataclass(frozen=True)
class RedrawnClasses:
    """k classes; at rate `switching` per unit of branch length the class is drawn anew from the class
    weights.

    Galtier 2001 with free classes. Class rates are relative: they are divided by their weighted mean.
    """

    n_classes: int

    @property
    def term(self) -> Term:
        numbers = range(1, self.n_classes + 1)
        weights = simplex("class_weights", tuple(f"class_weight_{i}" for i in numbers))
        spread = 2.0 * np.arange(1, self.n_classes + 1) / (self.n_classes + 1)
        names = tuple(f"class_rate_{i}" for i in numbers)
        rates = Parameter("class_rates", "positive", names, start=spread, relative=True)
        pairs = tuple(f"class_{what}_{i}" for i in numbers for what in ("weight", "rate"))
        parameters = (Parameter("switching", "positive"), weights, rates)
        return Term(f"+MM{self.n_classes}", parameters, ("switching", *pairs))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights, relative = np.asarray(values["class_weights"]), np.asarray(values["class_rates"])
        if not weights @ relative > 0:
            raise ModelError("every class rate is 0: no site ever changes")
        generator = float(values["switching"]) * (weights - np.eye(self.n_classes))
        return mean_one(weights, relative), weights, generator

    def backpropagate(self, values: Values, d_rates, d_weights, d_generator) -> Gradient:
        weights, relative = np.asarray(values["class_weights"]), np.asarray(values["class_rates"])
        through_mean, d_relative = mean_one_adjoint(weights, relative, d_rates)
        d_w = d_weights + through_mean + float(values["switching"]) * d_generator.sum(0)
        return {
            "switching": float(np.sum(d_generator * (weights - np.eye(self.n_classes)))),
            "class_weights": softmax_gradient(weights, d_w),
            "class_rates": d_relative,
        }


@dataclass(frozen=True, eq=False)
class MarkovModulated:
    """States (class, state), class first: Q = diag(ρ) ⊗ Q_base + G ⊗ I, π = w ⊗ π_base.

    One expected *substitution* per unit of branch length; changes of class are not counted.
    """

    base: SubstitutionFamily
    switching: Switching

    @property
    def n_states(self) -> int:
        return self.switching.n_classes * self.base.n_states

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return *self.base.terms, self.switching.term

    @property
    def observed_state(self) -> np.ndarray:
        """(k·S,) the base model's state that each hidden state shows."""
        return np.tile(np.arange(self.base.n_states), self.switching.n_classes)

    def evaluate(self, values: Values) -> Process:
        substitutions, switches, frequencies, reversible = self.pieces(values)
        return Process(substitutions + switches, frequencies, reversible)

    def pieces(self, values: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """diag(ρ) ⊗ Q_base, G ⊗ I, π, and whether the process is reversible."""
        base = self.base.evaluate(values)
        rates, weights, generator = self.switching.evaluate(values)
        substitutions = np.kron(np.diag(rates), base.rate_matrix)
        switches = np.kron(generator, np.eye(self.base.n_states))
        return substitutions, switches, np.kron(weights, base.frequencies), base.reversible

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        return self.adjoint(values, d_rate_matrix, d_rate_matrix, d_frequencies)

    def adjoint(
        self, values: Values, d_substitutions: np.ndarray, d_switches: np.ndarray, d_frequencies: np.ndarray
    ) -> Gradient:
        """From derivatives by what pieces gives, entries independent."""
        base = self.base.evaluate(values)
        rates, weights, _ = self.switching.evaluate(values)
        k, s = len(rates), len(base.frequencies)
        within = np.einsum("cicj->cij", d_substitutions.reshape(k, s, k, s))
        by_class = d_frequencies.reshape(k, s)
        d_rates = np.einsum("cij,ij->c", within, base.rate_matrix)
        result = self.base.backpropagate(values, np.einsum("c,cij->ij", rates, within), weights @ by_class)
        d_generator = np.einsum("cidi->cd", d_switches.reshape(k, s, k, s))
        return result | self.switching.backpropagate(
            values, d_rates, by_class @ base.frequencies, d_generator
        )


@dataclass(frozen=True, eq=False)
class RatesOfSubstitutions:
    """A Mixture (model/mixture.py): rates across sites that multiply substitutions, not changes of class, as
    in Huelsenbeck 2002, Mol. Biol. Evol. 19:698, and MrBayes' covarion. Category c is a process of its own,
    Q_c = r_c diag(ρ) ⊗ Q_base + G ⊗ I."""

    family: MarkovModulated
    categories: Categories

    @property
    def n_states(self) -> int:
        return self.family.n_states

    @property
    def n_processes(self) -> int:
        return self.categories.n_categories

    @property
    def families(self) -> tuple[SubstitutionFamily, ...]:
        return ()

    @property
    def rates_term(self) -> Term:
        term = self.categories.term
        return replace(term, label=term.label.replace("+", "*", 1))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return *self.family.terms, self.rates_term

    def evaluate(self, values: Values) -> MixtureNumbers:
        substitutions, switches, frequencies, reversible = self.family.pieces(values)
        rates, weights = self.categories.evaluate(values)
        processes = tuple(Process(r * substitutions + switches, frequencies, reversible) for r in rates)
        return MixtureNumbers(processes, weights, np.ones(len(rates)))

    def backpropagate(self, values: Values, gradient: MixtureGradient) -> Gradient:
        substitutions, _, _, _ = self.family.pieces(values)
        rates, _ = self.categories.evaluate(values)
        d = np.stack(gradient.rate_matrices)
        result = self.family.adjoint(
            values, np.tensordot(rates, d, 1), d.sum(0), np.sum(gradient.frequencies, axis=0)
        )
        d_rates = (d * substitutions).sum((1, 2))
        return result | self.categories.backpropagate(values, d_rates, gradient.weights)
