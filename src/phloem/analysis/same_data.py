"""Whether two analyses are of the same data: only their likelihoods can be held against each other.

What counts are the characters that were read, not the file that they stood in: of one file two analyses may
read different blocks or columns, or codons of which the other reads the amino acids alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from phloem.analysis.mcmc_parts import Piece
from phloem.analysis.reading import Part
from phloem.data.alignment import Alignment
from phloem.data.unseen import Unseen
from phloem.errors import InputError

_SAME_KIND = {"rna": "dna", "binary": "standard"}  # kinds that name the same characters by the same states
READ, CONDITIONED = "characters", "conditioned_on"


def characters_read(
    parts: Sequence[Part], pieces: Sequence[Piece], unseen: Sequence[Unseen]
) -> dict[str, dict[str, str]]:
    """For the record of an analysis. `characters`: kind of data → a checksum of the characters of that kind;
    `conditioned_on`: what +ASC says that they are → a checksum of those of which it says so.

    unseen: of every piece, as its model has it. Checksums do not depend on the order of taxa and of
    characters, on how characters are divided into parts, nor on the number of states that a part has.
    """
    by_name = {part.name: part.alignment for part in parts}
    read: dict[str, list[np.ndarray]] = {}
    conditioned: dict[str, list[np.ndarray]] = {}
    of_parts = {piece.part: what for piece, own in zip(pieces, unseen) if (what := _seen(piece, own))}
    for piece in pieces:
        numbers = _numbers(by_name[piece.part], piece)
        kind = by_name[piece.part].alphabet.kind
        read.setdefault(_SAME_KIND.get(kind, kind), []).append(numbers)
        if piece.part in of_parts:
            conditioned.setdefault(of_parts[piece.part], []).append(numbers)
    return {
        READ: {kind: _checksum(own) for kind, own in sorted(read.items())},
        CONDITIONED: {what: _checksum(own) for what, own in sorted(conditioned.items())},
    }


def _seen(piece: Piece, unseen: Unseen) -> str:
    """What +ASC says that all characters are; '' without it."""
    if not unseen:
        return ""
    if unseen == "uninformative":
        what = "informative"
    elif len(unseen) == piece.alignment.alphabet.n_states:
        what = "variable"
    else:
        what = f"not constant in {', '.join(piece.alignment.alphabet.states[s] for s in unseen)}"
    return f"{what}, as of two states" if piece.unrecorded else what


def _numbers(alignment: Alignment, piece: Piece) -> np.ndarray:
    """(L,) uint64 that tell a piece's characters apart: sums over taxa of a number for the taxon times one
    for the set of states that it has."""
    n_own = piece.alignment.n_sites  # 0 of the piece that only stands for what others leave unseen
    columns = np.arange(n_own) if piece.columns is None else piece.columns
    names = np.array(alignment.alphabet.states)
    if alignment.alphabet.kind == "rna":
        names = np.char.replace(names, "U", "T")
    missing = alignment.alphabet.n_states
    texts = ["|".join(names[allowed]) for allowed in alignment.state_sets]
    texts[missing] = "?"
    of_code = np.array([_number(text) for text in texts], np.uint64)
    rows, found = {taxon: i for i, taxon in enumerate(alignment.taxa)}, np.zeros(len(columns), np.uint64)
    for taxon in piece.alignment.taxa:
        found += of_code[alignment.codes[rows[taxon], columns]] * np.uint64(_number(taxon) | 1)
    return found


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _checksum(numbers: Iterable[np.ndarray]) -> str:
    ordered = np.sort(np.concatenate(list(numbers))).astype("<u8")
    return hashlib.sha256(ordered.tobytes()).hexdigest()


# Records held against each other.


def data_of_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """What says which data an analysis by chains is of. KeyError, TypeError where it is no record of one."""
    size = {"n_taxa": record["data"]["taxa"], "n_sites": record["data"]["sites"]}
    settings, provenance = record["settings"], record["provenance"]
    files = provenance["files"]
    if trait := settings.get("trait"):
        size["trait"] = files[trait["table"]]["sha256"], trait["column"]
    if READ in provenance:
        return size | {READ: provenance[READ]}
    kept = {name: settings[name] for name in ("sites", "ambiguity")}  # of older records: how they were read
    kept |= {name: settings.get(name, usual) for name, usual in (("without", []), ("ordered", None))}
    return size | kept | {"alignment": next(iter(files.values()))["sha256"]}


def conditioning_of_record(record: Mapping[str, Any]) -> object:
    """What the likelihood of an analysis is conditioned on; of older records whether it is."""
    return record["provenance"].get(CONDITIONED, "+ASC" in record["model"])


def are_of_same_data(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records are; of an older one and a newer, whether they read the same file in the same
    way."""
    if (READ in one["provenance"]) != (READ in other["provenance"]):
        one, other = _as_older(one), _as_older(other)
    return data_of_record(one) == data_of_record(other)


def _as_older(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in record["provenance"].items() if k not in (READ, CONDITIONED)}
    return {**record, "provenance": kept}


def require_alike_conditioned(one: Mapping[str, Any], other: Mapping[str, Any], file: str) -> None:
    """InputError that names the other's file where +ASC conditions only one likelihood, or the two on
    different things."""
    if (CONDITIONED in one["provenance"]) != (CONDITIONED in other["provenance"]):
        one, other = _as_older(one), _as_older(other)
    if conditioning_of_record(one) != conditioning_of_record(other):
        raise InputError(
            "the likelihoods of these models are conditioned on different things: only one has +ASC, or it "
            "is of other characters, or says something else of them",
            file=file,
            hint="Compare models of which all have the same +ASC for the same characters, or none.",
        )
