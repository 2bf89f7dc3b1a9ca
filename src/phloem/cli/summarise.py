"""`phloem summarise`: a posterior sample of trees as one tree."""

from __future__ import annotations

from typing import Literal

import typer


def summarise(
    files: list[str] = typer.Argument(..., help="Tree files of the runs, one a run; - is standard input."),  # noqa: B008
    tree: Literal["majority", "allcompat", "mcc", "hipstr", "ccd"] = typer.Option(
        "majority",
        help="Majority-rule consensus, with all compatible clades, maximum clade credibility, or best of "
        "all sampled clades: in sampled pairs (hipstr), or in any (ccd).",
    ),
    burn_in: float = typer.Option(0.25, help="Share of each run's trees that is left out, from the start."),
    middle: Literal["mean", "median", "common-ancestor", "keep"] = typer.Option(
        "mean", help="Branch lengths; of rooted mcc trees node heights. The last two are not for a consensus."
    ),
    mass: float = typer.Option(0.95, help="Of HPD intervals and of the credible set of topologies."),
    out: str | None = typer.Option(None, "--out", "-o", help="File for the tree, else standard output."),
    redo: bool = typer.Option(False, "--redo", help="Replace the file if it exists."),
) -> None:
    """Summarise sampled trees: a consensus or the tree of maximum clade credibility, and how runs agree."""
    import sys

    from phloem.analysis.outputs import STDOUT
    from phloem.analysis.summarise import SummariseSettings, run_summarise, summary_newick
    from phloem.cli.streams import print_result, require_stdout

    out = None if out == STDOUT else out
    if out is None:
        require_stdout()
    found = run_summarise(SummariseSettings(tuple(files), tree, burn_in, middle, mass, out, redo))
    each = " + ".join(f"{n:,}" for n in found.per_run)
    lines = [
        f"{each} trees after {100 * burn_in:g}% burn-in",
        f"{found.topologies:,} topologies; the {found.credible:,} most frequent hold {100 * mass:g}% of them",
    ]
    if found.deviation is not None:
        lines.append(
            f"split frequencies differ by {found.deviation.average:.4f} on average between runs (standard "
            f"deviation of {found.deviation.n_splits:,} splits), at most {found.deviation.largest:.4f}"
        )
    for line in lines:
        print(line, file=sys.stderr)
    if out is None:
        print_result(summary_newick(found) + "\n")
    else:
        print(f"tree written to {out}", file=sys.stderr)
