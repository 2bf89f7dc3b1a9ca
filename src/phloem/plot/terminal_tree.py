"""A tree drawn in a terminal: plain text with box-drawing characters, branch lengths to scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.plot.drawing import children_in_order, len_shown
from phloem.tree.tree import Tree

_ROOMY_TIPS = 40
_ROOMY_TIPS_WITH_SUPPORT = 120


@dataclass(frozen=True)
class Layout:
    """Where every node stands: column (N,) and row (N,) in characters, children in drawing order."""

    column: np.ndarray
    row: np.ndarray
    children: list[list[int]]
    scale: float


def draw_tree(
    tree: Tree,
    width: int = 80,
    support: str | None = "prob",
    ascii_only: bool = False,
    ladderize: bool = True,
) -> str:
    """The tree as text of at most width columns, with a scale bar where it has lengths.

    support: the annotation shown at internal branches (a clade probability or other number), else the node's
    label; None shows nothing. Clades of probability 1 show as 1. ladderize: smaller clades first.
    Trees of up to 40 tips (120 with support values) get a free row between tips; values that find no room are
    counted in a last line. Without any length all branches are drawn equal.
    """
    width = max(width, 20)
    names = _names(tree, width)
    room = width - max(len_shown(name) for name in names) - 1
    texts = _support_texts(tree, support)
    gap = 2 if tree.n_tips <= (_ROOMY_TIPS_WITH_SUPPORT if texts else _ROOMY_TIPS) else 1
    layout = _layout(tree, max(room, 8), ladderize, gap)
    canvas = [[" "] * max(room, 8) for _ in range(int(layout.row.max()) + 1)]
    _draw_branches(tree, layout, canvas)
    for x, name in enumerate(names):  # one cell, so that nothing can be written into a name
        canvas[int(layout.row[x])][int(layout.column[x]) + 1 :] = [" " + name]
    crowded = sum(not _write_support(tree, layout, canvas, node, text) for node, text in texts.items())
    lines = ["".join(line).rstrip() for line in canvas]
    if np.isfinite(tree.lengths[:-1]).any() and layout.scale > 0:
        lines += ["", *_scale_bar(layout.scale, max(room, 8))]
    if crowded:
        lines += ["", f"({crowded} of {len(texts)} node values not shown for want of room)"[:width]]
    text = "\n".join(lines)
    return text.translate(_ASCII) if ascii_only else text


_ASCII = str.maketrans("─│┌└├┤┬┼┴…", "-|/\\+++++~")


def _names(tree: Tree, width: int) -> list[str]:
    """Tip names, those longer than two fifths of the width shortened in the middle."""
    limit = max(width * 2 // 5, 10)
    kept = limit - 1
    return [
        name if len_shown(name) <= limit else name[: kept - kept // 3] + "…" + name[-(kept // 3) :]
        for name in ("".join(c if c.isprintable() else "?" for c in name) for name in tree.taxa)
    ]


def _layout(tree: Tree, room: int, ladderize: bool, gap: int) -> Layout:
    n = tree.n_nodes
    known = np.isfinite(tree.lengths[:-1]).any()
    lengths = np.where(np.isfinite(tree.lengths), np.maximum(tree.lengths, 0.0), 0.0) if known else np.ones(n)
    depth = np.zeros(n)
    for x in range(n - 2, -1, -1):
        depth[x] = depth[tree.parent[x]] + lengths[x]
    deepest = float(depth.max())
    scale = (room - 2) / deepest if deepest > 0 else 0.0
    column = np.rint(depth * scale).astype(np.int64)
    for x in range(n - 2, -1, -1):
        column[x] = min(max(column[x], column[tree.parent[x]] + (1 if x < tree.n_tips else 0)), room - 1)
    children = children_in_order(tree, ladderize)
    return Layout(column, _rows(tree, children, gap), children, scale if known else 0.0)


def _rows(tree: Tree, children: list[list[int]], gap: int) -> np.ndarray:
    """Tips in drawing order, one or two rows apart; an internal node between its outer children."""
    row = np.zeros(tree.n_nodes, np.int64)
    stack, next_row = [tree.n_nodes - 1], 0
    while stack:
        x = stack.pop()
        if not children[x]:
            row[x] = next_row
            next_row += gap
        stack += reversed(children[x])
    for x in range(tree.n_tips, tree.n_nodes):
        row[x] = (row[children[x][0]] + row[children[x][-1]]) // 2
    return row


_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_BOX = {
    _UP | _DOWN: "│", _LEFT | _RIGHT: "─", _DOWN | _RIGHT: "┌", _UP | _RIGHT: "└", _DOWN | _LEFT: "┐",
    _UP | _LEFT: "┘", _UP | _DOWN | _RIGHT: "├", _UP | _DOWN | _LEFT: "┤", _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _LEFT | _RIGHT: "┴", _UP | _DOWN | _LEFT | _RIGHT: "┼",
    _LEFT: "─", _RIGHT: "─", _UP: "│", _DOWN: "│",
}  # fmt: skip


def _draw_branches(tree: Tree, layout: Layout, canvas: list[list[str]]) -> None:
    """Give every cell the directions in which lines leave it, then the character for them."""
    strokes = np.zeros((len(canvas), len(canvas[0])), np.int64)
    for x in range(tree.n_nodes):
        row, column = int(layout.row[x]), int(layout.column[x])
        if x < tree.n_nodes - 1:
            start = int(layout.column[tree.parent[x]])
            strokes[row, start:column] |= _RIGHT
            strokes[row, start + 1 : column + 1] |= _LEFT
        if layout.children[x]:
            top, bottom = (int(layout.row[layout.children[x][i]]) for i in (0, -1))
            strokes[top:bottom, column] |= _DOWN
            strokes[top + 1 : bottom + 1, column] |= _UP
    for row, column in np.argwhere(strokes).tolist():
        canvas[row][column] = _BOX[int(strokes[row, column])]


def _support_texts(tree: Tree, support: str | None) -> dict[int, str]:
    """What to write at internal nodes other than the root."""
    texts: dict[int, str] = {}
    if support is None:
        return texts
    for x in range(tree.n_tips, tree.n_nodes - 1):
        values: Mapping[str, object] = tree.annotations.get(x, {})
        value = values.get(support)
        if isinstance(value, (int, float)):
            texts[x] = f"{value:.3g}" if value > 1 else "1" if value >= 0.995 else f"{value:.2f}".lstrip("0")
        elif tree.labels and tree.labels[x]:
            texts[x] = str(tree.labels[x])
    return texts


def _write_support(tree: Tree, layout: Layout, canvas: list[list[str]], node: int, text: str) -> bool:
    """Write a text at its node: on the branch if it fits there, else in the nearest free cells.

    Returns False, and writes nothing, where the drawing is too dense.
    """
    row, stop = int(layout.row[node]), int(layout.column[node])
    start = int(layout.column[tree.parent[node]]) + 1
    if stop - start >= len(text) + 1:
        canvas[row][stop - len(text) : stop] = text
        return True
    left, right = stop - len(text), stop + 1
    for margin in (1, 0):
        for other, begin in (
            (row, right),
            (row - 1, left),
            (row + 1, left),
            (row - 1, right),
            (row + 1, right),
        ):
            if _is_free(canvas, other, begin, begin + len(text), margin):
                canvas[other][begin : begin + len(text)] = text
                return True
    return False


def _is_free(canvas: list[list[str]], row: int, start: int, stop: int, margin: int) -> bool:
    """Whether cells, and as many as margin on the far side of the text, are blank."""
    if not 0 <= row < len(canvas) or start < 0 or stop > len(canvas[row]):
        return False
    return all(cell == " " for cell in canvas[row][max(start - margin, 0) : stop + margin])


def _scale_bar(scale: float, room: int) -> list[str]:
    """A bar of a round length, about a quarter of the tree's width."""
    wanted = room / 4 / scale
    power = 10.0 ** np.floor(np.log10(wanted))
    length = max((step * power for step in (1, 2, 5) if step * power <= wanted), default=power)
    cells = max(round(length * scale), 1)
    return ["├" + "─" * max(cells - 1, 0) + "┤ " + f"{length:g}"]
