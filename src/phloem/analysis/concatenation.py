"""`phloem concatenate`: genes in files of their own as one alignment, each a set of columns."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from phloem.analysis.gene_files import Told, named_genes, read_genes
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.data.given_fields import settle_fields
from phloem.errors import InputError
from phloem.io.alignment_text import Format, format_of
from phloem.io.output_file import write_file
from phloem.io.partition_words import word_of_states
from phloem.io.supermatrix import (
    Supermatrix,
    fasta_text,
    genes_of_other_states,
    list_text,
    nexus_text,
    phylip_text,
    states_of,
    supermatrix,
)

_TEXTS = {"nexus": nexus_text, "phylip": phylip_text, "fasta": fasta_text}
FEW = 0.1  # of the genes: taxa in fewer are told of


@dataclass(frozen=True)
class ConcatenationSettings:
    """sources: folders of alignments, alignments, or NEXUS files whose CHARSETs name other files. out: the
    alignment, NEXUS with its CHARSETs, or FASTA or PHYLIP with a list of parts beside it, by its ending.
    datatype: of all genes, None: each by itself. json: a record. redo: replace files that exist."""

    sources: tuple[str, ...]
    out: str
    datatype: Literal["dna", "rna", "protein", "binary", "standard"] | None = None
    json: str | None = None
    redo: bool = False

    def __post_init__(self) -> None:
        settle_fields(self)

    @property
    def written_format(self) -> Format:
        return format_of(self.out)

    @property
    def partitions(self) -> str:
        """The file that says what the parts are."""
        return self.out if self.written_format == "nexus" else f"{self.out}.partitions"


@dataclass(frozen=True, eq=False)
class Concatenation:
    """matrix; warnings: of taxa that hardly a gene has, of states that the file cannot declare."""

    settings: ConcatenationSettings
    matrix: Supermatrix
    warnings: tuple[str, ...]
    seconds: float
    provenance: dict[str, Any]

    @property
    def missing(self) -> float:
        """Share of the characters of genes that a taxon lacks."""
        sites = np.array([gene.n_sites for gene in self.matrix.genes])
        return float(1.0 - (self.matrix.there @ sites).sum() / (len(self.matrix.taxa) * sites.sum()))

    @property
    def data(self) -> list[str]:
        """Of every gene its data type, of standard characters with the number of their states: MULTI5."""
        genes = self.matrix.genes
        states = [word_of_states(states_of(g)) if g.datatype == "standard" else None for g in genes]
        return [gene.word or word or gene.datatype for gene, word in zip(genes, states)]

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings and dictionaries."""
        m = self.matrix
        return {
            "taxa": len(m.taxa),
            "sites": m.matrix.shape[1],
            "missing": self.missing,
            "genes": [
                {"name": g.name, "file": g.file, "columns": text, "datatype": g.datatype, "taxa": int(n)}
                for g, text, n in zip(m.genes, m.ranges, m.there.sum(axis=0))
            ],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "settings": asdict(self.settings),
            "provenance": self.provenance,
        }


def _quietly(name: str, number: int, of: int) -> None:
    """No one is told."""


def run_concatenation(settings: ConcatenationSettings, told: Told = _quietly) -> Concatenation:
    """Read the genes, put them side by side, write what the settings name. told: see gene_files.read_genes.

    Errors: InputError with file and line; two genes of one name; outputs that exist."""
    start, named = time.perf_counter(), named_genes(settings.sources)
    inputs = dict.fromkeys(file for one in named for file in (one.source, one.file) if file)
    outputs = dict.fromkeys([settings.out, settings.partitions])
    check_outputs(outputs, inputs, settings.redo, [settings.json])
    matrix = supermatrix(read_genes(named, settings.datatype, told))
    if settings.written_format != "nexus" and matrix.has_sets:
        raise InputError(
            "there are sets of states, such as {AC}, which only NEXUS has", file=settings.out,
            hint="Let --out end in .nex.",
        )  # fmt: skip
    write_file(settings.out, _TEXTS[settings.written_format](matrix))
    if settings.partitions != settings.out:
        write_file(settings.partitions, list_text(matrix))
    seconds = time.perf_counter() - start
    warnings = (*_warnings(matrix), *_lost_states(matrix, settings.written_format == "nexus"))
    result = Concatenation(settings, matrix, warnings, seconds, provenance(inputs))
    write_json(result.to_json(), settings.json)
    return result


def _warnings(m: Supermatrix) -> list[str]:
    """Of names that may be misspelled."""
    n, few = len(m.genes), m.there.sum(axis=1)
    rare = [f"{taxon} ({k})" for taxon, k in zip(m.taxa, few.tolist()) if k <= max(1, FEW * n)]
    if n < 4 or not rare or len(rare) > len(m.taxa) / 2:
        return []
    listed = ", ".join(rare[:8]) + (", …" if len(rare) > 8 else "")
    return [f"taxa that few of the {n:,} genes have, or whose names differ between files: {listed}"]


def _lost_states(m: Supermatrix, nexus: bool) -> list[str]:
    """Of genes whose states no word of a partition file says."""
    lost = [gene for gene in genes_of_other_states(m, nexus) if word_of_states(states_of(gene)) is None]
    return [
        f"the states of gene '{gene.name}' ({gene.file}), {states_of(gene)}, are not kept beside other "
        "genes: models would have another number of them. Number them 0, 1, 2, …, or give the gene alone."
        for gene in lost
    ]
