"""How a tree is to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phloem.errors import InputError

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
