"""Classes of sites with branch lengths of their own (+H, GHOST) in what `phloem ml` writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from phloem.analysis.model_file import model_string
from phloem.io.trees import newick_text
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.identical import Distinct
    from phloem.inference.ml.searched import Likelihood

_CLASSES = re.compile(r"[+*]H(?![A-Z])", re.IGNORECASE)  # +H4, +H{…}, +H alone


def has_classes(model: str | None) -> bool:
    """Whether a model string, or that of a file (@FILE), has such classes."""
    return model is not None and _CLASSES.search(model_string(model)) is not None


def class_trees(likelihood: Likelihood, rows: Distinct) -> list[Tree]:
    """One a class, of all sequences; none where there are no such classes."""
    if not isinstance(likelihood, TreeLikelihood) or likelihood.model.n_length_classes == 1:
        return []
    return [rows.put_back(tree) for tree in likelihood.trees]


def class_records(likelihood: Likelihood, rows: Distinct) -> dict[str, Any]:
    """Weight (of variable sites, sum 1), tree length and tree of every class."""
    trees = class_trees(likelihood, rows)
    if not trees:
        return {}
    assert isinstance(likelihood, TreeLikelihood)
    return {
        "classes": [
            {"weight": weight, "tree_length": length, "tree": newick_text([tree]).strip()}
            for tree, weight, length in zip(trees, likelihood.length_weights.tolist(), _lengths(trees))
        ]
    }


def class_lines(records: Sequence[dict[str, Any]]) -> list[str]:
    """Of the report."""
    return [
        f"  class {k}: {100 * one['weight']:.1f} % of the variable sites, length {one['tree_length']:.6f}"
        for k, one in enumerate(records, 1)
    ]


def _lengths(trees: Sequence[Tree]) -> list[float]:
    return [float(tree.lengths[:-1].sum()) for tree in trees]
