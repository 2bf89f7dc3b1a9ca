"""Dates and other traits of taxa in BEAST 1 and BEAST 2 files.

BEAST 1: `<taxon id="a"><date value="1982" direction="forwards" units="years"/></taxon>`, the date also as
`<date idref="earlier"/>` or written 31/12/1982; with `uncertainty="1"` and a `<leafHeight taxon="a">` it is
sampled from 1982 to 1983. BEAST 2: a trait of a=1982,b=1990, with `dateFormat="d/M/yyyy"` of a=31/12/1982;
those that it samples are as their priors have them (io.beast_tip_priors).
Others: `<taxon id="a"><attr name="location">Fujian</attr></taxon>`; a trait of a=Fujian,b=Hunan.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from math import inf

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.beast_elements import Element, parsed, tell_unread
from phloem.io.beast_tip_priors import tip_priors
from phloem.io.date_text import UNKNOWN, DateRange, parse_date
from phloem.io.source_text import SourceText

Found = dict[str, tuple[int, DateRange]]  # taxon → line and date

_TRAITS = ("trait", "traitSet")
_DATES = ("date", "date-forward", "date-backward", "age")
_PER_YEAR = {"year": 1.0, "month": 12.0, "day": 365.25}  # how many of a unit are a year
_FIELD = re.compile(r"(y{4}|u{4}|[yu]|M{1,2}|d{1,2})")
_BEAST_1 = "dd/MM/yyyy"


def read_beast_dates(source: SourceText) -> tuple[Found, bool, DateRange | None]:
    """The line and date of every dated taxon, whether they are ages: years before present, negative; and the
    date of taxa that have none, if that can be said: the present, else in BEAST 1 the youngest of the others.

    Units of days and months become years of 365.25 days and of 12 months, which is told.
    """
    root = parsed(source)
    found: Found = {}
    backwards, units, exact = set[bool](), dict[str, str](), list[str]()
    sampled = {one.attributes.get("taxon", "") for one in root.every("leafHeight")}
    of_traits = tuple(_of_traits(root, source))
    for name, element, text, back, form in (*_of_taxa(root, source), *of_traits):
        width = _uncertainty(element)
        if bool(width) != (name in sampled):
            exact.append(name)
        width = width if name in sampled else 0.0
        found[name] = element.line, _date(name, element, _year_first(text, form), width, back, source)
        backwards.add(back)
        units[name] = _unit(element)
    if not found:
        raise source.error("the file has no dates", 0, hint="Give a table of dates.")
    if len(backwards) > 1:
        raise source.error("some dates count forwards and others backwards", 0, hint="Give a table of dates.")
    _tell(root, source, exact, sorted({*units.values()} - {"year"}))
    ages, youngest = backwards.pop(), max((date for _, date in found.values()), key=lambda date: date.lower)
    if not of_traits and not ages:
        _tell_later(found, youngest.lower, source)
    _take_priors(root, found, {name: _PER_YEAR[unit] for name, unit in units.items()}, ages, source)
    of_rest = None if of_traits else youngest._replace(upper=youngest.lower)
    return found, ages, DateRange(0.0, 0.0) if ages else of_rest


def _tell_later(found: Found, youngest: float, source: SourceText) -> None:
    """A warning of dates that may be later here than in BEAST 1, which has no negative heights."""
    later = [name for name, (_, date) in found.items() if youngest < date.upper < inf]
    if later:
        told = f"BEAST 1 samples no date after {youngest:g}, that of its youngest taxon; here that of"
        many = "" if len(later) == 1 else f" and {len(later) - 1:,} more"
        told += f" '{later[0]}'{many} may be up to {max(found[name][1].upper for name in later):g}"
        warnings.warn(f"{shown_file(source.file or 'the file')}: {told}", InputWarning, stacklevel=3)


def _take_priors(
    root: Element, found: Found, per_year: dict[str, float], ages: bool, source: SourceText
) -> None:
    """Dates that BEAST 2 samples with a prior, in the place of the trait's, and a warning of others that it
    samples."""
    priors, otherwise = tip_priors(root)
    for name in found.keys() & priors.keys():
        line, date = priors[name]
        found[name] = line, _in_years(date, per_year[name], ages)
    if otherwise:
        told = f"sampled dates without a uniform or normal prior of each count as exact, as of {otherwise[0]}"
        hint = "a table of dates may have ranges and normal errors"
        warnings.warn(f"{shown_file(source.file or 'the file')}: {told}; {hint}", InputWarning, stacklevel=3)


def read_beast_traits(source: SourceText) -> dict[str, dict[str, tuple[int, str]]]:
    """Of every trait of taxa that is no date, by its name: the line and text of every taxon that has it."""
    root = parsed(source)
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for taxon in root.every("taxon"):
        name = taxon.attributes.get("id")
        for one in taxon.every("attr"):
            if name and one.attributes.get("name"):
                found.setdefault(one.attributes["name"], {})[name] = one.line, one.text.strip()
    for trait in root.every(*_TRAITS):
        kind = trait.attributes.get("traitname", "")
        if kind and kind.lower() not in _DATES:
            own = {name: (trait.line, text) for name, text in _pairs(trait, source)}
            found.setdefault(kind, {}).update(own)
    if not found:
        raise source.error("the file has no traits of taxa", 0, hint="Give a table of taxa and their states.")
    return found


def _tell(root: Element, source: SourceText, exact: list[str], units: list[str]) -> None:
    """Warnings of what is read otherwise than it stands there."""
    file = shown_file(source.file or "the file")
    table = "a table of dates may have ranges"
    if exact:
        many = "the date" if len(exact) == 1 else f"{len(exact):,} dates"
        told = f"{many} with an uncertainty that is not sampled, or sampled without one, count as exact, as"
        warnings.warn(f"{file}: {told} that of '{exact[0]}'; {table}", InputWarning, stacklevel=3)
    for unit in units:
        told = f"its dates are in {unit}s; here ages are in years, rates a year"
        warnings.warn(f"{file}: {told}", InputWarning, stacklevel=3)
    tell_unread(root, source)


def _of_taxa(root: Element, source: SourceText) -> Iterator[tuple[str, Element, str, bool, str]]:
    """Taxon, element, text, whether it counts backwards, and format, of the dates of BEAST 1."""
    named = {one.attributes["id"]: one for one in root.every("date") if "id" in one.attributes}
    for taxon in root.every("taxon"):
        date, name = next(taxon.every("date"), None), taxon.attributes.get("id")
        if date is None or not name:
            continue
        refers = date.attributes.get("idref")
        if refers is not None and refers not in named:
            raise source.error(f"no date is called '{refers}'", date.offset, taxon=name, hint="Add it.")
        date = named[refers] if refers is not None else date
        if "origin" in date.attributes:
            hint = "Give a table of dates."
            raise source.error(
                "dates that count from an origin are not read", date.offset, taxon=name, hint=hint
            )
        back = date.attributes.get("direction", "forwards").lower().startswith("back")
        yield name, date, date.attributes.get("value", ""), back, _BEAST_1


def _of_traits(root: Element, source: SourceText) -> Iterator[tuple[str, Element, str, bool, str]]:
    """The same of BEAST 2."""
    for trait in root.every("trait"):
        kind = trait.attributes.get("traitname", "").lower()
        if kind in _DATES:
            form = trait.attributes.get("dateFormat", "")
            if form and _fields(form) is None:
                hint = "Give a table of dates, as in 2020-03-01."
                raise source.error(f"dates written as {form[:40]} are not read", trait.offset, hint=hint)
            for name, text in _pairs(trait, source):
                yield name, trait, text, kind in ("date-backward", "age"), form


def _fields(form: str) -> list[str] | None:
    """What stands where in a format of dates, y, M and d of at most one each; None if it has others."""
    pieces = _FIELD.split(form)
    fields = [piece[0].replace("u", "y") for piece in pieces[1::2]]
    known = len(set(fields)) == len(fields) and set(fields) in ({"y"}, {"y", "M"}, {"y", "M", "d"})
    return fields if known and not any(re.search(r"[\w']", piece) for piece in pieces[::2]) else None


def _year_first(text: str, form: str) -> str:
    """A date of a format as 2020-03-31; others as they are."""
    fields = _fields(form) if form else None
    if fields is None:
        return text
    digits = {"y": r"(\d{4})", "M": r"(\d{1,2})", "d": r"(\d{1,2})"}
    between = [re.escape(piece) for piece in _FIELD.split(form)[::2]]
    expression = between[0] + "".join(digits[of] + then for of, then in zip(fields, between[1:]))
    match = re.fullmatch(expression, text.strip())
    if match is None:
        return text
    parts = dict(zip(fields, match.groups()))
    return "-".join(parts[of].zfill(2) for of in "yMd" if of in parts)


def _pairs(trait: Element, source: SourceText) -> Iterator[tuple[str, str]]:
    """name=value of a trait of BEAST 2, a date or another."""
    what = "date" if trait.attributes.get("traitname", "").lower() in _DATES else "state"
    for piece in (trait.attributes.get("value") or trait.text).split(","):
        name, equals, text = piece.strip().rpartition("=")
        if equals:
            yield name.strip(), text.strip()
        elif piece.strip():
            raise source.error(
                f"'{piece.strip()[:60]}' is not name={what}", trait.offset, hint="Correct the trait."
            )


def _unit(at: Element) -> str:
    return at.attributes.get("units", "year").lower().rstrip("s")


def _uncertainty(at: Element) -> float:
    """How much later, or older, a date may be, in its unit. `precision` is the older word."""
    try:
        return max(float(at.attributes.get("uncertainty") or at.attributes.get("precision") or 0.0), 0.0)
    except ValueError:
        return 0.0


def _date(name: str, at: Element, text: str, width: float, back: bool, source: SourceText) -> DateRange:
    """What an element says of a taxon's date, which may be later by a width, or older where they are ages."""
    per_year = _PER_YEAR.get(_unit(at))
    if per_year is None:
        raise source.error(
            f"dates in {_unit(at)[:40]} are not read", at.offset, taxon=name, hint="Give years."
        )
    try:
        date = parse_date(text, name)
    except InputError as error:
        raise source.error(error.message, at.offset, taxon=name, hint=error.hint) from None
    if date == UNKNOWN:
        return date
    if date.calendar:
        return date._replace(upper=date.upper + width / per_year)
    return _in_years(date._replace(upper=date.upper + width), per_year, back)


def _in_years(date: DateRange, per_year: float, ages: bool) -> DateRange:
    """A date of some unit in years, and an age as a date before the present."""
    sign = -1.0 if ages else 1.0
    lower, upper = sorted((sign * date.lower / per_year, sign * date.upper / per_year))
    return date._replace(
        lower=lower, upper=upper, mean=sign * date.mean / per_year, error=date.error / per_year
    )
