"""What a picture consists of, strokes and texts, and how it is to be drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.plot.layout import len_shown

WIDTH, LARGEST = 900.0, 30_000  # pixels: of a picture if nobody says, and of any
TreeShape = Literal["rectangular", "circular"]


@dataclass(frozen=True)
class DrawSettings:
    """shape: rectangular or circular. width, height: pixels; None is 900 by as much as the tips need, and
    around the root a square of as much as they need, up to tallest (at least 900).

    font_size: pixels. ladderize: smaller clades first, else as in the file. labels: tip names,
    thinned out where they would touch.
    support: annotation to print at the nodes, None for numeric labels or the usual names, "none" for nothing.
    intervals: annotation with (lower, upper) node heights to draw as bars, None for the usual one, "none".
    colour_by: numeric annotation that colours the branches. scale_bar: draw one.
    """

    shape: TreeShape = "rectangular"
    width: float | None = None
    height: float | None = None
    tallest: float = 2400.0
    font_size: float = 12.0
    ladderize: bool = True
    labels: bool = True
    support: str | None = None
    intervals: str | None = None
    colour_by: str | None = None
    scale_bar: bool = True

    def __post_init__(self) -> None:
        for name, least in (("width", 100), ("height", 100), ("font_size", 1)):
            value = getattr(self, name)
            if value is not None and not least <= value <= LARGEST:
                raise InputError(
                    f"--{name.replace('_', '-')} is {value:g}", hint=f"Choose {least} to {LARGEST:,} pixels."
                )


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
