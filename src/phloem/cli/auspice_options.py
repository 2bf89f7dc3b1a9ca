"""The options about a dataset of Auspice, declared once for every command that writes one."""

from __future__ import annotations

import typer

AUSPICE = typer.Option(None, help="File for a dataset of Auspice (Nextstrain, auspice.us), JSON.")
METADATA = typer.Option(None, help="With --auspice: table of the tips; else that of --dates.")
OWN_METADATA = typer.Option(None, help="With --auspice: table of the tips.")
METADATA_COLUMN = typer.Option(
    None, help="With --auspice: column of the table that is carried along; may be repeated."
)
