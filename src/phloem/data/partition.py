"""Which columns of an alignment share a site model: subsets of the columns, and the scheme they make up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from phloem.data.alphabet import TRANSLATED
from phloem.data.sites import format_sites
from phloem.errors import InputError, require_choice

Unassigned = Literal["error", "drop"]
_OF_TRIPLETS = ("codon", TRANSLATED)
_OF_NUCLEOTIDES = (*_OF_TRIPLETS, "doublet")


@dataclass(frozen=True, eq=False)
class Subset:
    """Columns that share a data type and a site model.

    name: unique in its scheme, whatever its case. sites: int64, 0-based columns of the file, ascending,
    each once; for codons the nucleotides' columns, three after three a codon; for doublets two after two a
    pair, in any order.
    model_text: the model as the partition file writes it, None where it names none.
    datatype: dna, rna, protein, codon, translated, doublet, binary or standard where the file says so, else
    None (the model, the alignment or the user decides). genetic_code: NCBI number, where the file gives one.
    n_states: of standard data, where the model's name says it (RAxML's MULTI5_MK), else None.
    line: 1-based line of the partition file. maybe_model: the name stands where one could also take it for a
    model (`charpartition p = HKY:1-100`).
    """

    name: str
    sites: np.ndarray
    model_text: str | None = None
    datatype: str | None = None
    genetic_code: int | None = None
    line: int | None = None
    n_states: int | None = None
    maybe_model: bool = False

    @property
    def n_sites(self) -> int:
        return len(self.sites)


@dataclass(frozen=True, eq=False)
class Scheme:
    """Disjoint subsets of an alignment's columns, checked by `make_scheme`.

    n_sites: columns of the alignment. name, file: what the partition is called, and where it was read.
    dropped: int64, the columns in no subset, ascending; empty unless they were allowed.
    """

    subsets: tuple[Subset, ...]
    n_sites: int
    name: str | None = None
    file: str | None = None
    dropped: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


def make_scheme(
    subsets: Sequence[Subset],
    n_sites: int,
    *,
    name: str | None = None,
    file: str | None = None,
    unassigned: Unassigned = "error",
) -> Scheme:
    """The scheme of these subsets of an alignment with n_sites columns.

    unassigned: columns in no subset are an "error", or left out ("drop").
    Raises InputError with file and line of the subset for no subsets, a name that is there twice, a subset
    without columns, columns out of range or in two subsets, codons that are none, and unassigned columns.
    """
    require_choice("treatment of unassigned columns", unassigned, ("error", "drop"))
    if not subsets:
        raise InputError(
            "the partition has no subsets", file=file, hint="Name at least one, as in 'a = 1-9'."
        )
    _check_names(subsets, file)
    owner = np.full(n_sites, -1, np.int64)
    for number, subset in enumerate(subsets):
        _check_columns(subset, n_sites, file)
        taken = subset.sites[owner[subset.sites] >= 0]
        if len(taken):
            other = subsets[owner[taken[0]]]
            both = np.sort(taken[owner[taken] == owner[taken[0]]])
            raise InputError(
                f"columns {format_sites(both)} are in '{other.name}' and in '{subset.name}'",
                file=file,
                line=subset.line,
                hint="Give every column to one subset.",
            )
        owner[subset.sites] = number
        _check_codons(subset, file)
    dropped = np.flatnonzero(owner < 0)
    if len(dropped) and unassigned == "error":
        raise InputError(
            f"{len(dropped):,} columns are in no subset: {_shortened(format_sites(dropped))}",
            file=file,
            hint="Add a subset for them, or leave them out with --unassigned-sites drop.",
        )
    return Scheme(tuple(subsets), n_sites, name, file, dropped)


def with_declared_datatypes(scheme: Scheme, declared: Scheme) -> Scheme:
    """Each subset with the data type that the alignment's file declares for its columns (DATATYPE=MIXED).

    Raises InputError for a subset whose columns have several declared data types, or that contradicts them.
    """
    kinds = [subset.datatype or "" for subset in declared.subsets]
    kind_of = np.full(scheme.n_sites, -1, np.int64)
    for subset, kind in zip(declared.subsets, kinds):
        kind_of[subset.sites] = kinds.index(kind)
    typed = []
    for subset in scheme.subsets:
        found = [kinds[number] for number in np.unique(kind_of[subset.sites]) if number >= 0]
        if len(found) > 1:
            raise InputError(
                f"the columns of '{subset.name}' are of several data types ({', '.join(found)})",
                file=scheme.file,
                line=subset.line,
                hint="Split it where the alignment's DATATYPE=MIXED changes.",
            )
        expected = found[0] if found else subset.datatype
        if subset.datatype not in (None, expected) and (
            subset.datatype not in _OF_NUCLEOTIDES or expected not in ("dna", "rna")
        ):
            raise InputError(
                f"'{subset.name}' is {subset.datatype}, and its columns are declared as {expected}",
                file=scheme.file,
                line=subset.line,
                hint="Correct the subset, or DATATYPE=MIXED in the alignment.",
            )
        typed.append(replace(subset, datatype=subset.datatype or expected))
    return replace(scheme, subsets=tuple(typed))


def _check_names(subsets: Sequence[Subset], file: str | None) -> None:
    lines: dict[str, int | None] = {}
    for subset in subsets:
        key = subset.name.lower()
        if not key:
            raise InputError("a subset has no name", file=file, line=subset.line, hint="Name it.")
        if key in lines:
            where = "" if lines[key] is None else f", first in line {lines[key]}"
            raise InputError(
                f"the subset '{subset.name}' is there twice{where}",
                file=file,
                line=subset.line,
                hint="Rename one of them.",
            )
        lines[key] = subset.line


def _check_columns(subset: Subset, n_sites: int, file: str | None) -> None:
    sites = subset.sites
    if not len(sites):
        raise InputError(
            f"the subset '{subset.name}' has no columns",
            file=file,
            line=subset.line,
            hint="Give it columns, or delete it.",
        )
    sites = np.sort(sites) if subset.datatype == "doublet" else sites
    if sites.dtype != np.int64 or (np.diff(sites) <= 0).any() or sites[0] < 0:
        raise InputError(f"the columns of '{subset.name}' are not ascending numbers", file=file)
    if sites[-1] >= n_sites:
        raise InputError(
            f"'{subset.name}' reaches to column {sites[-1] + 1}, the alignment has {n_sites}",
            file=file,
            line=subset.line,
            hint="Correct the columns, or check that this is the alignment they belong to.",
        )


def _check_codons(subset: Subset, file: str | None) -> None:
    """Codons are three columns each, of which two are neighbours (an intron may cut a codon once)."""
    if subset.datatype not in _OF_TRIPLETS:
        return
    if subset.n_sites % 3:
        raise InputError(
            f"the {subset.n_sites} columns of '{subset.name}' are not a multiple of three, so no codons",
            file=file,
            line=subset.line,
            hint="Correct its columns, or give it a nucleotide model.",
        )
    steps = np.diff(subset.sites.reshape(-1, 3), axis=1)
    scattered = ~(steps == 1).any(axis=1)
    if scattered.any():
        first = subset.sites.reshape(-1, 3)[scattered.argmax()] + 1
        raise InputError(
            f"'{subset.name}' would have a codon of the columns {first[0]}, {first[1]} and {first[2]}",
            file=file,
            line=subset.line,
            hint="Codons are three columns in a row: leave out the stride, or give it a nucleotide model.",
        )


def _shortened(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[:length].rsplit(",", 1)[0] + ", …"
