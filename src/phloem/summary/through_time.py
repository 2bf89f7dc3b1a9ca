"""Lineages, and sizes of populations, through time: medians and intervals over draws of dated trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

POP_SIZE = "population size"


@dataclass(frozen=True, eq=False)
class ThroughTime:
    """ages: (n,) before the youngest date, or the present. lineages, sizes: (n, 3) median, low and high end
    of the central interval of `mass`; of lineages over all draws, 1 above the root, of sizes over those
    whose root is as old; sizes None where the tree prior has none, and what they are. root: (3,) of the
    root's age."""

    ages: np.ndarray
    lineages: np.ndarray
    sizes: np.ndarray | None
    root: np.ndarray
    mass: float
    sizes_are: str


def through_time(
    heights: np.ndarray,
    sizes: np.ndarray | None,
    n: int = 200,
    mass: float = 0.95,
    sizes_are: str = POP_SIZE,
) -> ThroughTime:
    """heights: (D, N) of draws, the tips' first, the root's last. sizes: of every draw its function of ages,
    as an array (D, n) at `ages_of(heights, n, mass)`. The grid ends at the upper end of the root's age."""
    ages, quantiles = ages_of(heights, n, mass), [0.5, (1 - mass) / 2, (1 + mass) / 2]
    n_tips = (heights.shape[1] + 1) // 2
    tips, joinings = np.sort(heights[:, :n_tips], axis=1), np.sort(heights[:, n_tips:], axis=1)
    lineages = np.empty((len(heights), n))
    for d in range(len(heights)):
        begun = np.searchsorted(tips[d], ages, side="right")
        lineages[d] = begun - np.searchsorted(joinings[d], ages, side="right")
    older = heights[:, -1:] >= ages  # the oldest draw is at every age, also where no root has moved
    return ThroughTime(
        ages,
        _over(lineages, np.ones_like(older), quantiles),
        None if sizes is None else _over(sizes, older, quantiles),
        np.quantile(heights[:, -1], quantiles),
        mass,
        sizes_are,
    )


def ages_of(heights: np.ndarray, n: int, mass: float = 0.95) -> np.ndarray:
    """(n,) ages from the youngest tip's to the upper end of the root's interval."""
    youngest = float(heights[:, : (heights.shape[1] + 1) // 2].min())
    return np.linspace(youngest, float(np.quantile(heights[:, -1], (1 + mass) / 2)), n)


def _over(values: np.ndarray, used: np.ndarray, quantiles: list[float]) -> np.ndarray:
    """(n, 3) quantiles over the draws that are used at each age."""
    return np.array([np.quantile(values[used[:, i], i], quantiles) for i in range(values.shape[1])])


def skyline_sizes(heights: np.ndarray, sizes: np.ndarray, groups: np.ndarray, ages: np.ndarray) -> np.ndarray:
    """(D, n): of draws of a skyline, sizes (D, K) of groups of so many (D, K) joinings, the youngest first;
    an interval has the group of the joining that ends it, and beyond the root the last one's."""
    n_tips, found = (heights.shape[1] + 1) // 2, np.empty((len(heights), len(ages)))
    joinings = np.sort(heights[:, n_tips:], axis=1)
    for d in range(len(heights)):
        ends = joinings[d, np.cumsum(groups[d].astype(np.int64)) - 1]
        found[d] = sizes[d, np.minimum(np.searchsorted(ends, ages), sizes.shape[1] - 1)]
    return found


def grid_sizes(sizes: np.ndarray, spacing: float, ages: np.ndarray, linear: bool) -> np.ndarray:
    """(D, n): of draws of a skygrid, sizes (D, K) in cells of a width, the last one open; linear: logarithms
    of sizes are linear between the cells' young ends."""
    k = sizes.shape[1]
    if not linear:
        return sizes[:, np.minimum((ages / spacing).astype(int), k - 1)]
    points = np.arange(k) * spacing
    return np.exp([np.interp(ages, points, row) for row in np.log(sizes)])
