"""`phloem date --without-outliers FILE`: tips off the clock are left out, and FILE says which and why."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from phloem.analysis.dated_input import DatedInput
from phloem.data.dates import TipDates, shown_year
from phloem.dating.outliers import ClockOutliers, clock_outliers
from phloem.errors import InputError
from phloem.tree.prune import without_tips

MANY = 0.1  # of the tips: so many off the clock are hardly single mistakes
_SHOWN = 10  # tips that are named


def outliers_of(data: DatedInput, spread: float, keep_root: bool) -> ClockOutliers | None:
    """The tips off the clock, at the best root or the tree's own; None of dates too few or alike."""
    with suppress(InputError):
        return clock_outliers(data.tree, data.dates, spread, None if keep_root else "residuals")
    return None


def without_outliers(data: DatedInput, found: ClockOutliers | None) -> DatedInput:
    """The same without these tips. InputError where dates say nothing of a clock that they could be off."""
    if found is None or not found.regression.rate > 0:
        what = "distances grow with the dates at no root" if found else "dates are too few, or alike"
        raise InputError(
            f"{what}: there is no clock that tips could be off",
            hint="Leave --without-outliers out; phloem temporal-signal shows the dates and distances.",
        )
    tree = without_tips(data.tree, found.names)
    return replace(data, tree=tree, dates=data.dates.of(tree.taxa))


def named_tips(names: tuple[str, ...]) -> str:
    """The first of them, in quotes."""
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def left_out_lines(found: ClockOutliers, n_kept: int, file: str) -> list[str]:
    """What was left out, in words."""
    if not found.names:
        return [f"no tip is off the clock, and none was left out ({file} says so)"]
    n = len(found.names)
    tips = "1 tip" if n == 1 else f"{n:,} tips"
    lines = [f"{tips} off the clock left out, see {file}: {named_tips(found.names)}"]
    if n > MANY * (n + n_kept):
        lines.append(
            f"{n:,} of {n + n_kept:,} tips are hardly single mistakes: look for a wrong root, several rates "
            "or a column of other dates (phloem temporal-signal)"
        )
    return lines


def left_out_table(found: ClockOutliers, dates: TipDates) -> str:
    """A line a tip: its date, the one that its distance is of, and how far it is off. dates: of all tips."""
    lines = ["name\tearliest\tlatest\tdistance_is_of\tdistance\tresidual\tinterquartile_ranges"]
    own = dates.of(found.names) if found.names else dates
    place = {name: i for i, name in enumerate(found.regression.tree.taxa)}
    for i, name in enumerate(found.names):
        limits = [_shown(float(x), dates.calendar) for x in (own.lower[i], own.upper[i], found.fitting[i])]
        numbers = found.regression.distances[place[name]], found.residuals[i], found.ranges[i]
        lines.append("\t".join([name, *limits, *(f"{x:.6g}" for x in numbers)]))
    return "\n".join(lines) + "\n"


def _shown(year: float, calendar: bool) -> str:
    return shown_year(year, calendar) if np.isfinite(year) else ""
