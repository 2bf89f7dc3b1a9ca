"""`phloem draw`: a tree file as a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from phloem.analysis.outputs import check_outputs
from phloem.data.given_fields import settle_fields
from phloem.errors import InputError
from phloem.hardware.limits import require_memory
from phloem.io.date_text import as_asked, parse_date
from phloem.io.output_file import replaced_file, write_file
from phloem.io.trees import read_tree
from phloem.plot.colours import is_colour
from phloem.plot.drawing import SUPPORT_KEYS, Drawing, DrawSettings, is_interval
from phloem.plot.pictures import DOTS_PER_INCH, draw, save_figure, svg_text
from phloem.plot.terminal_tree import draw_tree
from phloem.tree.reroot import root_at_midpoint
from phloem.tree.tree import Tree

PICTURES = (".svg", ".png", ".pdf")
COLUMNS = (20, 10_000)  # of a drawing in the terminal


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
    width: float = 80
    picture: DrawSettings = field(default_factory=DrawSettings)

    def __post_init__(self) -> None:
        settle_fields(self)
        if not COLUMNS[0] <= self.width <= COLUMNS[1]:
            low, high = COLUMNS
            raise InputError(f"--width is {self.width:g}", hint=f"Choose {low} to {high:,} characters.")


def run_draw(settings: DrawTreeSettings) -> str | None:
    """Write the picture, or return the terminal drawing."""
    if settings.out is not None:
        check_picture_name(settings.out)
    check_outputs([settings.out], [settings.tree], settings.redo)
    tree = read_tree(settings.tree, settings.index, allow_negative=True)
    check_annotations(tree, settings.picture, settings.tree)
    if settings.root == "midpoint":
        tree = at_midpoint(tree)
    if settings.out is None:
        cells = 2 * tree.n_tips * settings.width
        require_memory(f"{cells:,.0f} characters", 8 * cells, "Choose a smaller --width, or a picture.")
        support = support_key(tree, settings.picture.support)
        return draw_tree(tree, int(settings.width), support, ladderize=settings.picture.ladderize)
    save_picture(tree, settings.out, settings.picture)
    return None


def support_key(tree: Tree, wanted: str | None = None) -> str | None:
    """The annotation to write at the nodes: the wanted one, else the first usual one that the tree has."""
    if wanted is not None:
        return None if wanted == "none" else wanted
    present = {key for annotation in tree.annotations.values() for key in annotation}
    return next((key for key in SUPPORT_KEYS if key in present), "prob")


def at_midpoint(tree: Tree) -> Tree:
    """The tree drawn from the middle of its longest path; negative branches count as zero, as in pictures."""
    return root_at_midpoint(replace(tree, lengths=np.where(tree.lengths < 0, 0.0, tree.lengths)))


def check_annotations(tree: Tree, settings: DrawSettings, source: str | None = None) -> None:
    """InputError for an annotation that no node has, or whose values cannot be drawn."""
    found: dict[str, list[object]] = {}
    for annotation in tree.annotations.values():
        for key, value in annotation.items():
            found.setdefault(key, []).append(value)
    wanted: tuple[tuple[str, str | None, Callable[[object], bool]], ...] = (
        ("support", settings.support, lambda value: True),
        ("intervals", settings.intervals, is_interval),
        ("colour-by", settings.colour_by, is_colour),
    )
    for option, name, fits in wanted:
        if name is None or name == "none" or any(fits(value) for value in found.get(name, [])):
            continue
        usable = sorted(key for key in found if any(fits(value) for value in found[key]))
        raise InputError(
            f"no node has an annotation '{name}' that --{option} can draw",
            file=source,
            hint=f"This tree has {', '.join(usable)}." if usable else "This tree has none.",
        )


def check_picture_name(path: str) -> None:
    """InputError unless the name ends as a picture's does."""
    if Path(path).suffix.lower() not in PICTURES:
        raise InputError(
            "the name does not tell the kind of picture", file=path, hint=f"End it in {', '.join(PICTURES)}."
        )


def save_picture(tree: Tree, path: str, settings: DrawSettings) -> None:
    """Write a tree's picture; the name's ending tells the format."""
    check_picture_name(path)
    save_drawing(draw(tree, settings), path)


def save_drawing(drawing: Drawing, path: str) -> None:
    """Write any picture; the name's ending tells the format."""
    kind = Path(path).suffix.lower()
    if kind == ".svg":
        write_file(path, svg_text(drawing))
    else:
        if kind == ".png":
            dots = drawing.width * drawing.height * (DOTS_PER_INCH / 96) ** 2
            size = f"{drawing.width:,.0f} × {drawing.height:,.0f} pixels"
            require_memory(f"a picture's {size}", 8 * dots, "Choose fewer, or .svg.", path)
        with replaced_file(path) as stream:
            save_figure(drawing, stream, format=kind[1:])


def year_of(text: str) -> float:
    """The decimal year of a day, "2022-09-26", or of a year; InputError of a month and of other texts."""
    date = as_asked(parse_date(text), "exact")
    if date.lower != date.upper or date.error:
        raise InputError(f"--latest {text} is no day", hint="Give a day or a year, 2022-09-26 or 2007.63.")
    return date.lower
