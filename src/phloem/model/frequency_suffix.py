"""+F, +FO, +FQ …: from the suffix of a model string to a frequency model and the values that data give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.errors import ModelError
from phloem.model.families import Family
from phloem.model.frequency_models import FrequencyModel, SimplexFrequencies, equal_frequencies
from phloem.model.model_string import Piece

# Suffix → what it means. RAxML-NG's names: +FC counts, +FE equal, +FU given by the user.
FREQUENCY_SUFFIXES = {"F": "F", "FO": "FO", "FQ": "FQ", "FC": "F", "FE": "FQ", "FU": "F"}


@dataclass(frozen=True, eq=False)
class FrequencyData:
    """Frequencies counted in the data: of states (S,); None where not counted."""

    states: np.ndarray | None = None


def frequency_model(
    piece: Piece | None, family: Family, states: tuple[str, ...], data: FrequencyData
) -> tuple[FrequencyModel, Mapping[str, np.ndarray] | None]:
    """The frequency model of a suffix (or the family's default), and the values counted in the data."""
    kind = FREQUENCY_SUFFIXES[piece.name.upper()] if piece else family.default_frequencies
    if kind not in family.allowed_frequencies:
        allowed = ", ".join(f"+{s}" for s in family.allowed_frequencies)
        raise ModelError(
            f"{family.canonical} cannot be combined with +{piece.name if piece else kind}",
            column=piece.column if piece else None,
            hint=f"Allowed: {allowed}." if allowed else "Its frequencies follow from its rates; see +FROOT.",
        )
    if kind == "FQ":
        return equal_frequencies(len(states), "" if family.default_frequencies == "FQ" else "+FQ"), None
    if kind == "FO" or (piece and piece.has_values):
        return SimplexFrequencies(states), None
    return SimplexFrequencies(states), {"frequencies": _counted(data.states, len(states), piece)}


def _counted(counted: np.ndarray | None, n: int, piece: Piece | None) -> np.ndarray:
    if counted is None:
        raise ModelError(
            "+F stands for the frequencies of the data, and no data are given",
            column=piece.column if piece else None,
            hint="Write the values, +F{…}, or +FO for free ones.",
        )
    array = np.asarray(counted, np.float64)
    if array.shape != (n,) or not (array >= 0).all() or not array.sum() > 0:
        raise ModelError(f"empirical frequencies must be {n} numbers, none negative")
    return array / array.sum()
