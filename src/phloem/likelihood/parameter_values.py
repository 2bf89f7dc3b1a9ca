"""Values of a model's parameters: changing some of them by name, and one flat list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phloem.errors import ModelError
from phloem.model.parameter import Parameter, ParameterValue


def updated_values(
    parameters: Sequence[Parameter],
    values: Mapping[str, ParameterValue],
    changes: Mapping[str, ParameterValue],
) -> dict[str, ParameterValue]:
    """values with some changed, by parameter name (alpha, frequencies) or by element (rate_2).

    Errors: ModelError for an unknown name, a value that is not allowed, or a single entry of a simplex
    (change the whole simplex, so that it still sums to 1).
    """
    new = dict(values)
    by_name = {p.name: p for p in parameters} | {alias: p for p in parameters for alias in p.aliases}
    by_element = {element: (p, i) for p in parameters for i, element in enumerate(p.elements)}
    for name, value in changes.items():
        if name in by_name:
            new[by_name[name].name] = by_name[name].checked(value)
        elif name in by_element:
            parameter, i = by_element[name]
            new[parameter.name] = parameter.checked(_with_entry(parameter, new, i, value))
        else:
            known = ", ".join(p.name for p in parameters) or "none"
            raise ModelError(f"the model has no parameter '{name}'", hint=f"Its parameters: {known}.")
    return new


def _with_entry(parameter: Parameter, values: Mapping[str, ParameterValue], i: int, value: ParameterValue):
    if parameter.kind == "simplex":
        raise ModelError(
            f"one entry of '{parameter.name}' cannot change alone", hint="Give all entries, summing to 1."
        )
    whole = np.array(values.get(parameter.name, parameter.start), np.float64)
    whole[i] = value
    return whole


def by_element(parameters: Sequence[Parameter], values: Mapping[str, ParameterValue]) -> dict[str, float]:
    """A flat dictionary element name → number."""
    flat: dict[str, float] = {}
    for p in parameters:
        if p.name in values:
            flat.update(zip(p.elements or (p.name,), np.atleast_1d(values[p.name]).tolist()))
    return flat
