"""Names and branch lengths of Newick nodes, checked and converted in bulk."""

from __future__ import annotations

import re

import numpy as np

from phloem.io.newick_nodes import NewickNodes
from phloem.io.newick_scan import QUOTED, CleanText

_NOT_A_NUMBER = re.compile(r"[^0-9.eE+\- ]")
_UNQUOTED_SPACE = re.compile(r"\s")


def node_labels(clean: CleanText, nodes: NewickNodes) -> list[str]:
    """The name of every node as a plain string, '' where there is none."""
    text = clean.text
    spans = zip(nodes.label_start.tolist(), nodes.label_stop.tolist())
    labels = [text[a:b].strip() for a, b in spans]
    quoted = bool((clean.codes == QUOTED).any())
    if not quoted and not _UNQUOTED_SPACE.search("".join(labels)):
        return labels
    return [_plain(clean, nodes, i, label) for i, label in enumerate(labels)]


def _plain(clean: CleanText, nodes: NewickNodes, i: int, label: str) -> str:
    if label[:1] in ("'", '"') and label:
        quote = label[0]
        inner = label[1:-1].replace(quote * 2, "") if len(label) > 1 and label[-1] == quote else quote
        if quote in inner:
            hint = "Put ',' or ':' after a quoted name; write a quote inside it twice."
            raise clean.error(
                f"text follows the quoted name {label[:40]}", int(nodes.label_start[i]), hint=hint
            )
        return label[1:-1].replace(quote * 2, quote)
    if _UNQUOTED_SPACE.search(label):
        hint = "Quote the name: 'Homo sapiens', or join its words by underscores; check for a missing comma."
        message = f"the unquoted name '{' '.join(label.split())[:60]}' contains white space"
        raise clean.error(message, int(nodes.label_start[i]), hint=hint)
    return label


def branch_lengths(clean: CleanText, nodes: NewickNodes, allow_negative: bool) -> np.ndarray:
    """(n,) float64, NaN where the file gives no length; a negative one is an error unless allowed."""
    which = np.flatnonzero(nodes.has_length)
    text = clean.text
    fields = [text[a:b] for a, b in zip((nodes.label_stop[which] + 1).tolist(), nodes.end[which].tolist())]
    lengths = np.full(len(nodes.end), np.nan)
    lengths[which] = _numbers(clean, nodes, which, fields)
    negative = np.flatnonzero(lengths < 0)
    if len(negative) and not allow_negative:
        i = int(negative[0])
        hint = "Set it to 0, or estimate the tree again (allow_negative=True reads it in Python)."
        raise clean.error(f"negative branch length {lengths[i]:g}", int(nodes.label_stop[i]) + 1, hint=hint)
    return lengths


def _numbers(clean: CleanText, nodes: NewickNodes, which: np.ndarray, fields: list[str]) -> np.ndarray:
    try:
        if not _NOT_A_NUMBER.search(" ".join(fields)):
            values = np.array(list(map(float, fields)), np.float64)
            if np.isfinite(values).all():
                return values
    except ValueError:
        pass
    return np.array([_number(clean, int(nodes.label_stop[i]) + 1, field) for i, field in zip(which, fields)])


def _number(clean: CleanText, position: int, field: str) -> float:
    shown = " ".join(field.split())[:40]
    hint = "Write a decimal number such as 0.05 or 5e-2 after ':', or leave the ':' out."
    if not shown:
        raise clean.error("':' without a branch length", position, hint=hint)
    try:
        value = float(field) if shown.isascii() and "_" not in field else np.nan
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise clean.error(f"'{shown}' is not a branch length", position, hint=hint)
    return value
