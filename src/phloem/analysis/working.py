"""The working distribution of generalised stepping stones, from what an earlier analysis by `phloem mcmc`
drew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from phloem.analysis.draws import left_out
from phloem.analysis.mcmc_record import McmcSettings, chain_identity
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import state_path, stored_samples
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.mcmc.working import WorkingDistribution
from phloem.inference.mcmc.working_fit import fit_working
from phloem.summary.spread import first_used

_OF_SPACE = {"fixed_topology", "use_data"}  # of the chains' settings those that say what is sampled
_OTHERS = {"start", "start_tree", "device", "format", "n_runs"}


def read_working(
    settings: McmcSettings, structure: ChainModel, chains: ChainSettings, model_text: str
) -> WorkingDistribution:
    """Fitted to the draws behind the burn-in of the finished analysis settings.stones_from, of the same data
    and model; priors, chains and seeds may differ. Errors: InputError where there is none such, and as of
    fit_working."""
    prefix = str(settings.stones_from).removesuffix(".json")
    record = f"{prefix}.json"
    hint = (
        "Run the same command without --stepping-stone and --stones-from to its end, and name its --prefix."
    )
    if not Path(record).is_file() or not state_path(prefix).is_file():
        missing = record if not Path(record).is_file() else str(state_path(prefix))
        raise InputError("there is no finished analysis of this prefix", file=missing, hint=hint)
    burn_in, tuning = left_out(prefix)
    identity, samples = stored_samples(prefix)
    if different := _differences(chain_identity(settings, model_text), identity):
        raise InputError(
            f"this analysis has another {', '.join(different)}, and so samples something else",
            file=record,
            hint=hint,
        )
    first = [first_used(one.generation, burn_in, tuning) for one in samples]
    try:
        return fit_working(structure, chains, samples, first)
    except InputError as error:
        raise InputError(error.message, file=error.file or record, hint=error.hint) from None


def _differences(own: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Of what two checkpoints are told apart by, what says which numbers and trees there are, and differs."""
    here = json.loads(json.dumps(own))
    keys = (here.keys() | found.keys()) - ({one.name for one in fields(ChainSettings)} - _OF_SPACE) - _OTHERS
    return sorted(key for key in keys if here.get(key) != found.get(key))


def working_identity(working: WorkingDistribution | None) -> dict[str, Any]:
    """What a checkpoint and a record say of it; nothing where there is none."""
    return (
        {} if working is None else {"working_distribution": working.digest, "working_draws": working.n_draws}
    )


def refuse_on_device(settings: McmcSettings) -> None:
    """InputError where chains from a working distribution are asked to be on a GPU."""
    if settings.stones_from is not None and (
        settings.device == "gpu" or settings.chains.precision == "float32"
    ):
        raise InputError(
            "chains from a working distribution (--stones-from) are on the CPU",
            hint="Leave --device gpu and --precision out, or --stones-from.",
        )
