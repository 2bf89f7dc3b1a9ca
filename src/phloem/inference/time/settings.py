"""Everything a chain over dated trees is told."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from phloem.data.given_fields import settle_fields
from phloem.density.terms.laplace import Laplace
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.normal import Normal
from phloem.density.terms.term import Family
from phloem.errors import InputError, require_count, require_seed
from phloem.hardware.limits import require_threads
from phloem.inference.mcmc.settings import (
    LONGEST,
    OF_NUMBERS,
    Convergence,
    check_coupling,
    check_stones,
    parse_density,
)
from phloem.inference.mcmc.stones import Ladder, ladder_of
from phloem.inference.time.working import DatedWorking

Start = Literal["random", "lsd"]
FAMILIES = OF_NUMBERS | {"normal": (Normal, 2), "laplace": (Laplace, 2), "loguniform": (LogUniform, 2)}
CTMC = "ctmc"
SWAP_EVERY = 20  # moves, between which Python has its turn (docs/experiments.md)


_FIXED = re.compile(r"\s*fixed\(([^()]*)\)\s*")  # an age


def parse_family(text: str) -> Family | str | float:
    """A density as users write it: lognormal(-7,1), exponential(3) (its rate), jeffreys (1 / x between wide
    limits), ctmc; or a number, for what is fixed. InputError if it is none."""
    if text.strip().lower() == CTMC:
        return CTMC
    if text.strip().lower() == "jeffreys":
        return LogUniform()
    with suppress(ValueError):
        return float(text)
    found = parse_density(text, FAMILIES)
    if found is None:
        raise InputError(
            f"'{text[:60]}' is no density",
            hint="Write lognormal(mean of the logarithm, its sd), lognormal(mean=…, the same sd), "
            "normal(mean,sd), laplace(mean,scale), exponential(rate), gamma(shape,rate), invgamma(shape,"
            "scale), uniform(low,high), loguniform(low,high), jeffreys, beta(a,b), dirichlet(a); ctmc for "
            "the clock, or a number.",
        )
    return found


def parse_age(text: str) -> tuple[float, Family | str | float]:
    """The least age, and the density of what is above it: '12+lognormal(1.7,0.6)'; 0 and the density without
    '+', or the age that is fixed, '90' and 'fixed(90)'. InputError as of parse_family, and for a least age
    that is none."""
    if held := _FIXED.fullmatch(text):
        text = held[1]
    number, plus, density = text.partition("+")
    with suppress(ValueError):
        if plus and 0 <= (least := float(number)) < float("inf"):
            return least, parse_family(density)
    return 0.0, parse_family(text)


def family_text(family: Family) -> str:
    """A density as parse_family reads it, its numbers to five digits."""
    for name, (kind, _) in FAMILIES.items():
        if type(family) is kind:
            numbers = np.hstack(astuple(family))  # type: ignore[call-overload]
            return f"{name}({','.join(f'{value:.5g}' for value in numbers)})"
    return str(family)


@dataclass(frozen=True)
class Clade:
    """A set of taxa. together: they must be a clade, which may have no other taxa, or, where there are some
    outside, none of those. apart: they may not be a clade. age: the density of their common ancestor's age,
    less offset, the least it can be; or the age itself, of a clade that they must be or of all taxa. clock:
    they have one of their own (TreeModel.clock "local", "local-crown"), and must be a clade. above: of all
    taxa, the number that is added to the root's age: the age is that of the beginning of a process. Of one
    taxon, the density of a tip's age. stem: the age is that of the node above the common ancestor."""

    name: str
    taxa: tuple[str, ...]
    together: bool = False
    age: Family | float | None = None
    clock: bool = False
    offset: float = 0.0
    above: str = ""
    outside: tuple[str, ...] = ()
    apart: bool = False
    stem: bool = field(default=False, repr=False)  # its name says it

    def log_density(self, age: float) -> float:
        """Of the common ancestor's age, or of the beginning's; of a fixed one 0, and -inf of all others."""
        if self.age is None:
            return 0.0
        if isinstance(self.age, float):
            return 0.0 if age == self.age else -math.inf
        above = age - self.offset
        return float(self.age.log_density(np.array([above]))) if above >= 0.0 else -math.inf

    @property
    def of_tip(self) -> bool:
        """Whether it is what is known of the age of one tip."""
        return len(self.taxa) == 1 and isinstance(self.age, Normal)

    @property
    def constraint_text(self) -> str:
        """What must hold of it; '' of a set that may be anything."""
        if self.apart:
            return f"{self.name} not monophyletic"
        if not (self.together or self.clock):
            return ""
        return f"{self.name} " + (f"without {', '.join(self.outside)}" if self.outside else "monophyletic")

    @property
    def age_text(self) -> str:
        """The density of the age as parse_age reads it; '' without one."""
        if self.age is None:
            return ""
        if isinstance(self.age, float):
            return f"fixed({self.age!r})"
        return (f"{self.offset:.5g}+" if self.offset else "") + family_text(self.age)


