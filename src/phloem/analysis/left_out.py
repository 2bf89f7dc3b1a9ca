"""`phloem leave-one-out`: models compared by how well they foretell sites that they have not seen."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phloem.analysis.mcmc_sites import ENDING
from phloem.analysis.same_data import are_of_same_data, data_of_record, require_alike_conditioned
from phloem.errors import InputError


@dataclass(frozen=True)
class ForetoldModel:
    """log_density: Σ log p(site | all other sites), and its error over sites. below: how much less that is
    than the best model's, and the error of this difference, which is that of sites' own differences. numbers:
    effective parameters. unreliable: sites whose estimate is not to be trusted."""

    prefix: str
    model: str
    log_density: float
    error: float
    below: float
    below_error: float
    numbers: float
    unreliable: int


def compared_models(names: Sequence[str]) -> list[ForetoldModel]:
    """The best first. names: PREFIX or PREFIX.json of analyses of the same data by phloem mcmc or phloem time
    --site-table.

    Errors: InputError for what is none of these, for analyses of different data or of sites that were
    counted otherwise, for likelihoods that +ASC conditions on different things, and for fewer than two.
    """
    if len(names) < 2:
        raise InputError("one model alone is compared with nothing", hint="Name two PREFIXes or more.")
    found = [_read(name.removesuffix(".json")) for name in names]
    first, record, sites, _ = found[0]
    for prefix, other, numbers, _ in found[1:]:
        same = are_of_same_data(record, other) and len(numbers) == len(sites)
        if not same or (numbers != sites).any():
            raise InputError(
                f"this analysis and that of {first} are of different data, or count sites otherwise",
                file=f"{prefix}.json",
                hint="Compare models of the same alignment, taxa and sites: nucleotides, or codons.",
            )
        require_alike_conditioned(record, other, f"{prefix}.json")
    found.sort(key=lambda one: -float(one[3].sum()))
    best = found[0][3]
    return [_against(best, *one) for one in found]


def _against(
    best: np.ndarray, prefix: str, record: dict[str, Any], sites: np.ndarray, own: np.ndarray
) -> ForetoldModel:
    n, of = len(own), record["leave_one_out"]
    error, below = (math.sqrt(n * float(x.var())) for x in (own, best - own))
    total = float(own.sum())
    return ForetoldModel(
        prefix, _named(record), total, error, total - float(best.sum()), below, of["numbers"],
        of["unreliable"],
    )  # fmt: skip


def _read(prefix: str) -> tuple[str, dict[str, Any], np.ndarray, np.ndarray]:
    """The prefix, its record, numbers of sites, ascending, and the log density of each that is left out."""
    try:
        record = json.loads(Path(f"{prefix}.json").read_text())
        table = np.genfromtxt(f"{prefix}.{ENDING}", names=True, dtype=None, encoding="utf-8", delimiter="\t")
        order = np.argsort(table["site"], kind="stable")
        _ = data_of_record(record), record["model"], record["leave_one_out"]["numbers"]
        return prefix, record, table["site"][order], table["left_out"][order]
    except FileNotFoundError as error:
        raise InputError(
            "there is no such file", file=str(error.filename or f"{prefix}.{ENDING}"), hint=_REMEDY
        ) from None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        raise InputError("this analysis has no table of sites", file=f"{prefix}.json", hint=_REMEDY) from None


def _named(record: dict[str, Any]) -> str:
    """The model, of dated trees with their clock and prior."""
    tree = record["settings"].get("tree")
    return record["model"] + (f", {tree['clock']} clock, {tree['prior']}" if tree else "")


_REMEDY = "Make one with phloem mcmc (or time) … --site-table, also of an analysis that is finished."
