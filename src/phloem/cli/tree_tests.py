"""`phloem test-trees`: which of some trees an alignment rejects."""

from __future__ import annotations

from typing import Any, Literal

import typer

from phloem.cli.data_options import LINK, LINKAGE, takes_data
from phloem.cli.ml import GAMMA, MODEL_HELP, PREFIX, REDO, SEED, THREADS
from phloem.cli.streams import message_console, report_console, require_stdout


@takes_data(partitions=True)
def tree_tests(
    data: dict[str, Any],
    trees: str = typer.Argument(..., help="Newick or NEXUS file of two trees or more; lengths are fitted."),
    model: str | None = typer.Option(None, "--model", "-m", help=MODEL_HELP),
    replicates: int = typer.Option(10_000, help="Of resampled sites, for each of AU's ten scales."),
    prefix: str | None = PREFIX,
    seed: int = SEED,
    threads: int | None = THREADS,
    gamma: Literal["mean", "median"] = GAMMA,
    linkage: Literal["linked", "proportional", "unlinked"] | None = LINKAGE,
    link: list[str] | None = LINK,
    redo: bool = REDO,
) -> None:
    """Test trees against each other: KH, SH, weighted SH, expected likelihood weights, AU."""
    options = dict(locals()) | {"link": tuple(link or ())}
    del options["data"]
    from rich.text import Text

    from phloem.analysis.progress import ProgressFile
    from phloem.analysis.tree_tests import TreeTestsSettings, run_tree_tests

    require_stdout()
    messages = message_console(live=True)
    with messages.status("reading …") as status:
        result = run_tree_tests(
            TreeTestsSettings(**data, **options),
            told=ProgressFile(None, ()).teller(status.update),
            compiling=messages.print,
        )
    console = report_console()
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    for line in result.lines():
        console.print(Text(line), soft_wrap=True)
    console.print(f"{result.seconds:.2f} seconds")
    for name, what in result.settings.files.items():
        console.print(Text(f"{name}: {what}"))
