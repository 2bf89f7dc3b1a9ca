"""`phloem ml`: from an alignment to its likeliest tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.data_options import takes_data
from phloem.cli.streams import message_console, report_console, require_stdout

if TYPE_CHECKING:
    from phloem.analysis.ml import MlResult


@takes_data()
def ml(
    data: dict[str, Any],
    model: str | None = typer.Option(
        None, "--model", "-m", help="Such as GTR+F+I+G4; by default GTR+F+G4, LG+G4, GY94+F3X4 or MK+G4."
    ),
    tree: str | None = typer.Option(
        None, "--tree", "-t", help="Newick or NEXUS tree to begin from; else BIONJ of the alignment."
    ),
    prefix: str | None = typer.Option(
        None, "--prefix", "-p", help="Of the files written; the alignment's name."
    ),
    radius: int = typer.Option(5, help="Nodes that a subtree is moved at most."),
    patience: int = typer.Option(10, help="Tries in a row without a better tree that end the search."),
    seed: int = typer.Option(1, help="Same seed, same numbers, whatever the number of threads."),
    threads: int | None = typer.Option(None, help="Threads; chosen by problem size if not given."),
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Maximum-likelihood tree: topology, branch lengths and the model's free parameters."""
    options = dict(locals())
    del options["data"]
    from phloem.analysis.ml import MlSettings, run_ml

    require_stdout()
    messages = message_console(live=True)
    with messages.status("reading …") as status:
        result = run_ml(
            MlSettings(**data, **options),
            told=lambda what, value: status.update(f"{what}: log-likelihood {value:.4f}"),
            compiling=messages.print,
        )
    _show(result)


def _show(result: MlResult) -> None:
    from rich.text import Text

    console, optimum = report_console(), result.found.optimum
    console.print(f"{result.data['taxa']} taxa, {result.data['sites']:,} sites, {result.data['datatype']}")
    console.print(Text(f"fitted model: {optimum.model_text}"), soft_wrap=True)
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    console.print(Text.assemble("log-likelihood: ", (f"{optimum.log_likelihood:.6f}", "bold")))
    console.print(f"AIC {optimum.aic:.4f}, AICc {optimum.aicc:.4f}, BIC {optimum.bic:.4f}")
    console.print(Text(f"from {result.found.origin}: {result.found.first:.4f}"))
    better = len(result.found.found)
    console.print(
        f"{result.found.tries} tries from elsewhere, {better} led to a better tree; "
        f"{result.seconds:.2f} seconds of search"
    )
    for name, what in result.files.items():
        console.print(Text(f"{name}: {what}"))
