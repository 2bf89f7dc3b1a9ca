"""A drawing as PNG or PDF, through matplotlib."""

from __future__ import annotations

import os
import warnings

from phloem.errors import DeviceError
from phloem.plot.svg_shapes import Drawing

# Letters that the usual font lacks, Chinese ones for example, come from the first of these that has them.
_FURTHER_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Arial Unicode MS", "WenQuanYi Zen Hei", "Unifont")
_ANCHOR = {"start": "left", "middle": "center", "end": "right"}


def save_figure(drawing: Drawing, path: str | os.PathLike[str], dots_per_inch: float = 200) -> None:
    """Write the drawing; the name's ending tells the format (png, pdf). One pixel is 1/96 inch.

    Raises DeviceError where matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection
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
    for strokes in drawing.strokes:
        if len(strokes.lines):
            axes.add_collection(
                LineCollection(
                    list(strokes.lines),
                    colors=strokes.colour,
                    linewidths=strokes.width * 0.75,
                    alpha=strokes.opacity,
                    capstyle="butt" if strokes.width > 3 else "projecting",
                )
            )
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
        figure.savefig(path, dpi=dots_per_inch)
    absent = {
        str(warning.message).split(" missing")[0] for warning in told if "Glyph" in str(warning.message)
    }
    if absent:
        warnings.warn(
            f"{len(absent)} letters of the names are in no font here and are drawn as boxes; .svg leaves the "
            "font to its viewer",
            stacklevel=2,
        )
