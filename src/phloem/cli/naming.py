"""How commands name what they write: `--out` the file of the one result, else standard output; `--prefix`
what the names of several files begin with. Who takes one for the other is told."""

from __future__ import annotations

from typing import Any

import typer.core

_OTHER = {"--out": "--prefix", "-o": "--prefix", "--prefix": "--out", "-p": "--out"}


class Command(typer.core.TyperCommand):
    """A command whose error for --out, where it has --prefix, names that, and the other way round."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # NoSuchOption is click's, or that of the click which newer versions of typer hold
            other = _OTHER.get(getattr(error, "option_name", ""))
            if other is not None and any(other in parameter.opts for parameter in self.params):
                error.possibilities = [other]  # type: ignore[attr-defined]
            raise
