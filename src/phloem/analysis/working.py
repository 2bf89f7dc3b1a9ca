"""The working distribution of generalised stepping stones, from what an earlier analysis by `phloem mcmc` or
`phloem time` drew."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from phloem.analysis.draws import left_out
from phloem.analysis.mcmc_record import McmcSettings, chain_identity
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import state_path, stored_samples
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.mcmc.working import WorkingDistribution
from phloem.inference.mcmc.working_fit import fit_working
from phloem.summary.spread import first_used

WORKING_SHAPE = 1.0
"""Of the ladder from a working distribution, near which nothing changes faster: evenly spaced powers."""
_OF_SPACE = {"fixed_topology", "use_data"}  # of the chains' settings those that say what is sampled
_OTHERS = {"start", "start_tree", "device", "format", "n_runs"}
_HINT = "Run the same command without --stepping-stone and --stones-from to its end, and name its --prefix."


class Fitted(Protocol):
    """A working distribution, of undated or dated trees."""

    @property
    def digest(self) -> str: ...

    @property
    def n_draws(self) -> int: ...


def read_working(
    settings: McmcSettings, structure: ChainModel, chains: ChainSettings, model_text: str
) -> WorkingDistribution:
    """Fitted to the draws behind the burn-in of the finished analysis settings.stones_from, of the same data
    and model; priors, chains and seeds may differ. Errors: InputError where there is none such, and as of
    fit_working."""
    prefix = str(settings.stones_from)
    samples, first = kept_draws(prefix, chain_identity(settings, model_text), ChainSettings)
    try:
        return fit_working(structure, chains, samples, first)
    except InputError as error:
        raise of_file(error, prefix) from None


def kept_draws(
    prefix: str, identity: Mapping[str, Any], chains: type[Any]
) -> tuple[Sequence[Samples], Sequence[int]]:
    """Samples of all runs of a finished analysis, and the first of each behind its burn-in. identity: what
    says of the analysis here which numbers and trees it samples, together with fields of the settings that
    chains are of, which do not. InputError where there is no such analysis, or it samples something else."""
    record = _record(prefix)
    if not record.is_file() or not state_path(_bare(prefix)).is_file():
        missing = str(record if not record.is_file() else state_path(_bare(prefix)))
        raise InputError("there is no finished analysis of this prefix", file=missing, hint=_HINT)
    burn_in, tuning = left_out(_bare(prefix))
    found, samples = stored_samples(_bare(prefix))
    require_same_space(identity, found, chains, str(record), _OF_SPACE)
    return samples, [first_used(one.generation, burn_in, tuning) for one in samples]


def require_same_space(
    identity: Mapping[str, Any],
    found: Mapping[str, Any],
    chains: type[Any],
    file: str,
    of_chains: Collection[str] = (),
) -> None:
    """InputError where an analysis here, and one of a file, do not sample the same numbers and trees. chains:
    as of kept_draws; of_chains: those of its fields that must agree."""
    here = json.loads(json.dumps(identity))
    keys = (here.keys() | found.keys()) - ({one.name for one in fields(chains)} - set(of_chains)) - _OTHERS
    different = sorted(key for key in keys if here.get(key) != found.get(key))
    if different:
        told = f"this analysis has another {', '.join(different)}, and so samples something else"
        raise InputError(told, file=file, hint=_HINT)


def of_file(error: InputError, prefix: str) -> InputError:
    """An error about the draws of an analysis, that names its record."""
    return InputError(error.message, file=error.file or str(_record(prefix)), hint=error.hint)


def _bare(prefix: str) -> str:
    return prefix.removesuffix(".json")


def _record(prefix: str) -> Path:
    return Path(f"{_bare(prefix)}.json")


def working_identity(working: Fitted | None) -> dict[str, Any]:
    """What a checkpoint and a record say of it; nothing where there is none."""
    if working is None:
        return {}
    return {"working_distribution": working.digest, "working_draws": working.n_draws}


def refuse_on_device(settings: McmcSettings) -> None:
    """InputError where chains from a working distribution are asked to be on a GPU."""
    on_gpu = settings.device == "gpu" or settings.chains.precision == "float32"
    if settings.stones_from is not None and on_gpu:
        raise InputError(
            "chains from a working distribution (--stones-from) are on the CPU",
            hint="Leave --device gpu and --precision out, or --stones-from.",
        )
