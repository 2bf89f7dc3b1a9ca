"""A tree with horizontal branches, root at the left."""

from __future__ import annotations

import numpy as np

from phloem.plot.decoration import (
    branch_colours,
    colour,
    colour_key,
    fitting_support,
    scale_bar,
    shown_intervals,
    support_texts,
)
from phloem.plot.drawing import (
    BAR,
    FAINT,
    INK,
    WIDTH,
    Drawing,
    DrawSettings,
    Strokes,
    Text,
    text_width,
    thinned,
)
from phloem.plot.layout import layout
from phloem.tree.tree import Tree

MARGIN, FOOT = 18.0, 46.0


def rectangular(tree: Tree, settings: DrawSettings) -> Drawing:
    """Draw the tree as tall as its tips need, up to settings.tallest; then rows close up and labels thin."""
    place, size = layout(tree, settings.ladderize), settings.font_size
    width = settings.width or WIDTH
    longest = max((text_width(name, size) for name in tree.taxa), default=0.0) if settings.labels else 0.0
    label_room = min(longest + 8, 0.45 * width)
    row = min(1.5 * size, (settings.tallest - FOOT - 2 * MARGIN) / max(tree.n_tips, 1))
    height = settings.height or row * tree.n_tips + FOOT + 2 * MARGIN
    row = (height - FOOT - 2 * MARGIN) / max(tree.n_tips, 1)
    room = width - 2 * MARGIN - label_room
    shown = support_texts(tree, settings.support) if settings.support != "none" else {}
    bars = shown_intervals(tree, place, settings.intervals)
    left = min([0.0, *(older for older, _ in bars.values())])
    scale = room / ((place.depth.max() - left) or 1.0)
    x = MARGIN + (place.depth - left) * scale
    y = MARGIN + (place.rank + 0.5) * row
    strokes, texts = _branches(tree, place, x, y, settings)
    strokes += _interval_strokes(bars, left, scale, y, row)
    if settings.labels:
        names, guides = _tip_labels(tree, place, x, y, size, label_room)
        texts, strokes = texts + names, [guides, *strokes]
    texts += fitting_support(shown, x, y, tree.parent, 0.8 * size)
    if (
        place.timed
        and place.depth.max() > 0
        and settings.scale_bar
        and (bar := scale_bar(MARGIN, height - FOOT + 10, scale, 0.25 * room, size))
    ):
        strokes.append(bar[0])
        texts.append(bar[1])
    return Drawing(width, height, strokes, texts)


def _branches(tree: Tree, place, x: np.ndarray, y: np.ndarray, settings: DrawSettings) -> tuple[list, list]:
    """Horizontal branches and vertical connectors, one path a colour."""
    child = np.arange(tree.n_nodes - 1)
    parent = tree.parent[:-1]
    across = np.stack([np.column_stack([x[parent], y[child]]), np.column_stack([x[child], y[child]])], axis=1)
    inner = np.arange(tree.n_tips, tree.n_nodes)
    pixel = (y[-1] - MARGIN) / (place.rank[-1] + 0.5)
    ends = [MARGIN + (rank[inner] + 0.5) * pixel for rank in (place.first, place.last)]
    down = np.stack([np.column_stack([x[inner], ends[0]]), np.column_stack([x[inner], ends[1]])], axis=1)
    found = branch_colours(tree, settings.colour_by) if settings.colour_by else None
    width = 1.4 if tree.n_tips <= 300 else (0.9 if tree.n_tips <= 3000 else 0.5)
    if found is None or settings.colour_by is None:
        return [Strokes(np.concatenate([across, down]), INK, width)], []
    steps, low, high = found
    strokes = [Strokes(down[steps[inner] == s], colour(s), width) for s in np.unique(steps[inner]).tolist()]
    strokes += [Strokes(across[steps[:-1] == s], colour(s), width) for s in np.unique(steps[:-1]).tolist()]
    height = y.max() + (FOOT + MARGIN) * 0.62
    strip, texts = colour_key(
        (settings.width or WIDTH) * 0.45, height, settings.colour_by, low, high, settings.font_size
    )
    return strokes + strip, texts


def _interval_strokes(bars: dict, left: float, scale: float, y: np.ndarray, row: float) -> list[Strokes]:
    if not bars:
        return []
    lines = np.array(
        [
            [[MARGIN + (older - left) * scale, y[x]], [MARGIN + (younger - left) * scale, y[x]]]
            for x, (older, younger) in bars.items()
        ]
    )
    return [Strokes(lines, BAR, min(7.0, 0.5 * row), 0.45)]


def _tip_labels(
    tree: Tree, place, x: np.ndarray, y: np.ndarray, size: float, room: float
) -> tuple[list[Text], Strokes]:
    """Names beside their tips, cut where longer than the room, and guides to them.

    Where only some fit they stand in one column at the right, clear of the neighbours' branches.
    """
    letters = max(4, int(room / text_width("x", size)))
    order = place.order[thinned(y[place.order], 1.05 * size)]
    column = float(x[: tree.n_tips].max())
    at = np.full(len(order), column) if len(order) < tree.n_tips else x[order]
    texts = [
        Text(left + 4, y[tip], name if len(name) <= letters else name[: letters - 1] + "…", size)
        for left, tip, name in zip(
            at.tolist(), order.tolist(), [tree.taxa[tip].replace("_", " ") for tip in order.tolist()]
        )
    ]
    far = at - x[order] > 8
    guides = [np.column_stack([side[far], y[order][far]]) for side in (x[order] + 3, at + 1)]
    return texts, Strokes(np.stack(guides, axis=1), FAINT, 0.5)