@dataclass(frozen=True)
class TreeModel:
    """clock: a name of structure.CLOCKS; clock_sd: what the spread of ucln and autocorrelated is of, rates
    (cv) or their logarithms (log; log-median: and ucln's rate is the median; density/clocks.py). prior:
    name of the tree prior, options: its own; pieces: how many population sizes a sky… has. priors: of blocks
    by name, a density, "ctmc", or a number it is fixed at; others have usual ones. clades: what is known of
    them. typical_age: of the tree, roughly, where neither dates nor clades say one; None is 1."""

    clock: str = "strict"
    clock_sd: Literal["cv", "log", "log-median"] = "cv"
    prior: str = "constant"
    pieces: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    priors: Mapping[str, Family | str | float] = field(default_factory=dict)
    clades: tuple[Clade, ...] = ()
    typical_age: float | None = None

    def __post_init__(self) -> None:
        settle_fields(self)


@dataclass(frozen=True)
class TimeSettings:
    """What the chains do: n_runs independent runs of one chain each.

    generations: moves of every chain (the limit if until_converged); sample_every: between samples. warm_up:
    share of the generations in which moves adapt and scales are learnt, which summaries leave out, at most
    most_warm_up of them, and of a run that nobody limited as of one of 1,000,000; tuning_generations: exactly
    so many. check_every: generations between checkpoints,
    and looks at convergence. use_data: False samples the prior. path: length of Hamiltonian trajectories, in
    scales; most_steps: of one. start: from a "random" tree, or that of "lsd": neighbour joining's, its nodes
    dated by least squares. move_weights: None for all, else name → weight. stones, stone_shape: as of
    mcmc.settings.ChainSettings, working too; warm_up is then the share of the generations before the first
    stone, and of every stone's. ancestors: "summed" over, or their sequences "sampled" together with all
    else. n_chains: Metropolis-coupled chains of every run, chain i at 1 / (1 + heating · i); swap_every,
    swap_seed: as of mcmc.settings.ChainSettings.
    """

    seed: int = 1
    n_runs: int = 2
    n_chains: int = 1
    generations: int = 1_000_000
    sample_every: int = 200
    until_converged: bool = False
    check_every: int = 50_000
    warm_up: float = 0.2
    tuning_generations: int | None = None
    most_warm_up: int = 500_000
    convergence: Convergence = field(default_factory=Convergence)
    use_data: bool = True
    path: float = 1.6
    most_steps: int = 40
    threads: int | None = None
    start: Start = "random"
    move_weights: Mapping[str, float] | None = None
    stones: int = 0
    stone_shape: float = 0.4
    working: DatedWorking | None = None
    ancestors: Literal["summed", "sampled"] = "summed"
    heating: float = 0.1
    swap_every: int = SWAP_EVERY
    swap_seed: int | None = None

    def __post_init__(self) -> None:
        settle_fields(self)
        for name in (
            "n_runs",
            "n_chains",
            "generations",
            "sample_every",
            "check_every",
            "most_steps",
            "swap_every",
        ):
            require_count(name.removeprefix("n_"), getattr(self, name))
        require_threads(self.threads)
        if not 0 <= self.warm_up < 1:
            raise InputError(f"warm_up is a share of the generations, 0 ≤ warm_up < 1, not {self.warm_up}")
        if not 0 <= self.heating * self.n_chains < float("inf"):  # the hottest chain's power is above 0
            raise InputError(f"heating must be a number of 0 or more, not {self.heating}")
        usual = (self.heating, self.swap_every, self.swap_seed) == (0.1, SWAP_EVERY, None)
        check_coupling(self.n_chains, usual)
        require_seed(self.seed)
        if self.swap_seed is not None:
            require_seed(self.swap_seed)
        check_stones(self.stones, self.stone_shape, self.until_converged, use_data=True)
        if self.working is not None and not self.stones:
            told = "a working distribution is of a stepping-stone analysis"
            raise InputError(told, hint="Add --stepping-stone.")
        if self.stones and self.ancestors == "sampled":
            raise InputError(
                "powers of the likelihood are of the tips' data alone, without ancestors",
                hint="Choose --engine patterns.",
            )

    @property
    def burn_in(self) -> float:
        """The share of a stone in which moves adapt."""
        return self.warm_up

    def powers(self, power: float, heat: float) -> tuple[float, float, float]:
        """Of likelihood, prior and working distribution, where a ladder is at a power, of a chain at a
        heat."""
        if self.working is None:
            return power * heat, heat, 0.0
        return power * heat, power * heat, (1.0 - power) * heat

    @property
    def ladder(self) -> Ladder:
        """Of a stepping-stone analysis: the warm-up is no shorter than a stone."""
        left = self.generations - int(self.warm_up * self.generations)
        found = ladder_of(self, min(self.generations // (self.stones + 1), left // self.stones))
        return replace(found, has_working=self.working is not None)

    @property
    def expected_generations(self) -> int:
        """Of a run that nobody limited, those of one that was not told to converge."""
        return TimeSettings.generations if self.generations == LONGEST else self.generations

    @property
    def tuning(self) -> int:
        """Generations of the warm-up, of a stepping-stone analysis that before the first stone."""
        if self.stones:
            return self.ladder.first
        if self.tuning_generations is not None:
            return self.tuning_generations
        return int(min(self.most_warm_up, self.warm_up * self.expected_generations))
