"""NaN and -inf never leave silently: what is impossible is named."""

from __future__ import annotations

import numpy as np

from phloem.data.patterns import SitePatterns
from phloem.errors import NumericalError
from phloem.likelihood.gradient import Gradient
from phloem.pruning.interface import Evaluator


def require_possible(value: float, evaluator: Evaluator, patterns: SitePatterns) -> float:
    """The log-likelihood of the evaluator's last evaluation if it is finite, else a NumericalError."""
    if np.isfinite(value):
        return float(value)
    by_pattern = evaluator.site_log_likelihoods()[: len(patterns.weights)]
    wrong = np.flatnonzero(~np.isfinite(by_pattern[patterns.site_pattern]))
    if not len(wrong):
        raise NumericalError(f"the log-likelihood is {value}: no variable character is possible here")
    more = f" and {len(wrong) - 1} others" if len(wrong) > 1 else ""
    found = by_pattern[patterns.site_pattern[wrong[0]]]
    raise NumericalError(
        f"site {wrong[0] + 1}{more} has likelihood 0 (log-likelihood {found})"
        "\n  hint: Taxa that differ are joined by branches of length zero, a state that occurs has frequency"
        " zero, or a parameter is extreme."
    )


def require_finite(gradient: Gradient) -> Gradient:
    """The gradient if every number in it is finite, else a NumericalError that names the first one not."""
    wrong = np.argwhere(~np.isfinite(gradient.branch_lengths))
    if len(wrong):
        name, value = gradient.branch_names[wrong[0][-1]], gradient.branch_lengths[tuple(wrong[0])]
        raise NumericalError(f"the derivative of branch '{name}' is {value}")
    for parameter, value in gradient.parameters.items():
        if not np.isfinite(value):
            raise NumericalError(f"the derivative of parameter '{parameter}' is {value}")
    return gradient
