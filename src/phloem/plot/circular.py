"""A tree around its root: depth is the radius, the tips go round."""

from __future__ import annotations

import numpy as np

from phloem.plot.decoration import (
    branch_colours,
    colour,
    colour_key,
    scale_bar,
    shown_intervals,
    support_texts,
)
from phloem.plot.drawing import (
    BAR,
    FAINT,
    GREY,
    INK,
    WIDTH,
    Drawing,
    DrawSettings,
    Strokes,
    Text,
    text_width,
    thinned,
)
from phloem.plot.layout import Layout, layout
from phloem.tree.tree import Tree

MARGIN, FOOT, GAP = 16.0, 40.0, 12.0  # GAP: degrees left open between the last and the first tip
SPACING = 1.1  # font sizes from one name to the next


def circular(tree: Tree, settings: DrawSettings) -> Drawing:
    """Draw the tree in a square as large as its names need, up to settings.tallest; then they thin out.

    Names point outwards. The root is off the centre where a node's interval goes beyond it.
    """
    place, size = layout(tree, settings.ladderize), settings.font_size
    longest = max((text_width(name, size) for name in tree.taxa), default=0.0) + 6 if settings.labels else 0.0
    side = settings.width or _side(tree.n_tips, longest, settings)
    label_room = min(longest, 0.25 * side)
    outer = side / 2 - MARGIN - label_room
    bars = shown_intervals(tree, place, settings.intervals)
    oldest = min([0.0, *(older for older, _ in bars.values())])
    scale = outer / ((place.depth.max() - oldest) or 1.0)
    centre = side / 2
    angle = np.radians(GAP / 2 + (360 - GAP) * (place.rank + 0.5) / max(tree.n_tips, 1) - 90)
    radius = (place.depth - oldest) * scale
    strokes, texts = _branches(tree, place, angle, radius, centre, side, settings)
    if bars:
        nodes, ends = list(bars), (np.array(list(bars.values())) - oldest) * scale
        lines = np.stack([_point(centre, angle[nodes], r) for r in ends.T], axis=1)
        strokes.append(Strokes(lines, BAR, 5.0, 0.45))
    if settings.labels:
        names, guides = _labels(tree, place, angle, radius, centre, size, label_room, outer)
        texts, strokes = texts + names, [guides, *strokes]
    if settings.support != "none":
        texts += _support(tree, angle, radius, centre, settings)
    if (
        place.timed
        and place.depth.max() > 0
        and settings.scale_bar
        and (bar := scale_bar(MARGIN, side + 8, scale, 0.2 * side, size))
    ):
        strokes.append(bar[0])
        texts.append(bar[1])
    return Drawing(side, side + FOOT, strokes, texts)


def _side(tips: int, longest: float, settings: DrawSettings) -> float:
    """Pixels of the square in which all names fit at the rim, and leave the tree half of the radius."""
    rim = max(tips * SPACING * settings.font_size / np.radians(360 - GAP), longest)
    return float(np.clip(2 * (MARGIN + longest + rim), WIDTH, settings.tallest))


def _point(centre: float, angle: np.ndarray, radius: np.ndarray) -> np.ndarray:
    return np.stack([centre + radius * np.cos(angle), centre + radius * np.sin(angle)], axis=-1)


def _branches(
    tree: Tree, place: Layout, angle: np.ndarray, radius: np.ndarray, centre: float, side: float,
    settings: DrawSettings,
) -> tuple[list[Strokes], list[Text]]:  # fmt: skip
    """Radial branches, and arcs from the first to the last child of every inner node."""
    parent = tree.parent[:-1]
    spokes = np.stack(
        [_point(centre, angle[:-1], radius[parent]), _point(centre, angle[:-1], radius[:-1])], axis=1
    )
    inner = np.arange(tree.n_tips, tree.n_nodes)
    per_rank = np.radians(360 - GAP) / max(tree.n_tips, 1)
    begin = angle[inner] + (place.first[inner] - place.rank[inner]) * per_rank
    end = angle[inner] + (place.last[inner] - place.rank[inner]) * per_rank
    arcs = [_arc(centre, a, b, r) for a, b, r in zip(begin.tolist(), end.tolist(), radius[inner].tolist())]
    found = branch_colours(tree, settings.colour_by) if settings.colour_by else None
    width = 1.3 if tree.n_tips <= 300 else (0.8 if tree.n_tips <= 3000 else 0.4)
    if found is None or settings.colour_by is None:
        return [Strokes([*spokes, *arcs], INK, width)], []
    steps, low, high = found
    strokes = []
    for s in np.unique(steps).tolist():
        of_inner = [arcs[k] for k in np.flatnonzero(steps[inner] == s).tolist()]
        strokes.append(Strokes([*of_inner, *spokes[steps[:-1] == s]], colour(s), width))
    strip, texts = colour_key(side - 260, side + 8, settings.colour_by, low, high, settings.font_size)
    return strokes + strip, texts


def _arc(centre: float, begin: float, end: float, radius: float) -> np.ndarray:
    """Points on an arc, close enough that the corners cannot be seen."""
    points = 2 + int(abs(end - begin) * np.sqrt(max(radius, 1.0)) * 1.5)
    angles = np.linspace(begin, end, points)
    return _point(centre, angles, np.full(points, radius))


def _labels(
    tree: Tree, place: Layout, angle: np.ndarray, radius: np.ndarray, centre: float, size: float, room: float,
    outer: float,
) -> tuple[list[Text], Strokes]:  # fmt: skip
    """Names in line with their branches, turned round on the left half so that they read, and guides to them.

    Where some would touch at the ends of their branches all stand at the rim, outer pixels from the centre.
    """
    letters = max(4, int(room / text_width("x", size)))
    rim, step = outer + 4, np.radians(360 - GAP) / tree.n_tips
    order = place.order[thinned(angle[place.order] * rim, SPACING * size)]
    level = bool((radius[: tree.n_tips].min() + 4) * step < SPACING * size) and tree.n_tips > 1
    texts = []
    for tip in order.tolist():
        out = rim if level else radius[tip] + 4
        x, y = _point(centre, angle[tip], np.asarray(out)).tolist()
        name = tree.taxa[tip].replace("_", " ")
        name = name if len(name) <= letters else name[: letters - 1] + "…"
        turned = np.cos(angle[tip]) < 0
        degrees = float(np.degrees(angle[tip])) + (180 if turned else 0)
        texts.append(Text(x, y, name, size, INK, "end" if turned else "start", degrees))
    tips = order[radius[order] < rim - 8] if level else order[:0]
    ends = [_point(centre, angle[tips], r) for r in (radius[tips] + 2, np.full(len(tips), rim - 2))]
    return texts, Strokes(np.stack(ends, axis=1), FAINT, 0.5)


def _support(
    tree: Tree, angle: np.ndarray, radius: np.ndarray, centre: float, settings: DrawSettings
) -> list[Text]:
    """Support values beside their nodes, those that would touch an earlier one left out."""
    size, texts = 0.75 * settings.font_size, []
    placed: list[tuple[float, float, float]] = []
    for node, text in sorted(support_texts(tree, settings.support).items(), reverse=True):
        if node == tree.n_nodes - 1:
            continue
        x, y = _point(centre, angle[node], radius[node] - 0.9 * size).tolist()
        width = text_width(text, size)
        if all(abs(x - a) > (width + w) / 2 + 2 or abs(y - b) > size for a, b, w in placed):
            placed.append((x, y, width))
            texts.append(Text(x, y, text, size, GREY, "middle", halo=True))
        if len(placed) >= 300:
            break
    return texts
