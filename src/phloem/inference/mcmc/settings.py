"""Everything the chains were told, with MrBayes' defaults."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field
from typing import Literal, NamedTuple

from phloem.data.given_fields import settle_fields
from phloem.density.terms.beta import Beta
from phloem.density.terms.beta_prime import BetaPrime
from phloem.density.terms.compound_dirichlet import GammaDirichlet as GammaDirichletPrior
from phloem.density.terms.compound_dirichlet import InverseGammaDirichlet
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential as ExponentialPrior
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.inverse_gamma import InverseGamma
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.ratios import Ratios
from phloem.density.terms.term import Family, positive_numbers
from phloem.density.terms.two_exponentials import TwoExponentials
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError, require_count, require_seed
from phloem.hardware.limits import require_threads
from phloem.inference.mcmc.working import WorkingDistribution


@dataclass(frozen=True)
class Priors:
    """MrBayes 3.2.7a's defaults, as its `showmodel` prints them. Topologies are uniform; p_invariable is
    uniform (0, 1). Branch lengths are expected substitutions per site; a codon has three sites, so a length
    of 1 is 3 expected substitutions a codon, as in MrBayes.

    exchangeability, omega, frequency: concentration of the Dirichlet on rate classes, on (dS, dN) and on
    frequencies; with two classes a Dirichlet(1, 1) is MrBayes' Beta(1, 1) on tratio. alpha_rate: of the
    exponential on the gamma shape. others: priors of single blocks, which come before those, as texts that
    `parse_prior` reads; of two that fit a block the later one holds.
    """

    branch_lengths: Family = field(default_factory=GammaDirichletPrior)
    exchangeability: float = 1.0
    omega: float = 1.0
    frequency: float = 1.0
    alpha_rate: float = 1.0
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle_fields(self)
        positive_numbers("a prior", self.exchangeability, self.omega, self.frequency, self.alpha_rate)
        for text in self.others:
            parse_prior(text)


@dataclass(frozen=True)
class Convergence:
    """When `until_converged` stops: every threshold must hold, over all runs, after the burn-in fraction.

    asdsf: average standard deviation of split frequencies, over splits above min_split_frequency in some run.
    ess: smallest bulk effective sample size, and r_hat: largest rank-normalised split R̂ (Vehtari et al.
    2021), of every number in the trace and of the presence of every split whose frequency lies within
    [min_split_frequency, 1 - min_split_frequency].
    """

    asdsf: float = 0.01
    ess: float = 200.0
    r_hat: float = 1.01
    min_split_frequency: float = 0.1

    def __post_init__(self) -> None:
        settle_fields(self)
        for name in ("asdsf", "ess", "r_hat"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise InputError(f"the threshold of {name} is a number of 0 or more, not {value}")


THRESHOLDS = {"asdsf": "asdsf", "least_ess": "ess", "r_hat": "r_hat"}
"""Option → field of Convergence."""


class Constraints(NamedTuple):
    """Of topologies, by numbers of tips. hard: splits that every tree has, one side of each; partial: two
    sets of tips that a branch of every tree separates, whatever side the other tips are on; negative: splits
    that no tree has."""

    hard: tuple[tuple[int, ...], ...] = ()
    partial: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    negative: tuple[tuple[int, ...], ...] = ()


LEAST_TUNING = 20_000
"""Generations that teach how hot chains should be."""
LONGEST = 100_000_000
"""Generations at which a run that nobody limited gives up converging."""


def chain_length(generations: int | None, until_converged: bool | None, stones: int) -> tuple[int, bool]:
    """Generations, and whether chains end before where they have converged: of a number alone just so many,
    of nothing until converged; stepping stones have a length of their own. InputError where nothing says an
    end."""
    if generations is not None:
        return generations, bool(until_converged)
    if stones:
        return ChainSettings.generations, bool(until_converged)
    if until_converged is False:
        raise InputError("until_converged = false says no end", hint="Say how many generations.")
    return LONGEST, True


@dataclass(frozen=True)
class ChainSettings:
    """What the chains do: n_runs independent runs of n_chains Metropolis-coupled chains.

    generations: of every chain, the limit if until_converged. sample_every: generations between samples.
    burn_in: fraction of the samples that summaries leave out. tuning_generations: moves adapt during the
    first ones only; None takes burn_in · generations, at most 25,000. heating: chain i runs at 1 / (1 +
    heating · i); None: learnt while moves adapt (heating.py), 0.1 at the most. check_every:
    generations between checkpoints, and between looks at convergence, which grow
    rarer as the run gets longer (convergence.looks_at).
    swap_every: generations between two tries to swap; swap_seed: of their random numbers, None: the seed.
    constraints: numbers of the tips of every split that all trees must have; partial_constraints,
    negative_constraints: as constraints.Constraints has them.
    threads: shared by runs and chains, all cores if None; gpus: of this host, the first that this process
    sees, that chains are dealt to where they are on GPUs. What happens depends on neither.
    fixed_topology: all trees have that of the tree that chains start from. precision: of conditional
    likelihoods on a GPU; their sums are of float64 always.
    stones: 0 samples the posterior; else the marginal likelihood is estimated from so many power posteriors,
    at quantiles of Beta(stone_shape, 1) (inference/mcmc/stones.py). stone_burn_in: generations before the
    first stone, None: as many as of a stone. stones_from_prior: from power 0 up to 1. working: at which
    they begin in place of the prior, which then has the likelihood's powers (working.py). use_data: False
    samples the prior. repeats: work on distinct columns. move_weights: None takes MrBayes' proportions to
    begin with, else move name → weight. usual_weights: they stay so; False: they are learnt while moves adapt
    (weights.py), but of stepping stones or where move_weights says them. p_extend: probability that the walk
    of extending SPR and TBR goes on. branch_length_bounds: in substitutions per site.
    """

    seed: int = 1
    n_runs: int = 2
    n_chains: int = 4
    generations: int = 1_000_000
    sample_every: int = 500
    until_converged: bool = False
    check_every: int = 50_000
    burn_in: float = 0.25
    tuning_generations: int | None = None
    heating: float | None = None
    priors: Priors = field(default_factory=Priors)
    convergence: Convergence = field(default_factory=Convergence)
    use_data: bool = True
    repeats: bool = True
    threads: int | None = None
    gpus: int = 1
    move_weights: dict[str, float] | None = None
    p_extend: float = 0.5
    branch_length_bounds: tuple[float, float] = (1e-8, 100.0)
    swap_every: int = 1
    swap_seed: int | None = None
    constraints: tuple[tuple[int, ...], ...] = ()
    partial_constraints: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    negative_constraints: tuple[tuple[int, ...], ...] = ()
    stones: int = 0
    stone_shape: float = 0.4
    stone_burn_in: int | None = None
    stones_from_prior: bool = False
    working: WorkingDistribution | None = None
    usual_weights: bool = False
    fixed_topology: bool = False
    precision: Literal["float64", "float32"] = "float64"

    def __post_init__(self) -> None:
        settle_fields(self)
        check_stones(self.stones, self.stone_shape, self.until_converged, self.use_data)
        self._check_first_stone()
        for name in (
            "n_runs",
            "n_chains",
            "generations",
            "sample_every",
            "check_every",
            "swap_every",
            "gpus",
        ):
            require_count(name.removeprefix("n_"), getattr(self, name))  # as the options are called
        require_threads(self.threads)
        if not 0 <= self.burn_in < 1:
            raise InputError(f"burn_in is a fraction of the samples, 0 ≤ burn_in < 1, not {self.burn_in}")
        if not 0 <= self.p_extend < 1:
            raise InputError(f"p_extend is a probability below 1, not {self.p_extend}")
        if self.heating is not None and not 0 <= self.heating < float("inf"):
            raise InputError(f"heating must be a number of 0 or more, not {self.heating}")
        usual = (self.heating, self.swap_every, self.swap_seed) == (None, 1, None)
        check_coupling(self.n_chains, usual)
        require_seed(self.seed)
        if self.swap_seed is not None:
            require_seed(self.swap_seed)

    def _check_first_stone(self) -> None:
        """InputError for what nothing says of a ladder."""
        if not self.stones and (self.stone_burn_in is not None or self.stones_from_prior):
            name = "stones_from_prior" if self.stone_burn_in is None else "stone_burn_in"
            raise InputError(f"{name} is of a stepping-stone analysis", hint="Add --stepping-stone.")
        if self.working is not None and (not self.stones or self.stones_from_prior):
            told = "a working distribution is of a stepping-stone analysis, and in place of the prior"
            raise InputError(told, hint="Add --stepping-stone, and leave --stones-from-prior out.")
        if self.stone_burn_in is not None and not 0 <= self.stone_burn_in < self.generations:
            raise InputError(
                f"stone_burn_in is generations before the first stone, of {self.generations:,} in all, "
                f"not {self.stone_burn_in}",
                hint="Give 0 or more, and raise --generations.",
            )

    @property
    def topologies(self) -> Constraints:
        """All that trees must obey."""
        return Constraints(self.constraints, self.partial_constraints, self.negative_constraints)

    @property
    def expected_generations(self) -> int:
        """What a choice between devices reckons with: nobody knows when chains will have converged."""
        return min(self.generations, ChainSettings.generations) if self.until_converged else self.generations

    @property
    def tuning(self) -> int:
        """Generations during which moves adapt."""
        if self.tuning_generations is not None:
            return self.tuning_generations
        return int(min(25_000, self.burn_in * self.generations))

    @property
    def learns_heating(self) -> bool:
        """Whether the temperatures of chains are learnt: of one posterior, where there is time to."""
        several = self.heating is None and self.n_chains > 1
        return several and self.use_data and not self.stones and self.tuning >= LEAST_TUNING

    @property
    def learns_weights(self) -> bool:
        """Whether moves' weights are learnt: of one posterior, and where none are given."""
        return not self.usual_weights and self.move_weights is None and not self.stones


