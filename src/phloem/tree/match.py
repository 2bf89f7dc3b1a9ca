"""Taxa of a tree and of an alignment brought together."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import numpy as np

from phloem.errors import InputError
from phloem.tree.tree import Tree

_SHOWN = 5


def match_taxa(tree: Tree, taxa: Sequence[str], *, file: str | None = None) -> Tree:
    """The tree with its tips renumbered to the order of taxa (an alignment's).

    Raises InputError that lists the taxa only one of the two has, with likely spellings. file: the tree's.
    """
    if tree.taxa == tuple(taxa):
        return tree
    place = {name: i for i, name in enumerate(taxa)}
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
    return " ".join(name.replace("_", " ").replace("-", " ").strip("'\"").lower().split())
