"""How a tree is to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TreeShape = Literal["rectangular", "circular"]


@dataclass(frozen=True)
class DrawSettings:
    """shape: rectangular or circular. width, height: pixels (height None: as the tips need, up to tallest).

    font_size: pixels. ladderize: smaller clades first. labels: tip names, thinned out where they would touch.
    support: annotation to print at the nodes, None for numeric labels or the usual names, "none" for nothing.
    intervals: annotation with (lower, upper) node heights to draw as bars, None for the usual one, "none".
    colour_by: numeric annotation that colours the branches. scale_bar: draw one.
    """

    shape: TreeShape = "rectangular"
    width: float = 900.0
    height: float | None = None
    tallest: float = 2400.0
    font_size: float = 12.0
    ladderize: bool = True
    labels: bool = True
    support: str | None = None
    intervals: str | None = None
    colour_by: str | None = None
    scale_bar: bool = True
