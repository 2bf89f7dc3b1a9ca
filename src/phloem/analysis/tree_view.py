"""A tree for whoever draws it elsewhere: flat arrays, its annotations by name; rooted anew; two compared."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from phloem.analysis.draw import at_midpoint
from phloem.errors import InputError
from phloem.io.trees import newick_text, nexus_text, read_trees
from phloem.plot.colours import is_number
from phloem.plot.drawing import (
    LARGEST,
    SUPPORT_KEYS,
    Anchor,
    Drawing,
    Strokes,
    Text,
    is_interval,
)
from phloem.plot.pictures import save_figure
from phloem.summary.clade_trees import SUMMARY_TREES
from phloem.tree.match import match_taxa
from phloem.tree.reroot import is_support, root_at_branch, root_at_outgroup, unroot
from phloem.tree.tree import Tree

MOST_DIGITS = 6


@dataclass(frozen=True)
class RootChoice:
    """Where the root is to be: as in the file, in the middle of the longest path, on the branch above a node
    of the file's tree, or on that of an outgroup."""

    kind: Literal["file", "midpoint", "branch", "outgroup"] = "file"
    node: int | None = None
    outgroup: tuple[str, ...] = ()


def read_view(path: str, index: int = 0, root: RootChoice = RootChoice()) -> tuple[Tree, int]:
    """A tree of a file, rooted as wanted, and how many trees the file has. Errors: InputError."""
    trees = read_trees(path, allow_negative=True)
    if not 0 <= index < len(trees):
        raise InputError(f"there is no tree number {index}", file=path, hint=f"There are {len(trees):,}.")
    return rooted(trees[index], root), len(trees)


def rooted(tree: Tree, root: RootChoice) -> Tree:
    if root.kind == "midpoint":
        return at_midpoint(tree)
    if root.kind == "branch":
        return root_at_branch(tree, -1 if root.node is None else root.node)
    if root.kind == "outgroup":
        return root_at_outgroup(tree, root.outgroup)
    return tree


def youngest_date(tree: Tree, path: str) -> float | None:
    """The date of the youngest tip: of annotations, as `phloem date` writes them; else of the table of times
    beside it, as `phloem time` does. None where it is not known."""
    dates = [tree.annotations.get(node, {}).get("date") for node in range(tree.n_tips)]
    known = [float(date) for date in dates if is_number(date)]  # type: ignore[arg-type]
    if len(known) == tree.n_tips:
        return max(known)
    table = Path(f"{path.rsplit('.', 2)[0]}.past.tsv")
    if not path.endswith(tuple(f".{kind}.tre" for kind in SUMMARY_TREES)) or not table.is_file():
        return None
    return latest_of_past(str(table))


def latest_of_past(table: str) -> float | None:
    """The latest date of a table of times (PREFIX.past.tsv of phloem time); None where it has ages alone."""
    head, first = (line.split("\t") for line in Path(table).read_text(encoding="utf-8").splitlines()[:2])
    return float(first[head.index("date")]) if "date" in head else None


def tree_record(tree: Tree, n_trees: int = 1, youngest: float | None = None) -> dict[str, object]:
    """Plain lists. numbers: annotation → a value a node, None where it has none; intervals: the same with
    (lower, upper). support: the first of the usual annotations, or labels that are numbers;
    written: those labels as they stand, where there are any. youngest: youngest_date."""
    n = tree.n_nodes
    numbers: dict[str, list[float | None]] = {}
    intervals: dict[str, list[list[float] | None]] = {}
    for node, annotation in tree.annotations.items():
        for key, value in annotation.items():
            if is_number(value):
                numbers.setdefault(key, [None] * n)[node] = _short(value)
            elif is_interval(value):
                intervals.setdefault(key, [None] * n)[node] = [_short(v) for v in value]  # type: ignore
    labels = tree.labels or (None,) * n
    supports = [str(label) if is_support(label) else None for label in labels]
    numbers |= _of_labels(supports)
    usual = ("label", "label 1", *SUPPORT_KEYS)
    return {
        "names": list(tree.taxa),
        "parent": tree.parent.tolist(),
        "lengths": [None if np.isnan(x) else _short(x) for x in tree.lengths.tolist()],
        "labels": [label if label is not None and not is_support(label) else None for label in labels],
        "numbers": numbers,
        "intervals": intervals,
        "written": supports if any(supports) else None,
        "support": next((key for key in usual if key in numbers), None),
        "rooted": tree.rooted,
        "youngest": youngest,
        "trees": n_trees,
    }


def _of_labels(supports: Sequence[str | None]) -> dict[str, list[float | None]]:
    """The numbers of labels such as 95, or 99.1/95 of two kinds, by which of them it is."""
    parts = [None if label is None else label.split("/") for label in supports]
    most = max((len(one) for one in parts if one), default=0)
    return {
        "label" if most == 1 else f"label {k + 1}": [
            _short(one[k]) if one and len(one) > k else None for one in parts
        ]
        for k in range(most)
    }


