"""A picture as shapes: strokes, bars and texts in pixels, drawn by svg_write or svg_figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from phloem.plot.shown_width import len_shown

Anchor = Literal["start", "middle", "end"]
INK, GREY, FAINT, BAR = "#1b1f24", "#57606a", "#c9ced6", "#5b9bd5"
CHARACTER = 0.56  # width of an average letter, in font sizes


@dataclass(frozen=True)
class Text:
    """A line of text; angle in degrees, clockwise; y is its middle; a halo keeps it readable over lines."""

    x: float
    y: float
    text: str
    size: float
    colour: str = INK
    anchor: Anchor = "start"
    angle: float = 0.0
    halo: bool = False


@dataclass(frozen=True)
class Strokes:
    """Polylines of one colour: a list of (k, 2) points, or (m, 2, 2) segments."""

    lines: list[np.ndarray] | np.ndarray
    colour: str = INK
    width: float = 1.2
    opacity: float = 1.0


@dataclass(frozen=True)
class Drawing:
    """width, height in pixels; strokes are drawn in order, then texts."""

    width: float
    height: float
    strokes: list[Strokes] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def text_width(text: str, size: float) -> float:
    """About how wide a text is, in pixels."""
    return CHARACTER * size * len_shown(text)


def thinned(positions: np.ndarray, spacing: float) -> np.ndarray:
    """Indices into ascending positions such that neighbours kept are at least `spacing` apart."""
    kept, last = [], -np.inf
    for k, position in enumerate(positions.tolist()):
        if position - last >= spacing:
            kept.append(k)
            last = position
    return np.array(kept, np.int64)
