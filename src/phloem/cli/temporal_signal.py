"""`phloem temporal-signal`: whether the tips' dates and their distances from the root go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.date_options import takes_dated_tree

if TYPE_CHECKING:
    from phloem.analysis.temporal_signal import TemporalSignal


@takes_dated_tree
def temporal_signal(
    source: dict[str, Any],
    criterion: Literal["residuals", "correlation", "r-squared"] = typer.Option(
        "residuals", help="What the best root has: least residuals, or largest correlation or R²."
    ),
    root: Literal["best", "file"] = typer.Option("best", help="Root at the best place, or as in the file."),
    outliers: float = typer.Option(3.0, help="Interquartile ranges beyond the quartiles of residuals."),
    permutations: int = typer.Option(1000, help="Of the dates, for the randomisation test; 0 leaves it out."),
    seed: int = typer.Option(1, help="Of the permutations."),
    out_tree: str | None = typer.Option(None, help="File for the rooted tree."),
    table: str | None = typer.Option(None, help="File for dates, distances and residuals of all tips, TSV."),
    picture: str | None = typer.Option(None, help="File for the regression: .svg, .png or .pdf."),
    json: str | None = typer.Option(None, "--json", help="Write the result as JSON; - is standard output."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Root-to-tip regression at the best root, its outliers, and a test that randomises the dates."""
    from phloem.analysis.dated_input import DatedTreeOptions, DateOptions
    from phloem.analysis.outputs import STDOUT, json_text
    from phloem.analysis.temporal_signal import TemporalSignalSettings, run_temporal_signal
    from phloem.cli.streams import message_console, print_result, require_stdout, shown_steps

    require_stdout()
    data = DatedTreeOptions(**(source | {"dates": DateOptions(**source["dates"])}))
    settings = TemporalSignalSettings(
        data, criterion, root, outliers, permutations, seed, out_tree, table, picture, json, redo
    )
    with shown_steps(message_console(live=True), "reading") as progress:
        found = run_temporal_signal(settings, progress)
    if json == STDOUT:
        print_result(json_text(found.to_json()))
    else:
        _show(found)


def _show(found: TemporalSignal) -> None:
    from phloem.analysis.temporal_signal import signal_lines, terminal_plot
    from phloem.cli.streams import report_console

    console = report_console()
    for line in signal_lines(found):
        console.print(line)
    console.print()
    console.print(terminal_plot(found, console.width))
    settings = found.settings
    for what, file in (("tree", settings.out_tree), ("table", settings.table), ("picture", settings.picture)):
        if file is not None:
            console.print(f"{what} written to {file}", soft_wrap=True)
