"""A model string made into numbers, and derivatives of numbers made into derivatives of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.errors import ModelError, NumericalError
from phloem.model.eigensystem import eigensystem
from phloem.model.parameter import Parameter, ParameterValue, Values, softmax_gradient
from phloem.model.record import ProcessNumbers, SiteModel, SiteModelGradient
from phloem.model.site_rates import SiteRates
from phloem.model.substitution import Gradient, SubstitutionFamily, Term

Ascertainment = Literal["none", "variable"]


@dataclass(frozen=True, eq=False)
class Model:
    """Substitution family × site rates × root frequencies × ascertainment, and its parameters.

    terms: the pieces of the model string. parameters: those of all terms, with values where they are fixed.
    root_term: term of root frequencies of their own, or None where the root has the stationary ones.
    ascertainment: 'variable' where constant characters could not be observed (Lewis 2001, Mkv).
    observed_state: (S,) the alphabet state that every state of the model shows; identity except where hidden
    classes are added (covarion). datatype: of the alphabet the model was made for.
    """

    substitution: SubstitutionFamily
    site_rates: SiteRates
    terms: tuple[Term, ...]
    parameters: tuple[Parameter, ...]
    observed_state: np.ndarray
    datatype: str
    root_term: Term | None = None
    ascertainment: Ascertainment = "none"

    @property
    def name(self) -> str:
        """Canonical name, without values: 'GTR+F+I+G4'."""
        fixed = {p.name for p in self.parameters if not p.is_free}
        return "".join(_label(t, all(p.name in fixed for p in t.parameters)) for t in self.terms)

    @property
    def n_states(self) -> int:
        return self.substitution.n_states

    @property
    def n_categories(self) -> int:
        """C, without invariable sites."""
        return getattr(self.site_rates.categories, "n_categories", 1)

    @property
    def free(self) -> tuple[Parameter, ...]:
        """Parameters without a value."""
        return tuple(p for p in self.parameters if p.is_free)

    def parameter(self, name: str) -> Parameter:
        for p in self.parameters:
            if p.name == name:
                return p
        raise ModelError(
            f"model {self.name} has no parameter '{name}'",
            hint=f"Its parameters are: {', '.join(p.name for p in self.parameters) or 'none'}.",
        )

    def with_values(self, values: Values) -> Model:
        """The same model with these parameters fixed; ModelError for unknown names and impossible values."""
        fixed = {name: self.parameter(name).checked(value) for name, value in values.items()}
        return replace(
            self, parameters=tuple(replace(p, value=fixed.get(p.name, p.value)) for p in self.parameters)
        )

    def start_values(self) -> dict[str, ParameterValue]:
        """Where an optimiser or sampler starts: values of fixed parameters, starts of free ones."""
        return {p.name: p.checked(p.start if p.value is None else p.value) for p in self.parameters}

    def values(self, values: Values | None = None) -> dict[str, ParameterValue]:
        """Every parameter's value: the given, else the fixed one. ModelError names one that has none."""
        given = values or {}
        for name in given:
            self.parameter(name)
        result: dict[str, ParameterValue] = {}
        for p in self.parameters:
            value = given.get(p.name, p.value)
            if value is None:
                raise ModelError(
                    f"parameter '{p.name}' of model {self.name} has no value",
                    hint=f"Write it in braces after the model ({self._example(p)}), or fit it (--optimize)"
                    + ("; +F counts frequencies in the data." if p.name == "frequencies" else "."),
                )
            result[p.name] = p.checked(value)
        return result

    def evaluate(self, values: Values | None = None) -> SiteModel:
        """All numbers that the likelihood needs, from fixed values and the given ones."""
        v = self.values(values)
        process = self.substitution.evaluate(v)
        rates, weights, invariant = self.site_rates.evaluate(v)
        root = process.frequencies if self.root_term is None else np.asarray(v["root_frequencies"])
        if not (np.isfinite(process.rate_matrix).all() and np.isfinite(rates).all()):
            raise NumericalError(f"model {self.name} gives rates that are not finite")
        numbers = ProcessNumbers(process.rate_matrix, process.frequencies, root, eigensystem(process))
        return SiteModel.of_one(numbers, rates, weights, invariant)

    def backpropagate(self, values: Values | None, gradient: SiteModelGradient) -> Gradient:
        """Derivatives by parameter name, of fixed parameters too.

        A simplex reports softmax coordinates: with x = softmax(z), d/dz_i = x_i (g_i - Σ_j x_j g_j).
        """
        v = self.values(values)
        (process,) = gradient.processes
        d_frequencies = process.root_frequencies + gradient.invariant_frequencies
        result: Gradient = {}
        if self.root_term is not None:
            result["root_frequencies"] = softmax_gradient(np.asarray(v["root_frequencies"]), d_frequencies)
            d_frequencies = np.zeros_like(d_frequencies)
        result |= self.substitution.backpropagate(v, process.rate_matrix, d_frequencies)
        result |= self.site_rates.backpropagate(v, gradient.rates, gradient.weights, gradient.invariant)
        return {p.name: result[p.name] for p in self.parameters}

    def text(self, values: Values | None = None) -> str:
        """The model string with all known values; parsed again it gives the same numbers.

        Values given here win over fixed ones; a parameter without either stays free.
        """
        known = {p.name: p.value for p in self.parameters if p.value is not None}
        known |= {name: self.parameter(name).checked(value) for name, value in (values or {}).items()}
        return "".join(_term_text(term, known) for term in self.terms)

    def _example(self, parameter: Parameter) -> str:
        term = next(t for t in self.terms if parameter.name in (p.name for p in t.parameters))
        return f"{_label(term, True)}{{{', '.join(term.slots)}}}"


def _label(term: Term, has_values: bool) -> str:
    return term.label_with_values or term.label if has_values else term.label


def _term_text(term: Term, known: Mapping[str, ParameterValue]) -> str:
    numbers: dict[str, float] = {}
    for p in term.parameters:
        if p.name in known:
            numbers |= dict(zip(p.elements or (p.name,), np.atleast_1d(known[p.name])))
    if not numbers:
        return term.label
    if len(numbers) == len(term.slots):
        return f"{_label(term, True)}{{{','.join(repr(float(numbers[s])) for s in term.slots)}}}"
    named = ",".join(f"{s}={float(numbers[s])!r}" for s in term.slots if s in numbers)
    return f"{term.label}{{{named}}}"
