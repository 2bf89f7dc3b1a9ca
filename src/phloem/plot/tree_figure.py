"""Trees as drawings, rectangular and circular."""

from __future__ import annotations

import numpy as np

from phloem.plot.colours import branch_colours, colour_key
from phloem.plot.drawing import (
    BAR,
    FAINT,
    GREY,
    INK,
    WIDTH,
    Drawing,
    DrawSettings,
    Layout,
    Strokes,
    Text,
    fitting_support,
    layout,
    scale_bar,
    shown_intervals,
    support_texts,
    text_width,
    thinned,
)
from phloem.plot.time_axis import time_axis
from phloem.tree.tree import Tree

# A tree with horizontal branches, root at the left.


MARGIN, FOOT = 18.0, 46.0


def rectangular(tree: Tree, settings: DrawSettings) -> Drawing:
    """Draw the tree as tall as its tips need, up to settings.tallest; then rows close up and labels thin."""
    place, size = layout(tree, settings.ladderize), settings.font_size
    width = settings.width or WIDTH
    longest = max((text_width(name, size) for name in tree.taxa), default=0.0) if settings.labels else 0.0
    label_room = min(longest + 8, 0.45 * width)
    in_years = settings.latest is not None and place.timed
    foot = FOOT + (2.0 * size if in_years and settings.colour_by else 0.0)  # the key lies below the years
    row = min(1.5 * size, (settings.tallest - foot - 2 * MARGIN) / max(tree.n_tips, 1))
    height = settings.height or row * tree.n_tips + foot + 2 * MARGIN
    row = (height - foot - 2 * MARGIN) / max(tree.n_tips, 1)
    room = width - 2 * MARGIN - label_room
    shown = support_texts(tree, settings.support) if settings.support != "none" else {}
    bars = shown_intervals(tree, place, settings.intervals)
    left = min([0.0, *(older for older, _ in bars.values())])
    scale = room / ((place.depth.max() - left) or 1.0)
    x = MARGIN + (place.depth - left) * scale
    y = MARGIN + (place.rank + 0.5) * row
    key = height - foot + 2.0 * size + 8 if in_years else y.max() + (FOOT + MARGIN) * 0.62
    strokes, texts = _branches(tree, place, x, y, settings, float(key))
    strokes += _interval_strokes(bars, left, scale, y, row)
    if settings.labels:
        names, guides = _tip_labels(tree, place, x, y, size, label_room)
        texts, strokes = texts + names, [guides, *strokes]
    texts += fitting_support(shown, x, y, tree.parent, 0.8 * size)
    if settings.latest is not None and in_years:
        first = settings.latest - float(place.depth.max()) + left
        axis, years = time_axis(
            (first, settings.latest), (MARGIN, MARGIN + room), (MARGIN, height - foot), size
        )
        strokes, texts = [*axis, *strokes], texts + years
    elif (
        place.timed
        and place.depth.max() > 0
        and settings.scale_bar
        and (bar := scale_bar(MARGIN, height - foot + 10, scale, 0.25 * room, size))
    ):
        strokes.append(bar[0])
        texts.append(bar[1])
    return Drawing(width, height, strokes, texts)


def _branches(
    tree: Tree, place, x: np.ndarray, y: np.ndarray, settings: DrawSettings, key: float
) -> tuple[list, list]:
    """Horizontal branches and vertical connectors, one path a colour; their key at a height."""
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
    steps, of = found.steps, found.colour
    strokes = [Strokes(down[steps[inner] == s], of(s), width) for s in np.unique(steps[inner]).tolist()]
    strokes += [Strokes(across[steps[:-1] == s], of(s), width) for s in np.unique(steps[:-1]).tolist()]
    left = (settings.width or WIDTH) * 0.45
    strip, texts = colour_key(left, key, settings.colour_by, found, settings.font_size)
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
        for left, tip, name in zip(at.tolist(), order.tolist(), [tree.taxa[tip] for tip in order.tolist()])
    ]
    far = at - x[order] > 8
    guides = [np.column_stack([side[far], y[order][far]]) for side in (x[order] + 3, at + 1)]
    return texts, Strokes(np.stack(guides, axis=1), FAINT, 0.5)


# A tree around its root: depth is the radius, the tips go round.


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
    strokes, texts = _circular_branches(tree, place, angle, radius, centre, side, settings)
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


def _circular_branches(
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
    steps, strokes = found.steps, []
    for s in np.unique(steps).tolist():
        of_inner = [arcs[k] for k in np.flatnonzero(steps[inner] == s).tolist()]
        strokes.append(Strokes([*of_inner, *spokes[steps[:-1] == s]], found.colour(s), width))
    strip, texts = colour_key(side - 260, side + 8, settings.colour_by, found, settings.font_size)
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
        name = tree.taxa[tip]
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
