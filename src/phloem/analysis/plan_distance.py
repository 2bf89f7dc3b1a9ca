"""`phloem plan --method`: memory, time and device of a distance tree, before it is started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.analysis.distance_devices import choose_devices, tree_seconds
from phloem.analysis.distance_source import (
    DistanceAnalysisSettings,
    check_options,
    distance_settings,
    measured_alignment,
    refuse_options_of_other_inputs,
)
from phloem.clustering.distances import distance_seconds
from phloem.clustering.settings import forecast_bytes
from phloem.hardware.machine import Hardware, detect_hardware
from phloem.io.distance_matrix import LARGE, is_distance_matrix, taxa_of_matrix
from phloem.io.input_file import input_size

READING_BYTES = 0.8e9  # of matrix text a second, two cores


@dataclass(frozen=True)
class DistancePlan:
    """taxa, sites: of the input (sites None for a matrix). precision: of the matrix. memory_bytes: in host
    memory, device_bytes: on a GPU. input_seconds: reading the matrix, or measuring the alignment on two
    cores; tree_seconds: on two cores; both with all bootstrap replicates. device, reason: where the tree
    would be made, and why."""

    taxa: int
    sites: int | None
    method: str
    precision: str
    memory_bytes: int
    device_bytes: int
    input_seconds: float
    tree_seconds: float
    device: str
    reason: str
    hardware: Hardware

    @property
    def fits(self) -> bool | None:
        """Whether the memory is there, the GPU's where that is chosen; None if the machine does not tell.

        Linkage but single may be spread over all GPUs.
        """
        gpus = [gpu.memory_bytes for gpu in self.hardware.accelerators]
        if self.device == "gpu" and gpus:
            spreads = self.method in ("upgma", "wpgma", "complete")
            return self.device_bytes < (len(gpus) * min(gpus) if spreads else gpus[0])
        available = self.hardware.available_bytes
        return None if available is None else self.memory_bytes < available


def plan_distance_tree(settings: DistanceAnalysisSettings) -> DistancePlan:
    """Look at the header of a matrix, or read an alignment, and forecast; nothing is computed.

    Forecasts rest on the rates measured in docs/distance.md. Raises InputError as the analysis would.
    """
    method, is_matrix = settings.method or "upgma", is_distance_matrix(settings.input)
    check_options(settings)
    refuse_options_of_other_inputs(settings, is_matrix)
    runs = 1 + settings.bootstrap
    if is_matrix:
        taxa, sites = taxa_of_matrix(settings.input), None
        seconds = input_size(settings.input) / READING_BYTES
        precision = settings.precision
        if precision == "auto":
            precision = "float64" if taxa <= LARGE else "float32"
        devices = choose_devices(settings.device, taxa, method)
    else:
        alignment = measured_alignment(settings)
        taxa, sites = alignment.n_taxa, alignment.n_sites
        measure = distance_settings(settings, alignment)
        seconds, precision = distance_seconds(alignment, measure), measure.precision
        devices = choose_devices(settings.device, taxa, method, alignment, measure, runs)
    return DistancePlan(
        taxa=taxa,
        sites=sites,
        method=method,
        precision=precision,
        memory_bytes=forecast_bytes(taxa, method, precision, cophenetic=settings.cophenetic),
        device_bytes=(1 + (method == "bionj")) * taxa * taxa * np.dtype(precision).itemsize,
        input_seconds=runs * seconds,
        tree_seconds=runs * tree_seconds(taxa, method),
        device=devices.tree,
        reason=str(devices.choices["tree"]),
        hardware=detect_hardware(),
    )
