"""`phloem summarize`: what runs have sampled, trees and numbers, and whether they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer

from phloem.cli.auspice_options import AUSPICE, METADATA_COLUMN, OWN_METADATA

if TYPE_CHECKING:
    from phloem.analysis.summarise import TreeSampleSummary


def summarise(
    files: list[str] = typer.Argument(  # noqa: B008
        ...,
        help="Files of trees or traces, one a run, or what an analysis' files begin with; - is standard "
        "input, trees.",
    ),
    tree: Literal["majority", "allcompat", "mcc", "hipstr", "ccd"] = typer.Option(
        "majority",
        help="Majority-rule consensus, with all compatible clades, maximum clade credibility, or best of "
        "all sampled clades: in sampled pairs (hipstr), or in any (ccd).",
    ),
    burn_in: float = typer.Option(0.25, help="Share of each run's samples that is left out, from the start."),
    middle: Literal["mean", "median", "common-ancestor", "keep"] = typer.Option(
        "mean", help="Branch lengths; of rooted mcc trees node heights. The last two are not for a consensus."
    ),
    mass: float = typer.Option(0.95, help="Of HPD intervals and of the credible set of topologies."),
    out: str | None = typer.Option(
        None,
        "--out",
        "-o",
        help="File for the tree; else, or as -, standard output: Newick, in a terminal a drawing unless -.",
    ),
    picture: str | None = typer.Option(None, help="Picture of the tree: .svg, .png or .pdf."),
    tables: str | None = typer.Option(
        None, help="Write NAME.parts, NAME.tstat and NAME.vstat as MrBayes' sumt does."
    ),
    report: str | None = typer.Option(None, help="Page of HTML: numbers, traces, tree, splits."),
    auspice: str | None = AUSPICE,
    latest: str | None = typer.Option(
        None, help="With --auspice: day or year of the latest tip, 2022-09-26 or 2007.63."
    ),
    metadata: str | None = OWN_METADATA,
    metadata_column: list[str] | None = METADATA_COLUMN,
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Summarise samples of phloem, MrBayes, BEAST and RevBayes: trees, numbers, and how runs agree."""
    import sys

    from phloem.analysis.auspice import AuspiceOptions
    from phloem.analysis.outputs import STDOUT
    from phloem.analysis.summarise import SummariseSettings, run_summarise, tree_lines
    from phloem.cli.streams import require_stdout

    drawn = out is None and sys.stdout is not None and sys.stdout.isatty()
    out = None if out == STDOUT else out
    if out is None:
        require_stdout()
    of_auspice = AuspiceOptions(auspice, metadata, tuple(metadata_column or ()))
    settings = SummariseSettings(
        tuple(files), tree, burn_in, middle, mass, out, redo, picture, tables, report, of_auspice, latest
    )
    found = run_summarise(settings)
    for line in tree_lines(found, mass):
        print(line, file=sys.stderr)
    if found.numbers is not None:
        _show_numbers(found)
    if found.tree is not None and out is None:
        _show_tree(found, drawn)
    _show_files({"tree": out, "picture": picture, "report": report, "dataset of Auspice": auspice})


def _show_files(written: dict[str, str | None]) -> None:
    import sys

    for what, file in written.items():
        if file is not None:
            print(f"{what} written to {file}", file=sys.stderr)


def _show_tree(found: TreeSampleSummary, drawn: bool) -> None:
    """For people a drawing: a line of Newick with all its annotations fills a terminal and tells little."""
    import sys

    from phloem.analysis.summarise import summary_drawing, summary_newick
    from phloem.cli.streams import print_result, terminal_width

    if drawn:
        print(summary_drawing(found, terminal_width()))
        print("the tree itself, annotated: --out FILE, or a pipe", file=sys.stderr)
    else:
        print_result(summary_newick(found) + "\n")


def _show_numbers(found: TreeSampleSummary) -> None:
    """The table of the trace and the verdict: the result where there is no tree, else beside it."""
    from phloem.analysis.summarise import WANTED
    from phloem.cli.chain_tables import parameter_table, show_convergence
    from phloem.cli.streams import message_console, print_table, report_console

    assert found.numbers is not None and found.diagnosis is not None
    console = report_console() if found.tree is None else message_console()
    runs = len(found.numbers.values)
    title = f"{found.draws:,} samples of each of {runs} runs" if runs > 1 else f"{found.draws:,} samples"
    if len({len(v) - k for v, k in zip(found.numbers.values, found.numbers.first)}) > 1:
        title += ", which have different numbers of them: evenly spread"
    print_table(console, parameter_table(found.numbers.summary, title))
    show_convergence(found.diagnosis, WANTED, console)
