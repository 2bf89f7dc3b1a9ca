"""`phloem page`: the local web page."""

from __future__ import annotations

import typer

from phloem.errors import InputError


def page(
    folder: str = typer.Option(".", "--folder", help="All that the page sees, for data and results."),
    port: int | None = typer.Option(
        None, help="Of this machine; the first free one from 8765 on if not given."
    ),
    no_browser: bool = typer.Option(False, "--no-browser", help="Print the address only."),
    most_upload: int = typer.Option(512, help="MiB of a file that is dropped on the page."),
    at_once: int = typer.Option(1, help="Analyses that run side by side; others wait for their turn."),
) -> None:
    """A page in the browser: drop a file, see what it is, start an analysis, watch it, look at the tree.

    It answers to this machine only. Analyses are processes of their own and go on when it ends.
    """
    try:
        from phloem.web.server import PageSettings, run_page
    except ModuleNotFoundError as missing:
        hint = "Install it: pip install 'phloem[ui]'. On Windows use WSL."
        raise InputError(f"the page needs {missing.name}, which is not installed", hint=hint) from None
    for what, value, least in (
        ("--port", port, 0),
        ("--most-upload", most_upload, 1),
        ("--at-once", at_once, 1),
    ):
        if value is not None and not least <= value <= 65535:
            raise InputError(f"{what} is {value}", hint=f"Choose {least} to 65535.")

    def show(url: str, place: str) -> None:
        typer.echo(f"phloem page of {place}\nOpen this address; it is for you alone:\n\n  {url}\n")
        typer.echo("Ctrl-C ends the page. Analyses that run go on, and are there when it is started again.")

    run_page(PageSettings(folder, port, not no_browser, most_upload * 2**20, at_once), show)
