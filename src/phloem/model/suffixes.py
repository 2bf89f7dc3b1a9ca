"""The suffixes of a model string: what each sets, and the rate, root and class models that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phloem.errors import ModelError
from phloem.model.frequency_suffix import FREQUENCY_SUFFIXES
from phloem.model.markov_modulated import Covarion, RedrawnClasses, Switching
from phloem.model.model_string import Piece, unknown_name
from phloem.model.site_rates import (
    Categories,
    FreeRates,
    GammaCategories,
    GammaRates,
    LengthClasses,
    UniformRate,
)

KNOWN_SUFFIXES = (
    *FREQUENCY_SUFFIXES,
    "FROOT",
    "I",
    "E",
    "G4",
    "G4a",
    "GA4",
    "R4",
    "H4",
    "COV",
    "MM2",
    "ASC",
    "C20",
)
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
_FREE = re.compile(r"R(\d*)")
_LENGTHS = re.compile(r"H(\d*)")
_PROFILES = re.compile(r"C[1-6]0(OPT)?")
_CLASSES = re.compile(r"MM(\d+)")


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
    if name in FREQUENCY_SUFFIXES:
        return "frequencies"
    if name in _ROLES:
        return _ROLES[name]
    if _GAMMA.fullmatch(name) or _FREE.fullmatch(name) or _LENGTHS.fullmatch(name):
        return "rate categories"
    if _PROFILES.fullmatch(name):
        return "profiles"
    if _CLASSES.fullmatch(name):
        return "hidden classes"
    raise unknown_name("suffix", f"+{piece.name}", [f"+{s}" for s in KNOWN_SUFFIXES], piece.column)


def rate_categories(piece: Piece, gamma: GammaCategories) -> Categories:
    """+G4 (means unless gamma says otherwise), +G4m, +G4a or +GA4 (medians), +R4, +R{w,r,…}, +H4, +E."""
    name = piece.name.upper()
    if name == "E":
        return UniformRate("+E")
    lengths = _LENGTHS.fullmatch(name)
    if lengths:
        return LengthClasses(_count(lengths.group(1) or str(len(piece.positional) or 4), piece))
    match = _GAMMA.fullmatch(name)
    if match:
        kind: GammaCategories = gamma
        if match.group(1) or match.group(3):
            kind = "mean" if match.group(3) == "M" else "median"
        return GammaRates(_count(match.group(2) or "4", piece), kind)
    given = max(len(piece.positional), len(piece.named)) // 2
    return FreeRates(_count(name[1:] or str(given or 4), piece))


def hidden_classes(piece: Piece) -> Switching:
    """+COV or +MM<k>."""
    match = _CLASSES.fullmatch(piece.name.upper())
    return RedrawnClasses(_count(match.group(1), piece, 2)) if match else Covarion()


def _count(digits: str, piece: Piece, least: int = 1) -> int:
    if not least <= int(digits) <= 256:
        raise ModelError(
            f"+{piece.name} asks for {digits} classes", column=piece.column, hint=f"Use {least} to 256."
        )
    return int(digits)
