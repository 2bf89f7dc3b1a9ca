"""Derivatives by the values that an automatic differentiation library holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from phloem.errors import NumericalError
from phloem.likelihood.tree_likelihood import TreeLikelihood

# What a likelihood of zero is: an error with its remedy, or minus infinity with slopes of zero, which
# samplers reject: a trajectory that diverges reaches lengths of 1e-300 and infinite rates.
Impossible = Literal["error", "-inf"]


def value_and_derivatives(
    likelihood: TreeLikelihood,
    branch_lengths: np.ndarray,
    parameters: Mapping[str, np.ndarray],
    impossible: Impossible = "error",
) -> tuple[float, np.ndarray, dict[str, np.ndarray]]:
    """log L, d/d branch_lengths (B,) or (K, B), and d/d every parameter given, in the shape of its value.

    A simplex x gets g_i = (d/dz_i) / x_i, z its softmax coordinates: of all gradients that agree along the
    simplex the one with Σ x_i g_i = 0, so that softmax upstream gives exactly d/dz. Sets the likelihood.
    """
    try:
        _set(likelihood, branch_lengths, parameters)
        gradient = likelihood.gradient()
    except NumericalError:
        if impossible == "error":
            raise
        flat = {name: np.zeros_like(x) for name, x in parameters.items()}
        return -np.inf, np.zeros_like(branch_lengths), flat
    return (
        gradient.log_likelihood,
        gradient.branch_lengths,
        _by_name(likelihood, gradient.parameters, parameters),
    )


def value(
    likelihood: TreeLikelihood,
    branch_lengths: np.ndarray,
    parameters: Mapping[str, np.ndarray],
    impossible: Impossible = "error",
) -> float:
    """log L alone. Sets the likelihood."""
    try:
        _set(likelihood, branch_lengths, parameters)
        return likelihood.log_likelihood()
    except NumericalError:
        if impossible == "error":
            raise
        return -np.inf


def _set(
    likelihood: TreeLikelihood, branch_lengths: np.ndarray, parameters: Mapping[str, np.ndarray]
) -> None:
    if not all(np.isfinite(x).all() for x in (branch_lengths, *parameters.values())):
        raise NumericalError("a branch length or a parameter is not finite")
    likelihood.set(branch_lengths=branch_lengths, parameters=dict(parameters))


def _by_name(
    likelihood: TreeLikelihood, slopes: Mapping[str, float], names: Mapping[str, object] | Sequence[str]
):
    found: dict[str, np.ndarray] = {}
    for name in names:
        p = likelihood.model.parameter(name)
        slope = np.array([slopes[element] for element in p.elements or (p.name,)])
        if p.kind == "simplex":
            slope = slope / np.maximum(np.asarray(likelihood.parameters[name]), 1e-300)
        found[name] = slope if p.elements else slope[0]
    return found
