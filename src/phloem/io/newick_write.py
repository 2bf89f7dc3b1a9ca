"""Trees to Newick text."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from phloem.io.annotations import format_annotation
from phloem.tree.tree import Tree

_PLAIN = re.compile(r"""[^\s()\[\]{}:;,='"]+""")


def newick_name(name: str) -> str:
    """A name as Newick writes it: in single quotes (doubled inside) where it has blanks or punctuation."""
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"


def write_newick(
    tree: Tree,
    *,
    precision: int | None = None,
    annotations: bool = True,
    rooting: bool = False,
    names: Mapping[str, str] | None = None,
) -> str:
    """The tree as one line ending in ';', children in the order of their numbers.

    precision: significant digits of branch lengths; None writes the shortest text that reads back the same
    number. annotations: write [&key=value]. rooting: begin with [&R] or [&U]. names: replaces tip names.
    A length that is NaN is left out, and so is a root edge of 0.
    """
    pieces = _tails(tree, precision, annotations)
    for x, name in enumerate(tree.taxa):
        written = names[name] if names and name in names else newick_name(name)
        pieces[x] = written + pieces[x]
    return ("[&R] " if tree.rooted else "[&U] ") * rooting + _assemble(tree, pieces) + ";"


def _assemble(tree: Tree, pieces: list[str]) -> str:
    """Brackets around children, written in one walk so that deep trees cost no quadratic copying."""
    out: list[str] = []
    stack: list[tuple[int, bool, bool]] = [(tree.n_nodes - 1, False, True)]
    while stack:
        node, closing, first = stack.pop()
        if closing:
            out += [")", pieces[node]]
            continue
        out.append("" if first else ",")
        children = tree.children(node).tolist()
        if not children:
            out.append(pieces[node])
            continue
        out.append("(")
        stack.append((node, True, first))
        stack += [(child, False, k == 0) for k, child in reversed(list(enumerate(children)))]
    return "".join(out)


def _tails(tree: Tree, precision: int | None, annotations: bool) -> list[str]:
    """What follows each node's name or bracket: label, annotation, length."""
    labels = tree.labels or (None,) * tree.n_nodes
    texts = ["" if label is None else newick_name(label) for label in labels]
    if annotations:
        for x, values in tree.annotations.items():
            texts[x] += format_annotation(values)
    numbers = tree.lengths.tolist()
    root = tree.n_nodes - 1
    for x, length in enumerate(numbers):
        if not np.isnan(length) and not (x == root and length == 0):
            texts[x] += ":" + (repr(length) if precision is None else f"{length:.{precision}g}")
    return texts
