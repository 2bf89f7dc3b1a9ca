"""Root-to-tip regression: distance from the root against sampling date, at the root that fits best.

A root at distance a above node x, on its branch of length b, is at u_i + a s_i from tip i, with s_i = 1 below
x and −1 elsewhere. So all moments are polynomials of degree two in a, the best a has a closed form for every
criterion, and all branches cost linear time. Criteria as in TempEst (Rambaut et al. 2016, Virus Evol. 2,
vew007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.data.dates import TipDates
from phloem.dating.cpu.path_sums import COUNT, DISTANCES, PRODUCTS, SQUARES, YEARS, path_sums
from phloem.errors import InputError
from phloem.tree.reroot import root_at_branch, unroot
from phloem.tree.tree import Tree, node_depths, require_lengths

RootCriterion = Literal["residuals", "correlation", "r-squared"]
CRITERIA = ("residuals", "correlation", "r-squared")


@dataclass(frozen=True, eq=False)
class Regression:
    """distance = rate · (year − root_year), by least squares over the dated tips.

    tree: rooted as it was used. years, distances, residuals: (T,) in the tree's order, NaN where a tip has no
    date; years are the middles of their ranges. rate: slope, substitutions per site and year. root_year:
    where the line meets distance 0; NaN for a flat line. residual_mean_square: Σ residual² / (dated − 2).
    outliers: (T,) whether a residual is more than `spread` interquartile ranges beyond the quartiles.
    """

    tree: Tree
    years: np.ndarray
    distances: np.ndarray
    residuals: np.ndarray
    rate: float
    root_year: float
    correlation: float
    residual_mean_square: float
    outliers: np.ndarray

    @property
    def r_squared(self) -> float:
        return self.correlation**2

    @property
    def dated(self) -> int:
        """The number of tips with a date."""
        return int(np.isfinite(self.years).sum())


def root_to_tip(tree: Tree, years: np.ndarray, spread: float = 3.0) -> Regression:
    """The regression of a tree at the root that it has. years: (T,) of its tips, NaN where not known."""
    check_years(tree, years)
    distances = node_depths(tree)[: tree.n_tips]
    known = np.isfinite(years)
    t, d = years[known], distances[known]
    dt, dd = t - t.mean(), d - d.mean()
    rate = float(dt @ dd / (dt @ dt))
    residuals = np.full(tree.n_tips, np.nan)
    residuals[known] = dd - rate * dt
    root_year = float(t.mean() - d.mean() / rate) if rate else float("nan")
    total = float(dd @ dd)
    return Regression(
        tree=tree,
        years=years,
        distances=distances,
        residuals=residuals,
        rate=rate,
        root_year=root_year,
        correlation=rate * float(np.sqrt(dt @ dt / total)) if total > 0 else 0.0,
        residual_mean_square=float(np.nansum(residuals**2)) / max(len(t) - 2, 1),
        outliers=_outliers(residuals, spread, float(d.max())),
    )


def best_root(
    tree: Tree, years: np.ndarray, criterion: RootCriterion = "residuals", spread: float = 3.0
) -> Regression:
    """The regression at the root that is best of all places on all branches.

    Branches whose best root has a positive rate come before all others, but for r². Raises InputError for
    fewer than three dated tips, or where all have one date.
    """
    check_years(tree, years)
    free = unroot(tree)
    search = RootSearch(free, criterion)
    node, above, _ = search.best(years)
    length = float(free.lengths[node])
    rooted = root_at_branch(free, node, above / length if length > 0 else 0.5)
    return root_to_tip(rooted, years, spread)


def check_years(tree: Tree, years: np.ndarray) -> None:
    """InputError unless three tips have dates, not all the same, and every branch has a length."""
    require_lengths(tree)
    known = years[np.isfinite(years)]
    if len(known) < 3:
        raise InputError(f"{len(known)} of the tips have a date", hint="Give dates to three or more.")
    if np.ptp(known) == 0:
        raise InputError(
            "all tips have the same date, which says nothing about a rate", hint="Check the dates."
        )


def years_of(tree: Tree, dates: TipDates) -> np.ndarray:
    """(T,) a year for every tip of a tree: the middle of its range."""
    return dates.of(tree.taxa).middle


class RootSearch:
    """The best root of one unrooted tree, for many assignments of years to its tips."""

    def __init__(self, tree: Tree, criterion: RootCriterion) -> None:
        self.tree, self.criterion = tree, criterion
        self.arrays = (tree.parent, tree.child_offsets, tree.child_index, tree.lengths)

    def best(self, years: np.ndarray) -> tuple[int, float, float]:
        """The node above whose branch the root is, how far above it, and the criterion there: r, r², or minus
        the variance of residuals, so that more is better; −∞ where no root has a positive rate."""
        known = years[np.isfinite(years)]
        sums = path_sums(*self.arrays, years - known.mean())
        m = _moments(sums[0][:-1], sums[1][:-1], self.tree.lengths[:-1], float(known.var()))
        at, value, rising = _best_places(m, self.tree.lengths[:-1], self.criterion)
        node = int(np.argmax(np.where(rising, value, -np.inf) if rising.any() else value))
        return node, float(at[node]), float(value[node]) if rising[node] else -np.inf


@dataclass(frozen=True, eq=False)
class _Moments:
    """(B,) covariances over tips for a root at the lower end of every branch, see `_moments`."""

    uu: np.ndarray
    us: np.ndarray
    ut: np.ndarray
    ss: np.ndarray
    st: np.ndarray
    tt: float


def _moments(below: np.ndarray, outside: np.ndarray, lengths: np.ndarray, tt: float) -> _Moments:
    """u: distance from a branch's lower end, along the branch to tips that are not below it; s: 1 for those
    below it, −1 for others; t: years, of mean 0."""
    n = below[:, COUNT] + outside[:, COUNT]
    far = outside[:, DISTANCES] + lengths * outside[:, COUNT]
    s, u = (below[:, COUNT] - outside[:, COUNT]) / n, (below[:, DISTANCES] + far) / n
    squares = below[:, SQUARES] + outside[:, SQUARES] + lengths * (outside[:, DISTANCES] + far)
    products = below[:, PRODUCTS] + outside[:, PRODUCTS] + lengths * outside[:, YEARS]
    return _Moments(
        uu=squares / n - u * u,
        us=(below[:, DISTANCES] - far) / n - u * s,
        ut=products / n,
        ss=1.0 - s * s,
        st=(below[:, YEARS] - outside[:, YEARS]) / n,
        tt=tt,
    )


def _best_places(
    m: _Moments, lengths: np.ndarray, criterion: RootCriterion
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(B,) the best distance above every node, the criterion there, and whether the rate is positive there,
    which r² does not ask for."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if criterion == "residuals":
            best = -(m.us - m.ut * m.st / m.tt) / (m.ss - m.st**2 / m.tt)
        else:
            best = (m.ut * m.us - m.st * m.uu) / (m.st * m.us - m.ut * m.ss)
    inner = np.clip(np.where(np.isfinite(best), best, 0.5 * lengths), 0.0, lengths)
    places = np.stack([inner, np.zeros(len(lengths)), lengths])
    spread, slope = m.uu + places * (2 * m.us + places * m.ss), m.ut + places * m.st
    if criterion == "residuals":
        value = slope**2 / m.tt - spread
    else:
        value = slope / np.sqrt(m.tt * np.maximum(spread, np.finfo(float).tiny))
        value = value**2 if criterion == "r-squared" else value
    chosen, every = value.argmax(axis=0), np.arange(len(lengths))
    rising = slope[chosen, every] > 0 if criterion != "r-squared" else np.ones(len(lengths), bool)
    return places[chosen, every], value[chosen, every], rising


def _outliers(residuals: np.ndarray, spread: float, longest: float) -> np.ndarray:
    """Tukey's fences, wide ones (1977): quartiles are not moved by what they are to find."""
    known = residuals[np.isfinite(residuals)]
    first, third = np.quantile(known, [0.25, 0.75])
    room = max(spread * (third - first), 1e-9 * longest)  # rounding is no outlier
    with np.errstate(invalid="ignore"):
        return (residuals < first - room) | (residuals > third + room)


