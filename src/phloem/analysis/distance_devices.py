"""Where distances and their tree are computed, chosen once for all the work there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phloem.data.alignment import Alignment
from phloem.distance import linkage as linkage_room
from phloem.distance import neighbour_joining as joining_room
from phloem.distance.alignment_distances import distance_seconds, lacking_on_gpu
from phloem.distance.device_distances import fits_device
from phloem.distance.distance_settings import DistanceSettings
from phloem.engine.select import Device, select_distance_device

JOINING = ("nj", "bionj", "unj")
Method = Literal["upgma", "wpgma", "single", "complete", "nj", "bionj", "unj"]


@dataclass(frozen=True)
class DistanceDevices:
    """distances, tree: "cpu" or "gpu". stays: the matrix goes from one to the other in device memory.

    choices: for each step where it runs and why, for the user.
    """

    distances: Literal["cpu", "gpu"]
    tree: Literal["cpu", "gpu"]
    stays: bool
    choices: dict[str, object]


def tree_seconds(n: int, method: Method) -> float:
    """Forecast of a tree of n taxa on two cores."""
    rate = joining_room.CPU_SECONDS if method in JOINING else linkage_room.CPU_SECONDS
    return rate * n * n


def _tree_lacks(method: Method) -> str | None:
    if method == "nj" or method == "bionj" or method == "unj":
        return joining_room.lacking_on_gpu(method)
    return linkage_room.lacking_on_gpu(method)


def choose_devices(
    requested: Device,
    n: int,
    method: Method | None,
    alignment: Alignment | None = None,
    measure: DistanceSettings | None = None,
    runs: int = 1,
    keep_matrix: bool = False,
) -> DistanceDevices:
    """Devices for n taxa; steps that the GPU has are weighed together, times `runs` (bootstrap and all).

    method: of the tree, None for distances alone. alignment, measure: None where the matrix is read.
    keep_matrix: it is wanted in host memory. InputError and DeviceError as select_distance_device.
    """
    steps: dict[str, tuple[float, str | None]] = {}
    if alignment is not None and measure is not None:
        steps["measuring"] = (distance_seconds(alignment, measure), lacking_on_gpu(alignment, measure))
    if method is not None:
        steps["tree"] = (tree_seconds(n, method), _tree_lacks(method))
    total = runs * sum(seconds for seconds, lacking in steps.values() if lacking is None)
    chosen = {name: select_distance_device(requested, total, lacking) for name, (_, lacking) in steps.items()}
    choices: dict[str, object] = {name: why for name, (_, why) in chosen.items()}
    on_gpu = [where == "gpu" for where, _ in chosen.values()]
    stays = False
    if len(steps) == 2 and all(on_gpu) and alignment is not None and measure is not None:
        fits, numbers = fits_device(alignment, measure, matrices=1 + (method == "bionj"))
        stays = fits and not keep_matrix and n > 3
        why = "it is wanted there" if keep_matrix else numbers if not fits else "it is small"
        choices["matrix"] = "stays in device memory" if stays else f"through host memory: {why}"
    return DistanceDevices(
        distances=chosen["measuring"][0] if "measuring" in chosen else "cpu",
        tree=chosen["tree"][0] if "tree" in chosen else "cpu",
        stays=stays,
        choices=choices,
    )
