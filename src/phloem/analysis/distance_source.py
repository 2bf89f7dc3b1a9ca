"""What the distance commands measure or read, and on which device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from phloem.analysis.distance_devices import DistanceDevices, choose_devices, on_all_devices
from phloem.analysis.distance_options import DistanceAnalysisSettings, refuse_options_of_other_inputs
from phloem.analysis.reading import alignment_of
from phloem.clustering.device_distances import DeviceAlignment, DeviceBands, DeviceMatrix, distances_in_bands
from phloem.clustering.distances import measured_sites, pairwise_distances, pairwise_triangle
from phloem.clustering.resources import LINKAGE, require_memory
from phloem.clustering.settings import DistanceSettings, usual_method
from phloem.data.alignment import Alignment
from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle
from phloem.errors import InputError
from phloem.io.distance_matrix import (
    is_distance_matrix,
    precision_of,
    read_distance_matrix,
    read_distance_triangle,
    taxa_of_matrix,
)
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.record import SiteModel

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
    return alignment_of(replace(settings, ambiguity="partial"))


def _drawn(alignment: Alignment, columns: np.ndarray | None) -> Alignment:
    """A bootstrap replicate with these columns; None: the alignment itself."""
    if columns is None:
        return alignment
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, columns]))


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
    require_memory(n, settings.method, precision, settings.input, cophenetic=keeps)
