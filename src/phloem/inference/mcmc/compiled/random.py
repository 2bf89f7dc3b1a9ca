"""Random numbers inside compiled code, one xoshiro256++ stream for each chain, its state an array of four
words; and values proposed with them, inside their bounds.

Blackman and Vigna 2021, ACM Trans. Math. Softw. 47:36. Own streams make a run's numbers independent of
threads.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted

_U17, _U23, _U45, _U11 = np.uint64(17), np.uint64(23), np.uint64(45), np.uint64(11)
_U41, _U19, _U64 = np.uint64(41), np.uint64(19), np.uint64(64)


@uncounted
def next_word(s):
    """The next 64 random bits; s: (4,) uint64, changed in place."""
    total = s[0] + s[3]
    result = ((total << _U23) | (total >> _U41)) + s[0]
    t = s[1] << _U17
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = (s[3] << _U45) | (s[3] >> _U19)
    return result


@uncounted
def uniform(s):
    """Uniform on (0, 1): 53 bits, centred so that neither end is ever returned."""
    return (float(next_word(s) >> _U11) + 0.5) * (1.0 / 9007199254740992.0)


@uncounted
def below(s, n):
    """Uniform integer 0 … n-1 (bias below n / 2**53)."""
    return min(int(uniform(s) * n), n - 1)


@uncounted
def normal(s):
    """Standard normal by the polar method (Marsaglia and Bray 1964); the second value is not kept, on
    purpose: then the stream's state alone says what comes next."""
    while True:
        x, y = 2.0 * uniform(s) - 1.0, 2.0 * uniform(s) - 1.0
        r = x * x + y * y
        if 0.0 < r < 1.0:
            return x * math.sqrt(-2.0 * math.log(r) / r)


@uncounted
def gamma(s, shape):
    """Gamma with unit scale (Marsaglia and Tsang 2000); below shape 1 through Gamma(a) = Gamma(a + 1)
    U**(1/a)."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(s) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(s)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(uniform(s)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v * boost


# Proposed values, kept inside their bounds without breaking the proposal's symmetry.


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
