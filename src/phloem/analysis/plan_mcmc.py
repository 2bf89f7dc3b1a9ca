"""`phloem plan FILE --mcmc`: how long an analysis would take, from a short pilot of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from phloem.analysis.mcmc import chains_selection
from phloem.analysis.mcmc_data import ChainInput, chain_input
from phloem.analysis.mcmc_options import mcmc_settings, merged_options
from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.mrbayes import block_analysis
from phloem.errors import InputError
from phloem.hardware.notice import on_first_compilation
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.sampler import Sampled, Where, sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.pruning.select import Selection

PILOT_SECONDS, SHORTEST, LONGEST = 20.0, 0.1, 3600.0
FIRST = 100  # generations that compile, and that say how many a pilot can be of
PILOT_SAMPLES = 400  # a run
MOST = 2_000_000  # generations of a pilot


@dataclass(frozen=True, eq=False)
class ChainForecast:
    """settings: of the analysis; data. selection: where its chains are, and why. pilot: generations of every
    chain in it; seconds that they took; diagnosis of its second half. generations_per_second: of all chains
    together. memory_bytes: of messages and of the samples of the analysis as it is asked for.
    wanted: generations to the ESS goal, NaN where the pilot cannot tell."""

    settings: McmcSettings
    data: ChainInput
    selection: Selection
    pilot: int
    seconds: float
    diagnosis: Diagnosis
    generations_per_second: float
    memory_bytes: int
    wanted: float

    @property
    def hours(self) -> float:
        """To the ESS goal."""
        return self.wanted / self.generations_per_second / 3600

    @property
    def asked_hours(self) -> float:
        """Of the generations that are asked for."""
        return self.settings.chains.generations / self.generations_per_second / 3600

    @property
    def mixed(self) -> bool:
        """Whether the pilot's runs had met, so that its effective sample sizes mean something."""
        return self.diagnosis.r_hat < 1.1


def plan_mcmc(
    options: dict[str, Any],
    compiling: Callable[[str], None] | None = None,
    seconds: float = PILOT_SECONDS,
) -> ChainForecast:
    """Forecast what `phloem mcmc` with these options would do, a MRBAYES block obeyed as there. Errors: as of
    forecast_mcmc."""
    block = block_analysis(str(options["alignment"]), options.get("block"))
    settings = mcmc_settings(merged_options(block, {}, options)[0])
    settings = settings if block is None else replace(settings, of_block=block.file)
    return forecast_mcmc(settings, compiling, seconds)


def forecast_mcmc(
    settings: McmcSettings, compiling: Callable[[str], None] | None = None, seconds: float = PILOT_SECONDS
) -> ChainForecast:
    """Sample for some seconds what an analysis would. Nothing is written. Errors: as of run_mcmc."""
    if not SHORTEST <= seconds <= LONGEST:
        raise InputError(f"a pilot of {seconds:g} s", hint=f"Choose {SHORTEST:g} to {LONGEST:,.0f} seconds.")
    if compiling is not None:
        on_first_compilation(compiling)
    data = chain_input(settings)
    settings = replace(settings, chains=data.chains(settings.chains))
    selection = chains_selection(settings, data)
    where = Where("gpu" if selection.engine == "gpu" else "cpu")
    first = _sampled(data, settings.chains, FIRST, where)  # kernels may be compiled
    tried = FIRST if first.seconds > seconds / 4 else 20 * FIRST
    first = _sampled(data, settings.chains, tried, where)
    n = int(min(MOST, max(10 * FIRST, tried * seconds / max(first.seconds, 1e-6))))
    pilot = _sampled(data, settings.chains, n, where)
    speed = n / max(pilot.seconds, 1e-9)
    return ChainForecast(
        settings, data, selection, n, pilot.seconds, pilot.diagnosis, speed,
        _memory(settings.chains, pilot), _wanted(settings.chains, pilot.diagnosis, n),
    )  # fmt: skip


def _sampled(data: ChainInput, chains: ChainSettings, generations: int, where: Where) -> Sampled:
    """A pilot: half of it is burn-in."""
    pilot = replace(
        chains,
        generations=generations,
        sample_every=max(1, generations // PILOT_SAMPLES),
        check_every=generations,
        burn_in=0.5,
        tuning_generations=generations // 2,
        until_converged=False,
        stones=0,
        stone_shape=ChainSettings.stone_shape,
    )
    return sample(data.observed(), data.structure, pilot, where=where)


def _wanted(chains: ChainSettings, pilot: Diagnosis, generations: int) -> float:
    """Generations to the ESS goal, burn-in included: effective samples grow as generations do."""
    if not pilot.ess > 0:
        return math.nan
    kept = chains.convergence.ess / pilot.ess * 0.5 * generations
    return kept / (1 - chains.burn_in)


def _memory(chains: ChainSettings, pilot: Sampled) -> int:
    """Messages of all chains, as the CPU engine has them, and all samples at the end."""
    messages = sum(cell.values.nbytes for run in pilot.runs for chain in run.forest.cells for cell in chain)
    samples = pilot.runs[0].samples
    row = sum(np.prod(a.shape[1:], dtype=int) * a.itemsize for a in (samples.numbers, samples.parent))
    row += samples.lengths.shape[1] * 8 + int(np.prod(samples.sets.shape[1:])) * 8
    return int(messages + chains.n_runs * (chains.generations // chains.sample_every + 1) * row)
