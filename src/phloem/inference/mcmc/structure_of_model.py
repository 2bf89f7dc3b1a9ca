"""The structure of any reversible model of phloem.model, found by asking the model itself.

Every free rate (kappa, omega, rate_AC …) multiplies some of the exchangeabilities E_ij = Q_ij / π_j. Doubling
one rate shows which: relative to the others, those entries double. So no family needs a twin here, and what
the sampler builds is by construction what the likelihood uses; a model that is not of this form is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.errors import ModelError
from phloem.inference.mcmc.structure import Block, ModelStructure, constant
from phloem.model.model import Model
from phloem.model.parameter import Parameter, ParameterValue, Values

_PRINTED = {"alpha": "alpha", "p_invariable": "pinvar"}
_PAIRS = {f"rate_{a}{b}": f"r({a}<->{b})" for a in "ACGT" for b in "ACGT"}


@dataclass(frozen=True)
class _Rate:
    """One free rate: a parameter, or element `index` of one. name: for the trace; alias: as a nucleotide
    pair, or ''."""

    parameter: str
    index: int | None
    name: str
    alias: str = ""

    def set(self, values: Values, x: float) -> dict:
        if self.index is None:
            return {**values, self.parameter: x}
        vector = np.array(values[self.parameter], np.float64)
        vector[self.index] = x
        return {**values, self.parameter: vector}

    def get(self, values: Values) -> float:
        return float(np.atleast_1d(values[self.parameter])[self.index or 0])


def _free_rates(model: Model) -> list[_Rate]:
    rates = []
    for p in model.free:
        if p.name in ("frequencies", "alpha", "p_invariable"):
            continue
        if p.elements:
            rates += [_Rate(p.name, i, element) for i, element in enumerate(p.elements)]
        else:
            names = p.aliases or (p.name,)
            rates.append(_Rate(p.name, None, p.name, _PAIRS.get(names[0], "") if len(names) == 1 else ""))
    return rates


def sites_per_character(model: Model) -> int:
    """Nucleotide sites that one character of the data spans: 3 of a codon. Branch lengths are sampled, and
    their priors stated, in substitutions per site, as MrBayes 3.2.7a has them (likelihood.c, TiProbs_Gen)."""
    return 3 if model.datatype == "codon" else 1


def model_values(model: Model, numbers: Mapping[str, float]) -> dict[str, ParameterValue]:
    """The free parameters of a model from the numbers that a trace prints, by their names there."""
    values: Values = model.start_values()
    reference = numbers.get("r(G<->T)", 1.0)
    for rate in _free_rates(model):
        gtr = "r(G<->T)" in numbers
        values = rate.set(values, numbers[rate.alias] / reference if gtr else numbers[rate.name])
    for p in model.free:
        if p.name == "frequencies":
            values = {**values, p.name: np.array([numbers[name] for name in _frequency_names(p)])}
        elif p.name in ("alpha", "p_invariable"):
            values = {**values, p.name: numbers[_PRINTED[p.name]]}
    return {p.name: values[p.name] for p in model.free}


def structure_of_model(model: Model) -> ModelStructure:
    """What the sampler needs of a model. ModelError where it cannot sample it, naming what stands in the
    way."""
    _refuse(model)
    rates = _free_rates(model)
    start = model.start_values()
    ones = start
    for rate in rates:
        ones = rate.set(ones, 1.0)
    base = _exchangeabilities(model, ones)
    omega = [p for p in rates if p.name == "omega"]
    others = [p for p in rates if p.name != "omega"]
    class_a = _classes(model, base, ones, others)
    class_b = _classes(model, base, ones, omega)
    names = {p.name for p in model.parameters}
    site_rates, weights, p = model.site_rates.evaluate(start)
    gamma = "alpha" in names
    return ModelStructure(
        name=model.name,
        base=base,
        class_a=class_a,
        class_b=class_b,
        exchangeability=_rate_block(class_a, base, others, start),
        omega=_rate_block(class_b, base, omega, start),
        frequency=_frequencies(model, start),
        alpha=_number(model, "alpha", start) if gamma else None,
        p_invariable=_number(model, "p_invariable", start) if "p_invariable" in names else constant(0.0),
        n_categories=model.n_categories,
        gamma_mean=getattr(model.site_rates.categories, "kind", "mean") == "mean",
        rates=site_rates * (1 - p),
        weights=weights / (1 - p),
        ascertained=model.ascertainment == "variable",
        sites_per_character=sites_per_character(model),
    )


def _refuse(model: Model) -> None:
    """ModelError for what the sampler has no moves or no unrooted tree for."""
    known = {"frequencies", "alpha", "p_invariable"}
    substitution = {p.name for term in model.substitution.terms for p in term.parameters}
    for p in model.free:
        sampled = p.name in known or (p.name in substitution and p.kind == "positive")
        sampled &= p.name != "frequencies" or p.size == model.n_states
        if not sampled:
            raise ModelError(
                f"phloem mcmc has no move for the free parameter '{p.name}' of {model.name}",
                hint="Give it a value in braces, such as the one phloem likelihood --optimize finds.",
            )
    process = model.substitution.evaluate(model.start_values())
    if not process.reversible or model.root_term is not None:
        raise ModelError(
            f"{model.name} needs a root, and phloem mcmc samples unrooted trees",
            hint="Choose a reversible model.",
        )
    if len(model.observed_state) != len(set(model.observed_state.tolist())):
        raise ModelError(f"phloem mcmc does not sample hidden states yet ({model.name})")


def _exchangeabilities(model: Model, values) -> np.ndarray:
    """Q_ij / π_j with a zero diagonal, scaled to a largest entry of 1.

    Towards a state of frequency 0 it is that of the way back; between two such states it is 0, since nothing
    ever goes there.
    """
    process = model.substitution.evaluate(values)
    entered = process.frequencies > 0
    e = np.divide(
        process.rate_matrix, process.frequencies, out=np.zeros_like(process.rate_matrix), where=entered
    )
    np.fill_diagonal(e, 0.0)
    e = np.where(entered[:, None] & entered, (e + e.T) / 2, e + e.T)
    return e / e.max()


def _classes(model: Model, base: np.ndarray, ones, rates: list[_Rate]) -> np.ndarray:
    """(S, S) int32: the entries that rate k multiplies have class k + 1, those that none does class 0."""
    classes = np.zeros(base.shape, np.int32)
    changing = base > 0
    for k, p in enumerate(rates):
        ratio = _exchangeabilities(model, p.set(ones, 2.0))[changing] / base[changing]
        mine = np.zeros(base.shape, bool)
        mine[changing] = ratio > 1.5 * ratio.min()
        if np.any(classes[mine] > 0) or not np.allclose(ratio[ratio > 1.5 * ratio.min()], 2 * ratio.min()):
            raise ModelError(
                f"'{p.name}' of {model.name} does not multiply rates of its own; it cannot be sampled"
            )
        classes[mine] = k + 1
    return classes


def _rate_block(classes: np.ndarray, base: np.ndarray, rates: list[_Rate], start) -> Block:
    """The simplex of relative rates: the reference class 0 first, then one entry for each free rate.

    Printed as MrBayes prints them: all six of GTR as r(A<->C) …, which sum to one, otherwise each rate
    relative to the reference under its own name.
    """
    if not rates:
        return constant(1.0)
    if not np.any((classes == 0) & (base > 0)):
        raise ModelError("every rate is free and none is a reference: fix one of them")
    values = np.array([1.0, *(p.get(start) for p in rates)])
    gtr = len(base) == 4 and len(rates) == 5 and all(p.alias for p in rates)
    names = ("r(G<->T)", *(p.alias for p in rates)) if gtr else ("", *(p.name for p in rates))
    return Block(names, values / values.sum(), True)


def _frequencies(model: Model, start) -> Block:
    pi = model.substitution.evaluate(start).frequencies
    for p in model.parameters:
        if p.name == "frequencies" and p.size == len(pi):  # not those of nucleotides in a codon model
            return Block(_frequency_names(p), np.asarray(start["frequencies"], np.float64), p.is_free)
    return Block((), np.asarray(pi, np.float64), False)


def _frequency_names(p: Parameter) -> tuple[str, ...]:
    return tuple(f"pi({e.removeprefix('frequency_')})" for e in p.elements)


def _number(model: Model, name: str, start) -> Block:
    p = model.parameter(name)
    return Block((_PRINTED[name],), np.array([float(start[name])]), p.is_free)
