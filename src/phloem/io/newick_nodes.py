"""Newick grammar over arrays: every node of every tree of a text, in the file's own (post-)order.

A node ends at ',', ')' or ';', so that those delimiters are the nodes, children before parents. The parent of
a node at depth d is the first later node at depth d - 1. No recursion, no loop over characters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.io.newick_scan import CleanText

OPEN, CLOSE, COMMA, COLON, END = (ord(c) for c in "(),:;")
_DELIMITER = np.zeros(256, bool)
_DELIMITER[[OPEN, CLOSE, COMMA, COLON, END]] = True


@dataclass(frozen=True)
class NewickNodes:
    """Nodes of all trees of a text, n in all; positions refer to the clean text.

    parent: (n,) int64, -1 at roots. is_tip: (n,) bool.
    end: (n,) position of the delimiter that ends the node.
    label_start, label_stop: (n,). has_length: (n,) bool; its text lies between label_stop + 1 and end.
    tree_stop: (n_trees,) one past each tree's last node (its root).
    tree_start: (n_trees,) where each tree's text begins.
    """

    parent: np.ndarray
    is_tip: np.ndarray
    end: np.ndarray
    label_start: np.ndarray
    label_stop: np.ndarray
    has_length: np.ndarray
    tree_stop: np.ndarray
    tree_start: np.ndarray


def newick_nodes(clean: CleanText) -> NewickNodes:
    """Find the nodes; InputError where brackets, commas or colons stand wrong."""
    position = np.flatnonzero(_DELIMITER[clean.codes])
    kind = clean.codes[position]
    step = (kind == OPEN).astype(np.int64) - (kind == CLOSE)
    depth = np.cumsum(step) - step
    _check_grammar(clean, position, kind, depth)
    ender = np.flatnonzero((kind != OPEN) & (kind != COLON))
    has_length = (kind[ender - 1] == COLON) & (ender > 0)
    before = ender - 1 - has_length
    first = before < 0
    label_start = np.where(first, 0, position[before] + 1)
    end = position[ender]
    root = kind[ender] == END
    tree_stop = np.flatnonzero(root) + 1
    return NewickNodes(
        parent=_parents(depth[ender], root),
        is_tip=first | (kind[before] != CLOSE),
        end=end,
        label_start=label_start,
        label_stop=np.where(has_length, position[ender - 1], end),
        has_length=has_length,
        tree_stop=tree_stop,
        tree_start=_tree_starts(clean, end[tree_stop - 1]),
    )


def _parents(depth: np.ndarray, root: np.ndarray) -> np.ndarray:
    n = len(depth)
    order = np.argsort(depth, kind="stable")
    key = depth[order] * n + order
    wanted = (depth - 1) * n + np.arange(n)
    parent = order[np.minimum(np.searchsorted(key, wanted), n - 1)]
    parent[root] = -1
    return parent


def _tree_starts(clean: CleanText, stops: np.ndarray) -> np.ndarray:
    """First character of each tree that is not white space."""
    starts = [0, *(stops[:-1] + 1).tolist()]
    text = clean.text
    return np.array([b - len(text[a:b].lstrip()) for a, b in zip(starts, stops.tolist())], np.int64)


def _check_grammar(clean: CleanText, position, kind, depth) -> None:
    """Raise for the first delimiter that the grammar does not allow."""
    previous = np.append(END, kind[:-1])
    first_problem: list[tuple[int, str, str]] = []

    def rule(broken: np.ndarray, message: str, hint: str) -> None:
        if broken.any():
            first_problem.append((int(np.argmax(broken)), message, hint))

    rule((kind == CLOSE) & (depth <= 0), "unbalanced brackets: ')' closes nothing", "Remove it or add a '('.")
    rule(
        (kind == END) & (depth > 0),
        "unbalanced brackets: the tree ends before every '(' is closed",
        "Add the missing ')'; the file may have been cut off.",
    )
    rule((kind == COMMA) & (depth == 0), "',' outside the brackets", "Enclose the tree in '(' and ')'.")
    rule(
        (kind == COLON) & (previous == COLON),
        "two ':' in one node",
        "Check for a missing ')'; quote names that contain ':'.",
    )
    after = (previous == CLOSE) | (previous == COLON)
    rule((kind == OPEN) & (after | _text_before(clean, position, kind)), "'(' where a ',' or ')' must stand",
         "Separate subtrees by ',' and quote names that contain brackets.")  # fmt: skip
    if first_problem:
        index, message, hint = min(first_problem)
        raise clean.error(message, int(position[index]), hint=hint)


def _text_before(clean: CleanText, position, kind) -> np.ndarray:
    """True at each '(' that follows something other than white space since the last delimiter."""
    start = np.append(0, position[:-1] + 1)
    broken = np.zeros(len(kind), bool)
    for j in np.flatnonzero((kind == OPEN) & (position > start)).tolist():
        broken[j] = bool(clean.text[start[j] : position[j]].strip())
    return broken
