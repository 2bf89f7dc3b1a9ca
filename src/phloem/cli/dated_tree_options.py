"""The options of dated trees about clades, and about a discrete trait, declared once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Any, Literal

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


def takes_clades(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `clades` of a command by these options, which come before that of the prefix; it
    gets them as a dictionary, as analysis.time_options.time_settings has them."""
    return replaced(command, "clades", _CLADES, _before_files)


def takes_trait(command: Callable[..., None]) -> Callable[..., None]:
    """The same of the parameter `discrete_trait`: the states of samples, such as places."""
    return replaced(command, "discrete_trait", _TRAIT, _before_files)


def _before_files(own: list[Parameter], others: list[Parameter]) -> list[Parameter]:
    place = [one.name for one in others].index("prefix")
    return [*others[:place], *own, *others[place:]]
