"""The options about a dataset of Auspice, declared once for every command that writes one."""

from __future__ import annotations

from collections.abc import Callable

import typer

from phloem.cli.data_options import replaced

AUSPICE = typer.Option(None, help="File for a dataset of Auspice (Nextstrain, auspice.us), JSON.")
METADATA = typer.Option(None, help="With --auspice: table of the tips; else that of --dates, if any.")
OWN_METADATA = typer.Option(None, help="With --auspice: table of the tips.")
METADATA_COLUMN = typer.Option(
    None, help="With --auspice: column of the table that is carried along; may be repeated."
)
_WITH_PREFIX = typer.Option(
    False, "--auspice", help="The tree as a dataset of Auspice (Nextstrain): PREFIX.auspice.json."
)


def takes_auspice(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `nextstrain` of a command with a prefix by these options, before its last, which
    it gets as a dictionary."""
    options = [
        ("auspice", bool, _WITH_PREFIX),
        ("metadata", str | None, METADATA),
        ("metadata_column", list[str] | None, METADATA_COLUMN),
    ]
    return replaced(command, "nextstrain", options, lambda own, at: [*at[:-1], *own, at[-1]])
