"""The model grammar that IQ-TREE and RAxML-NG users know, with named parameters (docs/models.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.errors import ModelError
from phloem.model.families import Family, default_states, families, named_code
from phloem.model.frequency_models import equal_frequencies
from phloem.model.frequency_suffix import FREQUENCY_SUFFIXES, FrequencyData, frequency_model
from phloem.model.gamma_rates import GammaCategories
from phloem.model.model import Model
from phloem.model.model_string import Piece, split_model, unknown_name
from phloem.model.parameter import Parameter, simplex
from phloem.model.site_rates import FreeRates, GammaRates, SiteRates, UniformRate
from phloem.model.substitution import SubstitutionFamily, Term
from phloem.model.term_values import with_piece_values

DATATYPES = ("dna", "rna", "protein", "codon", "binary", "standard", "custom")
SUFFIXES = (*FREQUENCY_SUFFIXES, "FROOT", "I", "G4", "G4a", "R4", "ASC")
_GAMMA = re.compile(r"G(A?)(\d*)([AM]?)")
_FREE = re.compile(r"R(\d*)")


@dataclass(frozen=True)
class _Request:
    """Everything that parse_model was told about the data."""

    datatype: str
    states: tuple[str, ...]
    data: FrequencyData
    gamma: GammaCategories


def parse_model(
    text: str,
    *,
    datatype: str,
    n_states: int | None = None,
    states: Sequence[str] | None = None,
    empirical_frequencies: np.ndarray | None = None,
    gamma: GammaCategories = "mean",
) -> Model:
    """Read a model string such as GTR{1.2,4,0.7,0.9,5}+F{0.35,0.30,0.10,0.25}+I{0.2}+G4{0.8}.

    datatype: kind of the alphabet. n_states or states: needed for standard and custom characters.
    empirical_frequencies: (S,), what +F without values stands for.
    gamma: what +G means where the string does not say (+G4m means, +G4a medians).
    A parameter without a value is free. Raises ModelError with the column and what is allowed.
    """
    request = _Request(
        _checked_datatype(datatype),
        tuple(states) if states else default_states(datatype.lower(), n_states),
        FrequencyData(empirical_frequencies),
        gamma,
    )
    head, *suffixes = split_model(text)
    family = _family(head, request)
    by_role = _roles(suffixes)
    substitution, parameters = _substitution(head, family, by_role, request)
    site_rates, rate_parameters = _site_rates(by_role, request)
    terms = [*substitution.terms]
    parameters += rate_parameters
    root_term = None
    if "root" in by_role:
        root_term = _root_term(request.states)
        terms.append(root_term)
        parameters += with_piece_values(root_term, by_role["root"])
    terms += site_rates.terms
    ascertained = family.ascertained or "ascertainment" in by_role
    if ascertained:
        terms.append(Term("+ASC"))
    order = [p.name for t in terms for p in t.parameters]
    return Model(
        substitution=substitution,
        site_rates=site_rates,
        terms=tuple(terms),
        parameters=tuple(sorted(parameters, key=lambda p: order.index(p.name))),
        observed_state=np.arange(substitution.n_states),
        datatype=request.datatype,
        root_term=root_term,
        ascertainment="variable" if ascertained else "none",
    )


def _checked_datatype(datatype: str) -> str:
    if datatype.lower() not in DATATYPES:
        raise ModelError(f"unknown datatype '{datatype}'", hint=f"Known: {', '.join(DATATYPES)}.")
    return datatype.lower()


def _family(head: Piece, request: _Request) -> Family:
    known = families(request.datatype, request.states)
    family = known.get(head.name.upper())
    if family is None and request.datatype in ("dna", "rna"):
        family = named_code(head.name)
    if family is None:
        names = {f.canonical for f in known.values()} | {"MKV"} & set(known)
        raise unknown_name(f"{request.datatype} model", head.name, names, head.column)
    return family


def _roles(suffixes: Sequence[Piece]) -> dict[str, Piece]:
    """Sort the suffixes by what they set; each thing may be set once."""
    result: dict[str, Piece] = {}
    for piece in suffixes:
        role = _role(piece)
        if role in result:
            raise ModelError(
                f"+{result[role].name} and +{piece.name} both set the {role.replace('_', ' ')}",
                column=piece.column,
                hint="Keep one of them.",
            )
        result[role] = piece
    return result


def _role(piece: Piece) -> str:
    name = piece.name.upper()
    if name in FREQUENCY_SUFFIXES:
        return "frequencies"
    fixed = {"FROOT": "root", "ASC": "ascertainment", "ASC_LEWIS": "ascertainment"}
    fixed |= {"I": "invariable_sites", "IO": "invariable_sites", "IU": "invariable_sites"}
    if name in fixed:
        return fixed[name]
    if _GAMMA.fullmatch(name) or _FREE.fullmatch(name):
        return "rate_categories"
    raise unknown_name("suffix", f"+{piece.name}", [f"+{s}" for s in SUFFIXES], piece.column)


def _substitution(
    head: Piece, family: Family, by_role: dict[str, Piece], request: _Request
) -> tuple[SubstitutionFamily, list[Parameter]]:
    piece = by_role.get("frequencies")
    if piece is None and family.default_frequencies == "own":
        frequencies, preset = family.built_in or equal_frequencies(len(request.states)), None
    else:
        frequencies, preset = frequency_model(piece, family, request.states, request.data)
    substitution = family.build(frequencies)
    parameters = list(with_piece_values(substitution.terms[0], head))
    if len(substitution.terms) > 1:
        own = with_piece_values(substitution.terms[1], piece)
        parameters += [replace(p, value=preset[p.name]) if preset and p.is_free else p for p in own]
    return substitution, parameters


def _site_rates(by_role: dict[str, Piece], request: _Request) -> tuple[SiteRates, list[Parameter]]:
    invariable, piece = by_role.get("invariable_sites"), by_role.get("rate_categories")
    categories = UniformRate() if piece is None else _categories(piece, request.gamma)
    rates = SiteRates(categories, invariable is not None)
    pieces = [invariable, piece] if invariable else [piece]
    parameters = [p for t, given in zip(rates.terms, pieces) for p in with_piece_values(t, given)]
    return rates, parameters


def _categories(piece: Piece, gamma: GammaCategories) -> GammaRates | FreeRates:
    match = _GAMMA.fullmatch(piece.name.upper())
    if match:
        kind: GammaCategories = gamma
        if match.group(1) or match.group(3):
            kind = "mean" if match.group(3) == "M" else "median"
        return GammaRates(_count(match.group(2) or "4", piece), kind)
    digits = _FREE.fullmatch(piece.name.upper()).group(1)  # type: ignore[union-attr]
    return FreeRates(_count(digits or str(len(piece.positional) // 2 or 4), piece))


def _count(digits: str, piece: Piece) -> int:
    if not 1 <= int(digits) <= 256:
        raise ModelError(
            f"+{piece.name} asks for {digits} rate categories", column=piece.column, hint="Use 1 to 256."
        )
    return int(digits)


def _root_term(states: tuple[str, ...]) -> Term:
    return Term("+FROOT", (simplex("root_frequencies", tuple(f"root_frequency_{s}" for s in states)),))
