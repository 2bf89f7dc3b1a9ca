"""The suffixes of a model string: what each sets, and the frequency, rate and class models that they name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import ModelError, count_of
from phloem.model.autocorrelated_rates import AutocorrelatedGammaRates
from phloem.model.families import Family
from phloem.model.frequencies import (
    CodonTable,
    EqualPositions,
    FrequencyModel,
    PositionFrequencies,
    SimplexFrequencies,
    equal_frequencies,
)
from phloem.model.markov_modulated import Covarion, RedrawnClasses, Switching
from phloem.model.model_string import Piece, unknown_name
from phloem.model.site_rates import (
    Categories,
    FreeRates,
    GammaCategories,
    GammaRates,
    LengthClasses,
    LogNormalRates,
    UniformRate,
)

# Suffix → what it means. RAxML-NG's names: +FC counts, +FE equal, +FU given by the user.
FREQUENCY_SUFFIXES = {"F": "F", "FO": "FO", "FQ": "FQ", "FC": "F", "FE": "FQ", "FU": "F"}
FREQUENCY_SUFFIXES |= {kind: kind for kind in ("F1X4", "F3X4", "FO1X4", "FO3X4")}
KNOWN_SUFFIXES = (
    *FREQUENCY_SUFFIXES,
    "FB5",
    "FROOT",
    "I",
    "E",
    "G4",
    "G4a",
    "GA4",
    "AG4",
    "R4",
    "H4",
    "LN4",
    "COV",
    "MM2",
    "ASC",
    "C20",
)
Counted = Mapping[str, np.ndarray]
_ROLES = {
    "FROOT": "root frequencies",
    "ASC": "ascertainment",
    "ASC_LEWIS": "ascertainment",
    "I": "invariable sites",
    "IO": "invariable sites",
    "IU": "invariable sites",
    "COV": "hidden classes",
    "E": "rate categories",
}
_GAMMA = re.compile(r"G(A?)(\d*)([AM]?)")
_NEIGHBOURS = re.compile(r"AG(\d*)([AM]?)")
_LOG_NORMAL = re.compile(r"LN(\d*)")
_FREE = re.compile(r"R(\d*)")
_LENGTHS = re.compile(r"H(\d*)")
_PROFILES = re.compile(r"C[1-6]0(OPT)?")
_CLASSES = re.compile(r"MM(\d+)")
_BETA = re.compile(r"FB(\d*)")


def roles(suffixes: Sequence[Piece]) -> dict[str, Piece]:
    """The suffixes by what they set; ModelError for unknown ones and for two that set the same."""
    result: dict[str, Piece] = {}
    for piece in suffixes:
        role = _role(piece)
        if piece.fused and role != "rate categories":
            raise ModelError(
                f"'*' cannot stand before {piece.name}",
                column=piece.column,
                hint="It ties rate categories to the processes of a mixture: *G4, *R4, *H4; else write '+'.",
            )
        if role in result:
            raise ModelError(
                f"+{result[role].name} and +{piece.name} both set the {role}",
                column=piece.column,
                hint="Keep one of them.",
            )
        result[role] = piece
    return result


def _role(piece: Piece) -> str:
    name = piece.name.upper()
    if name in FREQUENCY_SUFFIXES or _BETA.fullmatch(name):
        return "frequencies"
    if name in _ROLES:
        return _ROLES[name]
    if any(form.fullmatch(name) for form in (_GAMMA, _NEIGHBOURS, _LOG_NORMAL, _FREE, _LENGTHS)):
        return "rate categories"
    if _PROFILES.fullmatch(name):
        return "profiles"
    if _CLASSES.fullmatch(name):
        return "hidden classes"
    raise unknown_name("suffix", f"+{piece.name}", [f"+{s}" for s in KNOWN_SUFFIXES], piece.column)


def rate_categories(piece: Piece, gamma: GammaCategories) -> Categories:
    """+G4 (means unless gamma says so), +G4m, +G4a or +GA4 (medians), +AG4 likewise, +LN4, +R4, +R{w,r,…},
    +H4, +E."""
    name = piece.name.upper()
    if name == "E":
        return UniformRate("+E")
    lengths = _LENGTHS.fullmatch(name)
    if lengths:
        return LengthClasses(_count(lengths.group(1) or str(len(piece.positional) or 4), piece))
    if log_normal := _LOG_NORMAL.fullmatch(name):
        return LogNormalRates(_count(log_normal.group(1) or "4", piece))
    kind: GammaCategories = gamma
    if neighbours := _NEIGHBOURS.fullmatch(name):
        if neighbours.group(2):
            kind = "mean" if neighbours.group(2) == "M" else "median"
        return AutocorrelatedGammaRates(_count(neighbours.group(1) or "4", piece, 2), kind)
    match = _GAMMA.fullmatch(name)
    if match:
        if match.group(1) or match.group(3):
            kind = "mean" if match.group(3) == "M" else "median"
        return GammaRates(_count(match.group(2) or "4", piece), kind)
    given = max(len(piece.positional), len(piece.named)) // 2
    return FreeRates(_count(name[1:] or str(given or 4), piece))


def hidden_classes(piece: Piece) -> Switching:
    """+COV or +MM<k>."""
    match = _CLASSES.fullmatch(piece.name.upper())
    return RedrawnClasses(_count(match.group(1), piece, 2)) if match else Covarion()


def beta_classes(piece: Piece | None) -> int:
    """+FB5: into how many classes the frequencies of characters are cut; 0 for any other suffix."""
    match = _BETA.fullmatch(piece.name.upper()) if piece else None
    return _count(match.group(1) or "5", piece, 2) if piece and match else 0


def _count(digits: str, piece: Piece, least: int = 1) -> int:
    count = count_of(digits)
    if not least <= count <= 256:
        raise ModelError(
            f"+{piece.name} asks for {digits} classes", column=piece.column, hint=f"Use {least} to 256."
        )
    return count


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
