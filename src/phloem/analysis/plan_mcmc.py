"""`phloem plan FILE --mcmc` and `phloem mcmc … --pilot`: how long an analysis would take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from phloem.analysis.mcmc import chains_selection
from phloem.analysis.mcmc_data import ChainInput, chain_input
from phloem.analysis.mcmc_options import mcmc_settings, merged_options
from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.pilot import (
    PILOT_SECONDS,
    Pilot,
    PilotForecast,
    as_pilot,
    generations_within,
    kept_generations,
    require_seconds,
    sample_bytes,
)
from phloem.errors import InputError
from phloem.hardware.notice import on_first_compilation
from phloem.inference.mcmc.sampler import Sampled, Where, sample
from phloem.inference.mcmc.settings import ChainSettings


def plan_mcmc(
    options: dict[str, Any],
    compiling: Callable[[str], None] | None = None,
    seconds: float = PILOT_SECONDS,
) -> PilotForecast:
    """Forecast what `phloem mcmc` with these options would do, a MRBAYES block obeyed as there. Errors: as of
    forecast_mcmc."""
    block = block_analysis(str(options["alignment"]), options.get("block"))
    if block is not None and block.dated:
        told, hint = (
            "the MRBAYES block asks for dated trees",
            f"phloem mcmc {block.file} --pilot 20 forecasts them.",
        )
        raise InputError(told, file=block.file, hint=hint)
    settings = mcmc_settings(merged_options(block, {}, options)[0])
    settings = settings if block is None else replace(settings, of_block=block.file)
    return forecast_mcmc(settings, compiling, seconds)


def forecast_mcmc(
    settings: McmcSettings, compiling: Callable[[str], None] | None = None, seconds: float = PILOT_SECONDS
) -> PilotForecast:
    """Sample for some seconds what an analysis would. Nothing is written. Errors: as of run_mcmc."""
    require_seconds(seconds)
    if compiling is not None:
        on_first_compilation(compiling)
    data = chain_input(settings)
    chains = data.chains(settings.chains)
    selection = chains_selection(replace(settings, chains=chains), data)
    where = Where("gpu" if selection.engine == "gpu" else "cpu")
    n = generations_within(seconds, lambda n: _sampled(data, chains, n, where).seconds)
    sampled = _sampled(data, chains, n, where)
    pilot = Pilot(n, sampled.seconds, sampled.diagnosis)
    models = tuple(dict.fromkeys(model.text() for model in data.models.values()))
    wanted = kept_generations(chains.convergence.ess, pilot) / (1 - chains.burn_in)
    messages = sum(cell.values.nbytes for run in sampled.runs for chain in run.forest.cells for cell in chain)
    each = sample_bytes(sampled.runs[0].samples)
    return PilotForecast(
        chains, chains.n_chains, tuple(data.taxa), models, selection, pilot, messages, each, wanted
    )


def _sampled(data: ChainInput, chains: ChainSettings, generations: int, where: Where) -> Sampled:
    """A pilot: half of it is burn-in."""
    plain = replace(chains, stone_burn_in=None, stones_from_prior=False, working=None)
    pilot = replace(as_pilot(plain, generations), burn_in=0.5)
    return sample(data.observed(), data.structure, pilot, where=where)
