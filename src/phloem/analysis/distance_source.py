"""What the distance commands can be told, and what they measure or read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

import numpy as np

from phloem.analysis.distance_devices import (
    JOINING,
    DistanceDevices,
    Method,
    choose_devices,
    on_all_devices,
    tree_seconds,
)
from phloem.analysis.draw import check_picture_name
from phloem.analysis.outputs import STDOUT, check_outputs
from phloem.analysis.reading import DataOptions, alignment_of
from phloem.clustering.device_distances import (
    DeviceAlignment,
    DeviceBands,
    DeviceMatrix,
    distances_in_bands,
)
from phloem.clustering.distances import (
    distance_seconds,
    measured_sites,
    pairwise_distances,
    pairwise_triangle,
)
from phloem.clustering.joining import NegativeBranches, check_simultaneous
from phloem.clustering.settings import (
    LINKAGE,
    Device,
    DistanceMethod,
    DistanceSettings,
    require_bootstrap_time,
    require_memory_for_distances,
    usual_method,
)
from phloem.data.alignment import Alignment, Ambiguity
from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle
from phloem.errors import InputError
from phloem.hardware.limits import require_threads
from phloem.hardware.machine import usable_cores
from phloem.io.alignment import UnknownFormat
from phloem.io.distance_matrix import (
    is_distance_matrix,
    precision_of,
    read_distance_matrix,
    read_distance_triangle,
    taxa_of_matrix,
)
from phloem.io.distance_table import LAYOUT
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.record import SiteModel

# Options that say how to measure an alignment, and how to read a matrix.
_OF_ALIGNMENTS = (
    "distance", "model", "shape", "ambiguity", "deletion", "saturated", "longest", "datatype",
    "genetic_code", "stop_codons", "sites", "bootstrap",
)  # fmt: skip
_OF_MATRICES = ("names", "tolerance")
_LEAST = {"bootstrap": 0, "seed": 0, "digits": 1}
_MOST = {"digits": 17}


@dataclass(frozen=True)
class DistanceAnalysisSettings(DataOptions):
    """Everything that the distance commands can be told; field names are those of their options.

    alignment: an alignment, or a distance matrix. device: of distances and tree (select_distance_device).
    method: None for the distances alone. distance: None for jc69 with nucleotides, poisson with proteins, p
    with anything else; ml where a model is given. precision: of the matrix, "auto" is float64 up to 4,096
    taxa. bootstrap: replicates, from an alignment. negative: what becomes of negative branches in neighbour
    joining. simultaneous: join mutual best pairs in rounds, which is not the neighbour-joining tree.
    midpoint, outgroup: root the joined tree there, or beside these taxa (between commas). out: file of the
    tree, or of the matrix where method is None.
    picture: of the tree, circular or not; json: of the record (- is for the caller to print). Files are
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
    outgroup: str | None = None
    cophenetic: bool = False
    digits: int | None = None
    out: str | None = None
    picture: str | None = None
    circular: bool = False
    json: str | None = None
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
        """Files that will be written but for json; the names of a .npy matrix go to a file beside it."""
        named = [file for file in (self.out, self.picture) if file is not None]
        if self.out is not None and self.method is None and self.out.endswith(".npy"):
            named.append(str(Path(self.out).with_suffix(".names")))
        return named


def check_options(settings: DistanceAnalysisSettings) -> None:
    """InputError for numbers out of range and for outputs that exist or are inputs."""
    for name in _LEAST:
        value, least, most = getattr(settings, name), _LEAST[name], _MOST.get(name)
        if value is not None and (value < least or (most is not None and value > most)):
            wanted = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InputError(f"--{name} is {value}", hint=f"It must be {wanted}.")
    if not (settings.tolerance >= 0 and np.isfinite(settings.tolerance)):
        raise InputError(f"--tolerance is {settings.tolerance}", hint="It must be zero or more.")
    require_threads(settings.threads)
    check_simultaneous(settings.method, settings.simultaneous)
    if settings.outgroup is not None and (settings.midpoint or settings.method not in JOINING):
        told = "with --midpoint" if settings.midpoint else "of a tree that has a root"
        raise InputError(f"--outgroup {told}", hint="Leave one out; neighbour joining alone takes them.")
    if settings.picture is not None:
        check_picture_name(settings.picture)
    elif settings.circular:
        raise InputError("--circular is for a picture", hint="Name one with --picture.")
    matrix_printed = settings.method is None and settings.out is None  # trees are in the JSON too
    printable = [settings.json, STDOUT if matrix_printed else None]
    check_outputs(settings.outputs, [settings.input, settings.names], settings.redo, printable)


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


# What the distance commands measure or read, and on which device.


Progress = Callable[[str, int, int], None]
# Choices made in reading an alignment, and what they are called here.
_READING = {
    "datatype": "datatype",
    "datatype_guessed": "datatype_guessed",
    "genetic_code": "genetic_code",
    "n_stop_codons_masked": "stop_codons_masked",
}
Distances = DistanceMatrix | DistanceTriangle | DeviceMatrix | DeviceBands


@dataclass(frozen=True)
class Source:
    """distances(columns): of the input (None), or of a replicate with these of its n_sites columns.

    choices: how an alignment was read.
    """

    distances: Callable[[np.ndarray | None], Distances]
    n_sites: int
    devices: DistanceDevices
    choices: dict[str, object] = field(default_factory=dict)


