"""What a tree picture carries besides its branches: scale bar, support, intervals, colours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phloem.plot.drawing import GREY, INK, Strokes, Text, text_width
from phloem.plot.layout import Layout
from phloem.tree.reroot import is_support
from phloem.tree.tree import Tree

SUPPORT_KEYS = ("posterior", "prob", "support", "bootstrap")
# Five anchors of a perceptually ordered scale from dark blue to yellow, light enough on white paper.
_SCALE = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [240, 180, 30]], float)
COLOUR_STEPS = 32


def nice_length(longest: float) -> float:
    """The largest 1, 2 or 5 times a power of ten that is at most `longest` (positive)."""
    power = 10.0 ** np.floor(np.log10(longest))
    return float(max(m * power for m in (1, 2, 5) if m * power <= longest * (1 + 1e-12)))


def scale_bar(
    x: float, y: float, pixels_per_unit: float, room: float, size: float
) -> tuple[Strokes, Text] | None:
    """A bar of a round length of at most `room` pixels, and its number."""
    if not (np.isfinite(pixels_per_unit) and pixels_per_unit > 0):
        return None
    length = nice_length(room / pixels_per_unit)
    end = x + length * pixels_per_unit
    lines = [
        np.array([[x, y], [end, y]]),
        np.array([[x, y - 3], [x, y + 3]]),
        np.array([[end, y - 3], [end, y + 3]]),
    ]
    return Strokes(lines, INK, 1.2), Text((x + end) / 2, y + size, f"{length:g}", size, GREY, "middle")


def support_texts(tree: Tree, key: str | None) -> dict[int, str]:
    """Node → support value: labels that are numbers, else the annotation `key` (or the first usual one)."""
    found = {}
    if key is None and tree.labels is not None:
        found = {x: str(text) for x, text in enumerate(tree.labels) if is_support(text)}
    if found:
        return found
    for name in (key,) if key is not None else SUPPORT_KEYS:
        found = {x: _number(a[name]) for x, a in tree.annotations.items() if name in a and x >= tree.n_tips}
        if found:
            return found
    return {}


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def interval_key(tree: Tree) -> str | None:
    """The annotation that holds node heights' intervals, as BEAST, TreeAnnotator and MrBayes name it."""
    for annotation in tree.annotations.values():
        for key, value in annotation.items():
            if "height" in key and "HPD" in key and is_interval(value):
                return key
    return None


def is_number(value: object) -> bool:
    """Whether an annotation can be a colour."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_interval(value: object) -> bool:
    """Whether an annotation is a pair of numbers."""
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value)


def shown_intervals(tree: Tree, layout: Layout, wanted: str | None) -> dict[int, tuple[float, float]]:
    """Node → (depth of the older end, depth of the younger end); heights count from the deepest tip.

    wanted: an annotation, None for the usual one, "none". None are shown where lengths are missing.
    """
    key = interval_key(tree) if wanted is None else wanted
    if key is None or key == "none" or not layout.timed:
        return {}
    top = float(layout.depth.max())
    return {
        x: (top - float(a[key][1]), top - float(a[key][0]))  # type: ignore[index]
        for x, a in tree.annotations.items()
        if key in a and is_interval(a[key])
    }


def branch_colours(tree: Tree, key: str) -> tuple[np.ndarray, float, float] | None:
    """((N,) colour step or -1, lowest, highest value) of a numeric annotation; None if no branch has it."""
    values = np.full(tree.n_nodes, np.nan)
    for x, annotation in tree.annotations.items():
        if is_number(value := annotation.get(key)):
            values[x] = value  # type: ignore[assignment]
    if np.all(np.isnan(values)):
        return None
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    share = (values - low) / (high - low) if high > low else np.where(np.isnan(values), np.nan, 0.0)
    return (
        np.where(np.isnan(share), -1, np.nan_to_num(share) * (COLOUR_STEPS - 1)).round().astype(int),
        low,
        high,
    )


def colour(step: int) -> str:
    """Hexadecimal colour of a step; -1 is ink."""
    if step < 0:
        return INK
    at = step / (COLOUR_STEPS - 1) * (len(_SCALE) - 1)
    k = min(int(at), len(_SCALE) - 2)
    red, green, blue = (_SCALE[k] + (at - k) * (_SCALE[k + 1] - _SCALE[k])).round().astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def colour_key(
    x: float, y: float, name: str, low: float, high: float, size: float
) -> tuple[list[Strokes], list[Text]]:
    """A strip of the scale with its ends written beside it."""
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


def fitting_support(
    texts: Mapping[int, str], x: np.ndarray, y: np.ndarray, parent: np.ndarray, size: float
) -> list[Text]:
    """Support values left of their nodes, above the branch; those that would touch another are left out.

    x, y: (N,) pixels. Nodes nearer to the root come first, so that the deep values stay.
    """
    taken: set[tuple[int, int]] = set()
    placed = []
    cell_w, cell_h = 6.0, size / 2
    for node in sorted(texts, reverse=True):
        right, middle = x[node] - 2, y[node] - size * 0.62
        width = text_width(texts[node], size)
        columns = range(int((right - width) // cell_w), int(right // cell_w) + 1)
        rows = range(int((middle - size / 2) // cell_h), int((middle + size / 2) // cell_h) + 1)
        cells = {(c, r) for c in columns for r in rows}
        if right - width < 0 or cells & taken:
            continue
        taken |= cells
        placed.append(Text(right, middle, texts[node], size, GREY, "end", halo=True))
    return placed
