"""The log-likelihood as a function that JAX can differentiate and compile around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phloem.interop.derivatives import Impossible, value, value_and_derivatives
from phloem.likelihood.tree_likelihood import TreeLikelihood


def jax_log_likelihood(likelihood: TreeLikelihood, impossible: Impossible = "error") -> Callable[..., Any]:
    """log_likelihood(branch_lengths, parameters={}) → scalar array, with a custom reverse-mode rule.

    branch_lengths: (B,) aligned with likelihood.branch_names; parameters: arrays by parameter name (a simplex
    such as frequencies as its values, for instance from jax.nn.softmax). Runs the likelihood's own engine
    through pure_callback, also under jit, and one after another under vmap. The result has the type of
    branch_lengths (set jax_enable_x64 for float64). impossible: "error", or "-inf" for samplers, whose
    trajectories may lead to where the likelihood is zero. Needs JAX.
    """
    import jax

    def callback(function, shapes, *arguments):
        return jax.pure_callback(function, shapes, *arguments, vmap_method="sequential")

    def host_value(lengths, parameters):
        found = value(
            likelihood, _double(lengths), {k: _double(v) for k, v in parameters.items()}, impossible
        )
        return np.asarray(found, lengths.dtype)

    def host_derivatives(lengths, parameters):
        doubles = {name: _double(v) for name, v in parameters.items()}
        found, by_branch, by_name = value_and_derivatives(likelihood, _double(lengths), doubles, impossible)
        slopes = {name: np.asarray(g, parameters[name].dtype) for name, g in by_name.items()}
        return np.asarray(found, lengths.dtype), by_branch.astype(lengths.dtype), slopes

    def shapes(tree):
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)

    @jax.custom_vjp
    def evaluate(lengths, parameters):
        return callback(host_value, jax.ShapeDtypeStruct((), lengths.dtype), lengths, parameters)

    def forward(lengths, parameters):
        result = jax.ShapeDtypeStruct((), lengths.dtype), shapes(lengths), shapes(parameters)
        found, by_branch, by_name = callback(host_derivatives, result, lengths, parameters)
        return found, (by_branch, by_name)

    def backward(slopes, upstream):
        return jax.tree.map(lambda slope: (upstream * slope).astype(slope.dtype), slopes)

    evaluate.defvjp(forward, backward)

    def log_likelihood(branch_lengths, parameters=None):
        given = {name: jax.numpy.asarray(x) for name, x in (parameters or {}).items()}
        return evaluate(jax.numpy.asarray(branch_lengths), given)

    return log_likelihood


def _double(x) -> np.ndarray:
    return np.asarray(x, np.float64)
