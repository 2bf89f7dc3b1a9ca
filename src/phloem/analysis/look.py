"""What a file holds, in a moment and before any analysis."""

from __future__ import annotations

import re
import threading
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from phloem.analysis.reading import DECLARED, DataOptions, parts_of
from phloem.data.alignment import Alignment, Coding
from phloem.data.dates import TipDates
from phloem.data.patterns import site_patterns
from phloem.errors import InputError, InputWarning
from phloem.io.alignment import (
    one_alignment,
    part_alignment,
    read_alignment,
    read_characters,
    read_scheme,
)
from phloem.io.date_table import read_dates
from phloem.io.dates import dates_from_names
from phloem.io.distance_matrix import is_distance_matrix, taxa_of_matrix
from phloem.io.distance_pairs import is_pairs
from phloem.io.input_file import first_bytes
from phloem.io.nexus import is_nexus, read_blocks
from phloem.io.nexus_names import named_sets
from phloem.io.partition_words import names_of_list
from phloem.io.source_text import read_source
from phloem.io.tree_table import tree_table
from phloem.io.trees import read_trees
from phloem.summary.spread import evenly_spread

Content = Literal["alignment", "matrix", "trees", "dates", "partitions"]
MOST_GROUPS = 50  # of identical sequences that are listed
_CHARACTERS = re.compile(r"begin\s+(data|characters)\b", re.IGNORECASE)
_TREES = re.compile(r"begin\s+trees\b", re.IGNORECASE)
_SETS = re.compile(r"[;\]]\s*charset\b", re.IGNORECASE)
_COMMENTS = re.compile(r"^(?:\[[^\]]*\]\s*)+")  # of a Newick file, before its tree
_TRACES = ("gen", "state", "sample", "iteration")  # what samplers call a trace's first column
_HEAD = 1 << 16
_WARNINGS = threading.RLock()  # Python's list of warnings is one for all threads


@dataclass(frozen=True)
class Look:
    """What was read. taxa: their number; names: of all. sites, patterns, datatype and what follows: of an
    alignment. missing_share: of its characters, and of each taxon. variable, informative: sites with two
    states, and with two states that two taxa have each. identical: groups of taxa with equal rows. parts:
    name, data type and sites of each where the file declares several data types, which are `mixed` then;
    states: of the only one. trees: of a tree file. dates: of a table, (earliest, latest). subsets: names of
    those in a partition file. has_block: whether an alignment file has a MRBAYES block. warnings: what was
    not obeyed or is odd."""

    content: Content
    taxa: int
    names: tuple[str, ...] = ()
    sites: int | None = None
    patterns: int | None = None
    datatype: str | None = None
    guessed: bool = False
    states: tuple[str, ...] = ()
    missing_share: float = 0.0
    missing_by_taxon: tuple[float, ...] = ()
    ambiguous: int = 0
    variable: int | None = None
    informative: int | None = None
    identical: tuple[tuple[str, ...], ...] = ()
    parts: tuple[tuple[str, str, int], ...] = ()
    names_have_dates: bool = False
    trees: int | None = None
    dates: tuple[float, float] | None = None
    subsets: tuple[str, ...] = ()
    has_block: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Overview:
    """An alignment small enough to look at: codes (rows, columns) of evenly chosen taxa and sites, uint8; n
    states, then `missing` for missing and ambiguous characters. taxa, sites: which were chosen."""

    codes: np.ndarray
    taxa: np.ndarray
    sites: np.ndarray
    states: tuple[str, ...]
    missing: int


def look_at(path: str, datatype: str | None = None) -> Look:
    """Read a file of any kind. Errors: InputError with file, line and remedy."""
    with _WARNINGS, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        content = content_of(path)
        if content == "alignment":
            parts, notes = _parts(path, datatype)
            found = replace(_of_parts(parts, notes), has_block=_has_block(path))
        elif content == "matrix":
            found = Look("matrix", taxa_of_matrix(path))
        elif content == "trees":
            trees = read_trees(path, allow_negative=True)
            found = Look("trees", trees[0].n_tips, trees[0].taxa, trees=len(trees))
        elif content == "partitions":
            found = Look("partitions", 0, subsets=_subsets(path))
        else:
            dates = read_dates(path)
            span = float(np.nanmin(dates.lower)), float(np.nanmax(dates.upper))
            found = Look("dates", len(dates.names), tuple(dates.names), dates=span)
    said = [str(one.message) for one in told if issubclass(one.category, InputWarning)]
    return Look(**{**vars(found), "warnings": (*said, *found.warnings)})


def content_of(path: str) -> Content:
    """What kind of file it is, by how it begins; an alignment where nothing else is recognised."""
    head = first_bytes(path, _HEAD).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if head[:6].lower() == "#nexus":
        if is_distance_matrix(path):
            return "matrix"
        if _CHARACTERS.search(head):
            return "alignment"
        return "trees" if _TREES.search(head) else "partitions" if _SETS.search(head) else "alignment"
    if _COMMENTS.sub("", head).startswith("(") or tree_table(head, path) is not None:
        return "trees"
    if names_of_list(head):
        return "partitions"
    if path.lower().endswith((".tsv", ".csv", ".txt")) and _is_narrow(head) and not is_pairs(head):
        return "dates"
    if _is_of_sampler(head):
        hint = "phloem summarize shows it: numbers, effective sample sizes, whether runs agree."
        raise InputError("this is a trace of a sampler", file=path, hint=hint)
    if head[:1] not in (">", "<") and is_distance_matrix(path):
        return "matrix"
    return "alignment"


