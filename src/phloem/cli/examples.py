"""`phloem examples`: data to try things on."""

from __future__ import annotations

import typer


def examples(
    folder: str = typer.Argument(".", help="Where the files go; made if need be."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Example data for a folder: primates, carnivores, West Nile virus with its sampling dates."""
    from phloem.analysis.examples import write_examples

    for file, what in write_examples(folder, redo).items():
        typer.echo(f"{file}  {what}")
