"""What dating reads: a tree with lengths, or an alignment to make one from, and the dates of its taxa."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from phloem.analysis.negative_lengths import without_negative
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.data.dates import TipDates, shown_year
from phloem.data.given_fields import settle_fields
from phloem.errors import InputError, in_file
from phloem.io.alignment import read_alignment
from phloem.io.date_table import read_dates
from phloem.io.date_text import DateRange, WholeYears
from phloem.io.dates import DateReading, Undated, date_of, dates_from_names
from phloem.io.trees import read_tree
from phloem.tree.match import match_taxa
from phloem.tree.prune import without_tips
from phloem.tree.tree import Tree, require_lengths

UNSTATED_SITES = 1000  # as LSD2 takes where nobody says


@dataclass(frozen=True)
class DateOptions:
    """Where dates come from, for every command that takes them.

    dates: table; None takes them from the names: pattern (a regular expression), or a delimiter and which
    field (from 0, or -1 from the end, as for None), else the last field after | _ / @. Others as in
    io.dates.DateReading. tip_age: in the place of all these, "name=age" or "name=least,most" before the
    present, 0 of taxa that are not named.
    """

    dates: str | None = None
    _: KW_ONLY
    date_pattern: str | None = None
    date_delimiter: str | None = None
    date_field: int | None = None
    name_column: str | None = None
    date_column: str | None = None
    whole_years: WholeYears = "auto"
    ages: bool = False
    undated: Undated = "error"
    tip_age: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle_fields(self)

    def read(self, taxa: tuple[str, ...]) -> TipDates:
        """The dates of these taxa, in their order."""
        of_table, of_names = (self.name_column, self.date_column), (self.date_pattern, self.date_delimiter)
        if self.tip_age:
            if self.dates is not None or any((*of_table, *of_names)) or self.date_field is not None:
                told = "ages of tips come from --tip-age, or dates from a table or the names, not both"
                raise InputError(told, hint="Leave one of them out.")
            return tip_ages(self.tip_age, taxa)
        reading = DateReading(self.whole_years, self.ages, self.undated, *of_table)
        if self.dates is None:
            if any(of_table):
                raise InputError("a column is chosen, and no table of dates given", hint="Add --dates FILE.")
            return dates_from_names(
                taxa, *of_names, -1 if self.date_field is None else self.date_field, reading
            )
        if any(of_names) or self.date_field is not None:
            hint = "Leave --dates out, or the pattern, delimiter and field."
            raise InputError("dates come from a table, or from the names, not from both", hint=hint)
        return read_dates(self.dates, taxa, reading)


def tip_ages(texts: tuple[str, ...], taxa: tuple[str, ...]) -> TipDates:
    """From "name=age", "name=least,most" and "name=age+/-error", others 0. InputError for a taxon that there
    is not, or twice."""
    ages = dict[str, DateRange]()
    for text in texts:
        name, _, numbers = (part.strip() for part in text.rpartition("="))
        if not name or (age := _age(numbers, name)) is None:
            hint = "Write NAME=AGE, NAME=LEAST,MOST or NAME=AGE+/-ERROR, as in --tip-age Xyelotoma=152,163."
            raise InputError(f"'{text}' is no age of a tip", hint=hint)
        if name not in taxa:
            told = f"--tip-age names a taxon that the data lack: '{name}'"
            raise InputError(told, taxon=name, hint="Write its name as the data do.")
        if name in ages:
            raise InputError(f"--tip-age names '{name}' twice", taxon=name, hint="Leave one of them out.")
        ages[name] = age
    found = [ages.get(name, DateRange(0.0, 0.0)) for name in taxa]
    lower, upper, mean, error = np.array([(x.lower, x.upper, x.mean, x.error) for x in found]).T
    return TipDates(taxa, lower, upper, False, mean, error)


def _age(text: str, name: str) -> DateRange | None:
    """An age, two that bound it or one with an error as years before a present at 0; None of other texts."""
    try:
        ages = [float(number) for number in text.split(",")]
    except ValueError:
        with suppress(InputError):
            found = date_of([text], name, DateReading(), ages=True)
            return found if found.error and found.mean <= 0.0 else None
        return None
    if len(ages) > 2 or not 0.0 <= ages[0] <= ages[-1] < float("inf"):
        return None
    return DateRange(0.0 - ages[-1], 0.0 - ages[0])


@dataclass(frozen=True)
class DatedTreeOptions:
    """tree: Newick or NEXUS file, index which of its trees; None makes BIONJ's of the alignment, which may
    stand in its place. alignment: what the lengths come from; it says how many sites they rest on, unless
    `sites` does. dates: their source. without: names of tips that are left out, such as those whose dates
    are wrong."""

    tree: str | None = None
    _: KW_ONLY
    index: int = 0
    alignment: str | None = None
    datatype: str | None = None
    sites: int | None = None
    dates: DateOptions = field(default_factory=DateOptions)
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle_fields(self)

    @property
    def files(self) -> list[str]:
        return [file for file in (self.tree, self.alignment, self.dates.dates) if file is not None]


@dataclass(frozen=True, eq=False)
class DatedInput:
    """tree: with all lengths. dates: of its tips, in their order. origin: how the tree came about, in words.
    sites: that its lengths rest on, None where nobody said."""

    tree: Tree
    dates: TipDates
    origin: str
    sites: int | None


def read_dated_tree(options: DatedTreeOptions) -> DatedInput:
    """Read all of it; InputErrors name file, line and taxon."""
    file, tree, alignment = options.tree, None, None
    if options.alignment is not None:
        alignment = read_alignment(options.alignment, datatype=options.datatype)
    if file is not None:
        try:
            tree = read_tree(file, options.index, allow_negative=True)
        except InputError:
            with suppress(InputError):
                alignment = alignment or read_alignment(file, datatype=options.datatype)
            if alignment is None or options.alignment is not None:
                raise
    if file is not None and tree is not None:
        (tree,) = without_negative([tree], file)
        require_lengths(tree, file=file)
        if alignment is not None:
            tree = match_taxa(tree, alignment.taxa, file=file)
        tree, origin = without_tips(tree, options.without, file), file
    elif alignment is not None:
        made = starting_tree(_left_out(alignment, options.without))
        tree, origin = made.tree, made.origin
    else:
        hint = "Give a tree file, or --alignment FILE to make one from."
        raise InputError("there is no tree to date", hint=hint)
    with in_file(options.tree or options.alignment):
        dates = options.dates.read(tree.taxa)
    sites = options.sites or (None if alignment is None else int(alignment.codes.shape[1]))
    return DatedInput(tree, dates, origin, sites)


def _left_out(alignment: Alignment, names: Sequence[str]) -> Alignment:
    """Without these taxa, so that they do not draw others towards them in a tree that is made of it."""
    if not names:
        return alignment
    from phloem.analysis.mcmc_parts import without_taxa
    from phloem.analysis.pieces import taxa_named

    return without_taxa(alignment, frozenset(taxa_named(names, alignment.taxa)))


def in_whole_years(dates: TipDates) -> bool:
    """Whether all dates are years and no more, each taken as its first day."""
    return bool(dates.calendar and dates.exact.all() and np.all(dates.lower == np.round(dates.lower)))


def shown_dates(dates: TipDates) -> list[str]:
    """What was read, in a few lines for people."""
    exact, known = dates.exact, np.isfinite(dates.middle)
    n, ranges = len(dates.names), int((known & ~exact).sum())
    first, last = np.nanmin(dates.middle), np.nanmax(dates.middle)
    span = f"{shown_year(float(first), dates.calendar)} to {shown_year(float(last), dates.calendar)}"
    parts = [f"{int(exact.sum()):,} exact"]
    parts += [f"{ranges:,} within a range"] if ranges else []
    parts += [f"{n - int(known.sum()):,} unknown"] if not known.all() else []
    lines = [f"{n:,} dates, {span}: {', '.join(parts)}"]
    if in_whole_years(dates):
        lines.append("all are whole years, taken as their first day: say --whole-years range if they are not")
    return lines
