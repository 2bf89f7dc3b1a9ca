"""Distances that stay on a GPU, or by rows on several, until the tree is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from phloem.clustering.arrays import device_weights
from phloem.clustering.distances import as_status, check_status, measured_sites, record_of
from phloem.clustering.formula import formula_for
from phloem.clustering.joining import Joins, on_gpu
from phloem.clustering.linkage import Merges
from phloem.clustering.settings import (
    NUCLEOTIDES,
    DistanceSettings,
    JoiningMethod,
    LinkageMethod,
    check_settings,
)
from phloem.data.alignment import Alignment

RESERVE = 500_000_000  # bytes for the tree's own state and for the driver


@dataclass(eq=False)
class DeviceMatrix:
    """Pairwise distances in device memory; a tree is made inside that memory, which is gone with it.

    values: (n, n) tensor whose rows are a multiple of 16 entries apart, None once a tree was made of it.
    settings: as DistanceMatrix has.
    """

    taxa: tuple[str, ...]
    values: Any
    settings: Mapping[str, object]

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    def linkage(self, method: LinkageMethod) -> Merges:
        """As distance.linkage.linkage."""
        from phloem.clustering.gpu.linkage import linkage_merges

        return Merges(*linkage_merges(self._taken(), method, overwrite=True))

    def neighbour_joining(self, method: JoiningMethod = "nj") -> Joins:
        """As distance.neighbour_joining.neighbour_joining, of four taxa or more."""
        return on_gpu(self._taken(), method, overwrite=True)

    def _taken(self) -> Any:
        values, self.values = self.values, None
        return values


class DeviceAlignment:
    """An alignment on a GPU: its codes travel there once, for all bootstrap replicates."""

    def __init__(self, alignment: Alignment, settings: DistanceSettings):
        """Raises InputError as pairwise_distances does, and for averages that the GPU lacks."""
        from phloem.clustering.gpu.alignment import SequenceCodes

        check_settings(settings, alignment.alphabet.kind)
        alignment = measured_sites(alignment, settings)
        weights = device_weights(alignment, settings.ambiguity)
        self._alignment, self._settings = alignment, settings
        self._codes = SequenceCodes(alignment.codes, weights, alignment.alphabet.kind in NUCLEOTIDES)
        self._formula = formula_for(alignment, settings)
        self._own_frequencies = settings.method in ("f84", "tn93") and settings.frequencies is None

    def distances(self, columns: np.ndarray | None = None) -> DeviceMatrix:
        """Distances of the alignment, or of a replicate with these of the columns that complete deletion
        leaves; errors as pairwise_distances."""
        from phloem.clustering.gpu.alignment import distance_matrix
        from phloem.clustering.gpu.device import float_type

        alignment, settings, formula = self._alignment, self._settings, self._formula
        if self._own_frequencies and columns is not None:
            drawn = replace(alignment, codes=alignment.codes[:, columns], places=None)
            formula = formula_for(drawn, settings)
        encoded = self._codes.encoded(formula, columns)
        values, counted = distance_matrix(encoded, formula, float_type(settings.precision))
        status = as_status(counted.cpu().numpy())
        check_status(alignment, settings, status)
        return DeviceMatrix(alignment.taxa, values, record_of(settings, encoded.sites, status))


def fits_device(alignment: Alignment, settings: DistanceSettings, matrices: int = 1) -> tuple[bool, str]:
    """Whether matrices and codes fit the device's free memory together, and the numbers in words."""
    from phloem.clustering.gpu.device import free_bytes
    from phloem.hardware.gpu_device import find_device

    n, sites, states = alignment.n_taxa, alignment.n_sites, alignment.alphabet.n_states
    entries = matrices * n * (n + 16) * np.dtype(settings.precision).itemsize
    codes = (n + 64) * (sites + 128) * (states + 3)
    need, free = entries + codes + RESERVE, free_bytes(find_device())
    return need <= free, f"{need / 1e9:.1f} GB needed on the device, {free / 1e9:.1f} GB free"


@dataclass(eq=False)
class DeviceBands:
    """Pairwise distances in the memory of several GPUs; a tree is made inside it, which is gone with it.

    bands: tensors as gpu.shards takes them. settings: as DistanceMatrix has.
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
