"""A drawing as SVG text."""

from __future__ import annotations

from xml.sax.saxutils import escape

import numpy as np

from phloem.plot.svg_circular import circular
from phloem.plot.svg_rectangular import rectangular
from phloem.plot.svg_settings import DrawSettings
from phloem.plot.svg_shapes import Drawing, Strokes, Text
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
