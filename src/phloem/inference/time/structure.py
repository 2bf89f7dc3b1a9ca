"""What a chain over dated trees samples: numbers of the clock, the tree prior and the substitution model,
with their priors; and what is known of clades."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phloem.density import clocks
from phloem.density.calibrations import likely_age
from phloem.density.space import Block, Space
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.term import BlockPrior, Family
from phloem.density.tree_priors.birth_death_skyline import REPRODUCTION
from phloem.density.tree_priors.tree_prior import (
    LEVEL,
    REMOVAL,
    Parameters,
    Scale,
    TreePrior,
    chosen,
)
from phloem.errors import InputError, require_choice
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.time import traits
from phloem.inference.time.clades import check_clade
from phloem.inference.time.settings import CTMC, Clade, TreeModel
from phloem.inference.time.substitution import (
    block_of,
    fitted,
    model_blocks,
    names_of,
    plain_name,
    printed_numbers,
    usual_prior,
)

CLOCKS = {
    "strict": clocks.STRICT,
    "ucln": clocks.BY_CV,
    "ucgd": clocks.GAMMA,
    "local": clocks.LOCAL,
    "local-crown": clocks.LOCAL_CROWN,
    "random": clocks.RANDOM,
    "shrinkage": clocks.SHRINKAGE,
    "white-noise": clocks.WHITE_NOISE,
    "autocorrelated": clocks.AUTOCORRELATED,
}
_BY_SPREAD = {
    ("ucln", "log"): clocks.BY_LOG,
    ("ucln", "log-median"): clocks.BY_LOG_MEDIAN,
    ("autocorrelated", "log"): clocks.AUTOCORRELATED_LOG,
}
"""Clocks whose spread is not one of rates: name and clock_sd → kind."""
CLOCK_RATE = "clock_rate"
"""A clock's, with its parts in braces where there are several: clock_rate{gene1}, clock_rate{gene2,gene3}."""
CLOCK_SPREAD = {
    clocks.BY_CV: "clock_cv",
    clocks.BY_LOG: "clock_sigma",
    clocks.BY_LOG_MEDIAN: "clock_sigma",
    clocks.GAMMA: "clock_cv",
    clocks.SHRINKAGE: "clock_scale",
    clocks.WHITE_NOISE: "clock_variance",
    clocks.AUTOCORRELATED: "clock_variance",
    clocks.AUTOCORRELATED_LOG: "clock_variance",
}
USUAL_SPREAD = {
    clocks.SHRINKAGE: (0.1, 10.0),
    clocks.WHITE_NOISE: (0.1, 10.0),
    clocks.AUTOCORRELATED: (0.3, 1.0),
    clocks.AUTOCORRELATED_LOG: (0.3, 1.0),
}
"""Where a spread starts, and the rate of its exponential prior; of the last three as MrBayes has them."""
PIECES = {"skyline": (2, 10_000), "skygrid": (2, 10_000), "skygrid-linear": (2, 10_000), "bdsky": (1, 200)}
"""Tree priors with a number of sizes, or of R, that is chosen: the fewest and the most."""


