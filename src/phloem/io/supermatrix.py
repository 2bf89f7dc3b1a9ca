"""Genes of several files side by side: one matrix, taxa matched by name, missing where a gene lacks one.

Each gene becomes a set of columns, of its own name: in NEXUS a CHARSET, beside FASTA and PHYLIP a line of a
list as RAxML-NG and IQ-TREE read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.data.coding import FIRST_SET, highest_symbol
from phloem.errors import InputError
from phloem.io.character_rows import CharacterRows, side_by_side
from phloem.io.nexus import quote_name
from phloem.io.partition_words import word_of_states
from phloem.tree.match import folded

LISTED = {"dna": "DNA", "rna": "DNA", "protein": "AA", "binary": "BIN", "standard": "MULTI"}
"""What a list of parts calls a data type."""
_UNKNOWN = {"dna": "?-NnXx", "rna": "?-NnXx", "protein": "?-Xx"}
"""Characters of which nothing is known; of other data ? and -."""
_BEYOND_A_NAME = re.compile(r"[\s=,;:()\[\]{}'\"]")


@dataclass(frozen=True, eq=False)
class Gene:
    """name: of its set of columns. file: where it is from. characters: its own columns of the file's.
    datatype: dna, rna, protein, binary or standard; word: what a partition file says in the place of it, such
    as CODON2."""

    name: str
    file: str
    characters: CharacterRows
    datatype: str
    word: str | None = None

    @property
    def n_sites(self) -> int:
        return self.characters.n_sites


@dataclass(frozen=True, eq=False)
class Supermatrix:
    """genes, in the order of their columns; taxa, in the order they were met; matrix: (T, L) values as in
    CharacterRows, with sets; there: (T, G) whether anything is known of a taxon in a gene."""

    genes: tuple[Gene, ...]
    taxa: tuple[str, ...]
    matrix: np.ndarray
    sets: dict[int, str]
    there: np.ndarray

    @property
    def has_sets(self) -> bool:
        """Whether any character is a set of states."""
        return bool((self.matrix >= FIRST_SET).any())

    @property
    def ranges(self) -> tuple[str, ...]:
        """Of every gene its columns, counted from 1."""
        ends = np.cumsum([gene.n_sites for gene in self.genes])
        return tuple(f"{end - gene.n_sites + 1}-{end}" for gene, end in zip(self.genes, ends.tolist()))


def supermatrix(genes: Sequence[Gene]) -> Supermatrix:
    """Genes side by side. Names of taxa are the same as NEXUS has it: in any case, blanks as underscores.

    Errors: InputError for two genes of one name, and for a gene that has a taxon twice."""
    names: dict[str, str] = {}
    for gene in genes:
        if folded(gene.name) in names:
            other = names[folded(gene.name)]
            message = f"'{other}' and '{gene.file}' would be the same gene, '{gene.name}'"
            raise InputError(message, hint="Rename one of the files.")
        names[folded(gene.name)] = gene.file
    own_names = [[folded(taxon) for taxon in gene.characters.taxa] for gene in genes]
    for gene, own in zip(genes, own_names):
        if len(set(own)) < len(own):
            twice = next(taxon for taxon, name in zip(gene.characters.taxa, own) if own.count(name) > 1)
            message = f"the taxon '{twice}' is there twice, in other capitals or blanks"
            raise InputError(message, file=gene.file, taxon=twice, hint="Rename one of them.")
    taxa, matrix, sets = side_by_side([gene.characters for gene in genes])
    there = np.zeros((len(taxa), len(genes)), bool)
    place = {name: i for i, name in enumerate(taxa)}
    for g, (gene, own) in enumerate(zip(genes, own_names)):
        unknown = [ord(character) for character in _UNKNOWN.get(gene.datatype, "?-")]
        known = ~np.isin(gene.characters.matrix, unknown).all(axis=1)
        there[[place[name] for name in own], g] = known
    return Supermatrix(tuple(genes), tuple(taxa.values()), matrix, sets, there)


def sequence_text(m: Supermatrix, row: int) -> str:
    """Of a taxon."""
    values = m.matrix[row]
    if (values < FIRST_SET).all():
        return values.astype(np.uint8).tobytes().decode("latin-1")
    return "".join(f"{{{m.sets[v]}}}" if v >= FIRST_SET else chr(v) for v in values.tolist())


def nexus_text(m: Supermatrix) -> str:
    """A DATA block, DATATYPE=MIXED where genes are of several kinds, and a CHARSET a gene."""
    kinds = ["standard" if gene.datatype == "binary" else gene.datatype for gene in m.genes]
    kind, states = kinds[0], shared_symbols(m)
    symbols = f' symbols="{states}"' if states else ""
    if len(set(kinds)) > 1:
        kind = f"mixed({','.join(f'{one}:{text}' for one, text in _merged(kinds, m.ranges))})"
    names = [quote_name(taxon) for taxon in m.taxa]
    width = max(map(len, names)) + 2
    lines = [
        "#NEXUS",
        "begin data;",
        f"  dimensions ntax={len(m.taxa)} nchar={m.matrix.shape[1]};",
        f"  format datatype={kind} missing=? gap=-{symbols};",
        "  matrix",
        *(f"    {name.ljust(width)}{sequence_text(m, i)}" for i, name in enumerate(names)),
        "  ;",
        "end;",
        "begin sets;",
        *(
            f"  charset {quote_name(gene.name)} = {f'{word}, ' if word else ''}{text};"
            for gene, word, text in zip(m.genes, _words_of_charsets(m), m.ranges)
        ),
        "end;",
    ]
    return "\n".join(lines) + "\n"


def states_of(gene: Gene) -> str:
    """The states of a gene of standard or binary characters, declared or seen, in order; "" of others."""
    if gene.datatype == "binary":
        return "01"
    return "".join(sorted(set(gene.characters.symbols or _seen(gene)))) if gene.datatype == "standard" else ""


def _seen(gene: Gene) -> str:
    """The states that standard characters have where no file declares them."""
    return highest_symbol(gene.characters.matrix, dict(gene.characters.sets))


def shared_symbols(m: Supermatrix) -> str:
    """The states that one NEXUS matrix declares: those of all its standard and binary genes."""
    return "".join(sorted({symbol for gene in m.genes for symbol in states_of(gene)}))


def genes_of_other_states(m: Supermatrix, nexus: bool) -> list[Gene]:
    """Genes that would be read with other states than their own, if nothing were said of it: in NEXUS those
    that lack some of the states all genes share, in a list those that declare others than are seen."""
    read_as = {gene.name: shared_symbols(m) if nexus else _seen(gene) for gene in _of_states(m, nexus)}
    return [gene for gene in m.genes if gene.name in read_as and states_of(gene) != read_as[gene.name]]


def _of_states(m: Supermatrix, nexus: bool) -> list[Gene]:
    """Genes whose states a file must say; BIN says those of binary ones in a list, as standard in NEXUS."""
    kinds = ("standard", "binary") if nexus else ("standard",)
    return [gene for gene in m.genes if gene.datatype in kinds]


def _words_of_states(m: Supermatrix, nexus: bool) -> dict[str, str]:
    """Gene → MULTI5 and the like, where its number of states would be lost and can be said."""
    words = {gene.name: word_of_states(states_of(gene)) for gene in genes_of_other_states(m, nexus)}
    return {name: word for name, word in words.items() if word is not None}


def _words_of_charsets(m: Supermatrix) -> list[str | None]:
    """Of every gene what its CHARSET says of its data, if anything."""
    states = _words_of_states(m, nexus=True)
    return [gene.word or states.get(gene.name) for gene in m.genes]


def _merged(kinds: Sequence[str], ranges: Sequence[str]) -> list[tuple[str, str]]:
    """Neighbours of one kind as one part."""
    found: list[tuple[str, str]] = []
    for kind, text in zip(kinds, ranges):
        if found and found[-1][0] == kind:
            found[-1] = kind, f"{found[-1][1].split('-')[0]}-{text.split('-')[1]}"
        else:
            found.append((kind, text))
    return found


def list_text(m: Supermatrix) -> str:
    """A line a gene, for --partitions of phloem, IQ-TREE and RAxML-NG."""
    states = _words_of_states(m, nexus=False)
    words = [gene.word or states.get(gene.name) or LISTED[gene.datatype] for gene in m.genes]
    lines = [
        f"{word}, {_BEYOND_A_NAME.sub('_', gene.name)} = {text}"
        for word, gene, text in zip(words, m.genes, m.ranges)
    ]
    return "\n".join(lines) + "\n"


def fasta_text(m: Supermatrix) -> str:
    return "".join(f">{name}\n{sequence_text(m, i)}\n" for i, name in enumerate(_words(m)))


def phylip_text(m: Supermatrix) -> str:
    names = _words(m)
    width = max(map(len, names)) + 2
    lines = [f"{name.ljust(width)}{sequence_text(m, i)}" for i, name in enumerate(names)]
    return "\n".join([f"{len(m.taxa)} {m.matrix.shape[1]}", *lines]) + "\n"


def _words(m: Supermatrix) -> list[str]:
    """Names without blanks, which end them."""
    return [re.sub(r"\s", "_", taxon) for taxon in m.taxa]
