"""+F, +FO, +FQ, +F3X4 …: from a suffix to a frequency model and the values that data give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.errors import ModelError
from phloem.model.codon_frequencies import CodonTable, EqualPositions, PositionFrequencies
from phloem.model.families import Family
from phloem.model.frequency_models import FrequencyModel, SimplexFrequencies, equal_frequencies
from phloem.model.model_string import Piece

# Suffix → what it means. RAxML-NG's names: +FC counts, +FE equal, +FU given by the user.
FREQUENCY_SUFFIXES = {"F": "F", "FO": "FO", "FQ": "FQ", "FC": "F", "FE": "FQ", "FU": "F"}
FREQUENCY_SUFFIXES |= {kind: kind for kind in ("F1X4", "F3X4", "FO1X4", "FO3X4")}

Counted = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class FrequencyData:
    """Counts in the data: states (S,), nucleotides at codon positions (3, 4); None where not counted."""

    states: np.ndarray | None = None
    codon_positions: np.ndarray | None = None


def frequency_model(
    piece: Piece | None,
    family: Family,
    states: tuple[str, ...],
    table: CodonTable | None,
    data: FrequencyData,
) -> tuple[FrequencyModel, Counted]:
    """The frequency model of a suffix, or the family's default, and values counted in the data."""
    if piece is None and family.built_in is not None:
        return family.built_in, {}
    if piece is None and family.default_frequencies == "own":
        return equal_frequencies(len(states)), {}
    kind = FREQUENCY_SUFFIXES[piece.name.upper()] if piece else family.default_frequencies
    _check_allowed(kind, piece, family)
    if kind == "FQ":
        label = "" if family.default_frequencies == "FQ" else "+FQ"
        equal = EqualPositions(table, label) if table else equal_frequencies(len(states), label)
        return equal, {}
    given = piece is not None and piece.has_values
    if table is not None and kind.endswith("X4"):
        model = PositionFrequencies(table, int(kind[-3]))
        free = given or kind.startswith("FO")
        return model, {} if free else _positions(data.codon_positions, model, kind, piece)
    if kind == "FO" or given:
        return SimplexFrequencies(states, _start(data.states)), {}
    counted = _counted(data.states, (len(states),), kind, piece)
    return SimplexFrequencies(states), {"frequencies": counted / counted.sum()}


def _check_allowed(kind: str, piece: Piece | None, family: Family) -> None:
    if kind not in family.allowed_frequencies:
        allowed = ", ".join(f"+{s}" for s in family.allowed_frequencies)
        raise ModelError(
            f"{family.canonical} cannot be combined with +{piece.name if piece else kind}",
            column=piece.column if piece else None,
            hint=f"Allowed: {allowed}." if allowed else "Its frequencies follow from its rates; see +FROOT.",
        )


def _start(counted: np.ndarray | None) -> np.ndarray | None:
    """Counted frequencies where every state was seen: a good place to start from."""
    if counted is None or not (np.asarray(counted) > 0).all():
        return None
    return np.asarray(counted, np.float64) / np.sum(counted)


def _positions(counted, model: PositionFrequencies, kind: str, piece: Piece | None) -> Counted:
    by_position = _counted(counted, (3, 4), kind, piece)
    if model.n_sets == 1:
        by_position = by_position.sum(0, keepdims=True)
    names = [p.name for p in model.term.parameters]
    return {name: row / row.sum() for name, row in zip(names, by_position)}


def _counted(
    counted: np.ndarray | None, shape: tuple[int, ...], kind: str, piece: Piece | None
) -> np.ndarray:
    column = piece.column if piece else None
    if counted is None:
        raise ModelError(
            f"+{kind} stands for the frequencies of the data, and no data are given",
            column=column,
            hint=f"Write the values, +{kind}{{…}}, or +{kind.replace('F', 'FO', 1)} for free ones.",
        )
    array = np.asarray(counted, np.float64)
    if array.shape != shape or not (array >= 0).all() or not (array.sum(-1) > 0).all():
        raise ModelError(
            f"counts for +{kind} must have shape {shape}, none negative, none all 0", column=column
        )
    return array
