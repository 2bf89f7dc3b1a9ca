"""How an unrooted tree is written and drawn: which taxa it hangs from (`phloem ml --outgroup`)."""

from __future__ import annotations

from collections.abc import Sequence

from phloem.errors import InputError
from phloem.tree.match import likely_name
from phloem.tree.reroot import root_at_outgroup, unroot
from phloem.tree.tree import Tree


def outgroup_of(text: str | None, taxa: Sequence[str]) -> tuple[str, ...]:
    """The taxa between commas, none of None; InputError for a name that no taxon has, or for all taxa."""
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(","))) if text is not None else ()
    for name in names:
        if name not in taxa:
            near = likely_name(name, taxa)
            hint = f"Did you mean '{near}'?" if near else "Names of taxa, separated by commas."
            raise InputError(f"--outgroup: there is no taxon '{name}'", hint=hint)
    if names and len(names) > len(taxa) - 2:
        raise InputError("--outgroup leaves fewer than two taxa inside", hint="Name fewer taxa.")
    return names


def rooted(tree: Tree, outgroup: Sequence[str]) -> tuple[Tree, list[str]]:
    """The tree rooted at its outgroup, and what is to be said of it: where that is no group of the tree, it
    is rooted at its first taxon."""
    try:
        return root_at_outgroup(tree, outgroup), []
    except InputError:
        said = f"the outgroup is no group of this tree, which hangs from '{outgroup[0]}' alone"
        return root_at_outgroup(tree, outgroup[0]), [said]


def hung(tree: Tree, outgroup: Sequence[str]) -> Tree:
    """The same unrooted tree, written from the branch between the outgroup and all others: one of the two is
    a group at the top. As it is without an outgroup."""
    return unroot(rooted(tree, outgroup)[0]) if outgroup else tree
