"""What the distance commands can be told, and what goes together."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

import numpy as np

from phloem.analysis.distance_devices import Method
from phloem.analysis.provenance import refuse_to_overwrite
from phloem.analysis.reading import DataOptions
from phloem.clustering.joining import NegativeBranches, check_simultaneous
from phloem.clustering.resources import Device
from phloem.clustering.settings import DistanceMethod
from phloem.data.alignment import Ambiguity
from phloem.errors import InputError
from phloem.hardware.machine import usable_cores

# Options that say how to measure an alignment, and how to read a matrix.
_OF_ALIGNMENTS = (
    "distance", "model", "shape", "ambiguity", "deletion", "saturated", "longest", "datatype",
    "genetic_code", "stop_codons", "sites", "bootstrap",
)  # fmt: skip
_OF_MATRICES = ("names", "tolerance")
_LEAST = {"bootstrap": 0, "seed": 0, "threads": 1, "digits": 1}
_MOST = {"digits": 17}


@dataclass(frozen=True)
class DistanceAnalysisSettings(DataOptions):
    """Everything that the distance commands can be told; field names are those of their options.

    alignment: an alignment, or a distance matrix. device: of distances and tree (select_distance_device).
    method: None for the distances alone. distance: None for jc69 with nucleotides, poisson with proteins, p
    with anything else; ml where a model is given. precision: of the matrix, "auto" is float64 up to 4,096
    taxa. bootstrap: replicates, from an alignment. negative: what becomes of negative branches in neighbour
    joining. simultaneous: join mutual best pairs in rounds, which is not the neighbour-joining tree.
    midpoint: root the joined tree there. out: file of the tree, or of the matrix where method is None;
    replaced only with redo.
    """

    method: Method | None = None
    distance: DistanceMethod | None = None
    model: str | None = None
    shape: float | None = None
    ambiguity: Ambiguity = field(default="missing", kw_only=True)
    deletion: Literal["pairwise", "complete"] = "pairwise"
    saturated: Literal["longest", "error"] = "longest"
    longest: float = 5.0
    names: str | None = None
    tolerance: float = 1e-5
    precision: Literal["auto", "float32", "float64"] = "auto"
    bootstrap: int = 0
    seed: int = 1
    negative: NegativeBranches = "keep"
    simultaneous: bool = False
    midpoint: bool = False
    cophenetic: bool = False
    digits: int | None = None
    out: str | None = None
    redo: bool = False
    threads: int | None = None
    device: Device = "auto"

    @property
    def input(self) -> str:
        """The alignment or the distance matrix."""
        return self.alignment

    @property
    def cpu_threads(self) -> int:
        return self.threads or usable_cores()[0]

    @property
    def outputs(self) -> list[str]:
        """Files that will be written; the names of a .npy matrix go to a file beside it."""
        if self.out is None:
            return []
        beside = self.method is None and self.out.endswith(".npy")
        return [self.out, str(Path(self.out).with_suffix(".names"))] if beside else [self.out]


def check_options(settings: DistanceAnalysisSettings) -> None:
    """InputError for numbers out of range and for outputs that exist or are inputs."""
    for name in _LEAST:
        value, least, most = getattr(settings, name), _LEAST[name], _MOST.get(name)
        if value is not None and (value < least or (most is not None and value > most)):
            wanted = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InputError(f"--{name} is {value}", hint=f"It must be {wanted}.")
    if not (settings.tolerance >= 0 and np.isfinite(settings.tolerance)):
        raise InputError(f"--tolerance is {settings.tolerance}", hint="It must be zero or more.")
    check_simultaneous(settings.method, settings.simultaneous)
    inputs = [file for file in (settings.input, settings.names) if file is not None]
    refuse_to_overwrite(settings.outputs, settings.redo, inputs)


def refuse_options_of_other_inputs(settings: DistanceAnalysisSettings, is_matrix: bool) -> None:
    """A matrix cannot be measured again or resampled, an alignment has names: say so, ignore nothing."""
    usual = {field.name: field.default for field in fields(settings)}
    given, needed = (
        ("a distance matrix", "an alignment") if is_matrix else ("an alignment", "a distance matrix")
    )
    for name in _OF_ALIGNMENTS if is_matrix else _OF_MATRICES:
        if getattr(settings, name) != usual[name]:
            raise InputError(
                f"--{name.replace('_', '-')} needs {needed}, and this is {given}",
                file=settings.input,
                hint="Leave the option out." if not is_matrix else "Give the alignment instead.",
            )
