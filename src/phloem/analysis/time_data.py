"""What `phloem time` reads: alignments, dates, traits, and the model of everything."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phloem.analysis.constraint_text import NEGATIVE, PARTIAL, parse_constraint
from phloem.analysis.dated_input import DateOptions
from phloem.analysis.look import dates_of_names
from phloem.analysis.mcmc_parts import Piece, expanded_prior
from phloem.analysis.obeyed import require_time_obeyed
from phloem.analysis.pieces import (
    linkage_of,
    members_of,
    pieces_of_parts,
    shared_structure,
    sites_in_file,
)
from phloem.analysis.reading import Part, alignment_of, parts_of
from phloem.analysis.same_data import characters_read
from phloem.analysis.time_record import TimeTreeSettings
from phloem.analysis.time_traits import check_name
from phloem.data.alignment import Alignment
from phloem.data.dates import TipDates
from phloem.data.diversity import mean_distance
from phloem.density.calibrations import likely_age
from phloem.density.parts import PartModel
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.normal import Normal
from phloem.density.terms.term import Family
from phloem.density.tree_priors.tree_prior import LEVEL, ORIGIN_GAP, chosen
from phloem.errors import STANDARD_INPUT, InputError, InputWarning
from phloem.inference.mcmc.guard import Plain
from phloem.inference.mcmc.recipes import Observations, observations
from phloem.inference.mcmc.structure import ChainModel, structure_of_parts
from phloem.inference.time.sampler import plain_time_likelihood
from phloem.inference.time.settings import Clade, TreeModel, parse_age, parse_family
from phloem.inference.time.structure import (
    CLOCK_RATE,
    TimeModel,
    of_clocks,
    time_model,
    typical_age,
)
from phloem.io.date_table import carries_dates
from phloem.io.date_text import parse_date
from phloem.io.dates import field_of_years
from phloem.likelihood.problem import refuse_along_sites

YEARS = 1500.0, 2100.0  # numbers that may be years of sampling
_FARTHEST = 4.75  # standard deviations that a date may be off: two in a million are cut off
ROOT, ORIGIN = "root", "origin"
_LONG = 300.0  # times the dates' span: an age that was taken for a date
_LONG_CUTOFF = 20.0  # likewise of what looks like a year
_LATEST = "the latest date that a tip may have"
_FROM_PRESENT = {
    "exponential": "does the population, whose size is that of the present",
    "skygrid": "do the cells of population sizes",
    "skygrid-linear": "do the cells of population sizes",
    "bdss": "does sampling, which went on until then",
    "bdsky": "does sampling, which went on until then",
}
_NO_TIME = "no dates of different times, no calibration and no prior of a rate say what a unit of time is"


@dataclass(frozen=True, eq=False)
class TimeInput:
    """What was read: the alignments of all parts, the dates if any, and the model of everything; told: what
    else is done with the data. unrecorded: of every part, see recipes.observations; sites: see
    pieces.sites_in_file; read: what says which characters these are (same_data.characters_read)."""

    alignments: tuple[Alignment, ...]
    dates: TipDates | None
    model: TimeModel
    told: tuple[str, ...] = ()
    unrecorded: tuple[int, ...] = ()
    sites: tuple[np.ndarray | None, ...] = ()
    read: dict[str, Any] = field(default_factory=dict)

    def observed(self) -> list[Observations]:
        """What chains see of every part."""
        counts = self.unrecorded or (0,) * len(self.alignments)
        parts = zip(self.alignments, self.model.engine.parts, counts)
        return [observations(own, part.model.unseen, n) for own, part, n in parts]

    def plain_likelihood(self) -> Plain:
        """What the guard compares with."""
        return plain_time_likelihood(self.alignments, self.model, self.unrecorded)

    @property
    def ages_are_given(self) -> bool:
        """Whether taxa have ages before the present, from which all ages then are; not dates."""
        return self.dates is not None and not self.dates.calendar

    @property
    def ages_before(self) -> str:
        """What all ages count from."""
        if self.ages_are_given:
            return "the present"
        exact = bool((self.model.tip_bounds.max(axis=1) == 0.0).any())
        return "the youngest tip" if exact else f"{self.model.youngest:.6g}, {_LATEST}"

    @property
    def taxa(self) -> tuple[str, ...]:
        """T names."""
        return self.alignments[0].taxa

    @property
    def n_sites(self) -> int:
        """Of all parts."""
        return sum(alignment.n_sites for alignment in self.alignments)


def _parts(settings: TimeTreeSettings) -> tuple[Part, ...]:
    """The alignment, or its parts with the partition file's models."""
    if not settings.partitioned:
        if settings.linkage is not None or settings.link:
            told = "--linkage and --link say what parts share, and there is one"
            raise InputError(told, hint="Leave them out.")
        return (Part("all", alignment_of(settings, quiet=settings.of_block is not None), settings.model),)
    parts = parts_of(settings, settings.model, settings.of_block is not None)[1]
    for part in parts:
        if part.alignment.taxa != parts[0].alignment.taxa:
            raise InputError(f"the taxa of part '{part.name}' are not those of '{parts[0].name}'")
    return parts


