"""A tree as lines and labels: where its nodes lie, what decorates them, before anything is drawn."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.tree.reroot import is_support
from phloem.tree.tree import Tree

# Where the nodes of a tree stand, depth from the root and order among the tips, and how wide names are.


def len_shown(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


@dataclass(frozen=True)
class Layout:
    """depth: (N,) distance from the root; rank: (N,) 0 … T-1 in drawing order, a parent midway between its
    outer children; order: (T,) tips in drawing order; timed: False if lengths are missing, where depth counts
    nodes. first, last: (N,) rank of the outer children, equal to rank at tips.
    """

    depth: np.ndarray
    rank: np.ndarray
    order: np.ndarray
    first: np.ndarray
    last: np.ndarray
    timed: bool


def children_in_order(tree: Tree, ladderize: bool) -> list[list[int]]:
    """Children of every node, the smaller clade first, or as in the file: tips are numbered in its order."""
    n, t, parent = tree.n_nodes, tree.n_tips, tree.parent.tolist()
    size, first = [1] * t + [0] * (n - t), list(range(t)) + [t] * (n - t)
    for x in range(n - 1):
        p = parent[x]
        size[p] += size[x]
        first[p] = min(first[p], first[x])
    offsets, index = tree.child_offsets.tolist(), tree.child_index.tolist()
    key = size if ladderize else first
    return [sorted(index[offsets[x] : offsets[x + 1]], key=key.__getitem__) for x in range(n)]


def layout(tree: Tree, ladderize: bool = True) -> Layout:
    """Place the nodes (children_in_order). Negative branches count as zero."""
    n, t = tree.n_nodes, tree.n_tips
    parent = tree.parent.tolist()
    timed = not bool(np.any(np.isnan(tree.lengths[:-1])))
    children = children_in_order(tree, ladderize)
    order, stack = [], [n - 1]
    while stack:
        x = stack.pop()
        if not children[x]:
            order.append(x)
        stack.extend(reversed(children[x]))
    rank, first, last = np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf)
    rank[order] = np.arange(t)
    first[:t] = last[:t] = rank[:t]
    for x in range(n - 1):
        if x >= t:
            rank[x] = (first[x] + last[x]) / 2
        p = parent[x]
        first[p], last[p] = min(first[p], rank[x]), max(last[p], rank[x])
    if n > 1:
        rank[n - 1] = (first[n - 1] + last[n - 1]) / 2
    return Layout(_depths(tree, timed), rank, np.array(order), first, last, timed)


def _depths(tree: Tree, timed: bool) -> np.ndarray:
    """Distance from the root; without lengths, tips are level and a node is as high as its clade is deep."""
    n, parent = tree.n_nodes, tree.parent.tolist()
    if timed:
        lengths = np.maximum(tree.lengths, 0).tolist()
        depth = [0.0] * n
        for x in range(n - 2, -1, -1):
            depth[x] = depth[parent[x]] + lengths[x]
        return np.array(depth)
    level = [0] * n
    for x in range(n - 1):
        level[parent[x]] = max(level[parent[x]], level[x] + 1)
    return level[-1] - np.array(level, float)


# What a picture consists of, strokes and texts, and how it is to be drawn.


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
    colour_by: annotation, numbers or words, that colours the branches. scale_bar: draw one. latest: the year
    of the deepest tip, where lengths are years: a rectangular tree gets a time axis instead of the bar.
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
    latest: float | None = None

    def __post_init__(self) -> None:
        if self.latest is not None and not abs(self.latest) < 1e12:
            raise InputError(f"--latest is {self.latest:g}", hint="Give a year, such as 2007.63.")
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
    """Polylines of one colour: a list of (k, 2) points, or (m, 2, 2) segments; filled: areas instead."""

    lines: list[np.ndarray] | np.ndarray
    colour: str = INK
    width: float = 1.2
    opacity: float = 1.0
    filled: bool = False


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


# What a tree picture carries besides its branches: scale bar, support, intervals.


SUPPORT_KEYS = ("posterior", "prob", "support", "bootstrap")


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
