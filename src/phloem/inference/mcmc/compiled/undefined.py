"""Proposals of which nobody can say how probable they are: a log Hastings ratio, log prior or log-likelihood
that is no number, or +∞. They are rejected, and counted. -∞ is a number here: outside the support."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted


@uncounted
def is_defined(ratio, prior, likelihood):
    """Whether all are numbers below +∞; those that were not evaluated count as 0."""
    return ratio < math.inf and prior < math.inf and likelihood < math.inf


@uncounted
def note(row, move, ratio, prior, likelihood, values):
    """Keep what the last such proposal was. row: (4 + n,), see undefined.py; values: (n,) the numbers."""
    row[0], row[1], row[2], row[3] = move, ratio, prior, likelihood
    for i in range(len(values)):
        row[4 + i] = values[i]
