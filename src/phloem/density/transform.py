"""From numbers with bounds to numbers without, and derivatives the other way.

Every transform maps natural values x (…, k) to coordinates y (…, m) and back; leading axes are a batch.

| support | coordinate | m | log |dx/dy| |
|---|---|---|---|
| positive | log x | k | Σ log x |
| positive, linear below s | arcsinh(x / s) | k | Σ log √(x² + s²) |
| unit | log x - log(1 - x) | k | Σ log x + log(1 - x) |
| interval (l, u) | log(x - l) - log(u - x) | k | Σ log(x - l) + log(u - x) - log(u - l) |
| real | x | k | 0 |
| simplex | Vᵀ log x, V (k, k-1) orthonormal with columns that sum to 0 | k-1 | Σ log x + ½ log k |
| tied | none: shares of a simplex some of which are equal, and which (terms/tied_dirichlet.py) | 0 | |
| choice | none: the number of a model | 0 | |

The coordinates of a simplex are the isometric log-ratios (Egozcue, Pawlowsky-Glahn, Mateu-Figueras and
Barceló-Vidal 2003, Math. Geol. 35:279): x = softmax(V y). Fits and samplers use the same ones: their number
is the simplex's dimension, no entry is singled out, and since V is orthonormal a quasi-Newton step in y is
the step in the softmax coordinates z = V y that sum to 0. The Jacobian is that of the first k - 1 entries, by
which the density of a Dirichlet distribution is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

import numpy as np

Support = Literal["positive", "unit", "interval", "real", "simplex", "tied", "choice"]

_SMALLEST_SHARE = 1e-12  # what an entry of 0 of a simplex is moved to: no coordinate reaches 0
_EDGE = 1e-8  # how near to the ends of its interval a number is moved
_SIMPLEX_BOUND = 18.0  # |y| of an optimiser: entries down to 1e-15 of the others and less


class Transform(Protocol):
    """forward: x → y. inverse: y → x. pull_back: at x, d/dx (entries independent) → d/dy.

    log_jacobian: log |dx/dy| summed over the last axis, at x. log_jacobian_gradient: its d/dy, at x.
    All are exact wherever x is inside its support, by however little; inside moves values in that are not, or
    that are outside the bounds. bounds: of the coordinates (m, 2), given those of the natural values.
    """

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray: ...

    def forward(self, x: np.ndarray) -> np.ndarray: ...

    def inverse(self, y: np.ndarray) -> np.ndarray: ...

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray: ...

    def log_jacobian(self, x: np.ndarray) -> np.ndarray: ...

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray: ...

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray: ...


def _each(low: float, high: float, size: int) -> np.ndarray:
    return np.tile([float(low), float(high)], (size, 1))


class Logarithm:
    """y = log x."""

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        return np.clip(x, lower, upper)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.log(x)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.exp(y)

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient * x

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.log(x).sum(-1)

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        return np.ones_like(x)

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray:
        return _each(np.log(lower), np.log(upper), size)


@dataclass(frozen=True)
class SoftLogarithm:
    """y = arcsinh(x / s): like log x far above s, and linear below it.

    For fits of lengths: where the data cannot tell a length from nothing, the derivative by log x vanishes
    and leaves it stuck at nothing. y ≥ 0 is a bound, so this one is not for sampling.
    """

    linear_below: float

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        return np.clip(x, lower, upper)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.arcsinh(x / self.linear_below)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return self.linear_below * np.sinh(y)

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient * np.hypot(x, self.linear_below)

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.log(np.hypot(x, self.linear_below)).sum(-1)

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        return x / np.hypot(x, self.linear_below)

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray:
        return _each(np.arcsinh(lower / self.linear_below), np.arcsinh(upper / self.linear_below), size)


@dataclass(frozen=True)
class ScaledLogit:
    """y = log(x - low) - log(high - x), for numbers of an open interval; (0, 1) is a proportion's."""

    low: float = 0.0
    high: float = 1.0

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        edge = _EDGE * (self.high - self.low)
        return np.clip(x, max(lower, self.low + edge), min(upper, self.high - edge))

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.log(x - self.low) - np.log(self.high - x)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        share = np.exp(-np.logaddexp(0.0, -y))
        return self.low + (self.high - self.low) * share

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient * (x - self.low) * (self.high - x) / (self.high - self.low)

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        terms = np.log(x - self.low) + np.log(self.high - x) - np.log(self.high - self.low)
        return terms.sum(-1)

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        return (self.low + self.high - 2.0 * x) / (self.high - self.low)

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray:
        low, high = self.forward(self.inside(np.array([lower, upper], np.float64), lower, upper))
        return _each(low, high, size)


class Identity:
    """y = x."""

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        return np.clip(x, lower, upper)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, np.float64)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.array(y, np.float64)

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return np.array(gradient, np.float64)

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(x.shape[:-1])

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray:
        return _each(lower, upper, size)


class IsometricLogRatio:
    """y = Vᵀ log x of a simplex; x = softmax(V y)."""

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        x = np.maximum(x, _SMALLEST_SHARE)
        return x / x.sum(-1, keepdims=True)

    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.log(x) @ simplex_basis(x.shape[-1])

    def inverse(self, y: np.ndarray) -> np.ndarray:
        z = y @ simplex_basis(y.shape[-1] + 1).T
        e = np.exp(z - z.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        by_z = x * (gradient - np.sum(x * gradient, -1, keepdims=True))
        return by_z @ simplex_basis(x.shape[-1])

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.log(x).sum(-1) + 0.5 * np.log(x.shape[-1])

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        return (1.0 - x.shape[-1] * x) @ simplex_basis(x.shape[-1])

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray:
        return _each(-_SIMPLEX_BOUND, _SIMPLEX_BOUND, size - 1)


@cache
def simplex_basis(k: int) -> np.ndarray:
    """V (k, k-1): column j is (1, …, 1, -j, 0, …, 0) / √(j (j + 1)) with j ones (Helmert's contrasts)."""
    basis = np.zeros((k, k - 1))
    for j in range(1, k):
        basis[:j, j - 1], basis[j, j - 1] = 1.0, -float(j)
        basis[:, j - 1] /= np.sqrt(j * (j + 1.0))
    basis.flags.writeable = False
    return basis


class NoCoordinates:
    """Of blocks that say which model holds: a sampler has moves of their own for them; fits refuse them."""

    def inside(self, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        raise TypeError("a block that says which model holds has no coordinates")

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.inside(x, 0.0, 0.0)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return self.inside(y, 0.0, 0.0)

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return self.inside(x, 0.0, 0.0)

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        return self.inside(x, 0.0, 0.0)

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        return self.inside(x, 0.0, 0.0)

    def bounds(self, lower: float, upper: float, size: int) -> np.ndarray:
        return self.inside(np.zeros(size), lower, upper)


_PLAIN: dict[Support, Transform] = {
    "positive": Logarithm(),
    "unit": ScaledLogit(),
    "real": Identity(),
    "simplex": IsometricLogRatio(),
    "tied": NoCoordinates(),
    "choice": NoCoordinates(),
}


def transform_of(support: Support, lower: float, upper: float, linear_below: float = 0.0) -> Transform:
    """The transform of a support; lower and upper are the ends of an interval."""
    if support == "interval":
        return ScaledLogit(lower, upper)
    return SoftLogarithm(linear_below) if linear_below > 0 else _PLAIN[support]