def check_coupling(n_chains: int, usual: bool) -> None:
    """InputError for heating or swaps of a single chain, of any sampler. usual: nothing was said of them."""
    if n_chains == 1 and not usual:
        raise InputError(
            "heating and swaps are of several chains", hint="Ask for them (--chains 4), or leave it out."
        )


def check_stones(stones: int, shape: float, until_converged: bool, use_data: bool) -> None:
    """InputError for what a stepping-stone analysis cannot be asked for, of any sampler."""
    if not stones:
        if shape != ChainSettings.stone_shape:
            raise InputError("stone_shape is of a stepping-stone analysis", hint="Add --stepping-stone.")
        return
    require_count("stepping_stone", stones)
    if not 0 < shape < float("inf"):
        raise InputError(f"the shape of the ladder is a positive number, not {shape}")
    for name, unwanted in (("until-converged", until_converged), ("prior-only", not use_data)):
        if unwanted:
            raise InputError(
                f"a stepping-stone analysis has no {name}",
                hint=f"Leave --{name} or --stepping-stone out.",
            )


def parse_length_prior(text: str) -> Family:
    """Read gammadir(shape,rate,tips,ratio), invgamdir(…), exponential(rate), twoexp(internal,tips) or
    uniform(low,high), as MrBayes writes them."""
    found = parse_density(text, _OF_LENGTHS)
    if found is None:
        raise InputError(
            f"'{text}' is no prior on branch lengths",
            hint="Write gammadir(1,0.1,1,1), invgamdir(3,0.2,1,1), exponential(10), twoexp(100,10) or "
            "uniform(0,1).",
        )
    return found


