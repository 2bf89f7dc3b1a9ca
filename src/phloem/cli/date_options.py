"""The options that say where a tree and the dates of its tips come from, declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal

import typer

from phloem.cli.data_options import replaced

_TREE: list[tuple[str, Any, Any]] = [
    (
        "tree",
        str | None,
        typer.Argument(
            None, help="Newick or NEXUS tree, lengths in substitutions; else BIONJ of --alignment."
        ),
    ),
    ("dates", str | None, typer.Option(None, "--dates", "-d", help="Table of dates; else from the names.")),
    (
        "alignment",
        str | None,
        typer.Option(None, "--alignment", help="FASTA, PHYLIP, NEXUS or Clustal: sites, or a tree."),
    ),
]
_FURTHER: list[tuple[str, Any, Any]] = [
    ("sites", int | None, typer.Option(None, help="Sites that the lengths rest on; else the alignment's.")),
    (
        "datatype",
        str | None,
        typer.Option(None, help="Of the alignment: dna, protein, codon, …; else guessed."),
    ),
    (
        "without",
        list[str] | None,
        typer.Option(None, help="A tip to leave out, such as one of a wrong date; may be repeated."),
    ),
    ("index", int, typer.Option(0, help="Which tree of the file, from 0.")),
    ("date_pattern", str | None, typer.Option(None, help="Regular expression that finds a name's date.")),
    ("date_delimiter", str | None, typer.Option(None, help="What stands between the fields of a name.")),
    ("date_field", int | None, typer.Option(None, help="Which field is the date, from 0, or the last: -1.")),
    ("name_column", str | None, typer.Option(None, help="Header of the table's column of names.")),
    ("date_column", str | None, typer.Option(None, help="Header of the table's column of dates.")),
    (
        "whole_years",
        Literal["auto", "exact", "range"],
        typer.Option(
            "auto", help="1982 is 1982.0, or any time in 1982; auto: exact if all dates are numbers."
        ),
    ),
    ("ages", bool, typer.Option(False, "--ages", help="Dates are ages: years before the present.")),
    ("undated", Literal["error", "unknown"], typer.Option("error", help="Tips without a date.")),
]
_OPTIONS = {name: (kind, option) for name, kind, option in _FURTHER}
_FIELD = typer.Option(None, help="Dates from the names: which field is one, from 0, or the last: -1.")
_OF_TIPS: list[tuple[str, Any, Any]] = [
    (
        "dates",
        str | None,
        typer.Option(None, help="Table of names and sampling dates; none: all of one time."),
    ),
    ("date_field", int | None, _FIELD),
    *(
        (name, *_OPTIONS[name])
        for name in ("date_delimiter", "date_pattern", "name_column", "date_column", "whole_years", "ages")
    ),
    (
        "tip_age",
        list[str] | None,
        typer.Option(
            None,
            help="Age of a tip before the present, or least and most, NAME=152,163; else 0; may be repeated.",
        ),
    ),
]
_OF_TREE = ("tree", "index", "alignment", "datatype", "sites", "without")


def takes_tip_dates(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `tip_dates` of a command by options about the dates of an alignment's taxa,
    which come before all of its own; it gets them as a dictionary, as analysis.time_options.time_settings has
    them."""
    return replaced(command, "tip_dates", _OF_TIPS, lambda own, at: [*own, *at])


def takes_dated_tree(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `source` of a command by these options; it gets them as a dictionary whose keys
    are the fields of analysis.dated_input.DatedTreeOptions, and, under "dates", of DateOptions."""
    own = inspect.signature(command)
    types = {name: eval(text, command.__globals__) for name, text in command.__annotations__.items()}

    def declared(options: list[tuple[str, Any, Any]]) -> list[inspect.Parameter]:
        return [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, annotation, default in options
        ]

    mine = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[name])
        for name, one in own.parameters.items()
        if name != "source"
    ]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        source: dict[str, Any] = {name: given.pop(name) for name in _OF_TREE}
        source["without"] = tuple(source["without"] or ())
        source["dates"] = {
            name: given.pop(name) for name, _, _ in (*_TREE, *_FURTHER) if name not in _OF_TREE
        }
        command(source=source, **given)

    together = [*declared(_TREE), *mine, *declared(_FURTHER)]
    with_options.__signature__ = own.replace(parameters=together)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in together}
    del with_options.__wrapped__  # typer would read the signature of what is wrapped
    return with_options
