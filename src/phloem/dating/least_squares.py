"""Least-squares dating (LSD: To et al. 2016, Syst. Biol. 65:82): node dates, the rate and the root.

Minimised is Σ w (b − rate · duration)² over branches, b their lengths in substitutions per site and
w = s / (b + c/s) the inverse of their variance for s sites (c = 10 keeps short branches from weighing without
bounds), while no node is older than its parent and every tip lies within its range. The root may be anywhere
on its branch. Without the constraints the best cost of all branches takes linear time, and none can be better
with them: so branches are tried in that order until what is left cannot win.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.data.dates import TipDates
from phloem.data.given_fields import settle_fields
from phloem.dating.cpu.tree_squares import A, B, C, both_sides, keep_order
from phloem.dating.interior_point import TimeProblem, solve_times
from phloem.errors import InputError, require_choice, require_count, require_seed
from phloem.hardware.limits import require_memory
from phloem.tree.reroot import root_at_branch, unroot
from phloem.tree.tree import Tree, require_lengths

DatingRoot = Literal["search", "branch", "keep"]
Progress = Callable[[str, int, int], None]
_LEAST = 1e-10  # substitutions per site and year, as LSD has it
_SLOWEST, _FASTEST = 1e-15, 1e3  # of rates that anybody may mean
MOST_REPLICATES = 100_000
_WORK = 200_000  # nodes visited by a search for the root, or a few branches more


class NoSignal(InputError):
    """Dates by which nothing evolves in time."""


@dataclass(frozen=True)
class DatingSettings:
    """How a tree is dated.

    sites: of the alignment that the lengths were estimated from. root: "search" all branches; keep the tree's
    root on its "branch", at the best place; or "keep" it where it is. rate: substitutions per site and year,
    if known; rates: bounds. smoothing: c of the variance. replicates: resampled trees for intervals, which
    hold `mass`: lengths are Poisson counts over sites of the fitted ones, times a log-normal factor of mean 1
    and standard deviation clock_spread for each branch.
    """

    sites: int = 1000
    root: DatingRoot = "search"
    rate: float | None = None
    rates: tuple[float, float] = (_LEAST, np.inf)
    smoothing: float = 10.0
    replicates: int = 0
    clock_spread: float = 0.2
    mass: float = 0.95
    seed: int = 1

    def __post_init__(self) -> None:
        settle_fields(self)
        require_choice("root", self.root, ("search", "branch", "keep"))
        require_count("the number of sites", self.sites)
        low, high = self.rates
        given = () if self.rate is None else (self.rate,)
        if not (
            _SLOWEST <= low <= high and low <= _FASTEST and all(_SLOWEST <= r <= _FASTEST for r in given)
        ):
            hint = (
                f"Rates are substitutions per site and year, {_SLOWEST:g} to {_FASTEST:g}, the lower first."
            )
            raise InputError("this is no rate, or no range of rates", hint=hint)
        for what, allowed, range_of in (
            ("smoothing", 1e-6 <= self.smoothing <= 1e6, "1e-6 to 1e6 substitutions"),
            ("clock spread", 0 <= self.clock_spread <= 10, "0 to 10"),
            ("mass of intervals", 0 < self.mass < 1, "above 0, below 1"),
            (
                "number of resampled trees",
                0 <= self.replicates <= MOST_REPLICATES,
                f"0 to {MOST_REPLICATES:,}",
            ),
        ):
            if not allowed:
                raise InputError(f"the {what} is out of range", hint=f"Choose {range_of}.")
        require_seed(self.seed)


@dataclass(frozen=True, eq=False)
class Dating:
    """tree: rooted, branch lengths in years, nodes as in `substitutions`, which has the lengths that were
    given, rooted likewise. years: (N,) decimal. rate: substitutions per site and year. cost: the weighted sum
    of squares. tried: the number of root branches solved; proven: whether no other branch can be better.
    year_intervals (N, 2), rate_interval (2,): None without replicates.
    """

    tree: Tree
    substitutions: Tree
    years: np.ndarray
    rate: float
    cost: float
    tried: int
    proven: bool
    year_intervals: np.ndarray | None = None
    rate_interval: np.ndarray | None = None

    @property
    def heights(self) -> np.ndarray:
        """(N,) years before the latest tip."""
        return self.years[: self.tree.n_tips].max() - self.years


def date_tree(
    tree: Tree, dates: TipDates, settings: DatingSettings | None = None, progress: Progress | None = None
) -> Dating:
    """Date a tree of branch lengths in substitutions per site.

    dates: of all its tips, and perhaps others; unknown ones are estimated. Raises InputError for lengths that
    are missing or negative, fewer than three tips, dates that say nothing about the rate, an unrooted tree
    whose root is to be kept.
    """
    settings = settings or DatingSettings()
    require_lengths(tree)
    if tree.n_tips < 3:
        raise InputError("dating takes three tips or more", hint="Give a larger tree.")
    scale = _Scale(tree, dates.of(tree.taxa), settings)
    if settings.root == "search":
        found = _search(unroot(tree), scale, progress)
    else:
        if len(tree.children(tree.n_nodes - 1)) != 2 and (settings.root == "branch" or not tree.rooted):
            raise InputError("the tree has no root to keep", hint="Let the root be searched (--root search).")
        found = _rooted(tree, scale, free=settings.root == "branch")
    if found.rate <= settings.rates[0] * (1 + 1e-6) and settings.rate is None and settings.rates[0] == _LEAST:
        raise NoSignal(
            "the dates carry no signal: lengths fit best if nothing evolves in time",
            hint="Look at phloem temporal-signal; or give the rate (--rate), or bounds (--rate-range).",
        )
    return _with_intervals(found, scale, progress) if settings.replicates else found


class _Scale:
    """Units in which lengths, weights and years are about 1, and the way back."""

    def __init__(self, tree: Tree, dates: TipDates, settings: DatingSettings) -> None:
        self.settings = settings
        known = np.concatenate([dates.lower, dates.upper])
        known = known[np.isfinite(known)]
        if len(known) == 0:
            raise InputError("no tip has a date", hint="Give dates to two tips or more.")
        self.latest, self.span = float(known.max()), float(np.ptp(known))
        if settings.rate is None and self.span == 0:
            hint = "Give the rate (--rate), or dates that differ."
            raise InputError("all tips have the same date, which says nothing about a rate", hint=hint)
        self.span = self.span or 1.0
        mean = float(tree.lengths[:-1].mean())
        if mean == 0:
            raise InputError("all branches have length zero", hint="Give branch lengths in substitutions.")
        low, high = (settings.rate, settings.rate) if settings.rate is not None else settings.rates
        self.length = max(mean, low * self.span)  # a rate far too high is a distance far too long
        self.lower, self.upper = ((bound - self.latest) / self.span for bound in (dates.lower, dates.upper))
        unit = self.length / self.span
        self.rates = low / unit, high / unit
        self.weight = settings.sites / (mean + settings.smoothing / settings.sites)

    def weights(self, lengths: np.ndarray) -> np.ndarray:
        """Of branches of these lengths, in units of `weight`."""
        s = self.settings.sites
        return s / (lengths + self.settings.smoothing / s) / self.weight

    def rate(self, scaled: float) -> float:
        return scaled * self.length / self.span

    def years(self, scaled: np.ndarray) -> np.ndarray:
        return self.latest + scaled * self.span


def _search(tree: Tree, scale: _Scale, progress: Progress | None) -> Dating:
    """The root on the best branch of an unrooted tree."""
    bound = _bounds(tree, scale)
    order = np.argsort(bound, kind="stable")
    most = max(8, _WORK // tree.n_nodes)
    best, branch, tried = None, -1, 0
    for node in order.tolist():
        if best is not None and (bound[node] >= best.cost * (1 - 1e-9) or tried >= most):
            break
        found = _rooted(root_at_branch(tree, node), scale, free=True)
        tried += 1
        if best is None or found.cost < best.cost:
            best, branch = found, node
        if progress is not None:
            progress("root", tried, 0)
    assert best is not None
    proven = bool(np.all(bound[order[tried:]] >= best.cost * (1 - 1e-9)))
    if not proven:
        best, tried = _climb(tree, scale, best, branch, set(order[:tried].tolist()))
    return replace(best, tried=tried, proven=proven)


def _climb(tree: Tree, scale: _Scale, best: Dating, branch: int, seen: set[int]) -> tuple[Dating, int]:
    """From branch to neighbouring branch as long as that is better."""
    improved = True
    while improved:
        improved = False
        above, root = int(tree.parent[branch]), tree.n_nodes - 1
        near = [*tree.children(branch).tolist(), *tree.children(above).tolist(), above]
        for node in near:
            if node == root or node in seen:
                continue
            seen.add(node)
            found = _rooted(root_at_branch(tree, node), scale, free=True)
            if found.cost < best.cost:
                best, branch, improved = found, node, True
    return best, len(seen)


def _bounds(tree: Tree, scale: _Scale) -> np.ndarray:
    """(B,) for a root on each branch, a cost that no dating goes below: that without all constraints."""
    lengths = tree.lengths / scale.length
    years = np.full(tree.n_nodes, np.nan)
    exact = scale.lower == scale.upper
    years[: tree.n_tips][exact] = scale.lower[exact]
    weights = scale.weights(tree.lengths)
    below, outside = both_sides(tree.parent, tree.child_offsets, tree.child_index, weights, lengths, years)
    sums = (below + outside)[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.clip(np.where(sums[:, A] > 0, sums[:, B] / sums[:, A], 0.0), *scale.rates)
    cost = sums[:, C] + rate * (rate * sums[:, A] - 2 * sums[:, B])
    return np.maximum(cost, 0.0) * scale.weight * scale.length**2


def _rooted(tree: Tree, scale: _Scale, free: bool) -> Dating:
    """Date a rooted tree; free: its root may move on its branch, the two below it taken together."""
    root = tree.n_nodes - 1
    lengths, parent = tree.lengths[:-1].copy(), tree.parent
    if not free:
        split = -1
    else:
        split, upper = sorted(tree.children(root).tolist())
        lengths, parent = lengths[:-1], parent[:-1].copy()
        lengths[split] = tree.lengths[split] + tree.lengths[upper]
        parent[split], parent[upper] = upper, -1
    weights = scale.weights(lengths)
    place, rate = solve_times(
        TimeProblem(parent, lengths / scale.length, weights, scale.lower, scale.upper, split, scale.rates)
    )
    if free:
        a, b = place[split], place[-1]
        place = np.append(place, min(a, b, 0.5 * (a + b - lengths[split] / scale.length)))
    keep_order(tree.parent, place)
    return _dating(tree, scale, place, rate, (lengths, weights, split))


def _dating(tree: Tree, scale: _Scale, place: np.ndarray, rate: float, fitted: tuple) -> Dating:
    """The result in years, and what it costs."""
    lengths, weights, split = fitted
    durations = place[:-1] - place[tree.parent[:-1]]
    if split >= 0:
        own = tree.lengths[:-1].copy()
        other = tree.n_nodes - 2
        share = durations[split] / max(durations[split] + durations[other], 1e-300)
        own[split], own[other] = share * lengths[split], (1 - share) * lengths[split]
        tree = replace(tree, lengths=np.append(own, 0.0))
        durations = durations.copy()
        durations[split] += durations[other]
        durations = durations[: len(lengths)]
    misfit = durations - lengths / scale.length
    cost = float(weights @ misfit**2) * scale.weight * scale.length**2
    years = scale.years(place / rate)
    apart = np.append(years[:-1] - years[tree.parent[:-1]], 0.0)
    annotations: dict[int, dict[str, object]] = {}
    dated = replace(tree, lengths=np.maximum(apart, 0.0), annotations=annotations, rooted=True)
    return Dating(dated, tree, years, scale.rate(rate), cost, 1, True)


def _with_intervals(found: Dating, scale: _Scale, progress: Progress | None) -> Dating:
    """Intervals from trees with lengths drawn anew around the fitted ones, rooted on the same branch."""
    settings, tree = scale.settings, found.substitutions
    rng = np.random.default_rng(settings.seed)
    fitted = found.rate * found.tree.lengths[:-1]
    spread = np.sqrt(np.log1p(settings.clock_spread**2))
    n = settings.replicates
    require_memory(f"{n:,} resampled trees", 8.0 * n * tree.n_nodes, "Ask for fewer (--intervals).")
    years, rates = np.empty((settings.replicates, tree.n_nodes)), np.empty(settings.replicates)
    for i in range(settings.replicates):
        factor = np.exp(spread * rng.standard_normal(len(fitted)) - 0.5 * spread**2)
        counts = rng.poisson(np.minimum(fitted * factor * settings.sites, 1e15))
        drawn = replace(tree, lengths=np.append(counts / settings.sites, 0.0))
        again = _rooted(drawn, scale, free=settings.root != "keep")
        years[i], rates[i] = again.years, again.rate
        if progress is not None:
            progress("intervals", i + 1, settings.replicates)
    tails = 0.5 * (1 - settings.mass), 0.5 * (1 + settings.mass)
    return replace(
        found, year_intervals=np.quantile(years, tails, axis=0).T, rate_interval=np.quantile(rates, tails)
    )
