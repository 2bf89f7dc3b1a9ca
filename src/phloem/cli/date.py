"""`phloem date`: dates of a tree's nodes and the rate, by least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.auspice_options import AUSPICE, METADATA, METADATA_COLUMN
from phloem.cli.date_options import takes_dated_tree

if TYPE_CHECKING:
    from phloem.analysis.dating import DateResult


@takes_dated_tree
def date(
    source: dict[str, Any],
    root: Literal["search", "branch", "keep"] = typer.Option(
        "search", help="Search all branches, stay on the root's branch, or keep the root where it is."
    ),
    rate: float | None = typer.Option(None, help="Substitutions per site and year, if known."),
    rate_range: str | None = typer.Option(None, help="Bounds of the rate, as in 1e-4,1e-2."),
    intervals: int = typer.Option(100, help="Trees with resampled lengths, for 95% intervals; 0 for none."),
    clock_spread: float = typer.Option(
        0.2, help="Standard deviation of a branch's rate in them, relative to the mean rate."
    ),
    smoothing: float = typer.Option(10.0, help="Substitutions added to every branch in its variance."),
    seed: int = typer.Option(1, help="Of the intervals."),
    outliers: float = typer.Option(
        3.0, help="Interquartile ranges beyond the quartiles of the others' residuals: off the clock."
    ),
    without_outliers: str | None = typer.Option(
        None, help="Leave out tips off the clock; file for which and why, TSV."
    ),
    out: str | None = typer.Option(
        None, "--out", "-o", help="Dated tree: NEXUS for .tre or .nex, else Newick; else standard output."
    ),
    table: str | None = typer.Option(None, help="File for the dates of all nodes, TSV."),
    picture: str | None = typer.Option(None, help="Draw the dated tree: .svg, .png or .pdf file."),
    auspice: str | None = AUSPICE,
    metadata: str | None = METADATA,
    metadata_column: list[str] | None = METADATA_COLUMN,
    json: str | None = typer.Option(None, "--json", help="Write the result as JSON; - is standard output."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Date a tree by least squares (LSD): the root, the rate and all nodes, in seconds for 10,000 tips."""
    from phloem.analysis.auspice import AuspiceOptions
    from phloem.analysis.dated_input import DatedTreeOptions, DateOptions
    from phloem.analysis.dating import DateSettings, DatingSettings, dated_newick, rate_bounds, run_date
    from phloem.analysis.outputs import STDOUT, json_text
    from phloem.cli.streams import message_console, print_result, require_stdout, shown_steps

    out = None if out == STDOUT else out
    if out is None or json == STDOUT:
        require_stdout()
    data = DatedTreeOptions(**(source | {"dates": DateOptions(**source["dates"])}))
    dating = DatingSettings(
        root=root, rate=rate, rates=rate_bounds(rate_range), smoothing=smoothing, replicates=intervals,
        clock_spread=clock_spread, seed=seed,
    )  # fmt: skip
    of_auspice = AuspiceOptions(auspice, metadata, tuple(metadata_column or ()))
    with shown_steps(message_console(live=True), "reading") as progress:
        wanted = DateSettings(
            data, dating, out, table, picture, json, redo, outliers, without_outliers, of_auspice
        )
        found = run_date(wanted, progress)
    _show(found)
    if json == STDOUT:
        print_result(json_text(found.to_json()))
    elif out is None:
        print_result(dated_newick(found))


def _show(found: DateResult) -> None:
    from phloem.analysis.dating import dating_lines
    from phloem.cli.streams import message_console

    console = message_console()
    for line in dating_lines(found):
        console.print(line)
    settings = found.settings
    written = {
        "tree": settings.out,
        "table": settings.table,
        "picture": settings.picture,
        "dataset of Auspice": settings.auspice.file,
    }
    for what, file in written.items():
        if file is not None:
            console.print(f"{what} written to {file}")
