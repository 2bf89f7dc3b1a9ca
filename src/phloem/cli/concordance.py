"""`phloem concordance`: how many gene trees agree with the branches of a tree."""

from __future__ import annotations

import typer

from phloem.cli.streams import report_console, require_stdout


def concordance(
    tree: str = typer.Argument(..., help="Newick or NEXUS file of one unrooted binary tree."),
    genes: str = typer.Argument(..., help="File of gene trees, of some of its taxa each."),
    prefix: str | None = typer.Option(None, "--prefix", "-p", help="Of the files written; the tree's name."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Gene concordance factors and local posterior probabilities by quartets, of every inner branch."""
    from phloem.analysis.concordance import ConcordanceSettings, run_concordance

    require_stdout()
    result = run_concordance(ConcordanceSettings(tree, genes, prefix, redo))
    console = report_console()
    console.print(f"{len(result.rows)} inner branches, {result.n_genes:,} gene trees")
    shares = [row["gCF"] for row in result.rows if row["gCF"] is not None]
    if shares:
        least = min(result.rows, key=lambda row: 101.0 if row["gCF"] is None else row["gCF"])
        console.print(f"gCF: mean {sum(shares) / len(shares):.1f} %, least {least['gCF']:.1f} %")
    console.print(f"labels: {'/'.join(result.names)}, in percent", markup=False)
    for name, what in result.settings.files.items():
        console.print(f"{name}: {what}", markup=False)
