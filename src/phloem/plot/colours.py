"""Colours of branches by an annotation, numbers on a scale or words, and the key to them."""

from __future__ import annotations

from colorsys import hsv_to_rgb
from typing import NamedTuple

import numpy as np

from phloem.plot.drawing import GREY, INK, Strokes, Text
from phloem.tree.tree import Tree

# Five anchors of a perceptually ordered scale from dark blue to yellow, light enough on white paper.
_SCALE = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [240, 180, 30]], float)
COLOUR_STEPS = 32


def is_number(value: object) -> bool:
    """Whether an annotation can be a colour."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_colour(value: object) -> bool:
    """Whether an annotation can be a branch's: a number, or a word."""
    return is_number(value) or isinstance(value, str)


class Colouring(NamedTuple):
    """Of branches by an annotation. steps: (N,) numbers of colours, -1 of branches without; colours. Of a
    number also low, high; of words the names of the colours."""

    steps: np.ndarray
    colours: tuple[str, ...]
    low: float = 0.0
    high: float = 0.0
    names: tuple[str, ...] = ()

    def colour(self, step: int) -> str:
        """Of a step; -1 is ink."""
        return INK if step < 0 else self.colours[step]


def branch_colours(tree: Tree, key: str) -> Colouring | None:
    """By the words or the numbers of an annotation; None if no branch has it."""
    words = {x: a[key] for x, a in tree.annotations.items() if isinstance(a.get(key), str)}
    if words:
        names = tuple(sorted({str(word) for word in words.values()}))
        steps = np.full(tree.n_nodes, -1)
        for x, word in words.items():
            steps[x] = names.index(str(word))
        return Colouring(steps, tuple(_distinct(k, len(names)) for k in range(len(names))), names=names)
    values = np.full(tree.n_nodes, np.nan)
    for x, annotation in tree.annotations.items():
        if is_number(value := annotation.get(key)):
            values[x] = value  # type: ignore[assignment]
    if np.all(np.isnan(values)):
        return None
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    share = (values - low) / (high - low) if high > low else np.where(np.isnan(values), np.nan, 0.0)
    steps = np.where(np.isnan(share), -1, np.nan_to_num(share) * (COLOUR_STEPS - 1)).round().astype(int)
    return Colouring(steps, tuple(colour(step) for step in range(COLOUR_STEPS)), low, high)


# After Okabe and Ito 2008, darker where white paper asks for it: told apart by most eyes.
_WORDS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#b3a000", "#5e3c99")


def _distinct(k: int, n: int) -> str:
    """One of n colours for words."""
    if n <= len(_WORDS):
        return _WORDS[k]
    value = (0.72, 0.5, 0.85)[k % 3]
    red, green, blue = (int(255 * part) for part in hsv_to_rgb(k / n, 0.85, value))
    return f"#{red:02x}{green:02x}{blue:02x}"


def colour(step: int) -> str:
    """Hexadecimal colour of a step; -1 is ink."""
    if step < 0:
        return INK
    at = step / (COLOUR_STEPS - 1) * (len(_SCALE) - 1)
    k = min(int(at), len(_SCALE) - 2)
    red, green, blue = (_SCALE[k] + (at - k) * (_SCALE[k + 1] - _SCALE[k])).round().astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def colour_key(
    x: float, y: float, name: str, found: Colouring, size: float
) -> tuple[list[Strokes], list[Text]]:
    """A strip of the scale with its ends written beside it; of words a list in the lower left corner, where
    large clades leave room."""
    low, high = found.low, found.high
    if found.names:
        above = y - (len(found.names) + 4.0) * 1.3 * size
        rows = [(24.0, above + k * 1.3 * size) for k in range(len(found.names) + 1)]
        marks = [
            Strokes([np.array([[left, top], [left + 14, top]])], each, 5)
            for (left, top), each in zip(rows[1:], found.colours)
        ]
        words = [
            Text(left + 19, top, word, size, INK, halo=True)
            for (left, top), word in zip(rows[1:], found.names)
        ]
        return marks, [Text(*rows[0], name, size, GREY, halo=True), *words]
    step = 4.0
    strip = [
        Strokes(
            [np.array([[x + k * step, y], [x + (k + 1) * step + (k < COLOUR_STEPS - 1), y]])], colour(k), 8
        )
        for k in range(COLOUR_STEPS)
    ]
    end = x + COLOUR_STEPS * step
    texts = [
        Text(x, y + 8 + size / 2, f"{low:.3g}", size, GREY),
        Text(end, y + 8 + size / 2, f"{high:.3g}", size, GREY, "end"),
        Text(end + 6, y, name, size, GREY),
    ]
    return strip, texts
