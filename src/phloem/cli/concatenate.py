"""`phloem concatenate`: genes in files of their own as one alignment."""

from __future__ import annotations

from typing import Any, Literal

import typer

SOURCES = typer.Argument(
    ...,
    help="Folder of alignments, alignments, a BEAST file with several, or a NEXUS file whose charsets name "
    "others.",
)
MOST_LISTED = 20  # genes


def concatenate(
    sources: list[str] = SOURCES,
    out: str = typer.Option(
        ...,
        "--out",
        "-o",
        help="NEXUS with a charset a gene (.nex), or FASTA or PHYLIP (.phy) and OUT.partitions.",
    ),
    datatype: Literal["dna", "rna", "protein", "binary", "standard"] | None = typer.Option(
        None, help="Of all genes; else each as its file declares, or guessed."
    ),
    json: str | None = typer.Option(
        None, "--json", help="Write settings and provenance as JSON; - is standard output."
    ),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Put genes side by side: one alignment, a set of columns each, taxa matched by name."""
    options: dict[str, Any] = dict(locals())
    from phloem.analysis.concatenation import ConcatenationSettings, run_concatenation
    from phloem.analysis.outputs import STDOUT, json_text
    from phloem.cli.streams import message_console, print_result, require_stdout, shown_steps

    settings = ConcatenationSettings(**{**options, "sources": tuple(sources)})
    if json == STDOUT:
        require_stdout()
    console = message_console()
    with shown_steps(console, "reading") as told:
        result = run_concatenation(settings, told)
    _show(result, console)
    if json == STDOUT:
        print_result(json_text(result.to_json()))


def _show(result, console) -> None:
    from rich.table import Table
    from rich.text import Text

    from phloem.cli.streams import print_table

    m, settings = result.matrix, result.settings
    table = Table(pad_edge=False)
    for name in ("gene", "columns", "data", "taxa"):
        table.add_column(name, justify="right" if name == "taxa" else "left", overflow="fold")
    for gene, text, word, n in list(zip(m.genes, m.ranges, result.data, m.there.sum(axis=0)))[:MOST_LISTED]:
        table.add_row(gene.name, text, word, f"{n:,}")
    print_table(console, table)
    if len(m.genes) > MOST_LISTED:
        console.print(f"and {len(m.genes) - MOST_LISTED:,} more")
    console.print(
        f"{len(m.genes):,} genes, {len(m.taxa):,} taxa, {m.matrix.shape[1]:,} columns; "
        f"{100 * result.missing:.1f} % of the characters are of genes that a taxon lacks"
    )
    for text in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), text))
    console.print(Text(f"{settings.out}: the alignment"))
    use = f"phloem ml {settings.out} --partitions {settings.partitions}"
    console.print(Text(f"{settings.partitions}: a part a gene, as in {use}"))
