"""Pairs of nucleotide columns, the two sides of an RNA stem, as characters of 16 states AA, AC, … TT."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from phloem.data.alphabet import Alphabet
from phloem.data.coding import CodedCharacters, code_type, nucleotide_masks, number_sets, used_characters
from phloem.data.sites import format_sites
from phloem.errors import InputError, count_of

_SIDE = r"(\d{1,12})(?:\s*-\s*(\d{1,12})(?:\s*\\\s*(\d{1,12}))?)?"
_PAIR = re.compile(rf"{_SIDE}\s*:\s*{_SIDE}(?=[\s,]|$)")
_BETWEEN = re.compile(r"[\s,]*")
_HINT = "Write pairs of columns as in '5:70, 6:69', or strands as in '5-9:70-66'."


def names_pairs(text: str) -> bool:
    """Whether a text of columns means pairs of them."""
    return _PAIR.match(text.strip()) is not None


def parse_pairs(text: str, n_sites: int) -> np.ndarray:
    """The columns of a text of pairs, 0-based int64, two after two a pair: "5:70, 6-9:69-66".

    Two strands are joined column after column; the second usually runs backwards. "1-99\\2:2-100\\2" pairs
    every column with the next. Raises InputError for what is no pair, columns that the alignment does not
    have, and columns that pair twice.
    """
    pairs, at = [np.empty((0, 2), np.int64)], _skipped(text, 0)
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise InputError(f"'{text[at : at + 40].strip()}' is no pair of columns", hint=_HINT)
        sides = [_strand(match.groups()[k : k + 3], n_sites) for k in (0, 3)]
        if len(sides[0]) != len(sides[1]):
            told = f"the strands of '{match.group()}' have {len(sides[0])} and {len(sides[1])} columns"
            raise InputError(told, hint=_HINT)
        pairs.append(np.stack(sides, axis=1))
        at = _skipped(text, match.end())
    columns = np.concatenate(pairs).ravel()
    if not len(columns):
        raise InputError(f"'{text}' names no pair of columns", hint=_HINT)
    found, counts = np.unique(columns, return_counts=True)
    if counts.max() > 1:
        told = f"column {found[counts > 1][0] + 1} pairs more than once"
        raise InputError(told, hint="Give every column one partner.")
    return columns


def pairs_not_said(whose: str) -> InputError:
    """The error for columns that are to be doublets, and are not given in pairs."""
    return InputError(f"which columns {whose} pair is not said", hint=_HINT)


def _skipped(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    assert match is not None
    return match.end()


def _strand(words: tuple[str | None, ...], n_sites: int) -> np.ndarray:
    """0-based columns of a-b\\step, b before a too."""
    first = count_of(words[0] or "")
    last = first if words[1] is None else count_of(words[1])
    step = 1 if words[2] is None else count_of(words[2])
    if first < 1 or last < 1 or step < 1:
        raise InputError("columns are counted from 1", hint=_HINT)
    if max(first, last) > n_sites:
        told = f"column {max(first, last)} is past the last one, {n_sites}"
        raise InputError(told, hint="Choose columns in range.")
    return np.arange(first, last + 1, step) - 1 if first <= last else np.arange(first, last - 1, -step) - 1


def columns_text(kind: str, sites: np.ndarray) -> str:
    """The text of a part's columns: of doublets pairs, of all other data ranges."""
    return format_pairs(sites) if kind == "doublet" else format_sites(sites)


def format_pairs(columns: np.ndarray) -> str:
    """The text for `parse_pairs` of these columns, two after two a pair; strands where they run on."""
    pairs = np.asarray(columns).reshape(-1, 2) + 1
    pieces, at = list[str](), 0
    while at < len(pairs):
        end, step = at + 1, None
        while end < len(pairs) and pairs[end, 0] == pairs[end - 1, 0] + 1:
            towards = int(pairs[end, 1] - pairs[end - 1, 1])
            if abs(towards) != 1 or step not in (None, towards):
                break
            end, step = end + 1, towards
        (a, b), (c, d) = pairs[at], pairs[end - 1]
        pieces.append(f"{a}:{b}" if end == at + 1 else f"{a}-{c}:{b}-{d}")
        at = end
    return ", ".join(pieces)


def code_doublets(
    taxa: tuple[str, ...],
    matrix: np.ndarray,
    columns: np.ndarray,
    alphabet: Alphabet,
    sets: Mapping[int, str],
    ambiguity: str,
    stop_codons: str,
) -> CodedCharacters:
    """Code pairs of a (T, 2 n) matrix of nucleotide characters, two columns after two.

    A pair allows every doublet that its two characters allow: "A-" is AA, AC, AG or AT, as in MrBayes.
    Under ambiguity="missing" a pair with an ambiguous or missing side is missing. columns, stop_codons: as
    for `code_codons`; there are no stops.
    """
    if matrix.shape[1] % 2:
        raise InputError(
            f"{matrix.shape[1]} columns are no pairs", taxon=taxa[0], hint="Give every column its partner."
        )
    masks = nucleotide_masks(taxa, matrix, columns, alphabet, sets)
    doublets = masks[:, 0::2].astype(np.uint16) << 4 | masks[:, 1::2]
    used = used_characters(doublets)
    allowed = pair_states(used)
    partial = (allowed.sum(axis=1) > 1) & ~allowed.all(axis=1)
    if ambiguity == "missing":
        allowed[partial] = True
    codes, table = number_sets(list(allowed), alphabet.n_states)
    look_up = np.zeros(256, code_type(len(table)))
    look_up[used] = codes
    counts = np.bincount(doublets.ravel(), minlength=256)[used]
    return CodedCharacters(look_up[doublets], table, int(counts[partial].sum()), 0)


def pair_states(pairs: np.ndarray) -> np.ndarray:
    """(n, 16) bool: the doublets that pairs of masks (first << 4 | second) allow."""
    bits = (pairs[:, None] >> np.arange(8)) & 1 > 0
    return (bits[:, 4:, None] & bits[:, None, :4]).reshape(len(pairs), 16)
