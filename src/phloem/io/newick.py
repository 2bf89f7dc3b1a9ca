"""Newick text to trees as flat arrays, many trees at once.

Rules where programs differ: underscores stay underscores; comments that begin with '&' annotate the node
they follow (or the tree, before its first bracket); a node with one child is suppressed and its length added
to the child's; without [&R] or [&U] a tree is rooted if its root has two children; a missing final ';' is
forgiven.

A node ends at ',', ')' or ';', so that those delimiters are the nodes, children before parents. The parent of
a node at depth d is the first later node at depth d - 1. No recursion, no loop over characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.io.annotations import Annotations
from phloem.io.newick_text import QUOTED, CleanText, Spans, clean_text, protected_spans, read_counts
from phloem.io.source_text import SourceText
from phloem.tree.build import suppress_unary
from phloem.tree.match import folded, spellings
from phloem.tree.tree import Tree

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


_NETWORK_TAG = re.compile(r"#([A-Za-z]*)\d+$")
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
        hint = "Set it to 0, or have it fitted: phloem likelihood --optimize, phloem ml --tree (in Python "
        hint += "allow_negative=True reads it)."
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


def parse_newick(
    text: str | SourceText, *, taxa: Sequence[str] | None = None, allow_negative: bool = False
) -> list[Tree]:
    """Every tree of a Newick text.

    taxa: the order of the tips; by default the first tree's order of appearance, shared by every later tree
    of the same names. Raises InputError (line, column, remedy) for anything that is not a Newick tree.
    """
    source = text if isinstance(text, SourceText) else SourceText(text)
    if not source.text.strip():
        raise InputError("the file is empty", file=source.file, hint="Give a file with a Newick tree.")
    counts = read_counts(source)
    comments, quotes = protected_spans(source, counts.start, counts.stop)
    clean = clean_text(source, counts.start, counts.stop, comments, quotes)
    trees = trees_of(clean, taxa=taxa, allow_negative=allow_negative)
    n_taxa, n_trees = counts.announced or (None, len(trees))
    if (n_taxa or trees[0].n_tips, n_trees) != (trees[0].n_tips, len(trees)):
        announced = "" if n_taxa is None else f"{n_taxa} taxa and "
        there = f"{len(trees)}" if n_taxa is None else f"{trees[0].n_tips} and {len(trees)}"
        raise source.error(
            f"PAML's first line announces {announced}{n_trees} trees; there are {there}",
            0,
            hint="Correct the numbers, or delete the line.",
        )
    return trees


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
    _refuse_networks(clean, nodes, labels)
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


def _refuse_networks(clean: CleanText, nodes: NewickNodes, labels: list[str]) -> None:
    """InputError where one tag, such as #H1, marks two nodes of a tree: extended Newick (Cardona, Rosselló
    and Valiente 2008). A number alone, as in #1, is such a tag on a tip without a name; else PAML's label."""
    if "#" not in clean.text:
        return
    tree = np.searchsorted(nodes.tree_stop, np.arange(len(labels)), side="right").tolist()
    seen: dict[tuple[int, str], int] = {}
    for i, label in enumerate(labels):
        tag = _NETWORK_TAG.search(label)
        if tag is None:
            continue
        first = seen.setdefault((tree[i], tag.group()), i)
        bare = any(nodes.is_tip[k] and labels[k] == tag.group() for k in (first, i))
        if first != i and (tag.group(1) or bare):
            raise clean.error(
                f"'{tag.group()}' marks two nodes: this is a network, not a tree",
                int(nodes.label_start[i]),
                hint="Give a tree, or cut one of the two edges above the hybrid node and remove its tags.",
            )


def _translated(
    clean: CleanText, nodes: NewickNodes, labels: list[str], translate: Mapping[str, str]
) -> list[str]:
    """Labels with those of tips replaced; a tip that the table does not know is an error."""
    named = [translate.get(label) if tip else label for label, tip in zip(labels, nodes.is_tip.tolist())]
    if None in named:
        keys = spellings(translate)
        named = [
            translate.get(keys.get(folded(label), "")) if name is None else name
            for name, label in zip(named, labels)
        ]
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
