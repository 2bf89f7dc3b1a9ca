"""Tips off the clock: whose distance from the root is not that of their date, by the line of all the others.

A date that is far from the others draws the line of least squares through itself, and hides. So the line to
begin with is Theil's (1950, Proc. K. Ned. Akad. Wet. 53:386), the median of the slopes between tips of the
earlier and of the later half; then root and line are those of least squares of the tips that were kept, and
every tip is judged by them again, until none changes sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from phloem.data.dates import TipDates
from phloem.dating.regression import Regression, RootCriterion, best_root, check_years, root_to_tip, years_of
from phloem.errors import InputError
from phloem.tree.tree import Tree

SPREAD = 3.0  # Tukey's wide fences (1977)
_WIDER = 1.4  # times that a line through all may be farther from the others, and is still taken


@dataclass(frozen=True, eq=False)
class ClockOutliers:
    """The tips off the clock, the farthest first.

    names; residuals: (K,) distance from the root less that of the line, substitutions per site; ranges: (K,)
    how many interquartile ranges that is beyond the nearer quartile; fitting: (K,) the decimal year that the
    distance is of. regression: of the other tips, at their best root.
    """

    names: tuple[str, ...]
    residuals: np.ndarray
    ranges: np.ndarray
    fitting: np.ndarray
    regression: Regression


def require_spread(spread: float) -> None:
    """InputError unless it is a number of interquartile ranges."""
    if not 0 < spread < np.inf:
        raise InputError("--outliers is a number above 0", hint="Choose 3, or less to find more.")


def clock_outliers(
    tree: Tree, dates: TipDates, spread: float = SPREAD, criterion: RootCriterion | None = "residuals"
) -> ClockOutliers:
    """Tips whose residual is more than `spread` interquartile ranges beyond the quartiles of those that are
    kept. Of a date with limits it is that of the day within them that fits best, and none where the line's is
    within them; quartiles are of their middles. The room grows with how far a date is from the others, as the
    error of the line does. Without a positive rate none.

    tree: lengths in substitutions per site. criterion: of the best root, see regression; None keeps the root.
    InputError for a spread that is none, fewer than three dated tips, or where all have one date.
    """
    require_spread(spread)
    own, years = dates.of(tree.taxa), years_of(tree, dates)
    check_years(tree, years)
    settle = _Settle(tree, own, spread, criterion, {})
    few, found = settle.of(None), settle.of(_near(years))
    fewer = few.out.sum() <= found.out.sum() and (few.regression.rate > 0 or not found.regression.rate > 0)
    if fewer and _spread(few, found.out) <= _WIDER * _spread(found, found.out):
        found = few
    far = np.flatnonzero(found.out)
    far = far[np.argsort(-found.judged.beyond[far], kind="stable")]
    names, judged = tuple(tree.taxa[tip] for tip in far.tolist()), found.judged
    return ClockOutliers(
        names, judged.residuals[far], judged.beyond[far], judged.fitting[far], found.regression
    )


class _Settled(NamedTuple):
    """A regression of tips that are kept, all tips by it, and which (T,) are out."""

    regression: Regression
    judged: _Judged
    out: np.ndarray


class _Settle(NamedTuple):
    """From a root to a set of outliers that its own line leaves as it is. known: regressions by years; where
    no date is far from the others most are asked for again."""

    tree: Tree
    dates: TipDates
    spread: float
    criterion: RootCriterion | None
    known: dict[bytes, Regression]

    def regress(self, years: np.ndarray) -> Regression:
        key = years.tobytes()
        if key not in self.known:
            if self.criterion is None:
                self.known[key] = root_to_tip(self.tree, years)
            else:
                self.known[key] = best_root(self.tree, years, self.criterion)
        return self.known[key]

    def of(self, first: np.ndarray | None) -> _Settled:
        """first: (T,) years that give the root to begin with, at which Theil's line is drawn; None begins
        with all tips."""
        years, nothing = self.dates.middle, np.zeros(self.tree.n_tips, bool)
        out, seen = nothing, set[bytes]()
        if first is not None:
            rooted = self.regress(first)
            line = _theil(years, rooted.distances)
            far = _judge(rooted, line, out, self.dates, self.spread).beyond > self.spread
            out = far if _enough(years, far) else nothing
        while True:
            found = self.regress(np.where(out, np.nan, years))
            judged = _judge(found, (found.rate, found.root_year), out, self.dates, self.spread)
            after = judged.beyond > self.spread
            if (after == out).all() or after.tobytes() in seen or not _enough(years, after):
                return _Settled(found, judged, out & after)  # of a circle what a line without it confirms
            seen.add(out.tobytes())
            out = after


def _spread(settled: _Settled, out: np.ndarray) -> float:
    """Of the residuals of the tips that are kept, but for some more; without bounds where none is left."""
    kept = settled.regression.residuals[~out]
    kept = kept[np.isfinite(kept)]
    return float(np.sqrt(np.mean(kept**2))) if len(kept) else float("inf")


def _near(years: np.ndarray) -> np.ndarray:
    """The years, those far from most of them brought nearer, so that none alone decides where the root is."""
    first, third = np.nanquantile(years, [0.25, 0.75])
    away = 3.0 * (third - first)
    return np.clip(years, first - away, third + away) if away > 0 else years


def _enough(years: np.ndarray, out: np.ndarray) -> bool:
    """Whether a line can be drawn through what is left."""
    left = years[~out & np.isfinite(years)]
    return len(left) >= 3 and bool(np.ptp(left) > 0)


def _theil(years: np.ndarray, distances: np.ndarray) -> tuple[float, float]:
    """Slope and root year of the median line; NaN where most of the dates are one."""
    known = np.flatnonzero(np.isfinite(years))
    t, d = (x[known][np.argsort(years[known], kind="stable")] for x in (years, distances))
    half = len(t) // 2
    spans = t[-half:] - t[:half]
    apart = spans > 0
    if not apart.any():
        return float("nan"), float("nan")
    slope = float(np.median((d[-half:] - d[:half])[apart] / spans[apart]))
    above = float(np.median(d - slope * t))
    return slope, -above / slope if slope else float("nan")


@dataclass(frozen=True, eq=False)
class _Judged:
    """(T,) of all tips: residuals, how many interquartile ranges these are beyond the quartiles, 0 of what is
    no outlier; and the years that their distances are of."""

    residuals: np.ndarray
    beyond: np.ndarray
    fitting: np.ndarray


def _judge(
    found: Regression, line: tuple[float, float], out: np.ndarray, dates: TipDates, spread: float
) -> _Judged:
    """All tips by a line, and by the spread of those that are not out."""
    rate, root_year = line
    nothing = np.zeros(len(out))
    if not rate > 0:
        return _Judged(nothing, nothing, nothing)
    years, distances = dates.middle, found.distances
    fitting = root_year + distances / rate
    kept = np.isfinite(years) & ~out
    first, third = np.quantile((distances - rate * (years - root_year))[kept], [0.25, 0.75])
    residuals = distances - rate * (np.clip(fitting, dates.lower, dates.upper) - root_year)
    t = years - years[kept].mean()
    room = np.sqrt(1.0 + t**2 / (t[kept] @ t[kept]))  # errors of foretold values, in those of values
    least = 1e-9 * float(distances.max()) / spread  # rounding is no outlier
    ranges = np.maximum(first - residuals, residuals - third) / (max(float(third - first), least) * room)
    fits = ~np.isfinite(years) | ((dates.lower <= fitting) & (fitting <= dates.upper))
    return _Judged(residuals, np.where(fits, 0.0, np.maximum(ranges, 0.0)), fitting)
