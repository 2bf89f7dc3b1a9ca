"""What the compiled sampler needs to know of a model: which numbers it has, and how they make a rate
matrix."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Block:
    """Numbers that are sampled together: a simplex, or one number.

    names: of its entries, as the trace prints them. start: (k,) where they begin, or stay if not free.
    """

    names: tuple[str, ...]
    start: np.ndarray
    free: bool

    @property
    def size(self) -> int:
        return len(self.start)


def constant(value: float) -> Block:
    """A block of one number that never moves and is not printed."""
    return Block((), np.array([float(value)]), False)


@dataclass(frozen=True)
class ModelStructure:
    """Q_ij ∝ base_ij · exchangeability[class_a_ij] · omega[class_b_ij] · frequency_j, and rates across sites.

    name: as in the model string. base: (S, S) symmetric; class_a, class_b: (S, S) int32. gamma_mean:
    categories of a discrete gamma by their mean (else by their median). n_categories: C. rates, weights: (C,)
    fixed ones where there is no gamma. ascertained: the data lack constant sites and the likelihood is
    conditioned on that (Mkv). sites_per_character: a branch of length 1 has so many expected substitutions a
    character: 3 for codons, whose lengths are per nucleotide.
    """

    name: str
    base: np.ndarray
    class_a: np.ndarray
    class_b: np.ndarray
    exchangeability: Block
    frequency: Block
    omega: Block = field(default_factory=lambda: constant(1.0))
    alpha: Block | None = None
    p_invariable: Block = field(default_factory=lambda: constant(0.0))
    n_categories: int = 1
    gamma_mean: bool = True
    rates: np.ndarray = field(default_factory=lambda: np.ones(1))
    weights: np.ndarray = field(default_factory=lambda: np.ones(1))
    ascertained: bool = False
    sites_per_character: int = 1

    @property
    def length_unit(self) -> str:
        """What a branch length counts, as files and tables say it."""
        return f"expected substitutions per {'nucleotide ' if self.sites_per_character > 1 else ''}site"

    @property
    def n_states(self) -> int:
        return len(self.base)

    @property
    def blocks(self) -> tuple[Block, Block, Block, Block, Block]:
        """In the order of phloem.inference.mcmc.records: exchangeability, omega, frequency, alpha,
        p_invariable."""
        return (
            self.exchangeability,
            self.omega,
            self.frequency,
            self.alpha or constant(1.0),
            self.p_invariable,
        )
