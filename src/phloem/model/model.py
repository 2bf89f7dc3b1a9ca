"""A model string made into numbers, and derivatives of numbers made into derivatives of parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.errors import ModelError, NumericalError
from phloem.model.autocorrelated_rates import AutocorrelatedGammaRates
from phloem.model.mixture import Mixture, MixtureGradient, MixtureNumbers
from phloem.model.record import (
    Parameter,
    ParameterValue,
    ProcessNumbers,
    SiteModel,
    SiteModelGradient,
    Values,
    softmax_gradient,
)
from phloem.model.site_rates import SiteRates
from phloem.model.substitution import Gradient, SubstitutionFamily, Term


@dataclass(frozen=True, eq=False)
class ModelNumbers:
    """A model at given values, before its categories are laid out. values: of every parameter, checked;
    mixture: processes; rates, weights (C,) and invariant: of classes of sites.

    Of many sets of values at once (together.py) every array has a first axis more.
    """

    values: dict[str, ParameterValue]
    mixture: MixtureNumbers
    rates: np.ndarray
    weights: np.ndarray
    invariant: float


@dataclass(frozen=True, eq=False)
class Model:
    """Processes × site rates × root frequencies × ascertainment, and its parameters.

    fused: category c of the site rates belongs to process c alone (LG4M, GTR*H4); else every process has all
    categories.
    terms: the pieces of the model string. parameters: those of all terms, with values where they are fixed.
    root_term: term of root frequencies of their own, or None where the root has the stationary ones.
    unseen: alphabet states whose constant characters could not be observed: all (Lewis 2001, Mkv), or some;
    or "uninformative": no character that parsimony calls so could.
    observed_state: (S,) the alphabet state that every state of the model shows; identity except where hidden
    classes are added (covarion). datatype: of the alphabet the model was made for.
    """

    mixture: Mixture
    site_rates: SiteRates
    terms: tuple[Term, ...]
    parameters: tuple[Parameter, ...]
    observed_state: np.ndarray
    datatype: str
    root_term: Term | None = None
    unseen: tuple[int, ...] | Literal["uninformative"] = ()
    fused: bool = False

    @property
    def name(self) -> str:
        """Canonical name, without values: 'GTR+F+I+G4'."""
        fixed = {p.name for p in self.parameters if not p.is_free}
        return "".join(term.name(fixed) for term in self.terms)

    @property
    def n_states(self) -> int:
        return self.mixture.n_states

    @property
    def substitution(self) -> SubstitutionFamily:
        """The family of a model with one process and one set of branch lengths; ModelError for mixtures."""
        families = self.mixture.families
        if len(families) != 1 or self.n_length_classes > 1:
            raise ModelError(
                f"{self.name} is a mixture of {self.mixture.n_processes} processes over "
                f"{self.n_length_classes} set(s) of branch lengths, where one process is needed",
                hint="Choose a model that is no mixture.",
            )
        return families[0]

    @property
    def n_categories(self) -> int:
        """C, without invariable sites."""
        n_rates = self.site_rates.categories.n_categories
        return n_rates if self.fused else self.mixture.n_processes * n_rates

    @property
    def n_length_classes(self) -> int:
        """K, sets of branch lengths: 1 but under +H."""
        categories = self.site_rates.categories
        return categories.n_categories if categories.own_lengths else 1

    @property
    def along_sites(self) -> AutocorrelatedGammaRates | None:
        """The rates of a model under which those of neighbouring sites are correlated (+AG)."""
        categories = self.site_rates.categories
        return categories if isinstance(categories, AutocorrelatedGammaRates) else None

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
            self,
            parameters=tuple(
                replace(p, value=fixed[p.name], counted=False) if p.name in fixed else p
                for p in self.parameters
            ),
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
            if value is None and p.averaged:
                raise many_models(self.name)
            if value is None:
                raise ModelError(
                    f"parameter '{p.name}' of model {self.name} has no value",
                    hint=f"Write it in braces after the model ({self._term_of(p).example}), or fit it "
                    + f"(--optimize){'; +F counts frequencies in the data' * (p.name == 'frequencies')}.",
                )
            result[p.name] = p.checked(value)
        return result

    def evaluate(self, values: Values | None = None) -> SiteModel:
        """All numbers that the likelihood needs, from fixed values and the given ones.

        Categories come process by process: (process 1, category 1), (process 1, category 2), …
        """
        return self.site_model(self.numbers(values))

    def numbers(self, values: Values | None = None) -> ModelNumbers:
        """What both site_model and its adjoint start from; errors as values."""
        return self.numbers_of(self.values(values))

    def numbers_of(self, values: dict[str, ParameterValue]) -> ModelNumbers:
        """numbers, from values of all parameters that were checked; of many sets at once: together.py."""
        return ModelNumbers(values, self.mixture.evaluate(values), *self.site_rates.evaluate(values))

    def site_model(self, at: ModelNumbers) -> SiteModel:
        """evaluate, from numbers worked out before."""
        numbers, rates, weights = at.mixture, at.rates, at.weights
        roots = self._roots(numbers, at.values)
        processes = tuple(
            ProcessNumbers(p.rate_matrix, p.frequencies, root, p.eigen)
            for p, root in zip(numbers.processes, roots)
        )
        finite = all(np.isfinite(p.rate_matrix).all() for p in processes) and np.isfinite(rates).all()
        if not finite or not np.isfinite(numbers.rates).all():
            raise NumericalError(f"model {self.name} gives rates that are not finite")
        n, c = len(processes), rates.shape[-1]
        share = self._shares(numbers, weights)
        if self.fused:
            process, category = np.arange(n), np.arange(c)
        else:
            process, category = np.repeat(np.arange(n), c), np.tile(np.arange(c), n)
            rates = numbers.rates[..., process] * rates[..., category]
            weights = share[..., process] * weights[..., category]
        own_lengths = self.site_rates.categories.own_lengths
        return SiteModel(
            processes=processes,
            process=process.astype(np.int64),
            rates=rates,
            weights=weights,
            length_class=category.astype(np.int64) if own_lengths else np.zeros(rates.shape[-1], np.int64),
            invariant=at.invariant,
            invariant_frequencies=(share[..., None] * np.stack(roots, -2)).sum(-2),
            neighbours=self.along_sites.neighbours(at.values) if self.along_sites else None,
        )

    def backpropagate(self, values: Values | None, gradient: SiteModelGradient) -> Gradient:
        """Derivatives by parameter name, of fixed parameters too.

        A simplex reports softmax coordinates: with x = softmax(z), d/dz_i = x_i (g_i - Σ_j x_j g_j).
        """
        return self.adjoint(self.numbers(values), gradient)

    def adjoint(self, at: ModelNumbers, gradient: SiteModelGradient) -> Gradient:
        """backpropagate, from numbers worked out before."""
        v, numbers, rates, weights = at.values, at.mixture, at.rates, at.weights
        n, sets = len(numbers.processes), gradient.rates.shape[:-1]
        share, roots = self._shares(numbers, weights), self._roots(numbers, v)
        by_root = [
            d.root_frequencies + share[..., m, None] * gradient.invariant_frequencies
            for m, d in enumerate(gradient.processes)
        ]
        d_share = (np.stack(roots, -2) * gradient.invariant_frequencies[..., None, :]).sum(-1)
        if self.fused:
            d_rates, d_process_rates = gradient.rates, np.zeros((*sets, n))
            total = weights.sum(-1, keepdims=True)  # share = weights / total
            d_weights = gradient.weights + (d_share - (d_share * share).sum(-1, keepdims=True)) / total
            d_share = np.zeros((*sets, n))
        else:
            of_rates, of_weights = (x.reshape(*sets, n, -1) for x in (gradient.rates, gradient.weights))
            d_rates = (numbers.rates[..., None] * of_rates).sum(-2)
            d_process_rates = (of_rates * rates[..., None, :]).sum(-1)
            d_weights = (share[..., None] * of_weights).sum(-2)
            d_share = d_share + (of_weights * weights[..., None, :]).sum(-1)
        result: Gradient = {}
        if self.root_term is not None:
            at_root = np.sum(by_root, axis=0)
            result["root_frequencies"] = softmax_gradient(np.asarray(v["root_frequencies"]), at_root)
            by_root = [np.zeros_like(at_root)] * n
        matrices = [d.rate_matrix for d in gradient.processes]
        result |= self.mixture.backpropagate(v, MixtureGradient(matrices, by_root, d_share, d_process_rates))
        result |= self.site_rates.backpropagate(v, d_rates, d_weights, gradient.invariant)
        if self.along_sites and gradient.neighbours is not None:
            result |= self.along_sites.neighbours_gradient(v, gradient.neighbours)
        return {p.name: result[p.name] for p in self.parameters}

    def _roots(self, numbers: MixtureNumbers, values: Values) -> list[np.ndarray]:
        """State distribution at the root of every process."""
        if self.root_term is not None:
            return [np.asarray(values["root_frequencies"])] * len(numbers.processes)
        return [p.frequencies for p in numbers.processes]

    def _shares(self, numbers: MixtureNumbers, category_weights: np.ndarray) -> np.ndarray:
        """(M,) how often variable sites follow each process; sum 1."""
        if self.fused:
            return category_weights / category_weights.sum(-1, keepdims=True)
        return numbers.weights

    def text(self, values: Values | None = None) -> str:
        """The model string with all known values; parsed again it gives the same numbers.

        Values given here win over fixed ones; a parameter without either stays free.
        """
        known = {p.name: p.value for p in self.parameters if p.value is not None}
        known |= {name: self.parameter(name).checked(value) for name, value in (values or {}).items()}
        return "".join(term.text(known) for term in self.terms)

    def _term_of(self, parameter: Parameter) -> Term:
        return next(t for t in self.terms if parameter.name in (p.name for p in t.parameters))


def many_models(name: str) -> ModelError:
    """What is said of a model that averages over others, where one is needed."""
    return ModelError(
        f"{name} stands for many models, over which only phloem mcmc and time average",
        hint="Choose one of them.",
    )
