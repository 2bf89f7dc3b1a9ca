"""Many models of one form, each with values of its own, evaluated in one go: the parts of an alignment.

An array operation on a 4 × 4 matrix costs what Python takes to ask for it, so that fifty parts cost fifty
times one. Values stacked along a first axis go through the same functions; every array then has that axis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.errors import ModelError, NumericalError
from phloem.model.amino_acid import EmpiricalModel
from phloem.model.frequencies import BuiltInFrequencies, SimplexFrequencies
from phloem.model.general import MkModel, ReversibleModel
from phloem.model.mixture import ProcessMixture
from phloem.model.model import Model
from phloem.model.nucleotide import NucleotideModel
from phloem.model.record import (
    SIMPLEX_TOLERANCE,
    EigenSystem,
    Parameter,
    ParameterValue,
    ProcessGradient,
    ProcessNumbers,
    SiteModel,
    SiteModelGradient,
    Values,
    is_reversible,
)
from phloem.model.substitution import Gradient, Process

_FAMILIES = (NucleotideModel, EmpiricalModel, ReversibleModel, MkModel)  # whose arrays may have an axis more
_FREQUENCIES = (BuiltInFrequencies, SimplexFrequencies)


def form_of(model: Model) -> tuple | None:
    """Equal for models that differ in the values of their parameters alone; None where a model is evaluated
    by itself: mixtures, codons, irreversible models, hidden classes, rates correlated along the sites."""
    mixture = model.mixture
    if model.along_sites is not None:
        return None
    if not isinstance(mixture, ProcessMixture) or len(mixture.components) > 1 or model.root_term is not None:
        return None
    family = mixture.components[0].family
    if not isinstance(family, _FAMILIES) or not isinstance(family.frequencies, _FREQUENCIES):
        return None
    own = family.frequencies
    given = own.frequencies.tobytes() if isinstance(own, BuiltInFrequencies) else own.states
    label = "".join(term.label for term in model.terms)
    return type(family), label, model.datatype, model.site_rates, model.fused, given


def evaluate_together(
    models: Sequence[Model], values: Sequence[Values]
) -> list[tuple[SiteModel, bool]] | None:
    """Model.evaluate of each, and whether the position of the root is free. models: of one form (form_of).

    None where they must be evaluated one by one, to say which has a value that is not allowed, or since a
    frequency is zero.
    """
    try:
        stacked = _stacked(models, values)
        if stacked is None:
            return None
        numbers = models[0].numbers_of(stacked)
        process = numbers.mixture.processes[0]
        if not (process.frequencies > 0).all():
            return None
        return _apart(models[0].site_model(numbers), process, len(models))
    except (ModelError, NumericalError):
        return None


def adjoint_together(
    models: Sequence[Model], values: Sequence[Values], gradients: Sequence[SiteModelGradient]
) -> list[Gradient] | None:
    """Model.backpropagate of each; None as evaluate_together."""
    stacked = _stacked(models, values)
    if stacked is None:
        return None
    by_process = [g.processes[0] for g in gradients]
    whole = SiteModelGradient(
        processes=(
            ProcessGradient(
                np.array([p.rate_matrix for p in by_process]),
                np.array([p.root_frequencies for p in by_process]),
            ),
        ),
        rates=np.array([g.rates for g in gradients]),
        weights=np.array([g.weights for g in gradients]),
        invariant=np.array([g.invariant for g in gradients]),  # type: ignore[arg-type]
        invariant_frequencies=np.array([g.invariant_frequencies for g in gradients]),
    )
    found = models[0].adjoint(models[0].numbers_of(stacked), whole)
    lists = {name: x.tolist() if np.ndim(x) == 1 else x for name, x in found.items()}  # type: ignore[union-attr]
    return [{name: x[i] for name, x in lists.items()} for i in range(len(models))]  # type: ignore[index]


def _stacked(models: Sequence[Model], values: Sequence[Values]) -> dict[str, ParameterValue] | None:
    """Every parameter's value of every model: (G,) or (G, K); None where one is missing or not allowed."""
    result: dict[str, ParameterValue] = {}
    for k, p in enumerate(models[0].parameters):
        given = [v.get(p.name, m.parameters[k].value) for m, v in zip(models, values)]
        if any(x is None for x in given):
            return None
        stack = np.array(given, np.float64)
        if stack.shape[1:] != ((len(p.elements),) if p.elements else ()) or not _allowed(p, stack):
            return None
        result[p.name] = stack / stack.sum(-1, keepdims=True) if p.kind == "simplex" else stack
    return result


def _allowed(p: Parameter, stack: np.ndarray) -> bool:
    """What Parameter.checked wants of a value."""
    fine = np.isfinite(stack).all() and (p.kind == "real" or (stack >= 0).all())
    if p.kind == "unit":
        fine = fine and (stack < 1).all()
    if p.kind == "simplex":
        fine = fine and (np.abs(stack.sum(-1) - 1) <= SIMPLEX_TOLERANCE).all()
    return bool(fine)


def _apart(whole: SiteModel, process: Process, count: int) -> list[tuple[SiteModel, bool]]:
    """One model from each row of the stacked arrays; arrays that have no such axis are shared."""
    (numbers,), found = whole.processes, []
    eigen = numbers.eigen
    assert eigen is not None
    free = is_reversible(numbers)
    shared_process = numbers if np.ndim(process.rate_matrix) == 2 else None
    for i in range(count):
        own = shared_process or ProcessNumbers(
            numbers.rate_matrix[i],
            _row(numbers.frequencies, i),
            _row(numbers.root_frequencies, i),
            EigenSystem(eigen.values[i], eigen.right[i], eigen.left[i]),
        )
        model = SiteModel(
            (own,),
            whole.process,
            _row(whole.rates, i),
            _row(whole.weights, i),
            whole.length_class,
            float(_row(np.asarray(whole.invariant), i, 0)),
            _row(whole.invariant_frequencies, i),
        )
        found.append((model, bool(free[i] if free.ndim else free)))
    return found


def _row(array: np.ndarray, i: int, plain: int = 1) -> np.ndarray:
    return array[i] if array.ndim > plain else array