def _is_of_sampler(head: str) -> bool:
    """Whether a table begins with a generation, comments left out."""
    lines = [line for line in head.splitlines() if line.strip() and line[0] not in "#["][:2]
    first = [line.split("\t")[0].strip().lower() for line in lines]
    return len(first) == 2 and first[0] in _TRACES and first[1].isdigit()


def _is_narrow(head: str) -> bool:
    """Whether a table has too few columns for a matrix of as many rows."""
    lines = [line for line in head.splitlines()[:10] if line.strip()]
    columns = [len(re.split(r"[\t;,]|\s+", line.strip())) for line in lines]
    return bool(lines) and lines[0][0] != ">" and max(columns) <= 3 and len(lines) > max(columns)


def _parts(path: str, datatype: str | None) -> tuple[dict[str, Alignment], list[str]]:
    """By name those of a file that declares several data types, else its one alignment; and notes. Sets of
    columns of which one has to be chosen first, or that are wrong, do not keep anybody from looking."""
    characters = read_characters(path)
    if datatype is not None or len({kind for kind, _ in characters.parts}) < 2:
        return {"": one_alignment(characters, Coding(datatype))}, []
    try:
        _, parts = parts_of(DataOptions(path, partitions=DECLARED), quiet=True)
        return {part.name: part.alignment for part in parts}, []
    except InputError as error:
        told = [f"{error.message}. {error.hint or ''} These are the parts by data type."]
        subsets = read_scheme(characters).subsets
        return {subset.name: part_alignment(characters, subset) for subset in subsets}, told


def _has_block(path: str) -> bool:
    source = read_source(path)
    return is_nexus(source.text) and any(block.name == "mrbayes" for block in read_blocks(source))


def _subsets(path: str) -> tuple[str, ...]:
    source = read_source(path)
    if is_nexus(source.text):
        return tuple(named_sets(read_blocks(source), "charset"))
    return names_of_list(source.text)


def _of_parts(parts: dict[str, Alignment], notes: list[str]) -> Look:
    alignment, *others = parts.values()
    every = [alignment, *others]
    missing = np.concatenate([one.codes == one.alphabet.n_states for one in every], axis=1)
    variable, informative = np.sum([_varying(one) for one in every], axis=0).tolist()
    empty = np.flatnonzero(missing.all(axis=1))
    if len(empty):
        names = ", ".join(alignment.taxa[i] for i in empty[:5].tolist())
        notes.append(f"{len(empty):,} taxa have no data at all, among them {names}: leave them out")
    if alignment.n_taxa < 4:
        notes.append(f"{alignment.n_taxa} taxa have one unrooted tree only: add sequences to compare trees")
    return Look(
        "alignment",
        alignment.n_taxa,
        alignment.taxa,
        missing.shape[1],
        sum(len(site_patterns(one).weights) for one in every),
        "mixed" if others else alignment.alphabet.kind,
        bool(alignment.settings.get("datatype_guessed")) and not others,
        () if others else tuple(alignment.alphabet.states),
        float(missing.mean()),
        tuple(missing.mean(axis=1).tolist()),
        sum(int((one.codes > one.alphabet.n_states).sum()) for one in every),
        variable,
        informative,
        _identical(every),
        tuple((name, one.alphabet.kind, one.n_sites) for name, one in parts.items()) if others else (),
        dates_of_names(alignment.taxa) is not None,
        warnings=tuple(notes),
    )


def _varying(alignment: Alignment) -> tuple[int, int]:
    """Sites with at least two states, and those with two states that at least two taxa have each."""
    states, twice = np.zeros(alignment.n_sites, np.int64), np.zeros(alignment.n_sites, np.int64)
    for state in range(alignment.alphabet.n_states):
        count = (alignment.codes == state).sum(axis=0)
        states += count > 0
        twice += count > 1
    return int((states > 1).sum()), int((twice > 1).sum())


def _identical(parts: Sequence[Alignment]) -> tuple[tuple[str, ...], ...]:
    """Groups of taxa whose rows are equal, character by character."""
    rows = defaultdict(list)
    for name, *own in zip(parts[0].taxa, *(part.codes for part in parts)):
        rows[b"".join(row.tobytes() for row in own)].append(name)
    groups = sorted((tuple(names) for names in rows.values() if len(names) > 1), key=len, reverse=True)
    return tuple(groups[:MOST_GROUPS])


def dates_of_names(taxa: tuple[str, ...]) -> TipDates | None:
    """The sampling dates that the names carry, if all do, and not all the same."""
    try:
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a guess: what is odd about it is no news to anybody
            dates = dates_from_names(taxa)
    except InputError:
        return None
    return dates if np.isfinite(dates.middle).all() and np.ptp(dates.middle) > 0 else None


def table_of_dates(path: str, datatype: str | None = None) -> str:
    """The sampling dates that the names of an alignment carry, as a table that every command reads."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dates = dates_from_names(read_alignment(path, datatype).taxa)
    rows = zip(dates.names, dates.lower.tolist(), dates.upper.tolist())
    return (
        "\n".join(["name\tearliest\tlatest", *(f"{name}\t{a:.10g}\t{b:.10g}" for name, a, b in rows)]) + "\n"
    )


def overview(path: str, rows: int, columns: int, datatype: str | None = None) -> Overview:
    """At most rows × columns characters of an alignment, evenly chosen."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alignment = read_alignment(path, datatype)
    n = alignment.alphabet.n_states
    taxa, sites = evenly_spread(0, alignment.n_taxa, rows), evenly_spread(0, alignment.n_sites, columns)
    codes = np.minimum(alignment.codes[np.ix_(taxa, sites)], n).astype(np.uint8)
    return Overview(codes, taxa, sites, tuple(alignment.alphabet.states), n)