@dataclass(frozen=True)
class RandomisationTest:
    """p_value: the share of permutations, the data included, whose criterion is as good; units: the number of
    tips or clusters whose dates were permuted."""

    p_value: float
    permutations: int
    units: int
    observed: float
    mean: float


def randomise_dates(
    tree: Tree,
    years: np.ndarray,
    permutations: int,
    rng: np.random.Generator,
    criterion: RootCriterion = "residuals",
    clustered: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RandomisationTest:
    """Is the fit at the best root better than with dates given to tips at random (Ramsden et al. 2009)?

    Every permutation has its own best root. clustered: dates are permuted among clusters, not tips: the
    largest clades of a rooted tree whose tips all have one date (Duchêne et al. 2015, MBE 32:1895).
    """
    check_years(tree, years)
    search = RootSearch(unroot(tree), criterion)
    cluster = (
        date_clusters(tree, years) if clustered else np.where(np.isfinite(years), np.arange(len(years)), -1)
    )
    known = cluster >= 0
    _, first, inverse = np.unique(cluster[known], return_index=True, return_inverse=True)
    of_cluster = years[known][first]
    observed, found = search.best(years)[2], np.empty(permutations)
    for i in range(permutations):
        shuffled = np.full(len(years), np.nan)
        shuffled[known] = rng.permutation(of_cluster)[inverse]
        found[i] = search.best(shuffled)[2] if len(of_cluster) > 1 else observed
        if progress is not None:
            progress(i + 1, permutations)
    as_good = (
        int((found >= observed - 1e-12 * abs(observed)).sum()) if np.isfinite(observed) else permutations
    )
    finite = found[np.isfinite(found)]
    mean = float(finite.mean()) if len(finite) else -np.inf
    return RandomisationTest(
        (as_good + 1) / (permutations + 1), permutations, len(of_cluster), observed, mean
    )


def date_clusters(tree: Tree, years: np.ndarray) -> np.ndarray:
    """(T,) each tip's cluster, a node of the tree: its largest clade of one date; −1 for tips without."""
    date = np.full(tree.n_nodes, np.nan)
    date[: tree.n_tips] = years
    one = np.ones(tree.n_nodes, bool)
    for x in range(tree.n_nodes - 1):
        p = tree.parent[x]
        if np.isnan(date[x]):
            one[p] = one[p] and x < tree.n_tips and one[x]  # an undated tip divides nothing
        elif np.isnan(date[p]):
            date[p] = date[x]
        one[p] = one[p] and one[x] and (np.isnan(date[x]) or date[x] == date[p])
    top = np.arange(tree.n_nodes)
    for x in range(tree.n_nodes - 2, -1, -1):
        if one[tree.parent[x]] and not np.isnan(date[tree.parent[x]]):
            top[x] = top[tree.parent[x]]
    return np.where(np.isfinite(years), top[: tree.n_tips], -1)
