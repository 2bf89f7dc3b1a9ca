"""Mixtures of substitution processes: each site follows one of them, nobody knows which."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.model.record import Parameter, ParameterValue, Values, simplex, softmax_gradient
from phloem.model.site_rates import mean_one, mean_one_adjoint
from phloem.model.substitution import Gradient, Process, SubstitutionFamily, Term

WEIGHTS = "mixture_weights"


@dataclass(frozen=True, eq=False)
class MixtureNumbers:
    """M processes, how often sites follow them (weights, sum 1) and how fast (rates, of weighted mean 1)."""

    processes: tuple[Process, ...]
    weights: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True, eq=False)
class MixtureGradient:
    """Derivatives by the fields of MixtureNumbers, entries independent: rate_matrices and frequencies, one
    of each a process."""

    rate_matrices: list[np.ndarray]
    frequencies: list[np.ndarray]
    weights: np.ndarray
    rates: np.ndarray


class Mixture(Protocol):
    """What a model needs of its processes. families: those of the processes where they are plain ones."""

    @property
    def n_states(self) -> int: ...

    @property
    def n_processes(self) -> int: ...

    @property
    def terms(self) -> tuple[Term, ...]: ...

    @property
    def families(self) -> tuple[SubstitutionFamily, ...]: ...

    def evaluate(self, values: Values) -> MixtureNumbers: ...

    def backpropagate(self, values: Values, gradient: MixtureGradient) -> Gradient: ...


@dataclass(frozen=True, eq=False)
class Component:
    """A family of a mixture. names: its parameters' names → those in the mixture; shared where two
    components name the same."""

    family: SubstitutionFamily
    names: Mapping[str, str]

    @staticmethod
    def of(family: SubstitutionFamily, suffix: str = "") -> Component:
        """Parameters get a suffix: those of the k-th component are kappa.k, frequency_A.k and so on."""
        return Component(family, {p.name: p.name + suffix for t in family.terms for p in t.parameters})

    @cached_property
    def constant(self) -> Process | None:
        """The process of a family without parameters, built once with its eigensystem."""
        return None if self.names else self.family.evaluate({})

    def evaluate(self, values: Values) -> Process:
        return self.constant or self.family.evaluate(self.own(values))

    def own(self, values: Values) -> dict[str, ParameterValue]:
        """Values by the family's names."""
        return {name: values[shared] for name, shared in self.names.items() if shared in values}

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        if not self.names:
            return {}
        found = self.family.backpropagate(self.own(values), d_rate_matrix, d_frequencies)
        return {self.names[name]: slope for name, slope in found.items()}


@dataclass(frozen=True, eq=False)
class ProcessMixture:
    """Families side by side; a single one is the ordinary model.

    terms: as the model string has them. weights: (M,) constant, or None where they are the parameter WEIGHTS.
    relative_rates: (M,) of the components, divided by their weighted mean.
    """

    components: tuple[Component, ...]
    terms: tuple[Term, ...]
    weights: np.ndarray | None
    relative_rates: np.ndarray

    @staticmethod
    def single(family: SubstitutionFamily) -> ProcessMixture:
        return ProcessMixture((Component.of(family),), family.terms, np.ones(1), np.ones(1))

    @property
    def n_states(self) -> int:
        return self.components[0].family.n_states

    @property
    def n_processes(self) -> int:
        return len(self.components)

    @property
    def families(self) -> tuple[SubstitutionFamily, ...]:
        return tuple(c.family for c in self.components)

    def evaluate(self, values: Values) -> MixtureNumbers:
        processes = tuple(c.evaluate(values) for c in self.components)
        weights = self._weights(values)
        return MixtureNumbers(processes, weights, mean_one(weights, self.relative_rates))

    def backpropagate(self, values: Values, gradient: MixtureGradient) -> Gradient:
        total: Gradient = {}
        for component, d_q, d_pi in zip(self.components, gradient.rate_matrices, gradient.frequencies):
            for name, slope in component.backpropagate(values, d_q, d_pi).items():
                total[name] = total[name] + slope if name in total else slope
        if self.weights is None:
            weights = self._weights(values)
            through_rates, _ = mean_one_adjoint(weights, self.relative_rates, gradient.rates)
            total[WEIGHTS] = softmax_gradient(weights, gradient.weights + through_rates)
        return total

    def _weights(self, values: Values) -> np.ndarray:
        return np.asarray(values[WEIGHTS]) if self.weights is None else self.weights


@dataclass(frozen=True, eq=False)
class MixtureTerm(Term):
    """MIX{…,…}: the terms of every component, written one inside the other.

    parts: terms of every component, with their own names; suffixes: what the parameters' names end in within
    the mixture. rates: (M,) written as ':rate:weight' behind a component; None where neither was given.
    """

    parts: tuple[tuple[Term, ...], ...] = ()
    suffixes: tuple[str, ...] = ()
    rates: np.ndarray | None = None

    @property
    def example(self) -> str:
        parts = ("".join(t.example if t.slots else t.label for t in terms) for terms in self.parts)
        return f"{self.label}{{{', '.join(parts)}}}"

    def name(self, fixed: Collection[str]) -> str:
        names = (
            "".join(t.name({f.removesuffix(suffix) for f in fixed if f.endswith(suffix)}) for t in terms)
            for terms, suffix in zip(self.parts, self.suffixes)
        )
        return f"{self.label}{{{','.join(names)}}}"

    def text(self, known: Mapping[str, ParameterValue]) -> str:
        written = []
        for k, (terms, suffix) in enumerate(zip(self.parts, self.suffixes)):
            own = {n.removesuffix(suffix): value for n, value in known.items() if n.endswith(suffix)}
            text = "".join(term.text(own) for term in terms)
            if WEIGHTS in known:
                rate = 1.0 if self.rates is None else float(self.rates[k])
                text += f":{rate!r}:{float(np.asarray(known[WEIGHTS])[k])!r}"
            written.append(text)
        return f"{self.label}{{{','.join(written)}}}"


def renamed(parameter: Parameter, suffix: str) -> Parameter:
    """The parameter of a component by its name within the mixture, all that it names too."""
    return replace(
        parameter,
        name=parameter.name + suffix,
        elements=tuple(e + suffix for e in parameter.elements),
        aliases=tuple(a + suffix for a in parameter.aliases),
        reference=None if parameter.reference is None else parameter.reference + suffix,
    )


def apart(parameter: Parameter, k: int, n: int) -> Parameter:
    """A free parameter of the k-th of n alike components, with a start of its own: components that start
    alike have equal derivatives and would stay alike."""
    start, kind = np.asarray(parameter.start, np.float64), parameter.kind
    if not parameter.is_free or kind not in ("positive", "simplex"):
        return parameter
    if kind == "simplex":
        tilted = start * np.exp(0.3 * np.sin((k + 1.0) * np.arange(1, parameter.size + 1)))
        return replace(parameter, start=tilted / tilted.sum())
    moved = np.clip(start * 2.0 ** ((2 * k - n - 1) / max(n - 1, 1)), parameter.lower, parameter.upper)
    return replace(parameter, start=moved if parameter.elements else float(moved))


def mixture_weights(n: int, start: np.ndarray | None = None) -> Parameter:
    """The parameter of the weights of n classes."""
    return simplex(WEIGHTS, tuple(f"mixture_weight_{i}" for i in range(1, n + 1)), start)