def _structure(
    settings: TimeTreeSettings, parts: tuple[Part, ...], pieces: Sequence[Piece], models: Sequence[PartModel]
) -> ChainModel:
    """Models of all pieces, and what they share."""
    for part in models:
        refuse_along_sites(part.model, "phloem time")
    require_time_obeyed(settings, [part.alignment.alphabet.kind for part in parts], models)
    if len(pieces) == 1:
        return structure_of_parts(models)
    linkage = linkage_of(settings.linkage, parts)
    if linkage != "unlinked" and any(text.partition(":")[0].strip() == "lengths" for text in settings.link):
        raise InputError(
            "parts on one clock have a rate each or one for all",
            hint="Leave 'lengths' out of --link; with --linkage unlinked it says which parts share a clock.",
        )
    return shared_structure(linkage, settings.link, members_of(parts, pieces), models)


def time_input(settings: TimeTreeSettings) -> TimeInput:
    """Read data, dates and models. Errors: InputError, ModelError that name file and taxon."""
    parts = _parts(settings)
    pieces, models, told = pieces_of_parts(settings, parts, settings.gamma)
    alignment = pieces[0].alignment
    dates, bounds, youngest = None, np.zeros((alignment.n_taxa, 2)), float("nan")
    source = settings.date_source
    if source is None and settings.alignment != STANDARD_INPUT and carries_dates(settings.alignment):
        source = DateOptions(settings.alignment)
    if source is None:
        _warn_of_dated_names(alignment.taxa)
    else:
        dates = source.read(alignment.taxa).within(_FARTHEST)
        bounds, youngest = np.stack(dates.ages, axis=1), dates.latest
        if not np.isfinite(bounds).all():
            taxon = alignment.taxa[int(np.argmin(np.isfinite(bounds).all(axis=1)))]
            raise InputError("a date without limits", taxon=taxon, hint="Give the earliest and the latest.")
    for name, low, high in (("cutoff", 0.0, np.inf), ("sampled", 0.0, 1.0 + 1e-12)):
        value = settings.tree.options.get(name)
        if value is not None and not low < value < high:
            raise InputError(f"--{name} {value:g} is out of range")
    members = members_of(parts, pieces)
    dated = dates is not None and dates.calendar
    shift = _shifts(settings, youngest if dated else None, float(bounds.max()))
    if dated:
        _tell_dated_cutoff(settings.tree.options.get("cutoff"), youngest, float(bounds.max()))
    tree = replace(
        settings.tree,
        options=dict(settings.tree.options) | ({"shift": shift} if shift else {}),
        priors=dict(_named_density(expanded_prior(text, members), "--prior") for text in settings.prior),
        clades=_clades(settings, alignment.taxa) + (() if dates is None else _of_errors(dates)),
    )
    trait = settings.trait.read(alignment.taxa, settings.chains.use_data) if settings.trait else None
    if trait is not None:
        check_name(trait)
    structure = _structure(settings, parts, pieces, models)
    alignments = tuple(piece.alignment for piece in pieces)
    told = [*told, *_counted_from(tree.prior, bounds, youngest)]
    if settings.of_block is None and not _has_ages(tree, bounds):
        tree, more = _timed_by_rate(tree, structure, alignments)
        told = [*told, *more]
    if LEVEL in chosen(tree.prior, tree.options).options:
        tree = _with_level(tree, typical_age(bounds, tree))
    model = time_model(structure, tree, alignment.taxa, bounds, youngest, trait)
    unrecorded, sites = tuple(piece.unrecorded for piece in pieces), sites_in_file(settings, parts, pieces)
    read = characters_read(parts, pieces, [part.model.unseen for part in models])
    return TimeInput(alignments, dates, model, tuple(told), unrecorded, sites, read)


def _counted_from(prior: str, bounds: np.ndarray, latest: float) -> tuple[str, ...]:
    """From when what is counted, where that is no tip: ages are given and nothing is of the present, or the
    youngest is dated within limits."""
    if (youngest := float(bounds.min())) == 0.0:
        known = bool((bounds.max(axis=1) == 0.0).any())
        return () if known or latest == 0.0 else (f"all ages count from {latest:.6g}, {_LATEST}",)
    others = f", and so {_FROM_PRESENT[prior]}" if prior in _FROM_PRESENT else ""
    return (f"all ages count from the present, {youngest:.6g} after the youngest taxon{others}",)


