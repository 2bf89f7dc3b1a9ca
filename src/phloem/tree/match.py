"""Names of taxa and branches: trees and alignments matched by them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from phloem.errors import InputError
from phloem.tree.tree import Tree

# Readable names for branches that do not depend on how the tree is drawn.


def branch_names(tree: Tree) -> tuple[str, ...]:
    """A unique name for the branch above each node but the root, in node order, (N-1,).

    A tip's branch has the tip's name. An internal one has its node's label where that is a name (unique and
    no number), else mrca(A,B): the branch above the most recent common ancestor of tips A and B, the
    alphabetically first tips of two of its subtrees. In an unrooted tree the descendants are the smaller side
    of the branch (of two equal sides the one without the alphabetically first taxon), so that re-rooting or
    turning children around changes no name. Two branches at the base always mean a rooted drawing.
    """
    own = _usable_labels(tree)
    below, above = _first_taxa(tree)
    tips = _tips_below(tree)
    drawn = tree.rooted or len(tree.children(tree.n_nodes - 1)) == 2
    names = list(tree.taxa)
    for x in range(tree.n_tips, tree.n_nodes - 1):
        surplus = 2 * tips[x] - tree.n_tips
        downwards = drawn or surplus < 0 or (surplus == 0 and below[x] > above[x])
        sides = _subtrees_below(tree, x, below) if downwards else _subtrees_above(tree, x, below, above)
        names.append(own[x] or "mrca({},{})".format(*sorted(sides)[:2]))
    return tuple(names)


def _usable_labels(tree: Tree) -> list[str | None]:
    labels: list[str | None] = list(tree.labels or [None] * tree.n_nodes)
    taken = Counter([*tree.taxa, *(label for label in labels if label)])
    return [label if label and taken[label] == 1 and not _is_number(label) else None for label in labels]


MISSING = ("", "-")  # in a label, of a support that a branch has not


def _is_number(label: str) -> bool:
    first = next((part for part in label.split("/") if part not in MISSING), "0")
    try:
        float(first)
    except ValueError:
        return False
    return True


def _first_taxa(tree: Tree) -> tuple[list[str], list[str]]:
    """The alphabetically first taxon below each node, and outside of it ("" at the root)."""
    below = list(tree.taxa) + [""] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_tips, tree.n_nodes):
        below[x] = min(below[c] for c in tree.children(x))
    above = [""] * tree.n_nodes
    for x in range(tree.n_nodes - 1, tree.n_tips - 1, -1):
        children = tree.children(x)
        ranked = sorted(children, key=lambda c: below[c])
        for c in children:
            sibling = ranked[1 if c == ranked[0] and len(ranked) > 1 else 0]
            candidates = [below[sibling]] if sibling != c else []
            candidates += [above[x]] if above[x] else []
            above[c] = min(candidates, default="")
    return below, above


def _tips_below(tree: Tree) -> list[int]:
    count = [1] * tree.n_tips + [0] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_nodes - 1):
        count[tree.parent[x]] += count[x]
    return count


def _subtrees_below(tree: Tree, x: int, below: list[str]) -> list[str]:
    return [below[c] for c in tree.children(x)]


def _subtrees_above(tree: Tree, x: int, below: list[str], above: list[str]) -> list[str]:
    parent = int(tree.parent[x])
    siblings = [below[c] for c in tree.children(parent) if c != x]
    return siblings + ([above[parent]] if above[parent] else [])


# Taxa of a tree and of an alignment brought together.


_SHOWN = 5


def match_taxa(tree: Tree, taxa: Sequence[str], *, file: str | None = None) -> Tree:
    """The tree with its tips renumbered to the order of taxa (an alignment's), and spelled as there.

    Names that differ are equal by NEXUS' rule (respelled).
    Raises InputError that lists the taxa only one of the two has, with likely spellings. file: the tree's.
    """
    if tree.taxa == tuple(taxa):
        return tree
    place, tree = {name: i for i, name in enumerate(taxa)}, respelled(tree, taxa)
    only_tree = [name for name in tree.taxa if name not in place]
    only_alignment = sorted(set(taxa) - set(tree.taxa), key=place.__getitem__)
    if only_tree or only_alignment:
        raise _mismatch(only_tree, only_alignment, file)
    number = np.arange(tree.n_nodes, dtype=np.int32)
    number[: tree.n_tips] = [place[name] for name in tree.taxa]
    old = np.argsort(number)
    return Tree(
        taxa=tuple(taxa),
        parent=tree.parent[old],
        lengths=tree.lengths[old],
        labels=tree.labels,
        annotations={int(number[x]): values for x, values in tree.annotations.items()},
        rooted=tree.rooted,
        name=tree.name,
    )


def folded(name: str) -> str:
    """What all spellings of a name share in NEXUS: case makes no difference, nor '_' for a blank."""
    return name.replace("_", " ").lower()


def spellings(names: Iterable[str]) -> dict[str, str]:
    """What all spellings share → the name, of names that no other shares it with."""
    found: dict[str, str] = {}
    shared = set()
    for name in names:
        if found.setdefault(folded(name), name) != name:
            shared.add(folded(name))
    return {key: name for key, name in found.items() if key not in shared}


def respelled(tree: Tree, taxa: Sequence[str]) -> Tree:
    """The tree, of all taxa or of some, with their spelling of its tips' names where each has exactly one
    there that is equal by NEXUS' rule, case and '_' for a blank apart; else as it is."""
    known, spelling = set(taxa), spellings(taxa)
    names = [name if name in known else spelling.get(folded(name)) for name in tree.taxa]
    if None in names or len(set(names)) != tree.n_tips or names == list(tree.taxa):
        return tree
    return replace(tree, taxa=tuple(name for name in names if name is not None))


def _mismatch(only_tree: list[str], only_alignment: list[str], file: str | None) -> InputError:
    parts = []
    if only_tree:
        parts.append(f"in the tree and not in the alignment: {_listed(only_tree)}")
    if only_alignment:
        parts.append(f"in the alignment and not in the tree: {_listed(only_alignment)}")
    guesses = [(name, near) for name in only_tree[:50] if (near := likely_name(name, only_alignment))]
    if guesses:
        said = "; ".join(f"is '{name}' the alignment's '{near}'?" for name, near in guesses[:3])
        hint = f"{said[0].upper()}{said[1:]} Rename it in one file; blanks in a name need 'quotes' in a tree."
    elif only_tree and only_alignment:
        hint = "Use the same names in both files."
    elif only_tree:
        hint = "Add these sequences to the alignment, or prune these tips from the tree."
    else:
        hint = "Add these tips to the tree, or remove the sequences from the alignment."
    return InputError("; ".join(parts), file=file, taxon=(only_tree or only_alignment)[0], hint=hint)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def likely_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant: equal up to case, blanks and underscores, or nearly so."""
    by_form = {_form(candidate): candidate for candidate in candidates}
    form = _form(name)
    if form in by_form:
        return by_form[form]
    near = difflib.get_close_matches(form, list(by_form)[:2000], n=1, cutoff=0.8)
    return by_form[near[0]] if near else None


def _form(name: str) -> str:
    return " ".join(folded(name).replace("-", " ").strip("'\"").split())
