"""Free parameters and branch lengths as one unconstrained, bounded vector for an optimiser.

A branch length t is arcsinh(t / s) with s one substitution in the whole alignment: like log t where the data
can tell lengths apart, and linear below, where the derivative by log t would vanish and leave a branch stuck
at nothing. A positive parameter x is log x, a simplex is z with x = softmax(z), a proportion its logit; real
parameters stay as they are. Derivatives follow by the chain rule; those of a simplex already come in z.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.likelihood.gradient import Gradient
from phloem.model.parameter import Parameter, ParameterValue

SHORTEST, LONGEST = 1e-8, 100.0  # expected substitutions per site
_SIMPLEX_BOUND = 18.0  # |z|: entries down to about 1e-15 of the largest


@dataclass(frozen=True)
class Coordinates:
    """parameters: the free ones. n_branches: B; their lengths come first in the vector. short: s above."""

    parameters: tuple[Parameter, ...]
    n_branches: int
    short: float

    def pack(self, lengths: np.ndarray, values: Mapping[str, ParameterValue]) -> np.ndarray:
        """(n,) vector of branch lengths (B,) and parameter values, moved inside the bounds."""
        parts = [np.arcsinh(np.clip(lengths, SHORTEST, LONGEST) / self.short)]
        parts += [_forward(p, np.atleast_1d(values[p.name])) for p in self.parameters]
        lower, upper = self.bounds().T
        return np.clip(np.concatenate(parts), lower, upper)

    def unpack(self, vector: np.ndarray) -> tuple[np.ndarray, dict[str, ParameterValue]]:
        """Branch lengths (B,) and parameter values of a vector."""
        lengths, at = self.short * np.sinh(vector[: self.n_branches]), self.n_branches
        values: dict[str, ParameterValue] = {}
        for p in self.parameters:
            x = _backward(p, vector[at : at + p.size])
            values[p.name] = x if p.elements else float(x[0])
            at += p.size
        return lengths, values

    def derivative(self, vector: np.ndarray, gradient: Gradient) -> np.ndarray:
        """(n,) d log L / d vector."""
        lengths, values = self.unpack(vector)
        parts = [gradient.branch_lengths * np.hypot(lengths, self.short)]
        for p in self.parameters:
            slope = np.array([gradient.parameters[name] for name in p.elements or (p.name,)])
            x = np.atleast_1d(values[p.name])
            parts.append(slope * (x if p.kind == "positive" else x * (1 - x) if p.kind == "unit" else 1.0))
        return np.concatenate(parts)

    def bounds(self) -> np.ndarray:
        """(n, 2) lower and upper bound of every coordinate."""
        rows = [(np.arcsinh(SHORTEST / self.short), np.arcsinh(LONGEST / self.short))] * self.n_branches
        for p in self.parameters:
            rows += [_bounds(p)] * p.size
        return np.array(rows, np.float64).reshape(-1, 2)


def _forward(p: Parameter, x: np.ndarray) -> np.ndarray:
    if p.kind == "positive":
        return np.log(np.maximum(x, p.lower))
    if p.kind == "unit":
        x = np.clip(x, 1e-8, 1 - 1e-8)
        return np.log(x) - np.log1p(-x)
    if p.kind == "simplex":
        z = np.log(np.maximum(x, 1e-12))
        return z - z.mean()
    return np.asarray(x, np.float64)


def _backward(p: Parameter, z: np.ndarray) -> np.ndarray:
    if p.kind == "positive":
        return np.exp(z)
    if p.kind == "unit":
        return 1.0 / (1.0 + np.exp(-z))
    if p.kind == "simplex":
        e = np.exp(z - z.max())
        return e / e.sum()
    return z


def _bounds(p: Parameter) -> tuple[float, float]:
    if p.kind == "positive":
        return float(np.log(p.lower)), float(np.log(p.upper))
    if p.kind == "unit":
        upper = min(p.upper, 1 - 1e-8)
        lower = max(p.lower, 1e-8)
        return float(np.log(lower / (1 - lower))), float(np.log(upper / (1 - upper)))
    if p.kind == "simplex":
        return -_SIMPLEX_BOUND, _SIMPLEX_BOUND
    return p.lower, p.upper
