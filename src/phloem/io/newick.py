"""Newick text to trees as flat arrays, many trees at once.

Rules where programs differ: underscores stay underscores; comments that begin with '&' annotate the node
they follow (or the tree, before its first bracket); a node with one child is suppressed and its length added
to the child's; without [&R] or [&U] a tree is rooted if its root has two children; a missing final ';' is
forgiven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phloem.errors import InputError
from phloem.io.annotations import Annotations
from phloem.io.newick_nodes import NewickNodes, newick_nodes
from phloem.io.newick_scan import CleanText, Spans, clean_text, protected_spans
from phloem.io.newick_values import branch_lengths, node_labels
from phloem.io.source_text import SourceText
from phloem.tree.build import suppress_unary
from phloem.tree.tree import Tree


def parse_newick(
    text: str | SourceText, *, taxa: Sequence[str] | None = None, allow_negative: bool = False
) -> list[Tree]:
    """Every tree of a Newick text.

    taxa: the order of the tips; by default the first tree's order of appearance, shared by every later tree
    of the same names. Raises InputError (line, column, remedy) for anything that is not a Newick tree.
    """
    source = text if isinstance(text, SourceText) else SourceText(text)
    comments, quotes = protected_spans(source)
    if not source.text.strip():
        raise InputError("the file is empty", file=source.file, hint="Give a file with a Newick tree.")
    clean = clean_text(source, 0, len(source.text), comments, quotes)
    return trees_of(clean, taxa=taxa, allow_negative=allow_negative)


def trees_of(
    clean: CleanText,
    *,
    taxa: Sequence[str] | None = None,
    translate: Mapping[str, str] | None = None,
    names: Sequence[str | None] | None = None,
    allow_negative: bool = False,
) -> list[Tree]:
    """The trees of a clean text; translate maps every tip label to a taxon, names are the trees' names."""
    nodes = newick_nodes(clean)
    labels = node_labels(clean, nodes)
    lengths = branch_lengths(clean, nodes, allow_negative)
    if translate:
        labels = _translated(clean, nodes, labels, translate)
    number, tree_taxa = _canonical_numbers(clean, nodes, labels, taxa)
    parent, lengths = _canonical_arrays(nodes, lengths, number)
    comments, flags = _comments(clean, nodes, number)
    trees = []
    starts = np.append(0, nodes.tree_stop[:-1]).tolist()
    for k, (a, b) in enumerate(zip(starts, nodes.tree_stop.tolist())):
        rooted = flags[k] if k in flags else int(np.count_nonzero(parent[a:b] == b - a - 1)) <= 2
        tree = Tree(
            taxa=tree_taxa[k],
            parent=parent[a:b],
            lengths=lengths[a:b],
            labels=_internal_labels(labels[a:b], len(tree_taxa[k]), nodes.is_tip[a:b]),
            annotations=Annotations(comments[k]) if k in comments else {},
            rooted=rooted,
            name=names[k] if names else None,
        )
        trees.append(_without_unary(tree, k in flags))
    return trees


def _translated(
    clean: CleanText, nodes: NewickNodes, labels: list[str], translate: Mapping[str, str]
) -> list[str]:
    """Labels with those of tips replaced; a tip that the table does not know is an error."""
    named = [translate.get(label) if tip else label for label, tip in zip(labels, nodes.is_tip.tolist())]
    if None in named:
        i = named.index(None)
        message = f"tip '{labels[i]}' is neither in TRANSLATE nor in TAXLABELS"
        hint = "Add it to the table, or correct its name."
        raise clean.error(message, int(nodes.label_start[i]), taxon=labels[i], hint=hint)
    return [label or "" for label in named]


def _without_unary(tree: Tree, rootedness_given: bool) -> Tree:
    if np.diff(tree.child_offsets)[tree.n_tips :].min(initial=2) != 1:
        return tree
    return suppress_unary(tree, None if rootedness_given else "by degree")


