"""Named parameters of a model: their kind, their elements and what values they may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.errors import ModelError

ParameterKind = Literal["positive", "unit", "simplex", "real"]
ParameterValue = float | np.ndarray
Values = Mapping[str, ParameterValue]

SIMPLEX_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter of a model: a number, or a vector when it has elements.

    kind: positive (≥ 0), unit (0 ≤ x < 1), simplex (entries ≥ 0 that sum to 1) or real.
    elements: the name of every entry of a vector; () for a number. aliases: other names the grammar accepts.
    value: the fixed value, or None where the parameter is free (optimised or sampled).
    start: where a free parameter starts; lower, upper: bounds of an optimiser (of every entry).
    reference: of rates that are multiples of a rate of 1, the name of that rate; those of one model with the
    same reference are, together with it, known up to a factor. relative: only the ratios among the entries
    matter. Both say what a prior can be on: shares that sum to 1.
    """

    name: str
    kind: ParameterKind
    elements: tuple[str, ...] = ()
    value: ParameterValue | None = None
    start: ParameterValue = 1.0
    lower: float = 1e-4
    upper: float = 1e4
    aliases: tuple[str, ...] = ()
    reference: str | None = None
    relative: bool = False

    @property
    def size(self) -> int:
        return len(self.elements) or 1

    @property
    def is_free(self) -> bool:
        return self.value is None

    def checked(self, value: ParameterValue) -> ParameterValue:
        """The value as float or float64 array of the right shape; ModelError where it is not allowed.

        A simplex whose entries sum to 1 within 1e-3 (printed frequencies are rounded) is divided by its sum.
        """
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise ModelError(
                f"parameter '{self.name}' is no number: {value!r}", hint="Give a number."
            ) from None
        shape = (len(self.elements),) if self.elements else ()
        if array.shape != shape:
            raise ModelError(f"parameter '{self.name}' needs {self.size} value(s), got {array.size}")
        if not np.isfinite(array).all():
            raise ModelError(
                f"parameter '{self.name}' is not a finite number: {array}", hint="Give a number."
            )
        if self.kind != "real" and (array < 0).any():
            raise ModelError(f"parameter '{self.name}' must not be negative: {array}", hint="Give 0 or more.")
        if self.kind == "unit" and (array >= 1).any():
            raise ModelError(
                f"parameter '{self.name}' must be at least 0 and below 1: {array}", hint="Give a proportion."
            )
        if self.kind == "simplex":
            array = self._normalised(array)
        return array if self.elements else float(array)

    def _normalised(self, array: np.ndarray) -> np.ndarray:
        total = array.sum()
        if abs(total - 1) > SIMPLEX_TOLERANCE:
            raise ModelError(
                f"the entries of '{self.name}' sum to {total:.6g}, not to 1",
                hint=f"Give {self.size} values ({', '.join(self.elements)}) that sum to 1.",
            )
        return array if abs(total - 1) < 1e-14 * self.size else array / total


def simplex(name: str, elements: tuple[str, ...], start: np.ndarray | None = None) -> Parameter:
    """A free simplex parameter that starts at equal entries unless told otherwise."""
    if start is None:
        start = np.full(len(elements), 1.0 / len(elements))
    return Parameter(name, "simplex", elements, None, start, 1e-6, 1.0)


def softmax_gradient(x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """d/dz of f(softmax(z)) where x = softmax(z) and gradient = df/dx, entries taken as independent.

    d/dz_i = x_i (g_i - Σ_j x_j g_j). Shapes (K,) → (K,).
    """
    return x * (gradient - x @ gradient)
