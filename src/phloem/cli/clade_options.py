"""The options that say what is known of clades of dated trees, declared once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Any

import typer

from phloem.cli.data_options import replaced

_CLADES: list[tuple[str, Any, Any]] = [
    (
        "clade",
        list[str] | None,
        typer.Option(None, help="A set of taxa, apes=Homo,Pan,Gorilla, whose age is told; may be repeated."),
    ),
    (
        "monophyletic",
        list[str] | None,
        typer.Option(None, help="Name of a --clade that must be one; may be repeated."),
    ),
    (
        "constraint",
        list[str] | None,
        typer.Option(
            None,
            help="'name: taxon, …', a clade; 'name negative: …'; 'name partial: … | …'; may be repeated.",
        ),
    ),
    (
        "calibrate",
        list[str] | None,
        typer.Option(
            None,
            help="Age of a clade, root or origin: 'apes=normal(15,2)', apes=12+exponential(0.2); of the node "
            "above, 'stem(apes)=…'; or held, root=90; repeatable.",
        ),
    ),
]


def takes_clades(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `clades` of a command by these options, which come before that of the prefix; it
    gets them as a dictionary, as analysis.time_options.time_settings has them."""

    def before_files(own: list[Parameter], others: list[Parameter]) -> list[Parameter]:
        place = [one.name for one in others].index("prefix")
        return [*others[:place], *own, *others[place:]]

    return replaced(command, "clades", _CLADES, before_files)
