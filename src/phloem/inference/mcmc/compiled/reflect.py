"""Keep a proposed value inside its bounds without breaking the proposal's symmetry."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted


@uncounted
def multiplied(value, log_factor, low, high):
    """value · exp(log_factor), reflected in log space at low and high; the reflection has Jacobian 1
    there, so the Hastings ratio stays new value / old value."""
    z, a, b = math.log(value) + log_factor, math.log(low), math.log(high)
    while z < a or z > b:
        z = 2.0 * a - z if z < a else 2.0 * b - z
    return math.exp(z)


@uncounted
def shifted(value, shift, low, high):
    """value + shift, reflected at low and high."""
    z = value + shift
    while z < low or z > high:
        z = 2.0 * low - z if z < low else 2.0 * high - z
    return z
