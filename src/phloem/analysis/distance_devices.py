"""Where distances and their tree are computed, chosen once for all the work there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.clustering import joining as joining_room
from phloem.clustering import linkage as linkage_room
from phloem.clustering.device_distances import devices_by_rows, fits_device
from phloem.clustering.distances import distance_seconds, lacking_on_gpu
from phloem.clustering.settings import LINKAGE, Device, DistanceSettings, select_distance_device
from phloem.data.alignment import Alignment
from phloem.errors import InputError

JOINING = ("nj", "bionj", "unj")
Method = Literal["upgma", "wpgma", "single", "complete", "nj", "bionj", "unj"]


@dataclass(frozen=True)
class DistanceDevices:
    """distances, tree: "cpu" or "gpu". stays: the matrix goes from one to the other in device memory, of
    several GPUs where by_rows.

    choices: for each step where it runs and why, for the user.
    """

    distances: Literal["cpu", "gpu"]
    tree: Literal["cpu", "gpu"]
    stays: bool
    choices: dict[str, object]
    by_rows: bool = False


def tree_seconds(n: int, method: Method) -> float:
    """Forecast of a tree of n taxa on two cores."""
    rate = joining_room.CPU_SECONDS if method in JOINING else linkage_room.CPU_SECONDS
    return rate * n * n


def _tree_lacks(method: Method, simultaneous: bool) -> str | None:
    if method == "nj" or method == "bionj" or method == "unj":
        return joining_room.lacking_on_gpu(simultaneous)
    return None


def _fits_by_rows(alignment: Alignment, measure: DistanceSettings) -> tuple[bool, str]:
    """Whether several GPUs hold the matrix together, and the numbers in words."""
    try:
        devices, why = devices_by_rows(alignment.n_taxa, np.dtype(measure.precision).itemsize, alignment)
    except InputError as error:
        return False, error.message
    return len(devices) > 1, why


def on_all_devices(devices: DistanceDevices, n: int, itemsize: int) -> DistanceDevices:
    """The same, and which GPUs linkage of a matrix in host memory takes; InputError where it fits none."""
    if devices.tree == "cpu" or devices.stays:
        return devices
    spread, why = devices_by_rows(n, itemsize)
    tree = f"{devices.choices['tree']}; {why}" if len(spread) > 1 else devices.choices["tree"]
    return replace(devices, choices=devices.choices | {"tree": tree})


def choose_devices(
    requested: Device,
    n: int,
    method: Method | None,
    alignment: Alignment | None = None,
    measure: DistanceSettings | None = None,
    runs: int = 1,
    keep_matrix: bool = False,
    simultaneous: bool = False,
) -> DistanceDevices:
    """Devices for n taxa; steps that the GPU has are weighed together, times `runs` (bootstrap and all).

    method: of the tree, None for distances alone. alignment, measure: None where the matrix is read.
    keep_matrix: it is wanted in host memory. simultaneous: joining in rounds. InputError and DeviceError as
    select_distance_device.
    """
    steps: dict[str, tuple[float, str | None]] = {}
    if alignment is not None and measure is not None:
        steps["measuring"] = (distance_seconds(alignment, measure), lacking_on_gpu(alignment, measure))
    if method is not None:
        steps["tree"] = (tree_seconds(n, method), _tree_lacks(method, simultaneous))
    total = runs * sum(seconds for seconds, lacking in steps.values() if lacking is None)
    chosen = {name: select_distance_device(requested, total, lacking) for name, (_, lacking) in steps.items()}
    choices: dict[str, object] = {name: why for name, (_, why) in chosen.items()}
    on_gpu = [where == "gpu" for where, _ in chosen.values()]
    stays, by_rows = False, False
    if len(steps) == 2 and all(on_gpu) and alignment is not None and measure is not None:
        fits, numbers = fits_device(alignment, measure, matrices=1 + (method == "bionj"))
        stays = fits and not keep_matrix and n > 3
        why = "it is wanted there" if keep_matrix else numbers if not fits else "it is small"
        choices["matrix"] = "stays in device memory" if stays else f"through host memory: {why}"
        if not fits and not keep_matrix and method in LINKAGE and method != "single":
            by_rows, why = _fits_by_rows(alignment, measure)
            stays = by_rows
            choices["matrix"] = f"{'stays in device memory' if stays else 'through host memory'}: {why}"
    return DistanceDevices(
        distances=chosen["measuring"][0] if "measuring" in chosen else "cpu",
        tree=chosen["tree"][0] if "tree" in chosen else "cpu",
        stays=stays,
        choices=choices,
        by_rows=by_rows,
    )