def _read_matrix(
    settings: DistanceAnalysisSettings, progress: Progress | None
) -> DistanceMatrix | DistanceTriangle:
    n = taxa_of_matrix(settings.input)
    _require_memory(n, precision_of(settings.precision, n), settings)
    read = read_distance_triangle if settings.method in LINKAGE else read_distance_matrix
    return read(
        settings.input,
        names=settings.names,
        precision=settings.precision,
        tolerance=settings.tolerance,
        progress=None if progress is None else lambda done, total: progress("reading", done, total),
    )


def source_of(settings: DistanceAnalysisSettings, progress: Progress | None) -> Source:
    """What the input gives, and where."""
    method, is_matrix = settings.method, is_distance_matrix(settings.input)
    refuse_options_of_other_inputs(settings, is_matrix)
    if is_matrix:
        matrix = _read_matrix(settings, progress)
        devices = choose_devices(settings.device, matrix.n_taxa, method, simultaneous=settings.simultaneous)
        if method in LINKAGE:
            values = matrix.entries if isinstance(matrix, DistanceTriangle) else matrix.values
            devices = on_all_devices(devices, matrix.n_taxa, values.itemsize)
        return Source(lambda _: matrix, 0, devices)
    alignment = measured_alignment(settings)
    measure = distance_settings(settings, alignment)
    alignment = measured_sites(alignment, measure)  # before the bootstrap draws from its columns
    choices = {_READING[name]: value for name, value in alignment.settings.items() if name in _READING}
    devices = choose_devices(
        settings.device, alignment.n_taxa, method, alignment, measure, 1 + settings.bootstrap,
        settings.cophenetic, settings.simultaneous,
    )  # fmt: skip
    if settings.bootstrap and method is not None:
        seconds = distance_seconds(alignment, measure) + tree_seconds(alignment.n_taxa, method)
        on_gpu = "gpu" in (devices.tree, devices.distances)
        require_bootstrap_time(settings.bootstrap, seconds, on_gpu, settings.input)
    if devices.by_rows:
        return Source(
            lambda columns: distances_in_bands(_drawn(alignment, columns), measure),
            alignment.n_sites,
            devices,
            choices,
        )
    if devices.stays:
        return Source(DeviceAlignment(alignment, measure).distances, alignment.n_sites, devices, choices)
    if method in LINKAGE:
        devices = on_all_devices(devices, alignment.n_taxa, np.dtype(measure.precision).itemsize)
    _require_memory(alignment.n_taxa, measure.precision, settings)
    measure_pairs = pairwise_triangle if method in LINKAGE else pairwise_distances
    measure = replace(measure, device=devices.distances)

    def distances(columns: np.ndarray | None) -> DistanceMatrix | DistanceTriangle:
        if columns is not None:
            return measure_pairs(_drawn(alignment, columns), measure)
        told = None if progress is None else lambda done, total: progress("distances", done, total)
        return measure_pairs(alignment, measure, told)

    return Source(distances, alignment.n_sites, devices, choices)


def measured_alignment(settings: DistanceAnalysisSettings) -> Alignment:
    """The alignment, partly ambiguous characters kept: the distance decides what they count."""
    try:
        return alignment_of(replace(settings, ambiguity="partial"), undivided=True)
    except UnknownFormat as problem:
        raise InputError(
            f"{problem.message}, and no distance matrix",
            file=problem.file,
            line=problem.line,
            hint=f"Of sequences: {problem.hint} Of distances: PHYLIP, pairs, or a table. {LAYOUT}",
        ) from None


def _drawn(alignment: Alignment, columns: np.ndarray | None) -> Alignment:
    """A bootstrap replicate with these columns; None: the alignment itself."""
    if columns is None:
        return alignment
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, columns]), places=None)


def distance_settings(settings: DistanceAnalysisSettings, alignment: Alignment) -> DistanceSettings:
    """The choices left open made for this alignment."""
    usual = usual_method(alignment.alphabet.kind)
    method = settings.distance or ("ml" if settings.model is not None else usual)
    model = _site_model(settings.model, alignment) if settings.model is not None else None
    return DistanceSettings(
        method=method,
        shape=settings.shape,
        ambiguity=settings.ambiguity,
        deletion=settings.deletion,
        saturated=settings.saturated,
        longest=settings.longest,
        model=model,
        precision=precision_of(settings.precision, alignment.n_taxa),
        threads=settings.cpu_threads,
        device=settings.device,
    )


def _site_model(text: str, alignment: Alignment) -> SiteModel:
    model = model_for_alignment(text, alignment)
    if model.free:
        raise InputError(
            f"{', '.join(parameter.name for parameter in model.free)} of {model.name} have no value",
            hint="Write it in braces, as HKY{2.5}+F+G4{0.5}; +F counts frequencies in the data.",
        )
    return model.evaluate()


def _require_memory(
    n: int, precision: Literal["float32", "float64"], settings: DistanceAnalysisSettings
) -> None:
    keeps = settings.method is not None and settings.cophenetic
    require_memory_for_distances(n, settings.method, precision, settings.input, cophenetic=keeps)
