"""Marginal likelihoods by stepping stones: power posteriors prior · likelihood^β, and what they add up to.

Xie, Lewis, Fan, Kuo and Chen 2011 (Systematic Biology 60:150), as MrBayes 3.2 has it: β_k = (k/K)^(1/shape),
quantiles of Beta(shape, 1), visited from K - 1 down to 0, or upwards. Which of them a generation belongs to
follows from its number, so an analysis is resumed as any other.

Generalised ones are (prior · likelihood)^β · working^(1 - β), with a working distribution near the posterior
(Fan, Wu, Chen, Kuo and Lewis 2011, Molecular Biology and Evolution 28:523; working.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.learning import EVERY as LOOK_EVERY
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.settings import ChainSettings
from phloem.summary.trace import mixing

LEAST_SAMPLES = 10  # of a run at a stone
LEAST_ESS = 20.0  # at a stone, below which its standard error is a guess itself
NO_POSTERIOR = "Power posteriors of stepping stones: no posterior sample"
"""What the first lines of their traces and trees say, by which readers of samples know them."""

# Which power a generation samples at.


class Laddered(Protocol):
    """Settings of a sampler, as mcmc.settings.ChainSettings has them. burn_in: the share of a stone's
    generations in which moves adapt to it."""

    @property
    def stones(self) -> int: ...
    @property
    def stone_shape(self) -> float: ...
    @property
    def generations(self) -> int: ...
    @property
    def sample_every(self) -> int: ...
    @property
    def burn_in(self) -> float: ...


@dataclass(frozen=True)
class Ladder:
    """powers: (K + 1,) from 1 down to 0, or, from the prior, up to 1; stone k is sampled at the lower one of
    powers[k] and powers[k + 1] and leads up to the other. first: generations at powers[0], in which moves
    adapt. each: generations of a stone, left_out: of them, in which moves adapt to it. has_working: at
    power 0 chains sample a working distribution, not the prior."""

    powers: np.ndarray
    first: int
    each: int
    left_out: int
    has_working: bool = False

    def of(self, generation: int) -> tuple[float, bool, int]:
        """The power that the generation after this one is sampled at, whether moves adapt, until when."""
        if generation < self.first:
            return float(self.powers[0]), True, self.first
        stone, within = divmod(generation - self.first, self.each)
        start = self.first + stone * self.each
        adapts = within < self.left_out
        return self.stone(stone)[0], adapts, start + (self.left_out if adapts else self.each)

    def stone(self, k: int) -> tuple[float, float]:
        """The power that stone k is sampled at, and the one that it leads up to."""
        low, high = sorted(self.powers[k : k + 2].tolist())
        return low, high


def ladder(settings: ChainSettings) -> Ladder:
    """That of these chains. InputError where a stone has too few samples."""
    n, first = settings.stones, settings.stone_burn_in
    most = settings.generations // (n + 1) if first is None else (settings.generations - first) // n
    found = ladder_of(settings, most, settings.stones_from_prior)
    return replace(found, has_working=settings.working is not None)


def ladder_of(settings: Laddered, most: int, from_prior: bool = False) -> Ladder:
    """most: generations that a stone may have; what is left is before the first. InputError where a stone has
    too few samples."""
    n, every = settings.stones, settings.sample_every
    each = max(most, 0) // every * every
    left_out = -(-int(settings.burn_in * each) // every) * every
    if (each - left_out) // every < LEAST_SAMPLES:
        raise InputError(
            f"{settings.generations:,} generations, one sample every {every:,}, leave "
            f"{(each - left_out) // every} samples at each of {n:,} stones; {LEAST_SAMPLES} are the least",
            hint="Raise --generations, lower --sample-every, or ask for fewer stones.",
        )
    powers = (np.arange(n, -1, -1) / n) ** (1.0 / settings.stone_shape)
    if not (np.diff(powers) < 0).all():
        raise InputError(
            f"a ladder of {n:,} stones of shape {settings.stone_shape:g} has equal powers",
            hint="The usual shape is 0.4.",
        )
    return Ladder(powers[::-1] if from_prior else powers, settings.generations - n * each, each, left_out)


def stretches(settings: ChainSettings, generation: int, n: int) -> Iterator[tuple[int, bool, float]]:
    """The n generations after `generation` in pieces: how many, whether moves adapt, power. While they adapt
    a piece ends where chains are looked at (learning.py)."""
    end, stones = generation + n, ladder(settings) if settings.stones else None
    while generation < end:
        if stones is not None:
            power, adapts, until = stones.of(generation)
        else:
            power, adapts = 1.0, generation < settings.tuning
            until = settings.tuning if adapts else end
        if adapts:
            until = min(until, (generation // LOOK_EVERY + 1) * LOOK_EVERY)
        until = min(until, end)
        yield until - generation, adapts, power
        generation = until


# What the samples add up to.


@dataclass(frozen=True)
class Stone:
    """power: sampled at; reaches: the power above. log_ratio: of the normalising constants of the two, error:
    its standard error. log_likelihood: mean at the power. ess: smallest, of the likelihood's weights."""

    power: float
    reaches: float
    log_ratio: float
    error: float
    log_likelihood: float
    ess: float


@dataclass(frozen=True)
class MarginalLikelihood:
    """log: the natural logarithm, of all runs together; error: its standard error. per_run: of each by
    itself. stones: from power 1 down."""

    log: float
    error: float
    per_run: tuple[float, ...]
    stones: tuple[Stone, ...]

    @property
    def n_guessed(self) -> int:
        """Stones whose own error is a guess, having few effective samples."""
        return n_guessed([stone.ess for stone in self.stones])


def n_guessed(ess: Sequence[float]) -> int:
    """Of effective sample sizes how many are too small to say how uncertain a stone is."""
    return sum(one < LEAST_ESS for one in ess)


def marginal_likelihood(samples: Sequence[Samples], stones: Ladder) -> MarginalLikelihood:
    """Σ over stones of log E[w^(β' - β)], β' the power above; errors by the delta method with effective
    sample sizes. w: the likelihood, priors being normalised by being sampled, that of topologies included; or
    likelihood and prior over the working density, both normalised."""
    found, per_run = [], np.zeros(len(samples))
    for k in range(len(stones.powers) - 1):
        begin = stones.first + k * stones.each + stones.left_out
        end = begin + stones.each - stones.left_out
        numbers = np.stack([s.numbers[(s.generation > begin) & (s.generation <= end)] for s in samples])
        likelihoods = draws = numbers[:, :, 0]  # (runs, n)
        if stones.has_working:
            draws = likelihoods + numbers[:, :, 1] - numbers[:, :, -1]
        power, reaches = stones.stone(k)
        step = reaches - power
        largest = draws.max()
        weights = np.exp(step * (draws - largest))
        ess = float(mixing(weights[:, :, None])[0][0]) if np.ptp(weights) > 0 else float(weights.size)
        ratio = float(np.log(weights.mean()) + step * largest)
        error = float(weights.std(ddof=1) / weights.mean() / np.sqrt(ess))
        per_run += np.log(weights.mean(axis=1)) + step * largest
        found.append(Stone(power, reaches, ratio, error, float(likelihoods.mean()), ess))
    found.sort(key=lambda stone: -stone.power)
    total, error = sum(s.log_ratio for s in found), float(np.sqrt(sum(s.error**2 for s in found)))
    return MarginalLikelihood(total, error, tuple(per_run.tolist()), tuple(found))
