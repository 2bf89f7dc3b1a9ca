"""`phloem temporal-signal`: does a tree have a clock? Root-to-tip regression and a randomisation of dates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from phloem.analysis.dated_input import DatedInput, DatedTreeOptions, read_dated_tree, shown_dates
from phloem.analysis.draw import check_picture_name, save_drawing
from phloem.analysis.json_record import plain
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.data.dates import shown_year
from phloem.data.given_fields import settle_fields
from phloem.dating.outliers import ClockOutliers, clock_outliers, require_spread
from phloem.dating.regression import (
    CRITERIA,
    RandomisationTest,
    Regression,
    RootCriterion,
    best_root,
    date_clusters,
    randomise_dates,
    root_to_tip,
)
from phloem.errors import InputError, require_choice, require_seed
from phloem.io.output_file import write_file
from phloem.io.trees import write_trees
from phloem.plot.regression_figure import RegressionPoints, regression_drawing, terminal_regression
from phloem.tree.tree import Tree

MOST_PERMUTATIONS = 1_000_000
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class TemporalSignalSettings:
    """input: tree and dates. root: the "best" place on all branches by the criterion, or that of the "file".

    spread: a tip is an outlier if its residual lies more than so many interquartile ranges outside the
    quartiles of the others (dating/outliers.py). permutations: of dates, 0 for no test; seed: of these.
    out_tree: file for the rooted tree; table: TSV of tips; picture: .svg, .png or .pdf; json: record. Files
    that exist are replaced only with redo.
    """

    input: DatedTreeOptions
    criterion: RootCriterion = "residuals"
    root: Literal["best", "file"] = "best"
    spread: float = 3.0
    permutations: int = 1000
    seed: int = 1
    out_tree: str | None = None
    table: str | None = None
    picture: str | None = None
    json: str | None = None
    redo: bool = False

    def __post_init__(self) -> None:
        settle_fields(self)
        require_choice("criterion", self.criterion, CRITERIA)
        require_choice("root", self.root, ("best", "file"))
        require_seed(self.seed)
        if not 0 <= self.permutations <= MOST_PERMUTATIONS:
            hint = f"Choose 0 to {MOST_PERMUTATIONS:,}."
            raise InputError(f"{self.permutations} is no number of permutations", hint=hint)
        require_spread(self.spread)


@dataclass(frozen=True, eq=False)
class TemporalSignal:
    """data: what was read. regression: at the root. outliers: by the line of the others. of_tips,
    of_clusters: the randomisations of dates among tips, and among clades of one date where there are any;
    None where they were not asked for."""

    settings: TemporalSignalSettings
    data: DatedInput
    regression: Regression
    outliers: ClockOutliers
    of_tips: RandomisationTest | None
    of_clusters: RandomisationTest | None
    provenance: dict[str, object]

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings and lists."""
        found = self.regression
        return {
            "tree": self.data.origin,
            "dates": shown_dates(self.data.dates),
            "dated_tips": found.dated,
            "criterion": self.settings.criterion if self.settings.root == "best" else "the file's root",
            "rate": found.rate,
            "root_year": None if np.isnan(found.root_year) else found.root_year,
            "correlation": found.correlation,
            "r_squared": found.r_squared,
            "residual_mean_square": found.residual_mean_square,
            "outliers": list(self.outliers.names),
            "randomisation": {
                name: asdict(test) | {"observed": plain(test.observed), "mean": plain(test.mean)}
                for name, test in (("tips", self.of_tips), ("clusters", self.of_clusters))
                if test is not None
            },
            "settings": asdict(self.settings),
            "provenance": self.provenance | {"seed": self.settings.seed},
        }


def run_temporal_signal(settings: TemporalSignalSettings, progress: Progress | None = None) -> TemporalSignal:
    """Read, regress, randomise, and write what the settings name. progress(step, done, total)."""
    if settings.picture is not None:
        check_picture_name(settings.picture)
    outputs = [settings.out_tree, settings.table, settings.picture]
    check_outputs(outputs, settings.input.files, settings.redo, [settings.json])
    data = read_dated_tree(settings.input)
    years = data.dates.middle
    if settings.root == "best":
        found = best_root(data.tree, years, settings.criterion)
    else:
        _require_root(data.tree, settings.input.tree)
        found = root_to_tip(data.tree, years)
    criterion = settings.criterion if settings.root == "best" else None
    outliers = clock_outliers(data.tree, data.dates, settings.spread, criterion)
    record = provenance(settings.input.files)
    of_tips, of_clusters = _randomised(found, settings, progress)
    result = TemporalSignal(settings, data, found, outliers, of_tips, of_clusters, record)
    _write(result)
    return result


