"""Numbers of a substitution model as dated chains sample them, their priors, and how a trace has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.density.parameterisation import PARTITION_RATES
from phloem.density.space import Block
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.term import Family
from phloem.density.terms.tied_dirichlet import TiedDirichlet
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.mcmc.structure import ChainModel, is_shares, printed_names, printed_values
from phloem.model.character_frequencies import SHAPE


def model_blocks(engine: ChainModel, first: int) -> tuple[list[Block], np.ndarray]:
    """Of the substitution model: shares of few rates as ratios to the first, all else as the engine has it;
    and the place of each of its numbers among the chain's, which begin at first."""
    blocks, model_from = [], []
    for block in engine.space.blocks:
        names = printed_names(engine, block)[: block.size]
        if len(names) < block.size:
            ratios = block.start[1:] / block.start[0]
            own = Block(plain_name(block.name), "positive", ratios, 1e-4, 1e4, names)
            model_from.append(-1)
        else:
            own = replace(block, elements=names)
        blocks.append(own)
        model_from += range(first, first + own.size)
        first += own.size
    return blocks, np.array(model_from, np.int64)


def plain_name(name: str) -> str:
    bare, brace, parts = name.partition("{")
    return ("kappa" if bare.startswith("kappa") else bare) + brace + parts


def _bare(name: str) -> str:
    """Without the parts in braces."""
    return name.partition("{")[0]


def usual_prior(block: Block) -> Family:
    """The prior of a number of a substitution model where none is given."""
    if block.support == "tied":
        return TiedDirichlet(1.0)
    if block.support == "choice":  # every number stands for an interval around it
        return Uniform(block.lower - 0.5, block.upper + 0.5)
    if block.support == "simplex":
        return Dirichlet(1.0)
    if block.support == "positive":
        return Exponential(1.0) if _bare(block.name) in ("alpha", "sigma", SHAPE) else LogNormal(1.0, 1.25)
    return Uniform(block.lower, block.upper)


def block_of(name: str, blocks: list[Block]) -> str:
    """The block that a name means: rates, as of phloem mcmc, are relative_rates."""
    bare, brace, parts = name.partition("{")
    other = f"relative_{bare}{brace}{parts}"
    return other if bare == "rates" and other in {b.name for b in blocks} else name


def fitted(block: Block | None, family: Family | float | str, engine: ChainModel) -> Family | float | str:
    """A prior that is asked for, of a block of the substitution model or another (None): of rates some of
    which may be equal that of their groups; of six rates by their order AC AG AT CG CT GT, of which the block
    has the last one first. InputError where it is none of them, or models are as probable."""
    if block is None or block.support not in ("tied", "choice", "simplex"):
        return family
    if block.support == "simplex":
        known = isinstance(family, Dirichlet) and np.ndim(family.concentration)
        if not known or not is_shares(engine, block):
            return family
        assert isinstance(family, Dirichlet)
        return Dirichlet(tuple(np.roll(np.asarray(family.concentration), 1).tolist()))
    if block.support == "choice":
        raise InputError(f"the models of '{block.name}' are all as probable", hint="Leave its --prior out.")
    if not isinstance(family, Dirichlet) or np.ndim(family.concentration):
        told = f"'{block.name}', rates of which any may be equal, has a density of one number"
        raise InputError(told, hint="Write dirichlet(1).")
    return TiedDirichlet(float(np.asarray(family.concentration)))


def names_of(engine: ChainModel, block: Block) -> tuple[str, ...]:
    """Of a block's numbers in a trace: of tied rates also the number of the model, and how many it has."""
    return printed_names(engine, block) if block.support == "tied" else block.elements


def printed_numbers(engine: ChainModel, block: Block, x: np.ndarray) -> np.ndarray:
    """The numbers under these names, of parts' shares their rates."""
    if block.name == PARTITION_RATES:
        return x / x.sum() / engine.parameterisation.rate_shares
    return printed_values(engine, block, x) if block.support == "tied" else x