def _short(value: object) -> float:
    return float(f"{float(value):.{MOST_DIGITS}g}")  # type: ignore[arg-type]


def comparison(first: Tree, second: Tree) -> dict[str, object]:
    """Two trees of the same tips in the same order. shared: for every node of each whether the other has its
    split. distance: splits that only one has (Robinson and Foulds 1981); most: how many it could be. pairs:
    for every node of the first the node of the second with the same split, -1 where there is none.
    """
    a, b = unroot(first), unroot(second)
    splits_a, splits_b = _splits(first), _splits(second)
    known_a, known_b = _informative(splits_a), _informative(splits_b)
    found = {split: node for node, split in enumerate(splits_b)}
    return {
        "shared": [
            [split in known_b or not _counts(split, first.n_tips) for split in splits_a],
            [split in known_a or not _counts(split, first.n_tips) for split in splits_b],
        ],
        "pairs": [found.get(split, -1) for split in splits_a],
        "distance": len(known_a ^ known_b),
        "most": a.n_nodes + b.n_nodes - 2 * first.n_tips - 2,
        "taxa": first.n_tips,
    }


def _splits(tree: Tree) -> list[int]:
    """For every node the side of its split without tip 0, as bits of a whole number."""
    below, everything = [0] * tree.n_nodes, (1 << tree.n_tips) - 1
    for x in range(tree.n_nodes):
        if x < tree.n_tips:
            below[x] = 1 << x
        if tree.parent[x] >= 0:
            below[tree.parent[x]] |= below[x]
    return [everything & ~bits if bits & 1 else bits for bits in below]


def _counts(split: int, n_tips: int) -> bool:
    return 1 < split.bit_count() < n_tips - 1


def _informative(splits: Sequence[int]) -> set[int]:
    n_tips = max((split.bit_length() for split in splits), default=0)
    return {split for split in splits if _counts(split, n_tips)}


def compared(first: Tree, second: Tree) -> dict[str, object]:
    """Both trees as records, the second's tips in the order of the first's, and their comparison.

    Errors: InputError where the taxa differ.
    """
    second = match_taxa(second, first.taxa)
    return {
        "first": tree_record(first),
        "second": tree_record(second),
        "comparison": comparison(first, second),
    }


def exported(tree: Tree, form: str) -> bytes:
    """A tree as the text of a file, newick or nexus."""
    if form not in ("newick", "nexus"):
        raise InputError(f"there is no export as '{form}'", hint="Choose newick or nexus.")
    return (newick_text([tree]) if form == "newick" else nexus_text([tree])).encode()


_COLOUR = re.compile(r"#[0-9a-f]{6}")
_ANCHORS: tuple[Anchor, ...] = ("start", "middle", "end")


def pdf_of(picture: Mapping[str, Any]) -> bytes:
    """A PDF of what was drawn elsewhere. picture: width, height in pixels; strokes, each with lines (x, y, x,
    y, … each), colour, width, opacity, filled; texts, each with x, y, text, size, colour, anchor, angle in
    degrees. Errors: InputError for what is no such record, DeviceError without matplotlib."""
    try:
        strokes, texts = map(_strokes, picture["strokes"]), map(_text, picture["texts"])
        drawing = Drawing(_size(picture["width"]), _size(picture["height"]), list(strokes), list(texts))
        if min(drawing.width, drawing.height) < 1:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("this is no picture", hint="Reload the page.") from None
    written = io.BytesIO()
    save_figure(drawing, written, format="pdf")
    return written.getvalue()


_LONGEST_TEXT = 500


def _strokes(one: Mapping[str, Any]) -> Strokes:
    lines, opacity = [_points(line) for line in one["lines"]], _size(one.get("opacity", 1.0), 1.0)
    return Strokes(lines, _colour(one), _size(one["width"]), opacity, bool(one.get("filled")))


def _text(one: Mapping[str, Any]) -> Text:
    x, y = _points([one["x"], one["y"]])[0].tolist()
    anchor, angle = _ANCHORS[_ANCHORS.index(one["anchor"])], _size(one["angle"] % 360, 360.0)
    return Text(
        x, y, str(one["text"])[:_LONGEST_TEXT], _size(one["size"], 200.0), _colour(one), anchor, angle
    )


def _points(numbers: Sequence[float]) -> np.ndarray:
    """(n, 2)."""
    points = np.array(numbers, float).reshape(-1, 2)
    if not (np.abs(points) < 1e6).all():
        raise ValueError
    return points


def _size(value: float, most: float = LARGEST) -> float:
    if not 0 <= value <= most:
        raise ValueError
    return float(value)


def _colour(one: Mapping[str, Any]) -> str:
    if not _COLOUR.fullmatch(one["colour"]):
        raise ValueError
    return str(one["colour"])