def _require_root(tree: Tree, file: str | None) -> None:
    if not tree.rooted:
        raise InputError("the tree is unrooted", file=file, hint="Let the best root be found (--root best).")


def _randomised(
    found: Regression, settings: TemporalSignalSettings, progress: Progress | None
) -> tuple[RandomisationTest | None, RandomisationTest | None]:
    if settings.permutations == 0:
        return None, None
    streams = np.random.default_rng(settings.seed).spawn(2)

    def test(clustered: bool) -> RandomisationTest:
        step = "randomising dates of clusters" if clustered else "randomising dates"
        return randomise_dates(
            found.tree, found.years, settings.permutations, streams[clustered], settings.criterion, clustered,
            None if progress is None else lambda done, total: progress(step, done, total),
        )  # fmt: skip

    clusters = date_clusters(found.tree, found.years)
    n_clusters = len(np.unique(clusters[clusters >= 0]))
    return test(False), test(True) if 2 < n_clusters < found.dated else None


def signal_lines(signal: TemporalSignal) -> list[str]:
    """The result in words."""
    found, settings, data = signal.regression, signal.settings, signal.data
    how = f"best root by {settings.criterion}" if settings.root == "best" else "the file's root"
    unit = "site and year"
    lines = [f"tree: {data.origin}, {found.tree.n_tips:,} tips; {how}", *shown_dates(data.dates)]
    if not (data.dates.exact | np.isnan(data.dates.middle)).all():
        lines.append("dates within a range count by their middles")
    lines.append(f"rate {found.rate:.4g} substitutions per {unit}, by the slope of the regression")
    if found.rate > 0:
        lines.append(f"root {shown_year(found.root_year, data.dates.calendar)} ({found.root_year:.6g})")
    else:
        lines.append(
            "no root on this tree has distances that grow with the dates: there is no temporal signal"
        )
    lines.append(
        f"correlation {found.correlation:.4f}, R² {found.r_squared:.4f}, residual mean square "
        f"{found.residual_mean_square:.3g}"
    )
    far = [f"{name} ({value:+.2g})" for name, value in zip(signal.outliers.names, signal.outliers.residuals)]
    rule = f"residual more than {settings.spread:g} interquartile ranges outside the quartiles of the others"
    lines.append(f"outliers ({rule}): {', '.join(far) if far else 'none'}")
    for name, test in (("tips", signal.of_tips), ("clades of one date", signal.of_clusters)):
        if test is not None:
            lines.append(
                f"dates randomised among {test.units:,} {name}: p = {test.p_value:.4g} "
                f"({test.permutations:,} permutations, seed {settings.seed})"
            )
    return lines


def regression_points(signal: TemporalSignal) -> RegressionPoints:
    """What the pictures show."""
    found, calendar = signal.regression, signal.data.dates.calendar
    known = np.isfinite(found.years)
    names = tuple(name if name in signal.outliers.names else "" for name in found.tree.taxa)
    root = "" if np.isnan(found.root_year) else f", root {shown_year(found.root_year, calendar)}"
    return RegressionPoints(
        found.years[known],
        found.distances[known],
        tuple(name for name, dated in zip(names, known.tolist()) if dated),
        found.rate,
        found.root_year,
        f"rate {found.rate:.3g} per site and year{root}, R² {found.r_squared:.3f}",
        not calendar,
    )


def terminal_plot(signal: TemporalSignal, width: int) -> str:
    return terminal_regression(regression_points(signal), width)


def _write(signal: TemporalSignal) -> None:
    settings = signal.settings
    if settings.out_tree is not None:
        write_trees(settings.out_tree, signal.regression.tree)
    if settings.table is not None:
        write_file(settings.table, _table(signal))
    if settings.picture is not None:
        save_drawing(regression_drawing(regression_points(signal)), settings.picture)
    write_json(signal.to_json(), settings.json)


def _table(signal: TemporalSignal) -> str:
    """A line a tip: its date and range, distance from the root, residual, and whether it is an outlier."""
    found, dates = signal.regression, signal.data.dates.of(signal.regression.tree.taxa)
    lines = ["name\tdate\tearliest\tlatest\tdistance\tresidual\toutlier"]
    for i, name in enumerate(found.tree.taxa):
        numbers = (found.years[i], dates.lower[i], dates.upper[i], found.distances[i], found.residuals[i])
        shown = ["" if not np.isfinite(value) else f"{value:.10g}" for value in numbers]
        lines.append("\t".join([name, *shown, "yes" if name in signal.outliers.names else "no"]))
    return "\n".join(lines) + "\n"
