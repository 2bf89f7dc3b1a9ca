"""The options about supports of branches, declared for `phloem ml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import typer

from phloem.cli.data_options import replaced

_OPTIONS = [
    ("alrt", int, typer.Option(0, help="Replicates of SH-aLRT, such as 1000.")),
    (
        "parametric_alrt",
        bool,
        typer.Option(False, "--parametric-alrt", help="aLRT by χ², IQ-TREE's -alrt 0: without replicates."),
    ),
    ("lbp", int, typer.Option(0, help="Replicates of local bootstrap probabilities, such as 1000.")),
    (
        "abayes",
        bool,
        typer.Option(False, "--abayes", help="Approximate Bayes supports: without replicates."),
    ),
    ("ufboot", int, typer.Option(0, help="Replicates of the ultrafast bootstrap, 1000 or more.")),
    (
        "bnni",
        bool,
        typer.Option(False, "--bnni", help="With --ufboot: climb with every replicate's own weights."),
    ),
    (
        "bootstrap",
        str | None,
        typer.Option(
            None, help="Replicates of the standard bootstrap (with TBE), or auto: until they agree."
        ),
    ),
    (
        "sampling",
        Literal["site", "gene", "genesite"],
        typer.Option(
            "site",
            help="Replicates of parts: of sites in each, of whole parts, or of parts and their sites.",
        ),
    ),
]


def takes_supports(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the parameter `supports` of a command by these options, before its option `starts`; it gets
    them as a dictionary."""

    def arranged(own: list, others: list) -> list:
        at = next(i for i, one in enumerate(others) if one.name == "starts")
        return [*others[:at], *own, *others[at:]]

    return replaced(command, "supports", _OPTIONS, arranged)