@dataclass(frozen=True, eq=False)
class TimeModel:
    """space: all numbers. priors: of blocks, without those that the tree prior holds; reference: of every
    clock, whether its rate has the CTMC reference prior. engine: the substitution model as the engine's
    chains know it, whose sets of branch lengths are clocks; model_from: (e,) which of the numbers each of its
    numbers is, -1: a reference rate of 1. tree_prior, with its parameters. clock: density.clocks.STRICT, …,
    which all clocks are. taxa; tip_bounds: (T, 2) heights; youngest: the date that
    height 0 is, nan without dates. clades: of taxa, with what is known of them. fixed: blocks that stay.
    trait: that changes along the tree, if any; trait_reference: whether its clock has the CTMC reference
    prior. fossils: what a sample may be, one of fossils.KINDS, of a tree prior that asks."""

    space: Space
    priors: tuple[BlockPrior, ...]
    reference: tuple[bool, ...]
    engine: ChainModel
    model_from: np.ndarray
    tree_prior: TreePrior
    parameters: Parameters
    clock: int
    taxa: tuple[str, ...]
    tip_bounds: np.ndarray
    youngest: float
    clades: tuple[Clade, ...] = ()
    fixed: frozenset[str] = frozenset()
    scale: Scale = field(default=Scale(1.0, 3, 1))
    trait: traits.TraitModel | None = None
    trait_reference: bool = False
    fossils: str = ""

    @property
    def samples_ancestors(self) -> bool:
        """Whether a sample may be an ancestor of others."""
        return self.fossils == "ancestors"

    @property
    def of_trait(self) -> frozenset[str]:
        """Names of the trait's blocks."""
        return frozenset(b.name for b in (self.trait.blocks(1.0) if self.trait else ()))

    @property
    def n_tips(self) -> int:
        return len(self.taxa)

    @property
    def clock_names(self) -> tuple[str, ...]:
        """Of every clock the parts it is of, gene2,gene3; of the only clock nothing."""
        return self.engine.set_names or ("",)

    @property
    def n_clocks(self) -> int:
        return len(self.clock_names)

    @property
    def has_open_level(self) -> bool:
        """Whether nothing is said of the level of all population sizes, so that the prior has no integral."""
        return LEVEL in self.tree_prior.options and LEVEL not in [prior.block for prior in self.priors]

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Of every clock the block of its rate."""
        return of_clocks(CLOCK_RATE, self.clock_names)

    @property
    def spread_names(self) -> tuple[str, ...]:
        """Of every clock the block of its spread; none of clocks without."""
        own = CLOCK_SPREAD.get(self.clock)
        return of_clocks(own, self.clock_names) if own else ()

    @property
    def rate_traits(self) -> tuple[str, ...]:
        """What files of trees call the rates of branches: rate, or gene1.rate as BEAUti does."""
        if self.n_clocks == 1:
            return ("rate",)
        return tuple(f"{name.replace(',', '+')}.rate" for name in self.clock_names)

    @property
    def of_substitution(self) -> frozenset[str]:
        """Names of the substitution model's blocks."""
        return frozenset(plain_name(b.name) for b in self.engine.space.blocks)

    def engine_values(self, values: np.ndarray) -> np.ndarray:
        """(e,) the substitution model's numbers, shares summing to 1, from the chain's (n,)."""
        known = np.append(values, 1.0)[self.model_from]
        for block in self.engine.space.blocks:
            if block.support == "simplex":
                here = self.engine.space.place(block.name)
                known[here] /= known[here].sum()
        return known

    def printed(self, values: np.ndarray) -> np.ndarray:
        """The numbers (n,) as a trace has them, under printed_names."""
        own = (printed_numbers(self.engine, b, values[self.space.place(b.name)]) for b in self.space.blocks)
        return np.concatenate(list(own))

    @property
    def printed_names(self) -> tuple[str, ...]:
        """Of all numbers in a trace."""
        return tuple(name for b in self.space.blocks for name in names_of(self.engine, b))

    @property
    def own_clocks(self) -> tuple[Clade, ...]:
        """Clades with one."""
        return tuple(c for c in self.clades if c.clock)

    def members(self, clade: Clade) -> np.ndarray:
        """(T,) bool."""
        return np.isin(np.array(self.taxa), clade.taxa)

    def above(self, clade: Clade, values: np.ndarray) -> float:
        """What the numbers (n,) add to the age of a clade's common ancestor."""
        return float(values[self.space.place(clade.above).start]) if clade.above else 0.0


