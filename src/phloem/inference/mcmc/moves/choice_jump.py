"""Another model."""

from __future__ import annotations

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.move_table import Move


def choice_jump(p):
    """The number of a model becomes one of the others, 0 … high, each as likely. Symmetric: log Hastings
    ratio 0."""
    x, n = p.numbers, int(p.high) + 1
    x[0] = (int(x[0]) + 1 + below(p.rng, n - 1)) % n
    return 0.0


MOVE = Move("jump", ("choice",), choice_jump, 1)
