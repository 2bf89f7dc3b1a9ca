"""Dates of tips that BEAST 2 samples, with their priors.

`<distribution tipsonly="true" …><taxonset id="x"><taxon id="a"/></taxonset><Uniform lower="1985"
upper="1987" name="distr"/></distribution>` says between which dates a tip lies, or Normal with what error it
is known, if an operator such as TipDatesRandomWalker samples the dates of the taxon set x.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, nan

from phloem.io.beast_elements import Element
from phloem.io.date_text import DateRange, with_normal_error

_ALL = "all tips"
_SAMPLERS = ("TipDatesRandomWalker", "TipDatesScaler", "SampledNodeDateRandomWalker")


def tip_priors(root: Element) -> tuple[dict[str, tuple[int, DateRange]], list[str]]:
    """Taxon → line and date of those that are sampled with a uniform or normal prior, as that counts time;
    and taxa whose dates are sampled otherwise, or 'all tips', where an operator names none."""
    sets = {one.attributes["id"]: one for one in root.everything() if one.attributes.get("id")}
    sampled: dict[str, None] = {}
    for one in root.everything():
        kind = one.attributes.get("spec", "").rpartition(".")[2]
        if kind.endswith(_SAMPLERS) and _number(one.attributes.get("weight", "1")) != 0.0:
            names = list(_taxa(one, sets))
            sampled |= dict.fromkeys(names or [_ALL])
    priors: dict[str, tuple[int, DateRange]] = {}
    for one in root.everything():
        names, date = list(_taxa(one, sets)), _density(one)
        tips = one.attributes.get("tipsonly") == "true" and len(names) == 1
        if tips and date is not None and (_ALL in sampled or names[0] in sampled):
            priors[names[0]] = one.line, date
    return priors, [f"'{name}'" if name != _ALL else name for name in sampled if name not in priors]


def _taxa(element: Element, sets: dict[str, Element]) -> Iterator[str]:
    """Names of the taxa of the taxon set that an element has or refers to."""
    named = element.attributes.get("taxonset", "").removeprefix("@")
    inside = [one for one in element.children if "taxonset" in (one.name, one.attributes.get("name"))]
    for one in (*inside, *([sets[named]] if named in sets else [])):
        whole = sets.get(one.attributes.get("idref", ""), one)
        for taxon in whole.every("taxon"):
            name = taxon.attributes.get("id") or taxon.attributes.get("idref")
            if name:
                yield name


def _density(element: Element) -> DateRange | None:
    """What a prior's uniform density with two ends, or its normal one, says of a date; None of others."""
    for one in element.children:
        kind = (one.attributes.get("spec") or one.name).rpartition(".")[2]
        offset = _input(one, "offset", "0")
        if kind == "Uniform":
            lower, upper = _input(one, "lower", "0") + offset, _input(one, "upper", "1") + offset
            return DateRange(lower, upper) if isfinite(lower) and isfinite(upper) and lower <= upper else None
        if kind == "Normal":
            mean, error = _input(one, "mean", "0") + offset, _input(one, "sigma", "1")
            return (
                with_normal_error(mean, error) if isfinite(mean) and isfinite(error) and error > 0 else None
            )
    return None


def _input(density: Element, name: str, usual: str) -> float:
    """A number of a density; nan where another element has it."""
    text = density.attributes.get(name, usual)
    for one in density.children:
        if name in (one.name, one.attributes.get("name")):
            text = one.attributes.get("value") or one.text
    return _number(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
