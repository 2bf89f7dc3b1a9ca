"""Which prior every block of a chain's numbers has, and where a chain may start under them."""

from __future__ import annotations

import re

import numpy as np

from phloem.density.parameterisation import PARTITION_RATES
from phloem.density.space import Block
from phloem.density.terms.beta import Beta
from phloem.density.terms.beta_prime import BetaPrime
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.inverse_gamma import InverseGamma
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.ratios import Ratios
from phloem.density.terms.term import BlockPrior, Family
from phloem.density.terms.tied_dirichlet import TiedDirichlet
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.mcmc.settings import ChainSettings, Priors, parse_prior
from phloem.inference.mcmc.structure import ChainModel, is_shares

_RATES = "rates"  # what a prior calls the exchangeabilities
_FIT: dict[str, tuple[type[Family], ...]] = {
    "simplex": (Dirichlet, Beta),
    "positive": (Exponential, Uniform, Gamma, InverseGamma, LogNormal, Ratios, BetaPrime),
    "unit": (Uniform, Beta),
    "interval": (Uniform,),
    "tied": (Dirichlet,),
}


def number_priors(structure: ChainModel, priors: Priors) -> list[BlockPrior]:
    """The prior of every block: MrBayes' default, or the one that was asked for.

    Errors: InputError for one that is of no block, or that is no density on what its block holds.
    """
    chosen = {block.name: _default(structure, priors, block) for block in structure.space.blocks}
    for text in priors.others:
        name, part, family = parse_prior(text)
        mine = [block for block in structure.space.blocks if _is_meant(structure, block, name, part)]
        if not mine:
            known = ", ".join(dict.fromkeys(_called(structure, b) for b in structure.space.blocks)) or "none"
            raise InputError(
                f"--prior {text}: no part has a free parameter of that name",
                hint=f"There are: {known}.",
            )
        for block in mine:
            chosen[block.name] = _fitted(structure, block, family, text)
    return [BlockPrior(name, family) for name, family in chosen.items()]


def start_values(structure: ChainModel, priors: Priors) -> np.ndarray:
    """(n,) numbers that a chain starts from: the model's, or where a prior excludes them others."""
    values = structure.space.unpack(structure.space.start())
    for prior in number_priors(structure, priors):
        values[prior.block] = possible_numbers(prior.family, values[prior.block])
    return structure.space.pack(values)


def possible_numbers(family: Family, x: np.ndarray) -> np.ndarray:
    """x (k,), but those outside of a density between limits a tenth of the way in from the one next to them,
    by proportion where both are positive: near to where else they would start."""
    if not isinstance(family, Uniform | LogUniform):
        return x
    low, high = family.lower, family.upper
    if low > 0:
        tenth = (high / low) ** 0.1
        ends = low * tenth, high / tenth
    else:
        ends = low + 0.1 * (high - low), high - 0.1 * (high - low)
    return np.where(x <= low, ends[0], np.where(x >= high, ends[1], x))


def length_bounds(settings: ChainSettings) -> tuple[float, float]:
    """Of branch lengths: those of the sampler, and of a uniform prior on them."""
    low, high = settings.branch_length_bounds
    prior = settings.priors.branch_lengths
    return (max(low, prior.lower), min(high, prior.upper)) if isinstance(prior, Uniform) else (low, high)


def _default(structure: ChainModel, priors: Priors, block: Block) -> Family:
    families: dict[str, Family] = {
        "frequencies": Dirichlet(priors.frequency),
        "omega": Dirichlet(priors.omega),
        "alpha": Exponential(priors.alpha_rate),
        PARTITION_RATES: Dirichlet(1.0),
    }
    bare = _called(structure, block)
    if block.support == "tied":
        return TiedDirichlet(priors.exchangeability)
    if block.support == "choice":  # every number stands for an interval around it
        return Uniform(block.lower - 0.5, block.upper + 0.5)
    if bare in families and (block.support == "simplex" or bare == "alpha"):
        return families[bare]  # an omega between bounds (M2a) is no share
    if block.support == "simplex":  # relative rates, or weights and rates of a mixture's classes
        return Dirichlet(priors.exchangeability if is_shares(structure, block) else 1.0)
    return Exponential(1.0) if block.support == "positive" else Uniform(block.lower, block.upper)


def _called(structure: ChainModel, block: Block) -> str:
    """The name by which a prior asks for a block: without parts, and without the number of a component
    (omega.2) or of a codon position (frequencies_1)."""
    if block.name == PARTITION_RATES:
        return block.name
    if block.name.startswith("relative_rates") and is_shares(structure, block):
        return _RATES
    return re.sub(r"([._]\d+)+$", "", _bare(block.name))


def _bare(name: str) -> str:
    return name.split("{")[0]


def _is_meant(structure: ChainModel, block: Block, name: str, part: str | None) -> bool:
    if name not in (_called(structure, block), _bare(block.name)):
        return False
    if part is None:
        return True
    label = block.name.partition("{")[2].removesuffix("}")
    having = {
        structure.parts[i].name
        for i, readings in enumerate(structure.parameterisation.readings)
        if any(r.block == block.name for r in readings)
    }
    return part in having or part == label


def _is_beta_of_many(family: Family, block: Block) -> bool:
    return isinstance(family, Beta) and block.support == "simplex" and block.size != 2


def _fitted(structure: ChainModel, block: Block, family: Family, text: str) -> Family:
    """The density by the entries of the block: where these are shares, the reference comes first in it."""
    allowed = _FIT.get(block.support, ())
    if block.support == "choice":
        told = f"--prior {text}: the models of '{block.name}' are all as probable"
        raise InputError(told, hint="Leave it out.")
    if not isinstance(family, allowed) or _is_beta_of_many(family, block):
        raise InputError(
            f"--prior {text}: '{block.name}' holds {block.support} numbers, and takes another density",
            hint=f"Choose {', '.join(kind.__name__.lower() for kind in allowed)}.",
        )
    if block.support == "tied":
        return _symmetric(family, text)
    if block.support != "simplex":
        return family
    if isinstance(family, Beta):
        family = Dirichlet((family.a, family.b))
    assert isinstance(family, Dirichlet)
    numbers = np.atleast_1d(family.concentration)
    if len(numbers) not in (1, block.size):
        raise InputError(
            f"--prior {text}: {len(numbers)} numbers are given, and '{block.name}' has {block.size} entries",
            hint="Give one number, or one for each entry.",
        )
    if len(numbers) > 1 and is_shares(structure, block):
        numbers = np.roll(numbers, 1)
    return Dirichlet(tuple(numbers.tolist()) if len(numbers) > 1 else float(numbers[0]))


def _symmetric(family: Family, text: str) -> TiedDirichlet:
    """Of rates some of which may be equal: one number, of a single rate (MrBayes' symdir)."""
    assert isinstance(family, Dirichlet)
    if not isinstance(family.concentration, float | int):
        raise InputError(
            f"--prior {text}: rates of which any may be equal have one number", hint="Write dirichlet(1)."
        )
    return TiedDirichlet(float(family.concentration))
