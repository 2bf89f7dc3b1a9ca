"""The model grammar that IQ-TREE and RAxML-NG users know, with named parameters (docs/models.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.errors import ModelError
from phloem.model.codon_frequencies import CodonTable
from phloem.model.families import Family, datatypes_of, default_states, families, named_code
from phloem.model.frequency_suffix import FrequencyData, frequency_model
from phloem.model.gamma_rates import GammaCategories
from phloem.model.markov_modulated import MarkovModulated
from phloem.model.model import Model
from phloem.model.model_string import Piece, split_model, unknown_name
from phloem.model.parameter import Parameter, simplex
from phloem.model.site_rates import SiteRates, UniformRate
from phloem.model.substitution import SubstitutionFamily, Term
from phloem.model.suffixes import hidden_classes, rate_categories, roles
from phloem.model.term_values import with_piece_values

DATATYPES = ("dna", "rna", "protein", "codon", "binary", "standard", "custom")


@dataclass(frozen=True, eq=False)
class _Request:
    """Everything that parse_model was told about the data."""

    datatype: str
    states: tuple[str, ...]
    codon_table: CodonTable | None
    data: FrequencyData
    gamma: GammaCategories


def parse_model(
    text: str,
    *,
    datatype: str,
    n_states: int | None = None,
    states: Sequence[str] | None = None,
    codon_table: CodonTable | None = None,
    empirical_frequencies: np.ndarray | None = None,
    codon_position_counts: np.ndarray | None = None,
    gamma: GammaCategories = "mean",
) -> Model:
    """Read a model string such as GTR{1.2,4,0.7,0.9,5}+F{0.35,0.30,0.10,0.25}+I{0.2}+G4{0.8}.

    datatype: kind of the alphabet. n_states or states: needed for standard and custom characters.
    codon_table: needed for codons. empirical_frequencies: (S,), what +F without values stands for;
    codon_position_counts: (3, 4), the same for +F1X4 and +F3X4 (frequencies.py counts both).
    gamma: what +G means where the string does not say (+G4m means, +G4a medians).
    A parameter without a value is free. Raises ModelError with the column and what is allowed.
    """
    data = FrequencyData(empirical_frequencies, codon_position_counts)
    request = _request(datatype, n_states, states, codon_table, data, gamma)
    head, *suffixes = split_model(text)
    family = _family(head, request)
    by_role = roles(suffixes)
    substitution, parameters = _substitution(head, family, by_role, request)
    site_rates = _site_rates(by_role, request)
    root = _root_term(by_role, request)
    ascertained = family.ascertained or "ascertainment" in by_role
    terms = (*substitution.terms, *([root] if root else []), *site_rates.terms)
    parameters += _other_values((*([root] if root else []), *site_rates.terms), by_role)
    order = [p.name for t in terms for p in t.parameters]
    return Model(
        substitution=substitution,
        site_rates=site_rates,
        terms=(*terms, Term("+ASC")) if ascertained else terms,
        parameters=tuple(sorted(parameters, key=lambda p: order.index(p.name))),
        observed_state=_observed_state(substitution),
        datatype=request.datatype,
        root_term=root,
        ascertainment="variable" if ascertained else "none",
    )


def _request(datatype, n_states, states, codon_table, data, gamma) -> _Request:
    kind = datatype.lower()
    if kind not in DATATYPES:
        raise ModelError(f"unknown datatype '{datatype}'", hint=f"Known: {', '.join(DATATYPES)}.")
    if kind == "codon":
        if codon_table is None:
            raise ModelError("a codon model needs the table of sense codons")
        return _Request(kind, codon_table.codons, codon_table, data, gamma)
    fixed = kind in ("dna", "rna", "protein", "binary") or states is None
    names = default_states(kind, n_states) if fixed else tuple(states)
    return _Request(kind, names, None, data, gamma)


def _family(head: Piece, request: _Request) -> Family:
    known = families(request.datatype, request.states, request.codon_table)
    family = known.get(head.name.upper())
    if family is None and request.datatype in ("dna", "rna"):
        family = named_code(head.name)
    if family is None:
        raise _unknown_model(head, {f.canonical for f in known.values()} | {"MKV"} & set(known), request)
    return family


def _unknown_model(head: Piece, names: set[str], request: _Request) -> ModelError:
    """Says, where other data have a model of that name, how to read the alignment as such data."""
    error = unknown_name(f"{request.datatype} model", head.name, names, head.column)
    homes = datatypes_of(head.name)
    if homes:
        error.hint = (
            f"{head.name} is a model of {' and '.join(homes)} data, these are read as {request.datatype}: "
            f"--datatype {homes[0]}, or one of {', '.join(sorted(names, key=str.upper))}."
        )
    return error


def _substitution(
    head: Piece, family: Family, by_role: Mapping[str, Piece], request: _Request
) -> tuple[SubstitutionFamily, list[Parameter]]:
    """The substitution model and its parameters, with the values of the string and the counts of the data."""
    piece, classes = by_role.get("frequencies"), by_role.get("hidden classes")
    frequencies, counted = frequency_model(piece, family, request.states, request.codon_table, request.data)
    base = family.build(frequencies)
    parameters = list(with_piece_values(base.terms[0], head))
    if len(base.terms) > 1:
        own = with_piece_values(base.terms[1], piece)
        parameters += [replace(p, value=counted[p.name]) if p.name in counted else p for p in own]
    if classes is None:
        return base, parameters
    modulated = MarkovModulated(base, hidden_classes(classes))
    return modulated, [*parameters, *with_piece_values(modulated.switching.term, classes)]


def _observed_state(substitution: SubstitutionFamily) -> np.ndarray:
    if isinstance(substitution, MarkovModulated):
        return substitution.observed_state
    return np.arange(substitution.n_states)


def _site_rates(by_role: Mapping[str, Piece], request: _Request) -> SiteRates:
    piece = by_role.get("rate categories")
    categories = rate_categories(piece, request.gamma) if piece else UniformRate()
    return SiteRates(categories, "invariable sites" in by_role)


def _root_term(by_role: Mapping[str, Piece], request: _Request) -> Term | None:
    piece = by_role.get("root frequencies")
    if piece is None:
        return None
    if "hidden classes" in by_role:
        raise ModelError("+FROOT cannot be combined with hidden classes", column=piece.column)
    return Term(
        "+FROOT", (simplex("root_frequencies", tuple(f"root_frequency_{s}" for s in request.states)),)
    )


def _other_values(terms: Sequence[Term], by_role: Mapping[str, Piece]) -> list[Parameter]:
    by_label = {"+FROOT": "root frequencies", "+I": "invariable sites"}
    pieces = [by_role.get(by_label.get(t.label, "rate categories")) for t in terms]
    return [p for term, piece in zip(terms, pieces) for p in with_piece_values(term, piece)]
