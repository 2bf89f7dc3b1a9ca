"""What an analysis by `phloem mcmc` was told, and what came of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from phloem.analysis.mcmc_start import RANDOM
from phloem.analysis.reading import DataOptions
from phloem.density.parameterisation import LengthLinkage
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.run import Device
from phloem.inference.mcmc.settings import ChainSettings
from phloem.summary.trace import TraceSummary
from phloem.tree.tree import Tree


@dataclass(frozen=True)
class McmcSettings(DataOptions):
    """One analysis. model: None takes the default for the data type (analysis.mcmc_data); with partitions,
    that of the subsets to which their file gives none. linkage, link: what parts share
    (analysis.partitioned_likelihood); None is a rate a part. start: what chains start from, random, nj,
    bionj, upgma or a tree file (analysis.mcmc_start). prefix: of every file written; None takes the
    alignment's name in the working directory. device: of the likelihood. redo: replace files that exist.
    chains: what the sampler does."""

    model: str | None = None
    linkage: LengthLinkage | None = None
    link: tuple[str, ...] = ()
    start: str = RANDOM
    device: Device = "cpu"
    prefix: str | None = None
    redo: bool = False
    gamma: Literal["mean", "median"] = "mean"
    chains: ChainSettings = field(default_factory=ChainSettings)

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with."""
        return self.prefix or Path(self.alignment).name.removesuffix(".gz").rsplit(".", 1)[0]


@dataclass(frozen=True, eq=False)
class McmcResult:
    """consensus: majority rule, prob at its nodes. parameters: log-likelihood, tree length and every free
    number. diagnosis: convergence at the end. acceptance: move → (tried, accepted share, tuning) of the
    cold chains. swaps: accepted share of the swaps between neighbouring ranks of heat. speed:
    chain-generations a second. files: name → what it holds. length_unit: of branch lengths and TL."""

    settings: McmcSettings
    model: str
    start: str
    data: dict[str, object]
    consensus: Tree
    parameters: TraceSummary
    diagnosis: Diagnosis
    acceptance: dict[str, tuple[int, float, float]]
    swaps: tuple[float, ...]
    warnings: tuple[str, ...]
    seconds: float
    speed: float
    resumed_at: int | None
    files: dict[str, str]
    length_unit: str
    provenance: dict[str, Any]

    def to_json(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries; NaN becomes None."""
        p = self.parameters
        columns = {
            n: getattr(p, n)
            for n in ("mean", "sd", "hpd_low", "hpd_high", "ess", "ess_tail", "r_hat", "mcse")
        }
        rows = [
            {"name": name} | {c: _plain(v[i]) for c, v in columns.items()} for i, name in enumerate(p.names)
        ]
        settings = asdict(self.settings)
        settings["chains"]["priors"]["branch_lengths"] = str(self.settings.chains.priors.branch_lengths)
        return {
            "finished": True,
            "model": self.model,
            "start": self.start,
            "data": self.data,
            "branch_lengths": self.length_unit,
            "parameters": rows,
            "convergence": {name: _plain(value) for name, value in asdict(self.diagnosis).items()},
            "acceptance": {
                n: dict(zip(("tried", "accepted", "tuning"), v)) for n, v in self.acceptance.items()
            },
            "swaps_between_neighbouring_ranks": [_plain(x) for x in self.swaps],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "chain_generations_per_second": self.speed,
            "resumed_at": self.resumed_at,
            "files": self.files,
            "settings": settings,
            "provenance": self.provenance,
        }


def _plain(value):
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
