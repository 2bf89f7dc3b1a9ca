"""`phloem date`: the dates of a tree's nodes and the rate, by least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from phloem.analysis.auspice import AuspiceOptions
from phloem.analysis.auspice_dating import attributes_of_dating
from phloem.analysis.clock_filter import (
    left_out_lines,
    left_out_table,
    named_tips,
    outliers_of,
    without_outliers,
)
from phloem.analysis.dated_input import (
    UNSTATED_SITES,
    DatedInput,
    DatedTreeOptions,
    in_whole_years,
    read_dated_tree,
    shown_dates,
)
from phloem.analysis.draw import check_picture_name, save_picture
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.data.dates import shown_year
from phloem.data.given_fields import settle_fields
from phloem.dating.least_squares import Dating, DatingSettings, NoSignal, date_tree
from phloem.dating.outliers import SPREAD, ClockOutliers, require_spread
from phloem.dating.regression import Regression, best_root, years_of
from phloem.errors import InputError, in_file
from phloem.io.auspice import AuspiceDataset, write_auspice
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, write_trees
from phloem.plot.drawing import DrawSettings
from phloem.tree.match import branch_names
from phloem.tree.tree import Tree

INTERVAL = "height_95%_CI"
_APART = 1.2  # times that another estimate outside the interval is told as apart
_FAR_APART = 1.5  # and one where no interval was asked for
_FAR = 50.0  # a root this many spans of the dates before them is told as hardly shown by them


@dataclass(frozen=True)
class DateSettings:
    """input: tree and dates. dating: how (its number of sites is the input's, where that is known).

    out: file for the dated tree, NEXUS if its name says so, else Newick; table: TSV of all nodes; picture:
    .svg, .png or .pdf with a time axis; json: record. Files that exist are replaced only with redo.

    outliers: how many interquartile ranges off the line a tip is off the clock (dating/outliers.py).
    without_outliers: file that says which tips were left out for it; None leaves them in. auspice: dataset
    for Nextstrain, columns of the table of dates or of another.
    """

    input: DatedTreeOptions
    dating: DatingSettings = field(default_factory=DatingSettings)
    out: str | None = None
    table: str | None = None
    picture: str | None = None
    json: str | None = None
    redo: bool = False
    outliers: float = SPREAD
    without_outliers: str | None = None
    auspice: AuspiceOptions = field(default_factory=AuspiceOptions)

    def __post_init__(self) -> None:
        settle_fields(self)
        require_spread(self.outliers)


@dataclass(frozen=True, eq=False)
class DateResult:
    """data: what was dated. dating: what came out. tree: rooted, lengths in years, every node annotated with
    its date and height, and their intervals where replicates were drawn. regression: at the best root, None
    of dates too few or alike; off_the_clock: tips, which were left out if that was asked for."""

    settings: DateSettings
    data: DatedInput
    dating: Dating
    tree: Tree
    provenance: dict[str, object]
    regression: Regression | None = None
    off_the_clock: ClockOutliers | None = None

    @property
    def outliers(self) -> tuple[str, ...]:
        """Tips of the tree whose distance from the root is not that of any day they may be of, the farthest
        off first."""
        found = self.off_the_clock
        return found.names if found and self.settings.without_outliers is None else ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The same, of those that were left out for it."""
        found = self.off_the_clock
        return found.names if found and self.settings.without_outliers is not None else ()

    @property
    def sites_assumed(self) -> bool:
        """Whether nobody said how many sites the lengths rest on."""
        return self.data.sites is None

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings and lists, with the tree where no file has it."""
        found, root = self.dating, self.tree.n_nodes - 1
        years, rates = found.year_intervals, found.rate_interval
        own = {} if self.settings.out is not None else {"dated_tree": newick_text([self.tree]).strip()}
        return own | {
            "tree": self.data.origin,
            "dates": shown_dates(self.data.dates),
            "rate": found.rate,
            "rate_interval": None if rates is None else rates.tolist(),
            "root_year": float(found.years[root]),
            "root_interval": None if years is None else years[root].tolist(),
            "cost": found.cost,
            "root_branches_tried": found.tried,
            "root_proven": found.proven,
            "sites_assumed": self.sites_assumed,
            "outliers": list(self.outliers),
            "left_out": list(self.left_out),
            "settings": _finite(asdict(self.settings)),
            "provenance": self.provenance | {"seed": self.settings.dating.seed},
        }


def _finite(settings: dict) -> dict:
    settings["dating"]["rates"] = [
        rate if np.isfinite(rate) else None for rate in settings["dating"]["rates"]
    ]
    return settings


def run_date(settings: DateSettings, progress: Callable[[str, int, int], None] | None = None) -> DateResult:
    """Read, date, and write what the settings name. progress(step, done, total), total 0 if not known."""
    if settings.picture is not None:
        check_picture_name(settings.picture)
    outputs = [settings.table, settings.picture, settings.without_outliers, settings.auspice.file]
    inputs = [*settings.input.files, settings.auspice.table(settings.input.dates.dates)]
    check_outputs([settings.out, *outputs], inputs, settings.redo, [settings.json])
    read = data = read_dated_tree(settings.input)
    settings = replace(settings, dating=replace(settings.dating, sites=data.sites or UNSTATED_SITES))
    columns = settings.auspice.read(data.tree.taxa, settings.input.dates.dates)
    off = outliers_of(data, settings.outliers, keep_root=settings.dating.root == "keep")
    if settings.without_outliers is not None:
        data = without_outliers(data, off)
    with in_file(settings.input.tree):
        found = _dated(data, settings, off, progress)
    tree = _annotated(found)
    record = provenance(settings.input.files)
    result = DateResult(settings, data, found, tree, record, _regression(data, settings, off), off)
    _write(result, read)
    if settings.auspice.file is not None:
        write_auspice(settings.auspice.file, _dataset(result, columns))
    return result


def _dated(
    data: DatedInput,
    settings: DateSettings,
    off: ClockOutliers | None,
    progress: Callable[[str, int, int], None] | None,
) -> Dating:
    """The tree dated; where its dates have no signal the error says whether single tips may be why."""
    try:
        return date_tree(data.tree, data.dates, settings.dating, progress)
    except NoSignal as error:
        if settings.without_outliers is None and off is not None and off.names:
            error.hint = (
                f"By all others these are off the clock: {named_tips(off.names)}. Check their dates and "
                "sequences, and leave them out (--without-outliers FILE)."
            )
        raise


def _regression(data: DatedInput, settings: DateSettings, off: ClockOutliers | None) -> Regression | None:
    if off is not None and not off.names and settings.dating.root != "keep":
        return off.regression  # is that of all tips, at the best root
    with suppress(InputError):  # dates too few, or alike
        return best_root(data.tree, years_of(data.tree, data.dates))
    return None


def _annotated(found: Dating) -> Tree:
    """The tree with dates and heights at its nodes, as FigTree shows them."""
    latest = float(found.years[: found.tree.n_tips].max())
    notes: dict[int, dict[str, object]] = {}
    for x, year in enumerate(found.years.tolist()):
        notes[x] = {"date": round(year, 6), "height": round(latest - year, 6)}
        if found.year_intervals is not None:
            early, late = found.year_intervals[x].tolist()
            if late - early > 1e-9:
                notes[x]["date_95%_CI"] = (round(early, 6), round(late, 6))
                notes[x][INTERVAL] = (round(latest - late, 6), round(latest - early, 6))
    return replace(found.tree, annotations=notes)


def rate_bounds(text: str | None) -> tuple[float, float]:
    """Two rates, "1e-4,1e-2", as bounds; the usual ones for None."""
    if text is None:
        return DatingSettings.rates
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"'{text}' is no range of rates", hint="Write --rate-range 1e-4,1e-2.") from None
    return low, high


def dating_lines(result: DateResult) -> list[str]:
    """The result in words."""
    found, data, calendar = result.dating, result.data, result.data.dates.calendar
    root = float(found.years[-1])
    lines = [f"tree: {data.origin}, {found.tree.n_tips:,} tips", *shown_dates(data.dates)]
    if result.settings.without_outliers is not None and result.off_the_clock is not None:
        file = result.settings.without_outliers
        lines += left_out_lines(result.off_the_clock, found.tree.n_tips, file)
    if result.sites_assumed:
        lines.append(
            f"the lengths are taken to rest on {UNSTATED_SITES:,} sites: say --sites, or give the alignment"
        )
    if result.settings.dating.root == "search":
        sure = "no other branch can be better" if found.proven else "others were not tried"
        lines.append(f"root: the best of {found.tried:,} branches tried; {sure}")
    rate, year = f"rate {found.rate:.4g} substitutions per site and year", shown_year(root, calendar)
    date = f"root {year} ({root:.6g})"
    if found.rate_interval is not None and found.year_intervals is not None:
        low, high = found.rate_interval.tolist()
        early, late = found.year_intervals[-1].tolist()
        rate += f", 95% interval {low:.3g} to {high:.3g}"
        date += f", 95% interval {early:.6g} to {late:.6g}"
    lines += [rate, date]
    tips = found.years[: found.tree.n_tips]
    span, before = float(np.ptp(tips)), float(tips.min()) - root
    if before > _FAR * span:
        lines.append(
            f"the dates span {span:,.4g} years and the root is {before:,.4g} before them: such dates hardly "
            "show a rate; see phloem temporal-signal, and --sites if they were given"
        )
    return [*lines, *_doubts(result)]


def _doubts(result: DateResult) -> list[str]:
    """What speaks against the rate: tips off the clock, its own interval, and the slope of the regression at
    the best root."""
    found, data, told = result.dating, result.data, _off_the_clock(result)
    if found.rate_interval is not None and not found.rate_interval[0] <= found.rate <= found.rate_interval[1]:
        told.append(
            "the interval does not hold the rate: trees with resampled lengths are dated otherwise, and "
            "least squares is not to be trusted here; phloem time samples dated trees"
        )
    if result.settings.dating.rate is not None or result.regression is None:
        return told
    slope = result.regression.rate
    if slope > 0 and _apart(found, slope):
        few = float(np.median(found.substitutions.lengths[:-1])) * result.settings.dating.sites
        half = "" if result.sites_assumed else f" (half of them have {few:.2g} or less)"
        years = ", and whole years taken as their first day," if in_whole_years(data.dates) else ""
        why = f": branches of few substitutions{half}{years} hold least squares down"
        why = why if slope > found.rate else ""
        told.append(
            f"the slope of the root-to-tip regression is {slope:.4g}{why}, which its interval leaves out; "
            "phloem time samples dated trees, --rate dates with another rate"
        )
    return told


def _off_the_clock(result: DateResult) -> list[str]:
    names = result.outliers
    if not names:
        return []
    tips = "1 tip is" if len(names) == 1 else f"{len(names):,} tips are"
    return [
        f"{tips} off the clock, which draws the rate and the root: {named_tips(names)}; see phloem "
        "temporal-signal, check dates and sequences, and leave out what is wrong (--without NAME), or all of "
        "them (--without-outliers FILE)"
    ]


def _apart(found: Dating, slope: float) -> bool:
    """Whether the regression says another rate than least squares and its interval."""
    ratio = max(slope / found.rate, found.rate / slope)
    if found.rate_interval is None:
        return ratio > _FAR_APART
    low, high = found.rate_interval.tolist()
    return ratio > _APART and not low <= slope <= high


def dated_newick(result: DateResult) -> str:
    """The tree as one line of Newick, lengths in years."""
    return newick_text([result.tree])


def node_rows(result: DateResult) -> Sequence[tuple[str, str, list[float]]]:
    """For every node, the root first: name, date as people read it, and the numbers of the table."""
    found, dates = result.dating, result.data.dates.of(result.tree.taxa)
    names = [*branch_names(found.tree), "root"]
    latest = float(found.years[: found.tree.n_tips].max())
    rows = []
    for x in range(found.tree.n_nodes - 1, -1, -1):
        year = float(found.years[x])
        numbers = [year, latest - year]
        if found.year_intervals is not None:
            numbers += found.year_intervals[x].tolist()
        rows.append((names[x], shown_year(year, dates.calendar), numbers))
    return rows


def _table(result: DateResult) -> str:
    intervals = "" if result.dating.year_intervals is None else "\tdate_lower\tdate_upper"
    lines = [f"node\tday\tdate\theight{intervals}"]
    for name, day, numbers in node_rows(result):
        lines.append("\t".join([name, day, *(f"{value:.6f}" for value in numbers)]))
    return "\n".join(lines) + "\n"


def _write(result: DateResult, read: DatedInput) -> None:
    """read: with the tips that were left out."""
    settings = result.settings
    if settings.without_outliers is not None and result.off_the_clock is not None:
        write_file(settings.without_outliers, left_out_table(result.off_the_clock, read.dates))
    if settings.out is not None:
        write_trees(settings.out, result.tree)
    if settings.table is not None:
        write_file(settings.table, _table(result))
    if settings.picture is not None:
        latest = float(result.dating.years[: result.tree.n_tips].max())
        shown = DrawSettings(latest=latest, support="none", intervals=INTERVAL)
        save_picture(result.tree, settings.picture, shown)
    write_json(result.to_json(), settings.json)


def _dataset(result: DateResult, columns: Mapping[str, Mapping[str, str]]) -> AuspiceDataset:
    """For Auspice. columns: name → tip → text, carried along."""
    found = result.dating
    attributes = attributes_of_dating(found, result.data.dates, result.outliers)
    attributes.metadata(columns)
    title = f"{found.tree.n_tips:,} tips, dated by least squares"
    return attributes.dataset(title, dating_lines(result))