def time_model(
    engine: ChainModel,
    tree: TreeModel,
    taxa: tuple[str, ...],
    tip_bounds: np.ndarray,
    youngest: float,
    trait: traits.TraitModel | None = None,
) -> TimeModel:
    """Everything together. tip_bounds: (T, 2) lowest and highest height of every tip.

    InputError for priors of blocks that there are not or that hold for another kind of number, clades of
    unknown taxa, and a tree prior that the dates do not allow."""
    for clade in tree.clades:
        check_clade(clade, taxa)
    prior = chosen(tree.prior, tree.options)
    scale = Scale(typical_age(tip_bounds, tree), len(taxa), _pieces(prior, tree, len(taxa)))
    _check_tree_prior(prior, tree, tip_bounds)
    options, kind = prior_options(prior, tree), _clock_kind(tree)
    parameters = prior.parameters(scale, options)
    names = engine.set_names or ("",)
    blocks, priors = _clock_blocks(kind, scale, [c.name for c in tree.clades if c.clock], names)
    blocks += list(parameters.blocks)
    priors |= parameters.priors
    _check_beginning(prior, tree, priors)
    of_ages = {clade.above for clade in tree.clades}  # gaps whose density is that of an age
    priors = {name: family for name, family in priors.items() if name not in of_ages}
    of_model, model_from = model_blocks(engine, sum(b.size for b in blocks))
    blocks += of_model
    priors |= {b.name: usual_prior(b) for b in of_model}
    if trait is not None:
        blocks += trait.blocks(scale.time)
        priors[traits.CLOCK] = CTMC
        priors |= trait.priors()
    given = {block_of(name, of_model): family for name, family in tree.priors.items()}
    of_tree = {b.name for b in parameters.blocks}
    for name, family in _of_each(given, [b.name for b in blocks], of_tree).items():
        if name == LEVEL and LEVEL in options:
            if isinstance(family, float | str):
                raise InputError(f"{LEVEL} takes a density, of the level of all sizes")
        elif name not in {b.name for b in blocks} or name not in priors:
            there = dict.fromkeys([*priors, *(own for own in (LEVEL, REMOVAL) if own in prior.options)])
            raise InputError(f"there is no '{name}' to give a prior", hint=f"There are: {', '.join(there)}.")
        priors[name] = fitted(next((b for b in of_model if b.name == name), None), family, engine)
    rates = of_clocks(CLOCK_RATE, names)
    reference = tuple(priors[name] == CTMC for name in rates)
    if CTMC in [p for n, p in priors.items() if n not in (*rates, traits.CLOCK)]:
        raise InputError("ctmc is a prior of rates of clocks")
    known = {name: value for name, value in priors.items() if isinstance(value, float)}
    blocks = [_held(b, known[b.name]) if b.name in known else b for b in blocks]
    space = Space(tuple(blocks))
    named = [(name, priors.get(name, CTMC)) for name in (*(b.name for b in blocks), LEVEL)]
    table = tuple(BlockPrior(name, own) for name, own in named if not isinstance(own, str | float))
    return TimeModel(
        space, table, reference, engine, model_from, prior, parameters, kind, taxa, tip_bounds, youngest,
        tree.clades, frozenset(known), scale, trait, priors.get(traits.CLOCK) == CTMC,
        _fossils(prior, options, tree.clock, tip_bounds),
    )  # fmt: skip


def prior_options(prior: TreePrior, tree: TreeModel) -> dict[str, Any]:
    """A tree prior's options, with those that are that some number has a prior."""
    own = [name for name in (LEVEL, REMOVAL) if name in prior.options and name in tree.priors]
    return dict(tree.options) | dict.fromkeys(own, True)


def _fossils(prior: TreePrior, options: Mapping[str, Any], clock: str, tip_bounds: np.ndarray) -> str:
    """InputError where samples may be ancestors and the clock has no rate for a branch that lasts no time."""
    found = prior.samples(options) if prior.samples else ""
    if not found:
        return ""
    if tip_bounds.max() == 0.0:
        return "tips"  # all are of one time
    if found == "ancestors" and CLOCKS[clock] in (*clocks.OF_CLADES, clocks.RANDOM, clocks.SHRINKAGE):
        raise InputError(
            f"with --clock {clock} no sample is an ancestor of another",
            hint="Choose another clock, or --fossils tips, the posterior given that none is.",
        )
    return found


def _of_each(
    given: Mapping[str, Family | str | float], names: Sequence[str], of_tree: Collection[str]
) -> dict[str, Family | str | float]:
    """What is said of a number that shifts, or that parts have of their own, holds of each stretch of time or
    part of which nothing else is said."""
    found: dict[str, Family | str | float] = {}
    for name, family in given.items():
        own = [
            other
            for other in names
            if re.fullmatch(re.escape(name) + (r"_\d+" if other in of_tree else r"\{.+\}"), other)
        ]
        found |= dict.fromkeys(own if name not in names and own else [name], family)
    return found | {name: family for name, family in given.items() if name in found}


def of_clocks(name: str, clocks_: Sequence[str]) -> tuple[str, ...]:
    """What a number of each of some clocks is called (TimeModel.clock_names)."""
    return tuple(f"{name}{{{own}}}" if own else name for own in clocks_)


def _held(block: Block, value: float) -> Block:
    """A block whose numbers all have one value; InputError where they cannot."""
    at_end = block.support == "unit" and value == block.lower  # nothing is sampled, or dies
    at_end = at_end or (block.name == REMOVAL and value == block.upper)
    if block.support == "simplex" or not (block.lower < value < block.upper or at_end):
        between = f"It is between {block.lower:g} and {block.upper:g}."
        raise InputError(
            f"'{block.name}' cannot be fixed at {value:g}",
            hint="Give its numbers a density." if block.support == "simplex" else between,
        )
    return replace(block, start=np.full(block.size, value))


def _check_tree_prior(prior: TreePrior, tree: TreeModel, tip_bounds: np.ndarray) -> None:
    """InputError where dates do not allow it, or where it has no age of the root that it needs."""
    if prior.contemporaneous and tip_bounds.max() > 0.0:
        raise InputError(
            f"the tree prior '{prior.name}' is of tips of one time, and these have dates",
            hint="Choose bdss, or a coalescent.",
        )
    if prior.needs_root and not any(
        c.age is not None and len(c.taxa) == len(tip_bounds) and not c.above for c in tree.clades
    ):
        raise InputError(
            f"the tree prior '{prior.name}' is a density given the root's age, which has none",
            hint="Give it one, as in --calibrate 'root=gamma(2,0.1)'.",
        )


