"""Where `phloem ml` searches: on the CPU, or on a GPU if asked to or if a forecast says that it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phloem.analysis.ml_data import MlData
from phloem.errors import InputError, ModelError
from phloem.pruning.gpu.cost import A_TRY
from phloem.pruning.interface import Problem
from phloem.pruning.select import Selection, select_search


def on_device(data: MlData) -> tuple[MlData, Selection | None]:
    """The data, to be searched where settings.device says, and what was chosen and why; None where the tree
    is held. The forecast is about the model given, where one is to be chosen about the usual one. Errors:
    select_search, and InputError where nothing is searched."""
    settings, effort = data.settings, data.settings.effort
    if settings.device == "gpu" and not settings.searches:
        raise InputError(
            "--device gpu is about the search, and --model MF searches none", hint="Say --model auto."
        )

    if data.held is not None:
        return data, None

    def groups() -> list[list[Problem]]:
        return replace(data, device="gpu").searched(data.models()).groups

    climbs = effort.starts * (1.0 + A_TRY * effort.patience)
    try:
        selection = select_search(settings.device, groups, climbs, settings.threads)
    except ModelError as problem:
        if settings.device == "gpu":
            raise
        selection = replace(
            select_search("cpu", groups, climbs, settings.threads), reason=f"CPU chosen: {problem.message}"
        )
    return replace(data, device="gpu" if selection.engine == "gpu" else "cpu"), selection


def device_identity(data: MlData) -> Sequence[str]:
    """What a checkpoint is to know of the device: rounding differs, and with it what a search meets."""
    return ["gpu"] if data.device == "gpu" else []
