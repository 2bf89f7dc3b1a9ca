"""Tests of trees by resampled log-likelihoods of sites: KH and SH, weighted or not, ELW, AU.

All take what every tree's sites are worth, resample sites (RELL; Kishino, Miyata and Hasegawa 1990), and ask
whether a tree could be the best. Trees should be all that are plausible, or chosen without the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from phloem.errors import InputError

SCALES = np.arange(5, 15) / 10.0  # of the number of sites, in the AU test
_AT_A_TIME = 1 << 22  # draws held at once
_STREAM = 4  # of random numbers
_FEWEST = 5
# Log units: trees that differ in a branch of length zero alone are equally good, up to what fits leave.
_TIE = 1e-3
_CERTAIN = 0.95  # of the set of trees by expected weights


class TreeTests(NamedTuple):
    """Of n trees, each (n,). difference: of the log-likelihood from the best tree's. bootstrap: how often a
    tree is the best of resampled sites. kh, wkh, sh, wsh, au: p-values, rejected below 0.05: Kishino and
    Hasegawa 1989 (one-sided, against the best tree, of the best one against the next), the same against the
    tree that is farthest ahead in standard errors of the difference, Shimodaira and Hasegawa 1999, the same
    with differences divided by their standard errors, Shimodaira 2002. elw: expected likelihood
    weights (Strimmer and Rambaut 2002), in_elw_set: whether among the best with 95 % of them."""

    log_likelihood: np.ndarray
    difference: np.ndarray
    bootstrap: np.ndarray
    kh: np.ndarray
    wkh: np.ndarray
    sh: np.ndarray
    wsh: np.ndarray
    elw: np.ndarray
    in_elw_set: np.ndarray
    au: np.ndarray


class TreeSites(NamedTuple):
    """What n trees are told apart by. values: (n, P) log-likelihoods by pattern. weights: (P,) sites of each.
    ends: of the parts of the data, one behind the other, where each ends among the patterns; () of one part.
    Sites are drawn within their part."""

    values: np.ndarray
    weights: np.ndarray
    ends: tuple[int, ...] = ()

    def parts(self) -> list[slice]:
        ends = self.ends or (len(self.weights),)
        return [slice(first, end) for first, end in zip((0, *ends[:-1]), ends)]


def compare_trees(sites: TreeSites, replicates: int, seed: int) -> TreeTests:
    """Errors: InputError for fewer than two trees or 1,000 replicates."""
    if len(sites.values) < 2:
        raise InputError("a test of trees wants two at least", hint="Give more trees.")
    if replicates < 1000:
        raise InputError(f"{replicates} replicates of a test", hint="Give 1000 or more; 10000 is usual.")
    rng = np.random.default_rng([seed, _STREAM])
    values = sites.values @ sites.weights
    difference = values.max() - values
    sums = resampled(sites, 1.0, replicates, rng)
    centred = sums - sums.mean(0)
    kh, wkh = _kishino_hasegawa(centred, values, _rivals(sites, values))
    sh, wsh = _shimodaira_hasegawa(centred, difference, sites)
    elw = _expected_weights(sums)
    return TreeTests(
        values, difference, _best_shares(sums), kh, wkh, sh, wsh,
        elw, _weighty(elw), approximately_unbiased(sites, replicates, rng),
    )  # fmt: skip


def resampled(sites: TreeSites, scale: float, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """(R, n) log-likelihoods of as many resampled sites as scale times those of the data; parts, however
    short, have together as many as that."""
    drawn, seen, sums = 0, 0.0, np.zeros((replicates, len(sites.values)))
    for part in sites.parts():
        values, weights = sites.values[:, part], sites.weights[part]
        seen += weights.sum()
        draws = max(1, round(scale * seen)) - drawn
        drawn += draws
        step = max(1, _AT_A_TIME // len(weights))
        for first in range(0, replicates, step):
            rows = slice(first, min(first + step, replicates))
            counts = rng.multinomial(draws, weights / weights.sum(), rows.stop - rows.start)
            sums[rows] += counts @ values.T
    return sums


def _best_shares(sums: np.ndarray) -> np.ndarray:
    """(n,) how often each is the best, shared among equals."""
    best = _are_best(sums)
    return (best / best.sum(1, keepdims=True)).mean(0)


def _are_best(sums: np.ndarray) -> np.ndarray:
    """(R, n) which trees are the best of a replicate, all of equals."""
    return sums >= sums.max(1, keepdims=True) - _TIE


def _rivals(sites: TreeSites, values: np.ndarray) -> np.ndarray:
    """(2, n) for every tree another one: the likeliest, and that which is farthest ahead, or least behind, in
    standard errors; where all say the same of every site the likeliest too."""
    found = np.empty((2, len(values)), np.int64)
    for i in range(len(values)):
        ahead, error = values - values[i], _standard_errors(sites, i)
        ahead[i] = -np.inf
        others = error > 1e-9
        found[0, i] = found[1, i] = np.argmax(ahead)
        if others.any():
            found[1, i] = np.argmax(np.where(others, ahead / np.where(others, error, 1.0), -np.inf))
    return found


def _kishino_hasegawa(centred: np.ndarray, values: np.ndarray, rivals: np.ndarray) -> np.ndarray:
    """(2, n) for two choices of a rival."""
    p = np.empty(rivals.shape)
    for kind, own in enumerate(rivals):
        for i, rival in enumerate(own.tolist()):
            p[kind, i] = np.mean(centred[:, rival] - centred[:, i] >= values[rival] - values[i] - 1e-9)
    return p


def _shimodaira_hasegawa(
    centred: np.ndarray, difference: np.ndarray, sites: TreeSites
) -> tuple[np.ndarray, np.ndarray]:
    """p-values without and with differences divided by their standard errors; with, of the best tree too from
    the others', as CONSEL and IQ-TREE have it: below 1."""
    n, values = len(difference), sites.values @ sites.weights
    most = centred.max(1, keepdims=True)
    plain = (most - centred >= difference - 1e-9).mean(0)
    weighted = np.empty(n)
    for i in range(n):
        error = _standard_errors(sites, i)
        others = error > 1e-9
        if not others.any():  # all trees say the same of every site
            weighted[i] = 1.0
            continue
        observed = np.max((values - values[i])[others] / error[others])
        drawn = np.max((centred - centred[:, i : i + 1])[:, others] / error[others], axis=1)
        weighted[i] = np.mean(drawn >= observed - 1e-9)
    return plain, weighted


