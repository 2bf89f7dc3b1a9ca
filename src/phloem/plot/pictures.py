"""A tree as a picture: SVG text, or PNG and PDF through matplotlib."""

from __future__ import annotations

import os
import warnings
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

import numpy as np

from phloem.errors import DeviceError
from phloem.plot.drawing import Drawing, DrawSettings, Strokes, Text
from phloem.plot.tree_figure import circular, rectangular
from phloem.tree.tree import Tree

_FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
_UNPRINTABLE = {c: None for c in range(32)} | {0x7F: None, 0xFFFE: None, 0xFFFF: None}


def draw(tree: Tree, settings: DrawSettings | None = None) -> Drawing:
    """The picture of a tree."""
    settings = settings or DrawSettings()
    return circular(tree, settings) if settings.shape == "circular" else rectangular(tree, settings)


def tree_svg(tree: Tree, settings: DrawSettings | None = None) -> str:
    """The picture of a tree as SVG."""
    return svg_text(draw(tree, settings))


def svg_text(drawing: Drawing) -> str:
    """The drawing as a self-contained SVG document on white."""
    size = f'width="{drawing.width:.0f}" height="{drawing.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" font-family="{_FONT}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_path(strokes) for strokes in drawing.strokes if len(strokes.lines)),
        *(_text(text) for text in drawing.texts),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _path(strokes: Strokes) -> str:
    opacity = f' stroke-opacity="{strokes.opacity:g}"' if strokes.opacity < 1 else ""
    if strokes.filled:
        fill = f' fill-opacity="{strokes.opacity:g}"' if strokes.opacity < 1 else ""
        return f'<path d="{_commands(strokes)}" fill="{strokes.colour}"{fill}/>'
    cap = "butt" if strokes.width > 3 else "square"
    return (
        f'<path d="{_commands(strokes)}" fill="none" stroke="{strokes.colour}" '
        f'stroke-width="{strokes.width:g}" stroke-linecap="{cap}" stroke-linejoin="round"{opacity}/>'
    )


def _commands(strokes: Strokes) -> str:
    if isinstance(strokes.lines, np.ndarray):
        return "".join(
            [f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in strokes.lines.reshape(-1, 4).tolist()]
        )
    return "".join(["M" + "L".join([f"{x:.1f} {y:.1f}" for x, y in line.tolist()]) for line in strokes.lines])


def _text(text: Text) -> str:
    content = escape(text.text.translate(_UNPRINTABLE))
    turn = f' transform="rotate({text.angle:.1f} {text.x:.1f} {text.y:.1f})"' if text.angle else ""
    halo = ' stroke="#ffffff" stroke-width="2.5" paint-order="stroke"' if text.halo else ""
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    return (
        f'<text x="{text.x:.1f}" y="{text.y:.1f}" dy="0.35em" font-size="{text.size:.1f}" '
        f'fill="{text.colour}"{anchor}{halo}{turn}>{content}</text>'
    )


# Letters that the usual font lacks, Chinese ones for example, come from the first of these that has them.
_FURTHER_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Arial Unicode MS", "WenQuanYi Zen Hei", "Unifont")
DOTS_PER_INCH = 200
_ANCHOR = {"start": "left", "middle": "center", "end": "right"}


def save_figure(
    drawing: Drawing,
    out: str | os.PathLike[str] | BinaryIO,
    dots_per_inch: float = DOTS_PER_INCH,
    format: str | None = None,
) -> None:
    """Write the drawing; format is png or pdf, None where a name's ending tells it. One pixel is 1/96 inch.

    Raises DeviceError where matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.figure import Figure
        from matplotlib.font_manager import fontManager
        from matplotlib.patheffects import withStroke
    except ImportError:
        raise DeviceError("PNG and PDF need matplotlib: pip install 'phloem[plot]', or write .svg") from None
    figure = Figure(figsize=(drawing.width / 96, drawing.height / 96))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.axis("off")
    installed = set(fontManager.get_font_names())
    families = ["sans-serif", *(font for font in _FURTHER_FONTS if font in installed)]
    for order, strokes in enumerate(drawing.strokes):
        looks: dict[str, Any] = {"alpha": strokes.opacity, "zorder": order / len(drawing.strokes)}
        if strokes.filled:
            looks |= {"facecolors": strokes.colour, "linewidths": 0}
            axes.add_collection(PolyCollection(list(strokes.lines), **looks))
        elif len(strokes.lines):
            looks |= {"colors": strokes.colour, "linewidths": strokes.width * 0.75}
            looks["capstyle"] = "butt" if strokes.width > 3 else "projecting"
            axes.add_collection(LineCollection(list(strokes.lines), **looks))
    for text in drawing.texts:
        effects = [withStroke(linewidth=2, foreground="white")] if text.halo else None
        axes.text(
            text.x, text.y, text.text.replace("$", r"\$"), fontsize=text.size * 0.75, color=text.colour,
            ha=_ANCHOR[text.anchor], va="center_baseline" if not text.angle else "center",
            rotation=-text.angle, rotation_mode="anchor", family=families,
            path_effects=effects,
        )  # fmt: skip
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(out, dpi=dots_per_inch, format=format)
    absent = {
        str(warning.message).split(" missing")[0] for warning in told if "Glyph" in str(warning.message)
    }
    if absent:
        warnings.warn(
            f"{len(absent)} letters of the names are in no font here and are drawn as boxes; .svg leaves the "
            "font to its viewer",
            stacklevel=2,
        )