def _has_ages(tree: TreeModel, bounds: np.ndarray) -> bool:
    """Whether dates or calibrations say how old anything is."""
    return bool(np.any(bounds != bounds[0, 0])) or any(clade.age is not None for clade in tree.clades)


def _timed_by_rate(
    tree: TreeModel, structure: ChainModel, alignments: Sequence[Alignment]
) -> tuple[TreeModel, tuple[str, ...]]:
    """Of a tree that only a rate dates: the rate of the first clock is 1 where nothing is said of it, else
    ages would be drawn from priors alone; and how old the tree is by the rate, for its usual priors."""
    told: tuple[str, ...] = ()
    of_rates = [x for name, x in tree.priors.items() if name.startswith(CLOCK_RATE)]
    if not of_rates:
        (rate, *_), of_rates = of_clocks(CLOCK_RATE, structure.set_names or ("",)), [1.0]
        told = (f"{_NO_TIME}: {rate} is 1, and ages are expected substitutions a site",)
        tree = replace(tree, priors={**tree.priors, rate: 1.0})
    if isinstance(of_rates[0], str):
        return tree, told
    apart, n = 0.0, 0.0
    for alignment, part in zip(alignments, structure.parts):
        distance = mean_distance(alignment)
        if np.isfinite(distance):
            apart, n = apart + alignment.n_sites * distance, n + alignment.n_sites * part.site_length
    if apart > 0.0:
        tree = replace(tree, typical_age=0.5 * apart / n / _likely_rate(of_rates[0]))
    return tree, told


def _likely_rate(family: Family | float) -> float:
    """One that a prior of the clock's rate does not exclude."""
    if isinstance(family, LogUniform):
        return math.sqrt(family.lower * family.upper)
    return likely_age(family, 1e-15, 1e15)


def _with_level(tree: TreeModel, typical: float) -> TreeModel:
    """With a prior of the level of all population sizes, as that of a constant size, where none is given;
    without one where 1 / N is asked for, which is no distribution."""
    level = tree.priors.get(LEVEL, LogNormal(math.log(typical), 2.0))
    others = {name: family for name, family in tree.priors.items() if name != LEVEL}
    return replace(tree, priors=others if level == parse_family("jeffreys") else others | {LEVEL: level})


def _warn_of_dated_names(taxa: tuple[str, ...]) -> None:
    """Of names that seem to have dates which nobody asked for: all taxa are then taken to be of one time."""
    dates, elsewhere, told = dates_of_names(taxa), field_of_years(taxa), ""
    if dates is not None and YEARS[0] < dates.lower.min() and dates.upper.max() < YEARS[1]:
        span = f"{dates.lower.min():.6g} to {dates.upper.max():.6g}"
        told = f"names end in what may be dates ({span}), which are not used: --date-field -1 uses them"
    elif elsewhere is not None and len(set(elsewhere[1])) > 1:
        field, span = elsewhere[0], f"{min(elsewhere[1])} to {max(elsewhere[1])}"
        told = f"names have what may be dates ({span}), which are not used: --date-field {field} uses them"
    if told:
        warnings.warn(told, InputWarning, stacklevel=3)


def _named_density(text: str, option: str):
    name, equals, density = text.partition("=")
    if not equals or not name.strip():
        raise InputError(
            f"{option} {text}: expected a name, = and a density", hint="As in alpha=exponential(2)."
        )
    return name.strip(), parse_family(density)


def _named_age(text: str):
    name, equals, density = text.partition("=")
    if not equals or not name.strip():
        raise InputError(
            f"--calibrate {text}: expected a name, = and a density", hint="As in apes=12+lognormal(1.7,0.6)."
        )
    return name.strip(), *parse_age(density)


_STEM = re.compile(r"stem\((.+)\)")


