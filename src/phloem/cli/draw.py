"""`phloem draw`: a tree in the terminal or as a picture."""

from __future__ import annotations

from typing import Literal

import typer


def draw(
    tree: str = typer.Argument(..., help="Newick or NEXUS tree, annotated or not; - is standard input."),
    out: str | None = typer.Option(
        None, "--out", "-o", help=".svg, .png or .pdf; else drawn in the terminal."
    ),
    index: int = typer.Option(0, help="Which tree of the file, from 0."),
    circular: bool = typer.Option(False, "--circular", help="Draw around the root."),
    root: Literal["file", "midpoint"] = typer.Option("file", help="Root as in the file, or at the midpoint."),
    width: float | None = typer.Option(
        None, help="Pixels of a picture (900, more around the root), characters in the terminal (its own)."
    ),
    height: float | None = typer.Option(None, help="Pixels of a picture; else as the tips need."),
    font_size: float = typer.Option(12.0, help="Pixels."),
    ladderize: bool = typer.Option(True, help="Smaller clades first, else as in the file."),
    labels: bool = typer.Option(True, help="Tip names, thinned out where they would touch."),
    support: str | None = typer.Option(None, help="Annotation at the nodes, or none; else the usual ones."),
    intervals: str | None = typer.Option(None, help="Annotation with node-height intervals, or none."),
    colour_by: str | None = typer.Option(
        None, "--colour-by", help="Annotation that colours branches, as rate."
    ),
    scale_bar: bool = typer.Option(True, help="Draw a scale bar."),
    latest: str | None = typer.Option(
        None,
        help="Day or year of the deepest tip, 2022-09-26 or 2007.63, where lengths are years: a time axis "
        "for the scale bar.",
    ),
    redo: bool = typer.Option(False, "--redo", help="Replace the file if it exists."),
) -> None:
    """Draw a tree, with node-height intervals, support and branch colours from its annotations."""
    import sys

    from phloem.analysis.draw import DrawSettings, DrawTreeSettings, run_draw, year_of
    from phloem.cli.streams import require_stdout, terminal_width
    from phloem.errors import InputError

    picture = DrawSettings(
        shape="circular" if circular else "rectangular",
        width=width if out is not None else None,
        height=height,
        font_size=font_size,
        ladderize=ladderize,
        labels=labels,
        support=support,
        intervals=intervals,
        colour_by=colour_by,
        scale_bar=scale_bar,
        latest=None if latest is None else year_of(latest),
    )
    if latest is not None and (out is None or circular):
        raise InputError("--latest is for rectangular pictures", hint="Name one with --out.")
    if out is None and circular:
        raise InputError("--circular is for a picture", hint="Name one with --out.")
    if out is None:
        require_stdout()
    columns = terminal_width() if width is None or out is not None else width
    text = run_draw(DrawTreeSettings(tree, out, index, root, redo, columns, picture))
    if text is not None:
        print(text)
    else:
        print(f"picture written to {out}", file=sys.stderr)
