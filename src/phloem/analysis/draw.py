"""`phloem draw`: a tree file as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from phloem.analysis.provenance import refuse_to_overwrite
from phloem.errors import InputError
from phloem.io.trees import read_tree
from phloem.plot.svg_decoration import SUPPORT_KEYS
from phloem.plot.svg_figure import save_figure
from phloem.plot.svg_settings import DrawSettings
from phloem.plot.svg_write import draw, svg_text
from phloem.plot.terminal_tree import draw_tree
from phloem.tree.reroot import root_at_midpoint
from phloem.tree.tree import Tree

PICTURES = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class DrawTreeSettings:
    """tree: Newick or NEXUS file; index: which of its trees. root: as in the file, or at the midpoint.

    out: .svg, .png or .pdf file, replaced only with redo; None draws in the terminal, width characters wide.
    picture: how it looks.
    """

    tree: str
    out: str | None = None
    index: int = 0
    root: Literal["file", "midpoint"] = "file"
    redo: bool = False
    width: int = 80
    picture: DrawSettings = field(default_factory=DrawSettings)


def run_draw(settings: DrawTreeSettings) -> str | None:
    """Write the picture, or return the terminal drawing."""
    if settings.out is not None:
        check_picture_name(settings.out)
        refuse_to_overwrite([settings.out], settings.redo)
    tree = read_tree(settings.tree, settings.index, allow_negative=True)
    if settings.root == "midpoint":
        tree = root_at_midpoint(tree)
    if settings.out is None:
        return draw_tree(tree, settings.width, _support_key(tree, settings.picture.support))
    save_picture(tree, settings.out, settings.picture)
    return None


def _support_key(tree: Tree, wanted: str | None) -> str | None:
    """The annotation to write at the nodes: the wanted one, else the first usual one that the tree has."""
    if wanted is not None:
        return None if wanted == "none" else wanted
    present = {key for annotation in tree.annotations.values() for key in annotation}
    return next((key for key in SUPPORT_KEYS if key in present), "prob")


def check_picture_name(path: str) -> None:
    """InputError unless the name ends as a picture's does."""
    if Path(path).suffix.lower() not in PICTURES:
        raise InputError(
            "the name does not tell the kind of picture", file=path, hint=f"End it in {', '.join(PICTURES)}."
        )


def save_picture(tree: Tree, path: str, settings: DrawSettings) -> None:
    """Write a picture; the name's ending tells the format."""
    check_picture_name(path)
    drawing = draw(tree, settings)
    if Path(path).suffix.lower() == ".svg":
        Path(path).write_text(svg_text(drawing), encoding="utf-8")
    else:
        save_figure(drawing, path)