def _standard_errors(sites: TreeSites, tree: int) -> np.ndarray:
    """(n,) of the differences of all trees from one, sites drawn within their parts."""
    variance = np.zeros(len(sites.values))
    for part in sites.parts():
        apart, weights = sites.values[:, part] - sites.values[tree, part], sites.weights[part]
        total = weights.sum()
        spread = (apart**2) @ weights - (apart @ weights) ** 2 / total
        variance += np.maximum(spread * total / max(total - 1, 1), 0.0)
    return np.sqrt(variance)


def _expected_weights(sums: np.ndarray) -> np.ndarray:
    shares = np.exp(sums - sums.max(1, keepdims=True))
    return (shares / shares.sum(1, keepdims=True)).mean(0)


def _weighty(weights: np.ndarray) -> np.ndarray:
    """Which are the fewest that have _CERTAIN of the weight."""
    order = np.argsort(-weights, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    inside = np.zeros(len(weights), bool)
    inside[order[before < _CERTAIN]] = True
    return inside


def approximately_unbiased(sites: TreeSites, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) p-values of the AU test (Shimodaira 2002, Syst. Biol. 51:492): from how the share of replicates in
    which a tree is the best changes with the number of sites drawn. No tree is better than its equal: where
    two are the best, both are, and neither's p is lower than it would be alone."""
    shares = np.array([_are_best(resampled(sites, r, replicates, rng)).mean(0) for r in SCALES])
    return np.array([au_p_value(own, SCALES, replicates) for own in shares.T])


def au_p_value(shares: np.ndarray, scales: np.ndarray, replicates: int) -> float:
    """1 - Φ(d - c), where the share at scale r is 1 - Φ(d √r + c / √r); d and c by weighted least squares of
    the normal quantiles. Scales where a tree is the best, or is not, in fewer than _FEWEST replicates say
    nothing; where fewer than three are left it is 1 or 0."""
    times = shares * replicates
    inside = (times >= _FEWEST) & (times <= replicates - _FEWEST)
    if inside.sum() < 3:
        return float(shares.mean() >= 0.5)
    share, scale = shares[inside], scales[inside]
    z = -ndtri(share)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    weight = replicates * density**2 / (share * (1 - share))
    root = np.sqrt(weight)
    predictors = np.stack([np.sqrt(scale), 1 / np.sqrt(scale)], 1)
    d, c = np.linalg.lstsq(predictors * root[:, None], z * root, rcond=None)[0]
    return float(1 - ndtr(d - c))
