"""Nucleotide triplets to codon states, ambiguous ones as the set of sense codons they allow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phloem.data.alphabet import Alphabet
from phloem.data.coding import (
    CodedCharacters,
    code_type,
    first_position,
    nucleotide_masks,
    number_sets,
    used_characters,
)
from phloem.data.genetic_code import CODONS
from phloem.errors import InputError

_ALL = 15  # the nucleotide mask that allows A, C, G and T


def code_codons(
    taxa: tuple[str, ...],
    matrix: np.ndarray,
    columns: np.ndarray,
    alphabet: Alphabet,
    sets: Mapping[int, str],
    ambiguity: str,
    stop_codons: str,
) -> CodedCharacters:
    """Code the codons of a (T, L) matrix of nucleotide characters, L a multiple of three.

    A triplet allows every sense codon that its three characters allow; one that allows stops only is a stop
    codon: an InputError naming taxon and codon, or missing under stop_codons="mask". Under
    ambiguity="missing" a triplet with any ambiguous character is missing.
    """
    if matrix.shape[1] % 3:
        raise InputError(
            f"{matrix.shape[1]} columns are not a multiple of three, so they are no codons",
            taxon=taxa[0],
            site=int(columns[-1]) + 1,
            hint="Choose the coding columns (--sites 1-…), or check the reading frame.",
        )
    masks = nucleotide_masks(taxa, matrix, columns, alphabet, sets)
    triplets = masks[:, 0::3].astype(np.uint16) << 8
    triplets |= masks[:, 1::3].astype(np.uint16) << 4
    triplets |= masks[:, 2::3]
    used = used_characters(triplets)
    allowed = triplet_states(used, alphabet)
    stops = used[~allowed.any(axis=1)]
    if len(stops) and stop_codons == "error":
        stopped = np.isin(triplets, stops)
        row, codon = first_position(stopped.astype(np.uint8), 1)
        raise _stop_codon(taxa[row], codon, int(triplets[row, codon]), columns, bool(stopped[:, :-1].any()))
    ambiguous = (used & (used - 1) & 0xF) | (used & (used - 0x10) & 0xF0) | (used & (used - 0x100) & 0xF00)
    partial = (ambiguous != 0) & allowed.any(axis=1) & ~allowed.all(axis=1)
    missing = ~allowed.any(axis=1) | (partial if ambiguity == "missing" else False)
    allowed[missing] = True
    codes, table = number_sets(list(allowed), alphabet.n_states)
    look_up = np.zeros(4096, code_type(len(table)))
    look_up[used] = codes
    counts = np.bincount(triplets.ravel(), minlength=4096)[used]
    n_masked = int(counts[np.isin(used, stops)].sum())
    return CodedCharacters(look_up[triplets], table, int(counts[partial].sum()), n_masked)


def triplet_states(triplets: np.ndarray, alphabet: Alphabet) -> np.ndarray:
    """(n, S) bool: the sense codons that triplets of masks (first << 8 | second << 4 | third) allow."""
    sense = [CODONS.index(codon) for codon in alphabet.states]
    bits = (triplets[:, None] >> np.arange(12)) & 1 > 0
    third, second, first = bits[:, 0:4], bits[:, 4:8], bits[:, 8:12]
    cube = first[:, :, None, None] & second[:, None, :, None] & third[:, None, None, :]
    return cube.reshape(len(triplets), 64)[:, sense]


def _stop_codon(taxon: str, codon: int, triplet: int, columns: np.ndarray, within: bool) -> InputError:
    """within: whether there are stops ahead of the last codon."""
    letters = {_ALL: "N", 1: "A", 2: "C", 4: "G", 8: "T", 5: "R", 10: "Y", 6: "S", 9: "W", 12: "K", 3: "M"}
    letters |= {14: "B", 13: "D", 11: "H", 7: "V"}
    text = "".join(letters[triplet >> shift & _ALL] for shift in (8, 4, 0))
    first, last = int(columns[3 * codon]) + 1, int(columns[3 * codon + 2]) + 1
    hint = "Check the genetic code and reading frame, or treat stops as missing data (--stop-codons mask)."
    if not within and codon > 0:
        hint = "All stops are in the last codon: leave it out with --sites, or mask it (--stop-codons mask)."
        if columns[-1] - columns[0] == len(columns) - 1:
            left = f"{columns[0] + 1}-{columns[-4] + 1}"
            hint = hint.replace("--sites", f"--sites {left}")
    return InputError(
        f"stop codon {text} in '{taxon}' at codon {codon + 1} (columns {first} to {last})",
        taxon=taxon,
        site=first,
        hint=hint,
    )
