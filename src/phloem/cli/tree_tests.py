"""`phloem test-trees`: which of some trees an alignment rejects."""

from __future__ import annotations

from typing import Any, Literal

import typer

from phloem.cli.data_options import takes_data
from phloem.cli.streams import message_console, report_console, require_stdout


@takes_data()
def test_trees(
    data: dict[str, Any],
    trees: str = typer.Argument(..., help="Newick or NEXUS file of two trees or more; lengths are fitted."),
    model: str | None = typer.Option(
        None, "--model", "-m", help="Such as GTR+F+I+G4; by default GTR+F+G4, LG+G4, GY94+F3X4 or MK+G4."
    ),
    replicates: int = typer.Option(10_000, help="Of resampled sites, for each of AU's ten scales."),
    prefix: str | None = typer.Option(
        None, "--prefix", "-p", help="Of the files written; the alignment's name."
    ),
    seed: int = typer.Option(1, help="Same seed, same numbers."),
    threads: int | None = typer.Option(None, help="Threads; chosen by problem size if not given."),
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Test trees against each other: KH, SH, weighted SH, expected likelihood weights, AU."""
    options = dict(locals())
    del options["data"]
    from rich.text import Text

    from phloem.analysis.tree_tests import TreeTestsSettings, run_tree_tests

    require_stdout()
    messages = message_console(live=True)
    with messages.status("reading …") as status:
        result = run_tree_tests(
            TreeTestsSettings(**data, **options),
            told=lambda what, value: status.update(f"{what}: log-likelihood {value:.4f}"),
            compiling=messages.print,
        )
    console = report_console()
    for line in result.lines():
        console.print(Text(line), soft_wrap=True)
    console.print(f"{result.seconds:.2f} seconds")
    for name, what in result.settings.files.items():
        console.print(Text(f"{name}: {what}"))
