"""Routes between the states of a trait, from draws: how probable each is, its Bayes factor, how often it was
taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.summary.trace import hpd_interval, mixing


@dataclass(frozen=True)
class Route:
    """name. probability: that it is there, ess of that; both None where all routes are. bayes_factor: its
    odds over those before the data (Lemey et al. 2009), infinite where it was always there. rate: mean, while
    it is there. changes, low, high: mean and 95% HPD of how often it was taken; taken: probability of once.
    """

    name: str
    probability: float | None
    ess: float | None
    bayes_factor: float | None
    rate: float
    changes: float
    low: float
    high: float
    taken: float


def route_table(
    names: Sequence[str],
    rates: np.ndarray,
    there: np.ndarray | None,
    changes: np.ndarray,
    prior: float,
) -> tuple[Route, ...]:
    """A row a route, the most probable first, else those most often taken. rates, there, changes: (n_runs, n,
    R) draws; there: None where all routes are. prior: the probability of a route before the data."""
    found = []
    ess = mixing(there)[0] if there is not None else None
    for r, name in enumerate(names):
        on = np.ones(rates.shape[:2], bool) if there is None else there[:, :, r] > 0
        p, taken = float(on.mean()), changes[:, :, r].ravel()
        low, high = hpd_interval(taken)
        found.append(
            Route(
                name,
                None if there is None else p,
                None if ess is None else float(ess[r]),
                None if there is None else bayes_factor(p, prior),
                float(rates[:, :, r][on].mean()) if on.any() else float("nan"),
                float(taken.mean()),
                low,
                high,
                float((taken > 0).mean()),
            )
        )
    return tuple(sorted(found, key=lambda route: (-(route.probability or 0.0), -route.changes)))


def bayes_factor(posterior: float, prior: float) -> float:
    """Posterior odds over prior odds."""
    if posterior >= 1.0:
        return float("inf")
    return posterior / (1.0 - posterior) * (1.0 - prior) / prior
