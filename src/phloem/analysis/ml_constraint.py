"""`phloem ml --constraint TREE`: the splits that the tree found has to display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from phloem.analysis.ml_settings import MlSettings
from phloem.errors import InputError
from phloem.io.trees import read_trees
from phloem.tree.constraint import Constraint
from phloem.tree.half_edges import half_edges
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.tree_starts import Start


def read_constraint(settings: MlSettings, taxa: Sequence[str]) -> Constraint | None:
    """InputError for a damaged file, several trees, taxa that are not in the alignment, and no split."""
    if settings.constraint is None:
        return None
    trees = read_trees(settings.constraint, allow_negative=True)  # lengths say nothing of splits
    if len(trees) > 1:
        raise InputError(
            f"{len(trees):,} trees where one constraint is wanted", file=settings.constraint, hint="Keep one."
        )
    return Constraint(trees[0], taxa, settings.constraint)


def require_obeying(constraint: Constraint | None, start: Start | None, file: str | None) -> None:
    """InputError for a tree to begin from that breaks the constraint."""
    from phloem.inference.ml.tree_starts import with_lengths

    if constraint is None or start is None:
        return
    for split in constraint.missing(half_edges(with_lengths(start.tree), constraint.taxa).back):
        raise InputError(
            f"this tree does not obey the constraint: no branch sets apart {constraint.names(split)}",
            file=file,
            hint="Give a tree that does, or leave --tree out.",
        )


def assure(constraint: Constraint | None, tree: Tree) -> None:
    """RuntimeError for a finished tree that breaks the constraint: an error of phloem, never written."""
    if constraint is not None and not constraint.obeyed(half_edges(tree, constraint.taxa).back):
        raise RuntimeError("the finished tree breaks the constraint: please report this")


def constraint_record(constraint: Constraint | None) -> dict[str, object]:
    if constraint is None:
        return {}
    n, splits = constraint.n_taxa, len(constraint.splits)
    return {"constraint": {"file": constraint.file, "taxa": n, "splits": splits, "obeyed": True}}


def constraint_lines(constraint: Constraint | None) -> list[str]:
    if constraint is None:
        return []
    splits = len(constraint.splits)
    many = "its split" if splits == 1 else f"all its {splits:,} splits"
    free = len(constraint.taxa) - constraint.n_taxa
    return [f"constraint {constraint.file}: {many} obeyed; {constraint.n_taxa:,} taxa in it, {free:,} free"]
