"""The model grammar that IQ-TREE and RAxML-NG users know, with named parameters (docs/models.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from phloem.errors import ModelError
from phloem.model.autocorrelated_rates import AutocorrelatedGammaRates
from phloem.model.families import default_states
from phloem.model.frequencies import CodonTable
from phloem.model.mixture import Mixture
from phloem.model.model import Model
from phloem.model.model_string import Piece, split_model, with_piece_values
from phloem.model.processes import Processes, Request, read_processes
from phloem.model.record import Parameter, simplex
from phloem.model.site_rates import GammaCategories, SiteRates, UniformRate
from phloem.model.substitution import Term
from phloem.model.suffixes import FrequencyData, rate_categories, roles

DATATYPES = ("dna", "rna", "protein", "codon", "doublet", "binary", "standard", "custom")


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
    processes, by_role = read_processes(head, given := roles(suffixes), request)
    site_rates = _site_rates(by_role, request)
    root = _root_term(by_role, request)
    unseen, asc = _unseen(processes.ascertained, by_role.get("ascertainment"), request)
    categories = site_rates.categories.term
    if processes.star:  # written as it was read
        categories = replace(categories, label=categories.label.replace("+", "*", 1))
    others = (*([root] if root else []), *site_rates.terms[:-1], categories)
    terms = (*processes.mixture.terms, *others)
    parameters = [*processes.parameters, *_other_values(others, by_role)]
    order = [p.name for t in terms for p in t.parameters]
    rates = given.get("rate categories")
    if rates and isinstance(rate_categories(rates, request.gamma), AutocorrelatedGammaRates):
        _check_along_sites(rates, processes, given, bool(unseen), request)
    if processes.fused:
        _check_fused(processes.mixture, site_rates, by_role["rate categories"])
    model = Model(
        mixture=processes.mixture,
        site_rates=site_rates,
        terms=(*terms, Term(asc)) if unseen else terms,
        parameters=tuple(sorted(parameters, key=lambda p: order.index(p.name))),
        observed_state=processes.observed_state,
        datatype=request.datatype,
        root_term=root,
        unseen=unseen,
        fused=processes.fused,
    )
    _require_one_class(model, request.states)
    return model


def _request(datatype, n_states, states, codon_table, data, gamma) -> Request:
    kind = datatype.lower()
    if kind not in DATATYPES:
        raise ModelError(f"unknown datatype '{datatype}'", hint=f"Known: {', '.join(DATATYPES)}.")
    if kind == "codon":
        if codon_table is None:
            raise ModelError("a codon model needs the table of sense codons")
        return Request(kind, codon_table.codons, codon_table, data, gamma)
    fixed = kind in ("dna", "rna", "protein", "binary") or states is None
    names = default_states(kind, n_states) if fixed else tuple(states)
    return Request(kind, names, None, data, gamma)


def leaves_uninformative(text: str) -> bool:
    """Whether a model string has +ASC{informative}."""
    if "asc" not in text.lower():
        return False
    return _informative_alone(roles(split_model(text)[1:]).get("ascertainment"))


def _informative_alone(piece: Piece | None) -> bool:
    return piece is not None and [value.strip().lower() for _, value in piece.positional] == ["informative"]


def _unseen(
    named: bool, piece: Piece | None, request: Request
) -> tuple[tuple[int, ...] | Literal["uninformative"], str]:
    """States whose constant characters are never seen, and how the model's text says so: +ASC is all of them,
    +ASC{0} those of state 0 alone; +ASC{informative}: no uninformative character is."""
    if _informative_alone(piece):
        return "uninformative", "+ASC{informative}"
    everything = tuple(range(len(request.states)))
    if piece is None or not piece.positional:
        return (everything, "+ASC") if named or piece is not None else ((), "")
    found = []
    for column, text in piece.positional:
        if text.strip() not in request.states:
            raise ModelError(
                f"'{text.strip()}' is no state",
                column=column,
                hint=f"States are {', '.join(request.states)}; or write +ASC{{informative}}.",
            )
        found.append(request.states.index(text.strip()))
    if named or len(set(found)) == len(everything):
        return everything, "+ASC"
    states = tuple(sorted(set(found)))
    return states, f"+ASC{{{','.join(request.states[i] for i in states)}}}"


def _require_one_class(model: Model, states: Sequence[str]) -> None:
    """ModelError where frequencies of 0 cut the other states into groups that no change connects: data with
    states of two of them would have likelihood 0, or one that rounding makes."""
    fixed = [np.asarray(p.value) for p in model.parameters if p.kind == "simplex" and p.value is not None]
    if not any((value == 0).any() for value in fixed):
        return
    for process in model.evaluate(model.start_values()).processes:
        there = np.flatnonzero(process.frequencies > 0)
        rates = np.abs(process.rate_matrix[np.ix_(there, there)]) > 0
        n, group = connected_components(rates, directed=False)
        if n == 1:
            continue
        shown = np.asarray(states)[model.observed_state[there]]
        listed = " and ".join(
            ", ".join(dict.fromkeys(shown[group == k])) for k in np.argsort(-np.bincount(group))[:2]
        )
        raise ModelError(
            f"{model.name}: states between them have frequency 0, so {listed} cannot become each other",
            hint="Write +FO, which estimates frequencies above 0, or +FQ, equal ones.",
        )


def _check_fused(mixture: Mixture, site_rates: SiteRates, piece: Piece) -> None:
    """ModelError unless there is a category for every process."""
    n, c = mixture.n_processes, site_rates.categories.n_categories
    if n != c:
        raise ModelError(
            f"*{piece.name} ties {c} categories to {n} process(es)",
            column=piece.column,
            hint=f"Give {n} categories, or write +{piece.name}: every process then has all of them.",
        )


def _check_along_sites(
    piece: Piece, processes: Processes, given: Mapping[str, Piece], ascertained: bool, request: Request
) -> None:
    """ModelError for what rates that are correlated along the sites do not go together with."""
    beside = ""
    if "invariable sites" in given:
        beside = "+I: invariable sites have no place among its classes"
    elif ascertained:
        beside = "+ASC, since sites that were left out would stand between the others"
    elif "hidden classes" in given or processes.mixture.n_processes > 1:
        beside = "several processes or hidden classes"
    elif request.datatype == "doublet":
        beside = "doublets, which have two places in the sequence each"
    if beside:
        raise ModelError(
            f"+{piece.name} cannot be combined with {beside}",
            column=piece.column,
            hint=f"Write +{piece.name[1:]} for rates independent among sites, or leave the other out.",
        )


def _site_rates(by_role: Mapping[str, Piece], request: Request) -> SiteRates:
    piece = by_role.get("rate categories")
    categories = rate_categories(piece, request.gamma) if piece else UniformRate()
    return SiteRates(categories, "invariable sites" in by_role)


def _root_term(by_role: Mapping[str, Piece], request: Request) -> Term | None:
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
