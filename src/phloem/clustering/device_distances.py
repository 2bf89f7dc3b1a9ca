"""Distances that stay on a GPU until the tree is made of them: no matrix in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from phloem.clustering.deletion import measured_sites
from phloem.clustering.distance_settings import NUCLEOTIDES, DistanceSettings, check_settings
from phloem.clustering.formula import formula_for
from phloem.clustering.merges import Merges
from phloem.clustering.neighbour_joining import Joins, on_gpu
from phloem.clustering.outcome import as_status, check_status, record_of
from phloem.clustering.partial_characters import device_weights
from phloem.clustering.reference.linkage import LinkageMethod
from phloem.clustering.reference.nj import JoiningMethod
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
            drawn = replace(alignment, codes=alignment.codes[:, columns])
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