def parse_prior(text: str) -> tuple[str, str | None, Family]:
    """Read a prior of a block: its name, the part it is of or None, and the density.

    "alpha=uniform(0.1,50)" is of every part, "alpha{gene1}=exponential(2)" of the block that part gene1
    reads. Names are those of blocks (kappa, omega, frequencies, alpha, p_invariable, partition_rates, …), and
    "rates" the exchangeabilities. A dirichlet has one number, or one an entry in the order of docs/models.md,
    the rate of reference last.
    """
    target, equals, density = text.partition("=")
    name, brace, part = target.strip().partition("{")
    found = parse_density(density, OF_NUMBERS)
    if not equals or not name or (brace and not part.endswith("}")) or found is None:
        raise InputError(
            f"'{text}' is no prior",
            hint="Write as in 'alpha=uniform(0.1,50)', 'rates{gene1}=dirichlet(1,2,1,1,2,1)'; there are "
            f"{', '.join(OF_NUMBERS)}.",
        )
    return name.strip(), part[:-1] if brace else None, found


_OF_LENGTHS: dict[str, tuple[type[Family], int]] = {
    "gammadir": (GammaDirichletPrior, 4),
    "invgamdir": (InverseGammaDirichlet, 4),
    "exponential": (ExponentialPrior, 1),
    "exp": (ExponentialPrior, 1),
    "twoexp": (TwoExponentials, 2),
    "uniform": (Uniform, 2),
}
OF_NUMBERS: dict[str, tuple[type[Family], int]] = {
    "exponential": (ExponentialPrior, 1),
    "uniform": (Uniform, 2),
    "gamma": (Gamma, 2),
    "invgamma": (InverseGamma, 2),
    "lognormal": (LogNormal, 2),
    "beta": (Beta, 2),
    "ratios": (Ratios, 1),
    "betaprime": (BetaPrime, 2),
    "dirichlet": (Dirichlet, 0),  # any count
}


def parse_density(text: str, known: dict[str, tuple[type[Family], int]]) -> Family | None:
    """A density written as name(number,…), None where it is none of the known ones; lognormal(mean=M,s) has
    the mean M itself, not that of the logarithm, whose standard deviation s is all the same."""
    name, _, rest = text.strip().lower().partition("(")
    if in_real_space := (name.strip() == "lognormal" and rest.lstrip().startswith("mean=")):
        rest = rest.lstrip().removeprefix("mean=")
    try:
        numbers = [float(part) for part in rest.removesuffix(")").split(",")] if rest.endswith(")") else []
    except ValueError:
        return None
    family, count = known.get(name.strip(), (Uniform, -1))
    if not numbers or (count and len(numbers) != count):
        return None
    if count == 0:
        return Dirichlet(numbers[0] if len(numbers) == 1 else tuple(numbers))
    if in_real_space:
        positive_numbers("lognormal(mean=…)", *numbers)
        return LogNormal(math.log(numbers[0]) - 0.5 * numbers[1] ** 2, numbers[1])
    return family(*numbers)


def length_prior_text(family: Family) -> str:
    """What `parse_length_prior` reads as this density."""
    name = next(name for name, (kind, _) in _OF_LENGTHS.items() if kind is type(family))
    return f"{name}({','.join(f'{x:g}' for x in astuple(family))})"  # type: ignore[call-overload]
