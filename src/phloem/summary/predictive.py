"""How well a model foretells data: statistics of the data beside those of simulated ones (Gelman, Meng and
Stern 1996, Statistica Sinica 6:733; Bollback 2002, Mol. Biol. Evol. 19:1171), and sites that it has not seen.

Leave-one-out by Pareto-smoothed importance sampling: Vehtari, Gelman and Gabry 2017 (Statistics and Computing
27:1413), a site at a time, as Lartillot 2023 (Systematic Biology 72:616) compares models of phylogenies.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

MASS = 0.95


@dataclass(frozen=True)
class Check:
    """name: of a statistic, of several parts with the part's in braces. observed: of the data, or its mean
    over the drawn trees. mean, low, high: of the simulated ones, their mean and central interval. p:
    probability that a simulated one is larger, ties count half. data_sets: how many were simulated, fewer
    than were asked for where there are not as many draws; 0 in older records, which do not say."""

    name: str
    observed: float
    mean: float
    low: float
    high: float
    p: float
    data_sets: int = 0


def check_of(name: str, pairs: np.ndarray) -> Check:
    """pairs: (n, 2) the statistic of the data and of the data set simulated from a draw, for n draws."""
    observed, new = pairs.T
    low, high = np.quantile(new, [(1 - MASS) / 2, (1 + MASS) / 2])
    p = float((new > observed).mean() + 0.5 * (new == observed).mean())
    return Check(name, float(observed.mean()), float(new.mean()), float(low), float(high), p, len(pairs))


def checks_text(checks: Sequence[Check]) -> str:
    """A table of them, a row a statistic."""
    lines = ["statistic\tdata\tsimulated\tlow\thigh\tp_larger\tdata_sets"]
    for c in checks:
        numbers = (c.observed, c.mean, c.low, c.high, c.p)
        lines.append("\t".join([c.name, *(f"{x:.8g}" for x in numbers), str(c.data_sets)]))
    return "\n".join(lines) + "\n"


def site_statistics(codes: np.ndarray, n_states: int) -> dict[str, float]:
    """codes: (T, L); those of n_states and more say nothing. Distinct columns; the multinomial log-likelihood
    Σ n log(n / L) of them (Goldman 1993, J. Mol. Evol. 36:182); the share of columns that are constant; means
    over columns of the number of states and of the probability that two taxa differ; and how much the taxa's
    compositions differ, Σ (n - e)² / e."""
    known = np.minimum(codes, n_states)
    counts = np.stack([(known == s).sum(axis=0) for s in range(n_states)])  # (S, L)
    seen = counts.sum(axis=0)
    n_columns = np.unique(known, axis=1, return_counts=True)[1]
    kinds, two = (counts > 0).sum(axis=0), seen > 1
    alike = (counts * (counts - 1.0)).sum(axis=0)[two] / (seen * (seen - 1.0))[two]
    own = np.stack([(known == s).sum(axis=1) for s in range(n_states)], axis=1).astype(float)  # (T, S)
    expected = own.sum(axis=1, keepdims=True) * own.sum(axis=0) / max(own.sum(), 1.0)
    apart = np.divide((own - expected) ** 2, expected, out=np.zeros_like(own), where=expected > 0)
    return {
        "distinct_columns": float(len(n_columns)),
        "multinomial_log_likelihood": float((n_columns * np.log(n_columns / n_columns.sum())).sum()),
        "constant_columns": float((kinds <= 1).mean()),
        "states_a_column": float(kinds.mean()),
        "differences": float(1.0 - alike.mean()) if two.any() else 0.0,
        "composition": float(apart.sum()),
    }


UNRELIABLE = 0.7  # Pareto's k above which an estimate of a site is not to be trusted


@dataclass(frozen=True)
class LeftOut:
    """Leave-one-out of all sites. log_density: Σ log p(site | all other sites), larger is better, and its
    standard error over sites. numbers: p_loo, the effective number of parameters. unreliable: sites whose
    Pareto k is above 0.7. draws: of all runs together."""

    log_density: float
    error: float
    numbers: float
    unreliable: int
    sites: int
    draws: int


_ROUNDING = 1e-9  # of a log-likelihood
_LEAST_DRAWS = 25  # of whose largest weights a distribution can be fitted


def leave_one_out(values: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of log-likelihoods (L, runs, draws): (L,) log density of each where it is left out, how much less than
    with it, and Pareto's k. share: effective draws a draw. What no draw changes is foretold as it is. Where
    the largest weights are all the same, or nothing can be fitted to them, they count as they are: k is 0 of
    the former, infinite of the latter."""
    from arviz_stats.base import array_stats  # half a second to load: only a summary pays for it

    left_out, spent, k = values[:, 0, 0].copy(), np.zeros(len(values)), np.zeros(len(values))
    for i in np.flatnonzero(np.ptp(values, axis=(1, 2)) > _ROUNDING):
        own = values[i]
        left_out[i] = np.log(own.size) - logsumexp(-own)
        spent[i] = logsumexp(own) - np.log(own.size) - left_out[i]
        largest = np.sort(own, axis=None)[: max(5, own.size // 5)]
        if own.size >= _LEAST_DRAWS and np.ptp(largest) <= _ROUNDING:
            continue
        found = np.full(3, np.nan)
        if own.size >= _LEAST_DRAWS:
            with np.errstate(divide="ignore", invalid="ignore"), suppress(ValueError):
                found[:] = [float(x[0]) for x in array_stats.loo(own[None], r_eff=share)]
        k[i] = np.inf
        if np.isfinite(found).all():
            left_out[i], k[i], spent[i] = found
    return left_out, spent, k
