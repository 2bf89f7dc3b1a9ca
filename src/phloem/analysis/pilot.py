"""How long an analysis of sampled trees would take, from a short pilot of it: both samplers'."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.settings import LONGEST as NO_LIMIT
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.time.settings import TimeSettings
from phloem.pruning.select import Selection

PILOT_SECONDS, SHORTEST, LONGEST = 20.0, 0.1, 3600.0
FIRST = 100  # generations that compile, and that say how many a pilot can be of
PILOT_SAMPLES = 400  # a run
MOST = 2_000_000  # generations of a pilot

C = TypeVar("C", ChainSettings, TimeSettings)


@dataclass(frozen=True)
class Pilot:
    """generations of every chain, the seconds that they took, diagnosis of its second half."""

    generations: int
    seconds: float
    diagnosis: Diagnosis


@dataclass(frozen=True, eq=False)
class PilotForecast:
    """chains: of the analysis, as asked for; of_a_run: how many each run has, heated ones included; taxa;
    models of its parts. selection: where its chains are, and why. fixed_bytes: of messages and states;
    sample_bytes: of one sample. wanted: generations to the ESS goal, NaN where the pilot cannot tell."""

    chains: ChainSettings | TimeSettings
    of_a_run: int
    taxa: tuple[str, ...]
    models: tuple[str, ...]
    selection: Selection
    pilot: Pilot
    fixed_bytes: int
    sample_bytes: int
    wanted: float

    @property
    def generations_per_second(self) -> float:
        """Of all chains together."""
        return self.pilot.generations / max(self.pilot.seconds, 1e-9)

    @property
    def hours(self) -> float:
        """To the ESS goal."""
        return self.wanted / self.generations_per_second / 3600

    @property
    def asked_hours(self) -> float:
        """Of the generations that are asked for."""
        return self.chains.generations / self.generations_per_second / 3600

    @property
    def unlimited(self) -> bool:
        """Whether nobody asked for a number of generations."""
        return self.chains.generations == NO_LIMIT

    @property
    def end(self) -> int:
        """The generation up to which memory_bytes holds samples: of those asked for; of an analysis that
        stops when it has converged that of the ESS goal, or where nobody can tell, that of a usual one."""
        asked, usual = self.chains.generations, type(self.chains).generations
        if not self.chains.until_converged:
            return asked
        return min(asked, math.ceil(self.wanted) if math.isfinite(self.wanted) else usual)

    @property
    def memory_bytes(self) -> int:
        """Messages, states and all samples at the end."""
        samples = self.chains.n_runs * (self.end // self.chains.sample_every + 1)
        return self.fixed_bytes + samples * self.sample_bytes

    @property
    def mixed(self) -> bool:
        """Whether the pilot's runs had met, so that its effective sample sizes mean something."""
        return self.pilot.diagnosis.r_hat < 1.1


def require_seconds(seconds: float) -> None:
    """InputError for a pilot too short or too long."""
    if not SHORTEST <= seconds <= LONGEST:
        raise InputError(f"a pilot of {seconds:g} s", hint=f"Choose {SHORTEST:g} to {LONGEST:,.0f} seconds.")


def generations_within(seconds: float, took: Callable[[int], float]) -> int:
    """How many generations fit; took: runs so many and says the seconds. Kernels are compiled on the way, and
    a start takes its time, so more are tried while that was short."""
    tried, spent = FIRST, took(FIRST)
    if spent > seconds / 4:
        spent = took(tried)
    while spent < seconds / 10 and 5 * tried <= MOST:
        tried *= 5
        spent = took(tried)
    return int(min(MOST, max(10 * FIRST, tried * seconds / max(spent, 1e-6))))


def as_pilot(chains: C, generations: int) -> C:
    """The same chains, so many generations of them, moves adapting in the first half."""
    return replace(
        chains,
        generations=generations,
        sample_every=max(1, generations // PILOT_SAMPLES),
        check_every=generations,
        tuning_generations=generations // 2,
        until_converged=False,
        stones=0,
        stone_shape=type(chains).stone_shape,
    )


def kept_generations(goal: float, pilot: Pilot) -> float:
    """Generations to the ESS goal after burn-in: effective samples grow as generations do."""
    ess = pilot.diagnosis.ess
    return goal / ess * 0.5 * pilot.generations if ess > 0 else math.nan


def sample_bytes(samples: Samples) -> int:
    """Of one sample."""
    row = sum(np.prod(a.shape[1:], dtype=int) * a.itemsize for a in (samples.numbers, samples.parent))
    return int(row + samples.lengths.shape[1] * 8 + int(np.prod(samples.sets.shape[1:])) * 8)
