"""Very many nearly equal genomes, read as differences: of a FASTA file never more than one is in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from phloem.data.alignment import Alignment, check_taxa
from phloem.data.alphabet import nucleotide_characters
from phloem.data.genomes import MISSING, Genomes
from phloem.errors import InputError
from phloem.io.cut_names import tell_cut_names
from phloem.io.input_file import first_bytes, input_stream

FilePath = str | os.PathLike[str]

_START = 1 << 16
_BITS = np.array([1, 2, 4, 8], np.uint8)


def is_fasta_file(path: FilePath) -> bool:
    """Whether a file begins as FASTA does."""
    return first_bytes(path, _START).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b">")


def read_genomes(path: FilePath, ambiguity: str = "partial") -> Genomes:
    """Genomes of a FASTA file of nucleotides, gzip-compressed or not, which is read twice.

    ambiguity: partly ambiguous characters as sets of states ("partial") or as "missing". InputError with
    line, taxon and site for unequal lengths, characters that are no nucleotides, names that are there twice.
    """
    made = _Maker(ambiguity, os.fspath(path))
    headers = list[str]()
    with input_stream(path) as stream:
        for record in _records(stream, made.source, headers):
            made.count(*record)
    tell_cut_names(headers, made.source)
    made.choose_reference()
    with input_stream(path) as stream:
        for _, line, text in _records(stream, made.source):
            made.add(made.sets_of(line, text))
    return made.genomes()


def genomes_of(alignment: Alignment) -> Genomes:
    """The same of an alignment of nucleotides in memory."""
    made = _Maker("partial", alignment.source)
    bits = (alignment.state_sets @ _BITS).astype(np.uint8)
    for taxon, codes in zip(alignment.taxa, alignment.codes):
        made.count_sets(taxon, bits[codes])
    made.choose_reference()
    for codes in alignment.codes:
        made.add(bits[codes])
    return made.genomes()


class _Maker:
    """Counts all genomes first, then compares them with the reference that the counts make."""

    def __init__(self, ambiguity: str, source: str | None) -> None:
        self.source, self._taxa = source, list[str]()
        self._table = _table(ambiguity)
        self._every = np.zeros(16, np.int64)
        self._single = np.zeros((0, 4), np.int32)
        self._numbers: dict[bytes, int] = {}
        self._group = list[int]()
        self._pieces = list[tuple[np.ndarray, np.ndarray]]()

    def count(self, taxon: str, line: int, text: bytes) -> None:
        if not text:
            raise InputError(
                f"'{taxon}' has no characters",
                file=self.source,
                line=line,
                taxon=taxon,
                hint="Check the file.",
            )
        if self._taxa and len(text) != len(self._single):
            raise InputError(
                f"'{taxon}' has {len(text)} characters, '{self._taxa[0]}' has {len(self._single)}",
                file=self.source,
                line=line,
                taxon=taxon,
                hint="Align the sequences to one length.",
            )
        self._taxa.append(taxon)
        self.count_sets(None, self.sets_of(line, text))

    def count_sets(self, taxon: str | None, sets: np.ndarray) -> None:
        """taxon: None if it was noted."""
        from phloem.io.cpu.genome_lists import count

        if taxon is not None:
            self._taxa.append(taxon)
        if not len(self._single):
            self._single = np.zeros((len(sets), 4), np.int32)
            self._span = np.zeros((len(sets), 2), np.int32)
            self._states = np.zeros(len(sets), np.uint8)
        count(sets, self._single, self._every)

    def sets_of(self, line: int, text: bytes) -> np.ndarray:
        from phloem.io.cpu.genome_lists import read_sets

        sets = np.empty(len(text), np.uint8)
        wrong = read_sets(np.frombuffer(text, np.uint8), self._table, sets)
        if wrong >= 0:
            raise InputError(
                f"unknown character '{chr(text[wrong])}'",
                file=self.source,
                line=line,
                taxon=self._taxa[-1] if self._taxa else None,
                site=wrong + 1,
                hint="Nucleotides are A C G T U, IUPAC's ambiguity codes, and - ? N for missing ones.",
            )
        return sets

    def choose_reference(self) -> None:
        """The most frequent nucleotide of every column, A of several as frequent."""
        try:
            check_taxa(self._taxa)
        except InputError as error:
            raise InputError(error.message, file=self.source, taxon=error.taxon, hint=error.hint) from None
        self._reference = _BITS[self._single.argmax(1)]

    def add(self, sets: np.ndarray) -> None:
        from phloem.io.cpu.genome_lists import differences

        n = differences(sets, self._reference, self._span, self._states)
        key = self._span[:n].tobytes() + self._states[:n].tobytes()
        number = self._numbers.setdefault(key, len(self._numbers))
        self._group.append(number)
        if number == len(self._pieces):
            self._pieces.append((self._span[:n].copy(), self._states[:n].copy()))

    def genomes(self) -> Genomes:
        sizes = [len(states) for _, states in self._pieces]
        return Genomes(
            tuple(self._taxa),
            self._single.argmax(1).astype(np.int8),
            np.array(self._group, np.int64),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([span for span, _ in self._pieces]),
            np.concatenate([states for _, states in self._pieces]),
            self._every,
            self.source,
        )


def _table(ambiguity: str) -> np.ndarray:
    """(256,) the set that a character stands for, 0 where it is none."""
    table = np.zeros(256, np.uint8)
    for character, states in nucleotide_characters().items():
        bits = int(_BITS[list(states)].sum())
        bits = bits if ambiguity == "partial" or len(states) == 1 else MISSING
        table[ord(character)] = table[ord(character.lower())] = bits
    return table


def _records(
    stream: BinaryIO, source: str | None, headers: list[str] | None = None
) -> Iterator[tuple[str, int, bytes]]:
    """Name, line of the header, and characters without blanks, of one sequence after the other. headers:
    gets all of them."""
    name, begun, pieces = None, 0, list[bytes]()
    for number, line in enumerate(stream, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.startswith(b">"):
            if name is not None:
                pieces.append(line)
            elif line.strip():
                raise InputError(
                    "characters before the first name", file=source, line=number, hint="Start with '>name'."
                )
            continue
        if name is not None:
            yield name, begun, _joined(pieces)
        header = line[1:].decode("utf-8", "replace")
        words = header.split(None, 1)
        if not words:
            raise InputError(
                "the header has no name", file=source, line=number, hint="Write the name after '>'."
            )
        name, begun, pieces = words[0], number, []
        if headers is not None:
            headers.append(header)
    if name is not None:
        yield name, begun, _joined(pieces)


def _joined(pieces: list[bytes]) -> bytes:
    return b"".join(b"".join(pieces).split())
