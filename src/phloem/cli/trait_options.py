"""The options about a discrete trait on dated trees, such as where samples were taken."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Any, Literal

import typer

from phloem.cli.data_options import replaced

_TRAIT: list[tuple[str, Any, Any]] = [
    (
        "trait",
        str | None,
        typer.Option(None, help="Table with a header: taxa and the state of each, such as a location."),
    ),
    (
        "trait_column",
        str | None,
        typer.Option(None, help="Which column of --trait has the states, where it has several."),
    ),
    (
        "trait_rates",
        Literal["symmetric", "asymmetric"],
        typer.Option("symmetric", help="Of a route and the way back: one rate, or two."),
    ),
    (
        "bssvs",
        bool,
        typer.Option(False, "--bssvs", help="Routes of the trait come and go; few are expected."),
    ),
    (
        "trait_root",
        Literal["equal", "free"],
        typer.Option("equal", help="Frequencies of the trait's states at the root."),
    ),
]


def takes_trait(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `discrete_trait` of a command by these options, which come before that of the
    prefix; it gets them as a dictionary, as analysis.time_options.time_settings has them."""

    def before_files(own: list[Parameter], others: list[Parameter]) -> list[Parameter]:
        place = [one.name for one in others].index("prefix")
        return [*others[:place], *own, *others[place:]]

    return replaced(command, "discrete_trait", _TRAIT, before_files)
