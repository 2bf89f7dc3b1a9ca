"""Everything the chains were told, with MrBayes' defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from phloem.density.terms.compound_dirichlet import GammaDirichlet as GammaDirichletPrior
from phloem.density.terms.exponential import Exponential as ExponentialPrior
from phloem.density.terms.term import positive_numbers
from phloem.errors import InputError, require_count, require_seed
from phloem.hardware.limits import require_threads


@dataclass(frozen=True)
class Priors:
    """MrBayes 3.2.7a's defaults, as its `showmodel` prints them. Topologies are uniform; p_invariable is
    uniform (0, 1). Branch lengths are expected substitutions per site; a codon has three sites, so a length
    of 1 is 3 expected substitutions a codon, as in MrBayes.

    exchangeability, omega, frequency: concentration of the Dirichlet on rate classes, on (dS, dN) and on
    frequencies; with two classes a Dirichlet(1, 1) is MrBayes' Beta(1, 1) on tratio. alpha_rate: of the
    exponential on the gamma shape.
    """

    branch_lengths: GammaDirichletPrior | ExponentialPrior = field(default_factory=GammaDirichletPrior)
    exchangeability: float = 1.0
    omega: float = 1.0
    frequency: float = 1.0
    alpha_rate: float = 1.0

    def __post_init__(self) -> None:
        positive_numbers("a prior", self.exchangeability, self.omega, self.frequency, self.alpha_rate)


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


@dataclass(frozen=True)
class ChainSettings:
    """What the chains do: n_runs independent runs of n_chains Metropolis-coupled chains.

    generations: of every chain (the limit if until_converged). sample_every: generations between samples.
    burn_in: fraction of the samples that summaries leave out. tuning_generations: moves adapt during the
    first ones only; None takes burn_in · generations, at most 25,000. heating: chain i runs at 1 / (1 +
    heating · i). check_every: generations between two looks at convergence, and between checkpoints.
    use_data: False samples the prior. repeats: work on distinct columns. move_weights: None takes MrBayes'
    proportions, else move name → weight. p_extend: probability that the walk of extending SPR and
    TBR goes on. branch_length_bounds: in substitutions per site.
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
    heating: float = 0.1
    priors: Priors = field(default_factory=Priors)
    convergence: Convergence = field(default_factory=Convergence)
    use_data: bool = True
    repeats: bool = True
    threads: int | None = None
    move_weights: dict[str, float] | None = None
    p_extend: float = 0.5
    branch_length_bounds: tuple[float, float] = (1e-8, 100.0)

    def __post_init__(self) -> None:
        for name in ("n_runs", "n_chains", "generations", "sample_every", "check_every"):
            require_count(name.removeprefix("n_"), getattr(self, name))  # as the options are called
        require_threads(self.threads)
        if not 0 <= self.burn_in < 1:
            raise InputError(f"burn_in is a fraction of the samples, 0 ≤ burn_in < 1, not {self.burn_in}")
        if not 0 <= self.p_extend < 1:
            raise InputError(f"p_extend is a probability below 1, not {self.p_extend}")
        if not 0 <= self.heating < float("inf"):
            raise InputError(f"heating must be a number of 0 or more, not {self.heating}")
        require_seed(self.seed)

    @property
    def tuning(self) -> int:
        """Generations during which moves adapt."""
        if self.tuning_generations is not None:
            return self.tuning_generations
        return int(min(25_000, self.burn_in * self.generations))


def parse_length_prior(text: str) -> GammaDirichletPrior | ExponentialPrior:
    """Read gammadir(shape,rate,tips,ratio) or exponential(rate), as MrBayes writes them."""
    name, _, rest = text.strip().lower().partition("(")
    try:
        numbers = [float(part) for part in rest.removesuffix(")").split(",")] if rest.endswith(")") else []
    except ValueError:
        numbers = []
    if name in ("exponential", "exp") and len(numbers) == 1:
        return ExponentialPrior(*numbers)
    if name == "gammadir" and len(numbers) == 4:
        return GammaDirichletPrior(*numbers)
    raise InputError(
        f"'{text}' is no prior on branch lengths", hint="Write gammadir(1,0.1,1,1) or exponential(10)."
    )
