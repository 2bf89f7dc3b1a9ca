"""How many sites agree with the branches of a tree: concordance factors by parsimony and by likelihood.

Around an inner branch lie four groups of taxa, A and B on one side, C and D on the other
(summary/concordance.py). Of one taxon a group a site is decisive if two of them show one state and two
another, none ambiguous: concordant where A's is B's, discordant of the first kind where A's is C's, of the
second where A's is D's (Minh, Hahn and Lanfear 2020, Mol. Biol. Evol. 37:2727). Shares are means over such
quartets, of those that have a decisive site.

Tips that are far apart agree by chance. By likelihood, the four nodes around the branch stand for the groups,
with the probabilities of their states given the tips of the group alone (Mo, Lanfear, Hahn and Minh 2023,
Bioinformatics 39:btac741), which here are summed instead of drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from phloem.data.patterns import SitePatterns

_AT_ONCE = 4_000_000  # bytes of characters that are compared together


class SiteConcordance(NamedTuple):
    """Of n branches: shares (n, 3), concordant and two alternatives, NaN where no site is decisive; sites (n,
    3) and decisive (n,), how many a quartet has on average. quartets (n,): how many were looked at, and
    telling (n,): those of them with a decisive site, whose mean the shares are; 0 of likelihoods."""

    shares: np.ndarray
    sites: np.ndarray
    decisive: np.ndarray
    quartets: np.ndarray
    telling: np.ndarray


def site_concordance(
    patterns: SitePatterns, groups: np.ndarray, most: int, rng: np.random.Generator
) -> SiteConcordance:
    """By parsimony. groups: bool (T, n, 4) of the rows of patterns; most: quartets a branch, all of them
    where there are no more, else so many drawn with replacement."""
    n = groups.shape[1]
    shares, sites = np.full((n, 3), np.nan), np.zeros((n, 3))
    looked, telling = np.zeros((2, n), np.int64)
    for k in range(n):
        chosen = _quartets([np.flatnonzero(own) for own in groups[:, k].T], most, rng)
        counts = _counts(patterns, chosen)
        decisive = counts.sum(1)
        some = decisive > 0
        looked[k], telling[k], sites[k] = len(chosen), some.sum(), counts.mean(0)
        if some.any():
            shares[k] = (counts[some] / decisive[some, None]).mean(0)
    return SiteConcordance(shares, sites, sites.sum(1), looked, telling)


def _quartets(members: Sequence[np.ndarray], most: int, rng: np.random.Generator) -> np.ndarray:
    """(q, 4) rows of taxa."""
    if np.prod([float(len(own)) for own in members]) <= most:
        return np.array(list(product(*members)), np.int64)
    return np.stack([rng.choice(own, most) for own in members], 1)


def _counts(patterns: SitePatterns, quartets: np.ndarray) -> np.ndarray:
    """(q, 3) sites of each quartet that pair the first taxon with each of the others."""
    states, codes, weights = patterns.state_sets.shape[1], patterns.codes, patterns.weights
    found = np.zeros((len(quartets), 3))
    step = max(1, _AT_ONCE // max(codes.shape[1], 1))
    for first in range(0, len(quartets), step):
        a, b, c, d = (codes[own] for own in quartets[first : first + step].T)
        plain = (a < states) & (b < states) & (c < states) & (d < states)
        pairs = (
            (a == b) & (c == d) & (a != c),
            (a == c) & (b == d) & (a != b),
            (a == d) & (b == c) & (a != b),
        )
        found[first : first + step] = np.stack([(plain & pair) @ weights for pair in pairs], 1)
    return found


def seen_in_all(patterns: SitePatterns, groups: np.ndarray) -> np.ndarray:
    """(n, P) bool: the patterns in which each of the four groups around a branch has a taxon with data.

    Others are not decisive, as where one of four taxa is missing: the state at a node without data is a guess
    from frequencies, and such sites would count for whichever two of the other groups are near each other.

    groups: bool (T, n, 4) of the rows of patterns.
    """
    present = np.logical_not(patterns.state_sets.all(axis=1))[patterns.codes]  # (T, P)
    return np.array([(own.T @ present).all(0) for own in groups.transpose(1, 0, 2)])


def likely_concordance(corners: np.ndarray, weights: np.ndarray) -> SiteConcordance:
    """By likelihood. corners (n, 4, P, S): probabilities of the states at the four nodes around every branch;
    weights (n, P) or (P,), 0 of patterns that are not decisive (seen_in_all). Sites are expected numbers."""
    a, b, c, d = np.moveaxis(corners, 1, 0)
    pairs = ((a, b, c, d), (a, c, b, d), (a, d, b, c))
    sites = np.stack([(_expected(*x) * weights).sum(1) for x in pairs], 1)
    decisive = sites.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = sites / decisive[:, None]
    none = np.zeros(len(corners), np.int64)
    return SiteConcordance(shares, sites, decisive, none, none)


def _expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(n, P) the probability that a and b show one state, c and d another."""
    one, other = a * b, c * d
    return one.sum(-1) * other.sum(-1) - (one * other).sum(-1)
