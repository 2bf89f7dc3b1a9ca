"""`phloem time … --pilot`: how long an analysis of dated trees would take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
from phloem.analysis.time import TimeTreeSettings, time_input, time_selection
from phloem.analysis.time_record import model_text
from phloem.analysis.time_start import time_origin, with_engine, with_usual_samples
from phloem.hardware.notice import on_first_compilation
from phloem.inference.mcmc.sampler import Where
from phloem.inference.time.run import ancestral_bytes
from phloem.inference.time.sampler import Sampled, sample

FEW_SAMPLES = 100  # of a pilot with ancestors


def forecast_time(
    settings: TimeTreeSettings, compiling: Callable[[str], None] | None = None, seconds: float = PILOT_SECONDS
) -> PilotForecast:
    """Sample for some seconds what an analysis would. Nothing is written. Errors: as of run_time."""
    require_seconds(seconds)
    if compiling is not None:
        on_first_compilation(compiling)
    data = time_input(settings)
    settings = with_engine(with_usual_samples(settings, len(data.taxa)), data)[0]
    chains = settings.chains
    selection = time_selection(settings, data)
    observed = data.observed()
    origin = time_origin(settings, data)

    def sampled(n: int, every: int = 0) -> Sampled:
        where, own = Where("gpu" if selection.engine == "gpu" else "cpu"), as_pilot(chains, n)
        own = replace(own, sample_every=max(own.sample_every, every))
        return sample(observed, data.model, own, origin=origin, where=where)

    apart = chains.ancestors == "sampled"  # where a sample's likelihood costs what many moves do
    n = generations_within(seconds, lambda n: sampled(n, n if apart else 0).seconds)
    found = sampled(n, n // FEW_SAMPLES if apart else 0)
    took = found.seconds
    if apart:
        alone = sampled(n, n).seconds
        took = alone + max(took - alone, 0.0) * n / chains.sample_every / FEW_SAMPLES
    pilot = Pilot(n, took, found.diagnosis)
    wanted = kept_generations(chains.convergence.ess, pilot) + chains.tuning
    taxa, model = data.model.taxa, model_text(data.model)
    every = [chain for run in found.runs for chain in run.chains]
    own = sum(cell.values.nbytes for run in every for chain in run.cells.forest.cells for cell in chain)
    own += sum(array.nbytes for run in every for array in run.state)
    own += sum(ancestral_bytes(run) for run in every)
    each = sample_bytes(found.runs[0].samples)
    return PilotForecast(chains, chains.n_chains, taxa, (model,), selection, pilot, own, each, wanted)
