"""Distances spread by rows over several GPUs, where they do not fit one, until a tree is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phloem.clustering.deletion import measured_sites
from phloem.clustering.distance_settings import NUCLEOTIDES, DistanceSettings, check_settings
from phloem.clustering.formula import formula_for
from phloem.clustering.merges import Merges
from phloem.clustering.outcome import as_status, check_status, record_of
from phloem.clustering.partial_characters import device_weights
from phloem.clustering.reference.linkage import LinkageMethod
from phloem.data.alignment import Alignment


@dataclass(eq=False)
class DeviceBands:
    """Pairwise distances in the memory of several GPUs; a tree is made inside it, which is gone with it.

    bands: tensors as engine.gpu_distance_shards takes them. settings: as DistanceMatrix has.
    """

    taxa: tuple[str, ...]
    bands: Any
    settings: Mapping[str, object]

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    def linkage(self, method: LinkageMethod) -> Merges:
        """As distance.linkage.linkage; single linkage is not there."""
        from phloem.clustering.gpu.shards import linkage_merges_sharded

        bands, self.bands = self.bands, None
        return Merges(*linkage_merges_sharded(bands, method))


def devices_by_rows(n: int, itemsize: int, alignment: Alignment | None = None) -> tuple[list[Any], str]:
    """GPUs that distances of n taxa are spread over, more than one if they do not fit it, and why.

    itemsize: bytes of a distance. alignment: what they are measured from, on every GPU. InputError, with the
    numbers, where all GPUs together have too little memory.
    """
    from phloem.clustering.gpu.shards_bands import devices_for

    beside = 0
    if alignment is not None:
        states = alignment.alphabet.n_states + 3
        beside = (n + 64) * (alignment.n_sites + 128) * states
    return devices_for(n, itemsize, beside)


def distances_in_bands(
    alignment: Alignment, settings: DistanceSettings, devices: list[Any] | None = None
) -> DeviceBands:
    """Every GPU measures its own rows; neither one of them nor the host ever has all.

    devices: None for as many as devices_by_rows says; one may be named more than once. Errors as
    pairwise_distances, and for averages that the GPU lacks.
    """
    from phloem.clustering.gpu.device import float_type
    from phloem.clustering.gpu.shards_bands import alignment_bands

    check_settings(settings, alignment.alphabet.kind)
    alignment = measured_sites(alignment, settings)
    weights = device_weights(alignment, settings.ambiguity)
    if devices is None:
        devices = devices_by_rows(alignment.n_taxa, np.dtype(settings.precision).itemsize, alignment)[0]
    nucleotides = alignment.alphabet.kind in NUCLEOTIDES
    bands, counted = alignment_bands(
        alignment.codes, weights, nucleotides, formula_for(alignment, settings), devices,
        float_type(settings.precision),
    )  # fmt: skip
    status = as_status(counted)
    check_status(alignment, settings, status)
    return DeviceBands(alignment.taxa, bands, record_of(settings, alignment.n_sites, status))
