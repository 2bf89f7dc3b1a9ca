"""What came of measuring: pairs that have no distance, and the record of the choices."""

from __future__ import annotations

import numpy as np

from phloem.clustering.distance_settings import DistanceSettings
from phloem.data.alignment import Alignment
from phloem.errors import InputError


def as_status(counted: np.ndarray) -> np.ndarray:
    """(4,) saturated pairs, pairs without a common site, and one such (i, j), from a GPU's (3,)."""
    saturated, empty, pair = counted.tolist()
    return np.array([saturated, empty, max(pair, 0) >> 32, max(pair, 0) & 0xFFFFFFFF])


def check_status(alignment: Alignment, settings: DistanceSettings, status: np.ndarray) -> None:
    """Raise for pairs without a common site, and for saturated ones where these are to be errors."""
    saturated, empty, i, j = status.tolist()
    if empty:
        raise InputError(
            f"'{alignment.taxa[j]}' and '{alignment.taxa[i]}' have no site in common"
            + (f" ({empty:,} such pairs)" if empty > 1 else ""),
            file=alignment.source,
            hint="Leave out the most incomplete sequences.",
        )
    if saturated and settings.saturated == "error":
        raise InputError(
            f"{saturated:,} pairs are saturated: no {settings.method} distance up to {settings.longest:g}",
            file=alignment.source,
            hint="Leave out the most distant sequences, or set such pairs to the longest distance.",
        )


def record_of(settings: DistanceSettings, sites: int, status: np.ndarray) -> dict[str, object]:
    """The choices that shaped a matrix."""
    return {
        "distance": settings.method,
        "gamma_shape": settings.shape,
        "deletion": settings.deletion,
        "ambiguous_characters": settings.ambiguity,
        "sites": sites,
        "saturated_pairs": int(status[0]),
        "saturated": f"set to {settings.longest:g}" if settings.saturated == "longest" else "error",
        "precision": settings.precision,
    }