def _clades(settings: TimeTreeSettings, taxa: tuple[str, ...]) -> tuple[Clade, ...]:
    found = {ROOT: Clade(ROOT, taxa), ORIGIN: Clade(ORIGIN, taxa, above=ORIGIN_GAP)}
    for text in (*settings.clade, *(text for text in settings.clock_clade if "=" in text)):
        name, equals, members = text.partition("=")
        names = tuple(member.strip() for member in members.split(",") if member.strip())
        if not equals or not name.strip() or name.strip() in found:
            raise InputError(f"clade {text}: expected a new name, = and taxa with commas between")
        if len(names) < 2:
            hint = "The age of one is said by --tip-age NAME=4520+/-35, or in the table of dates."
            raise InputError(f"clade '{name.strip()}' needs at least two taxa", hint=hint)
        found[name.strip()] = Clade(name.strip(), names)
    for one in (parse_constraint(text, taxa) for text in settings.constraint):
        if not one.name or one.name in found:
            raise InputError(f"constraint '{one.name}': expected a new name", hint="As in 'apes: Homo, Pan'.")
        outside = one.sets[1] if one.kind == PARTIAL else ()
        apart = one.kind == NEGATIVE
        found[one.name] = Clade(one.name, one.sets[0], not apart, outside=outside, apart=apart)
    for name in settings.monophyletic:
        _require(found, name)
        if found[name].apart or found[name].outside:
            raise InputError(f"--monophyletic {name} is more than the constraint of that name says")
        found[name] = replace(found[name], together=True)
    for text in settings.clock_clade:
        name = text.partition("=")[0].strip()
        _require(found, name)
        if name in (ROOT, ORIGIN):
            raise InputError("the clock of all taxa is clock_rate's", hint="Name a clade of some of them.")
        found[name] = replace(found[name], clock=True)
    for text in settings.calibrate:
        name, offset, family = _named_age(text)
        if stem := _STEM.fullmatch(name):
            _require(found, stem[1])
            found.setdefault(name, Clade(name, found[stem[1]].taxa, stem=True))
        _require(found, name)
        if isinstance(family, str) or (not isinstance(family, float) and family.domain == "simplex"):
            raise InputError(f"--calibrate {text}: an age needs a density of single numbers")
        if isinstance(family, float):
            family, offset = family + offset, 0.0
            if not 0 < family < np.inf:
                raise InputError(f"--calibrate {text}: a fixed age is above 0", hint="As in root=90.")
        found[name] = replace(found[name], age=family, offset=offset)
    return tuple(c for c in found.values() if c.name not in (ROOT, ORIGIN) or c.age is not None)


def _of_errors(dates: TipDates) -> tuple[Clade, ...]:
    """The densities of the ages of tips whose dates have errors."""
    return tuple(
        Clade(f"tip {name}", (name,), age=Normal(dates.latest - mean, error))
        for name, mean, error in zip(dates.names, dates.mean.tolist(), dates.error.tolist())
        if error > 0
    )


def _shifts(settings: TimeTreeSettings, youngest: float | None, span: float) -> dict[str, tuple[float, ...]]:
    """Name → ages at which the number shifts, of texts with dates where height 0 has one, else with ages.
    span: of the dates."""
    found: dict[str, tuple[float, ...]] = {}
    for text in settings.shift:
        name, equals, times = text.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            hint = "As in reproductive_number=2014-10-20,2015.2: dates where the tips have them, else ages."
            raise InputError(
                f"--shift {text}: expected a new name, = and times with commas between", hint=hint
            )
        own = [parse_date(time.strip(), name.strip()) for time in times.split(",")]
        if not all(np.isfinite(one.lower) for one in own):
            raise InputError(f"--shift {text}: a time without a beginning", hint="Give the day or the year.")
        ages = [one.lower if youngest is None else youngest - one.lower for one in own]
        if min(ages) <= 0:
            present = "the present" if youngest is None else f"the youngest date, {youngest:.6g}"
            hint = "Give dates where the tips have them, else ages above 0."
            raise InputError(f"--shift {text}: not every time is before {present}", hint=hint)
        if youngest is not None and max(ages) > _LONG * span:
            told = f"{max(ages):,.6g} years before the youngest tip, and all are of {span:.4g}"
            dates = f"times of shifts are dates here, as {youngest - 0.5 * span:.6g}"
            warnings.warn(f"--shift {text}: {times.strip()} is {told}; {dates}", InputWarning, stacklevel=4)
        found[name.strip()] = tuple(ages)
    return found


def _tell_dated_cutoff(cutoff: object, youngest: float, span: float) -> None:
    """A warning of a cutoff which is a year by its looks, and is read as an age. span: of the dates."""
    if isinstance(cutoff, float) and cutoff > _LONG_CUTOFF * span and 0.0 < youngest - cutoff < cutoff:
        told = f"an age, {cutoff:,.6g} years before {youngest:.6g}, and all dates are of {span:.4g}"
        age = f"of the year {cutoff:.6g} it is {youngest - cutoff:.4g}"
        warnings.warn(f"--cutoff {cutoff:g} is {told}; {age}", InputWarning, stacklevel=4)


def _require(clades: dict[str, Clade], name: str) -> None:
    if name not in clades:
        raise InputError(f"there is no clade '{name}'", hint="Name its taxa: --clade name=taxon,taxon.")