def _check_beginning(prior: TreePrior, tree: TreeModel, priors: Mapping[str, object]) -> None:
    """InputError where the age of a beginning has a density and the process has none, or one of its own."""
    for clade in tree.clades:
        if clade.above and clade.above not in priors:
            raise InputError(
                f"the tree prior '{prior.name}' has no origin whose age could have a density",
                hint="Choose fbd, bdss or bdsky, or calibrate the root.",
            )
        if clade.above and clade.above in tree.priors:
            raise InputError(
                f"--calibrate {clade.name} and --prior {clade.above} both say when the process began",
                hint="Leave one of them out.",
            )


def _pieces(prior: TreePrior, tree: TreeModel, n_tips: int) -> int:
    """How many population sizes; InputError where they are too many, or asked of a prior that has none."""
    if tree.pieces is not None and prior.name not in PIECES:
        raise InputError(f"the tree prior '{prior.name}' has no --pieces", hint=f"{', '.join(PIECES)} do.")
    if tree.pieces is not None and REPRODUCTION in tree.options.get("shift", {}):
        raise InputError(f"--pieces and --shift both say how {REPRODUCTION} changes", hint="Leave one out.")
    least, most = PIECES.get(prior.name, (0, 10))
    most = min(most, n_tips - 1) if prior.name == "skyline" else most
    pieces = min(10, most) if tree.pieces is None else tree.pieces
    if not least <= pieces <= most:
        hint = f"Choose {least} to {most:,} --pieces." if least <= most else "Choose another tree prior."
        raise InputError(f"{pieces} pieces of time for {n_tips} taxa", hint=hint)
    return pieces


def typical_age(tip_bounds: np.ndarray, tree: TreeModel) -> float:
    """A span that is typical of how long the tree lasts: of the dates, else of calibrated ages, else as said,
    or 1. Where there are dates, that of a beginning is none: its density is often a wide one."""
    youngest = float(tip_bounds.min())
    span = float(tip_bounds.max()) - youngest
    known = [c for c in tree.clades if c.age is not None and not (c.above and span > 0)]
    ages = [c.offset + likely_age(c.age) - youngest for c in known if c.age is not None]
    return max([span, *ages]) if span > 0 or max(ages, default=0.0) > 0 else tree.typical_age or 1.0


def _clock_kind(tree: TreeModel) -> int:
    """InputError for a clock that is none, and where clades have clocks that it does not know of."""
    require_choice("clock", tree.clock, tuple(CLOCKS))
    kind, own = CLOCKS[tree.clock], [c.name for c in tree.clades if c.clock]
    if own and kind not in clocks.OF_CLADES:
        raise InputError(
            f"clade '{own[0]}' has a clock of its own", hint="Choose --clock local or local-crown."
        )
    if not own and kind in clocks.OF_CLADES:
        raise InputError("local clocks need a clade", hint="Name its taxa: --clock-clade name=taxon,taxon.")
    return _BY_SPREAD.get((tree.clock, tree.clock_sd), kind)


def _clock_blocks(
    kind: int, scale: Scale, own: Sequence[str], names: Sequence[str]
) -> tuple[list[Block], dict[str, Family | str | float]]:
    """Of one clock after the other the rate, then the spread, then ratios of clades with own rates."""
    numbers: list[tuple[str, float, tuple[float, float], Family | str]] = [
        (CLOCK_RATE, 0.01 / scale.time, (1e-300, 1e300), CTMC)
    ]
    if kind in CLOCK_SPREAD:
        usual, rate = USUAL_SPREAD.get(kind, (0.3, 3.0))
        least = 1e-3 if kind == clocks.GAMMA else 1e-6  # a gamma's shape is its square's inverse
        numbers.append((CLOCK_SPREAD[kind], usual, (least, 1e3), Exponential(rate)))
    numbers += [(f"clock_ratio({clade})", 1.0, (1e-6, 1e6), LogNormal(0.0, 1.0)) for clade in own]
    blocks, priors = list[Block](), dict[str, Family | str | float]()
    for clock in names:
        for number, start, bounds, prior in numbers:
            (name,) = of_clocks(number, (clock,))
            blocks.append(Block(name, "positive", np.array([start]), *bounds))
            priors[name] = prior
    return blocks, priors