def _canonical_numbers(clean: CleanText, nodes: NewickNodes, labels: list[str], taxa: Sequence[str] | None):
    """(n,) number of each node within its tree, and each tree's taxa in the order of their numbers."""
    starts = np.append(0, nodes.tree_stop[:-1])
    tree = np.repeat(np.arange(len(starts)), nodes.tree_stop - starts)
    internal_before = np.append(0, np.cumsum(~nodes.is_tip))
    n_tips = np.add.reduceat(nodes.is_tip.astype(np.int64), starts)
    number = (internal_before[:-1] - internal_before[starts][tree]) + n_tips[tree]
    tips = np.flatnonzero(nodes.is_tip)
    tip_labels = [labels[i] for i in tips.tolist()]
    tree_taxa: list[tuple[str, ...]] = []
    shared = tuple(taxa) if taxa is not None else None
    index = {} if shared is None else {name: i for i, name in enumerate(shared)}
    numbers: list[int] = []
    stop = 0
    for count in n_tips.tolist():
        start, stop = stop, stop + count
        own = tip_labels[start:stop]
        order = [index.get(name, -1) for name in own]
        if shared is None or len(own) != len(shared) or -1 in order or len(set(order)) < count:
            _check_names(clean, nodes, tips[start:stop], own)
            order = list(range(count))
            if shared is None:
                shared, index = tuple(own), {name: i for i, name in enumerate(own)}
            tree_taxa.append(tuple(own))
        else:
            tree_taxa.append(shared)
        numbers += order
    number[tips] = numbers
    return number, tree_taxa


def _check_names(clean: CleanText, nodes: NewickNodes, tips: np.ndarray, names: list[str]) -> None:
    seen: set[str] = set()
    for node, name in zip(tips.tolist(), names):
        at = int(nodes.label_start[node])
        if not name:
            raise clean.error("a tip has no name", at, hint="Name every tip; check for a stray comma.")
        if name in seen:
            message = f"taxon '{name}' stands twice in the tree"
            raise clean.error(message, at, taxon=name, hint="Give each tip a name of its own.")
        seen.add(name)


def _canonical_arrays(nodes: NewickNodes, lengths: np.ndarray, number: np.ndarray):
    starts = np.append(0, nodes.tree_stop[:-1])
    place = np.repeat(starts, nodes.tree_stop - starts) + number
    root = nodes.parent < 0
    parent = np.empty(len(number), np.int32)
    parent[place] = np.where(root, -1, number[nodes.parent])
    canonical = np.empty(len(number))
    canonical[place] = np.where(root & np.isnan(lengths), 0.0, lengths)
    return parent, canonical


def _internal_labels(labels: list[str], n_tips: int, is_tip: np.ndarray) -> tuple[str | None, ...] | None:
    internal = [labels[i] or None for i in np.flatnonzero(~is_tip).tolist()]
    return (None,) * n_tips + tuple(internal) if any(internal) else None


def _comments(clean: CleanText, nodes: NewickNodes, number: np.ndarray):
    """Per tree: {node: comment text} of its annotations, and whether [&R] (True) or [&U] (False) leads it."""
    of_tree: dict[int, dict[int, str]] = {}
    flags: dict[int, bool] = {}
    node = np.searchsorted(nodes.end, clean.removed_at)
    tree = np.searchsorted(nodes.tree_stop, node, side="right")
    text = clean.source.text
    spans: Spans = clean.removed
    for a, b, at, i, k in zip(spans.start.tolist(), spans.stop.tolist(), clean.removed_at.tolist(),
                              node.tolist(), tree.tolist()):  # fmt: skip
        if not text.startswith("[&", a) or i >= len(number):
            continue
        if at <= nodes.tree_start[k]:
            flag = text[a + 2 : b - 1].strip().upper()
            if flag in ("R", "U"):
                flags[k] = flag == "R"
            continue
        found = of_tree.setdefault(k, {})
        x = int(number[i])
        found[x] = f"{found[x]}\n{text[a + 1 : b - 1]}" if x in found else text[a + 1 : b - 1]
    return of_tree, flags
