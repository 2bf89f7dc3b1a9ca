"""`phloem concordance`: how many gene trees and sites agree with the branches of a tree."""

from __future__ import annotations

import typer

from phloem.cli.streams import report_console, require_stdout


def concordance(
    tree: str = typer.Argument(..., help="Newick or NEXUS file of one unrooted binary tree."),
    genes: str | None = typer.Argument(None, help="File of gene trees, of some of its taxa each."),
    shortest: float = typer.Option(5e-6, help="Inner branches of gene trees below this resolve nothing."),
    replicates: str | None = typer.Option(
        None, help="File of trees of all taxa, of a bootstrap: Felsenstein's supports and TBE."
    ),
    alignment: str | None = typer.Option(None, "--alignment", "-a", help="Count its sites, too."),
    datatype: str | None = typer.Option(None, help="Of the alignment, where its file does not say."),
    partitions: str | None = typer.Option(None, help="With --alignment: sites of every part alone, too."),
    quartets: int = typer.Option(1000, help="Of taxa a branch, at most; all where there are no more."),
    scfl: bool = typer.Option(False, "--scfl", help="Site concordance by likelihood, too."),
    model: str | None = typer.Option(None, "--model", "-m", help="With --scfl; else the usual one."),
    seed: int = typer.Option(1, help="Of the quartets that are drawn."),
    prefix: str | None = typer.Option(
        None, "--prefix", "-p", help="What the names of all files written begin with; the tree's name."
    ),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Concordance of every inner branch with gene trees (and quartets of taxa) and with sites; supports by
    replicates."""
    options = dict(locals())
    from phloem.analysis.concordance import ConcordanceSettings, run_concordance

    require_stdout()
    result = run_concordance(ConcordanceSettings(**options))
    console = report_console()
    trees = f", {result.n_replicates:,} replicates" if result.n_replicates else ""
    console.print(f"{len(result.rows)} inner branches, {result.n_genes:,} gene trees{trees}")
    short = [n for n in result.short if n]
    if short:
        what = f"branches of gene trees below {result.settings.shortest:g}, which resolve nothing"
        console.print(f"{what}: {sum(short):,}, in {len(short):,} trees")
    for name in ("bootstrap", "TBE", "gCF", "sCF", "sCFL"):
        shares = [row[name] for row in result.rows if row.get(name) is not None]
        if shares:
            console.print(f"{name}: mean {sum(shares) / len(shares):.1f} %, least {min(shares):.1f} %")
    console.print(f"labels: {'/'.join(result.names)}, in percent", markup=False)
    for name, what in result.settings.files.items():
        console.print(f"{name}: {what}", markup=False)
