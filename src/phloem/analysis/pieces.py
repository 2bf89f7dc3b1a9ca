"""Parts of the data as samplers have them, each with its model: standard characters by their number of
states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Literal

import numpy as np

from phloem.analysis.mcmc_parts import (
    Characters,
    Piece,
    corrected_together,
    expanded_links,
    numbers_of_states,
    pieces_of,
)
from phloem.analysis.partitioned_likelihood import read_linkage
from phloem.analysis.reading import DataOptions, Part, SampledDataOptions, of_part
from phloem.data.sites import format_sites, parse_sites
from phloem.data.translation import columns_of_site
from phloem.density.parts import LengthLinkage, PartModel
from phloem.errors import InputError
from phloem.inference.mcmc.structure import ChainModel, sites_per_character, structure_of_parts
from phloem.io.alignment import read_characters
from phloem.io.partition_words import plain_sets
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.grammar import leaves_uninformative
from phloem.model.model_string import split_model
from phloem.model.suffixes import beta_classes, roles
from phloem.tree.match import folded, likely_name

DEFAULT_MODELS = {
    "dna": "GTR+G4",
    "rna": "GTR+G4",
    "protein": "LG+G4",
    "codon": "GY94+F3X4",
    "doublet": "SH94K+G4",
}


def pieces_of_parts(
    settings: SampledDataOptions, parts: Sequence[Part], gamma: Literal["mean", "median"]
) -> tuple[list[Piece], list[PartModel], list[str]]:
    """Of all parts their pieces, the model of each, and in words what is left out. Errors: InputError,
    ModelError that name the part."""
    without = frozenset(taxa_named(settings.without, parts[0].alignment.taxa))
    pieces, models, told = list[Piece](), list[PartModel](), list[str]()
    for part, ordered in zip(parts, _ordered(settings, parts)):
        with of_part(part) if len(parts) > 1 else nullcontext():
            how = Characters(ordered, settings.character_states != "all", settings.asc == "mrbayes", without)
            text = part.model_text
            if text is None:
                text = DEFAULT_MODELS.get(part.alignment.alphabet.kind, "MK+G4")
            if how.own_states:
                _require_two_states(settings, part, text)
            own = pieces_of(part.name, part.alignment, text, how)
            models += [_part(piece, gamma) for piece in own]
        pieces += own
        told += corrected_together(own)
        left_out = part.alignment.n_sites - sum(piece.alignment.n_sites for piece in own)
        if left_out:
            kind = "uninformative" if leaves_uninformative(text) else "constant"
            told.append(f"{left_out} characters of '{part.name}' could be {kind} and are left out")
    return pieces, models, told


def _require_two_states(settings: SampledDataOptions, part: Part, text: str) -> None:
    """InputError that names characters of more than two states where a model's frequencies differ among
    those of two."""
    if part.alignment.alphabet.kind != "standard" or "fb" not in text.lower():
        return
    if not beta_classes(roles(split_model(text)[1:]).get("frequencies")):
        return
    more = np.flatnonzero(numbers_of_states(part.alignment) > 2)
    if len(more):
        columns = format_sites(_columns(settings, part)[more])
        raise InputError(
            f"characters {columns} have more than two states, and frequencies that differ among characters, "
            f"as of {text}, are of those with two",
            file=settings.alignment,
            hint="Put them into a part of their own under MK (in a MRBAYES block: partition, and prset "
            "applyto=(…) symdirihyperpr=fixed(infinity)), or exclude them.",
        )


def _columns(settings: SampledDataOptions, part: Part) -> np.ndarray:
    """(L,) which columns of the file, from 0, those of a part are."""
    if part.sites is not None:
        return part.sites
    if settings.sites is None:
        return np.arange(part.alignment.n_sites)
    characters = read_characters(settings.alignment, settings.block, settings.phylip_layout, True)
    return parse_sites(settings.sites, characters.n_sites, plain_sets(characters.charsets))


def _part(piece: Piece, gamma: Literal["mean", "median"]) -> PartModel:
    model = model_for_alignment(piece.model_text, piece.alignment, gamma)
    columns = columns_of_site(piece.alignment)
    return PartModel(piece.name, model, piece.alignment.n_sites, sites_per_character(model), columns)


def members_of(parts: Sequence[Part], pieces: Sequence[Piece]) -> dict[str, list[str]]:
    """Names of the pieces of every part."""
    return {p.name: [piece.name for piece in pieces if piece.part == p.name] for p in parts}


def linkage_of(linkage: LengthLinkage | None, parts: Sequence[Part]) -> LengthLinkage:
    """As usual parts have a rate each, and the pieces of one part none."""
    return linkage or ("proportional" if len(parts) > 1 else "linked")


def shared_structure(
    linkage: LengthLinkage, link: Sequence[str], members: Mapping[str, Sequence[str]],
    models: Sequence[PartModel],
) -> ChainModel:  # fmt: skip
    """Models of all pieces, and what they share: those of a part all its parameters, being one in their
    lengths; else as --linkage and --link say of the parts."""
    by_name = {part.name: part.model for part in models}
    lengths = ["lengths"] if linkage != "linked" else []
    shared = {name: [*lengths, *(p.name for p in by_name[own[0]].free)] for name, own in members.items()}
    links = expanded_links(link, members, shared)
    return structure_of_parts(models, read_linkage(linkage, links, by_name))


def _ordered(settings: SampledDataOptions, parts: Sequence[Part]) -> list[np.ndarray]:
    """Of every part: which of its columns have ordered states."""
    if settings.ordered is None:
        return [np.zeros(part.alignment.n_sites, bool) for part in parts]
    characters = read_characters(settings.alignment, settings.block, settings.phylip_layout, True)
    columns = parse_sites(settings.ordered, characters.n_sites, plain_sets(characters.charsets))
    found, used = [], 0
    for part in parts:
        own = np.isin(_columns(settings, part), columns)
        if len(own) != part.alignment.n_sites:  # codons
            own = np.zeros(part.alignment.n_sites, bool)
        used += int(own.sum())
        found.append(own)
    if used < len(columns):
        raise InputError(
            f"--ordered names {len(columns) - used} column(s) that are in no part of standard characters",
            hint="Name columns of standard characters that are not left out.",
        )
    return found


def taxa_named(names: Sequence[str], taxa: Sequence[str]) -> set[str]:
    """The taxa of some names, blanks and case as in NEXUS."""
    return {taxon_of(name, taxa) for name in names}


def taxon_of(name: str, taxa: Sequence[str]) -> str:
    """The taxon of a name, blanks and case as in NEXUS; InputError without one."""
    for taxon in taxa:
        if folded(taxon) == folded(name):
            return taxon
    near = likely_name(name, taxa)
    raise InputError(
        f"there is no taxon '{name}'", hint=f"Did you mean '{near}'?" if near else "Check its spelling."
    )


def sites_in_file(
    settings: DataOptions, parts: Sequence[Part], pieces: Sequence[Piece]
) -> tuple[np.ndarray | None, ...]:
    """Of every piece (L,) the numbers from 1 of its sites in the file, of codons those of first nucleotides;
    None where --sites chose them."""
    by_name = {part.name: part for part in parts}
    return tuple(_sites_in_file(settings, by_name[own.part], own) for own in pieces)


def _sites_in_file(settings: DataOptions, part: Part, piece: Piece) -> np.ndarray | None:
    columns = part.sites
    if columns is None:
        if settings.sites is not None:
            return None
        columns = np.arange(part.alignment.n_sites * columns_of_site(part.alignment))
    width = len(columns) // max(part.alignment.n_sites, 1)
    own = np.arange(piece.alignment.n_sites) if piece.columns is None else piece.columns
    return columns[own * width] + 1
