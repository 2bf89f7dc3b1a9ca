"""All supports of a tree's branches together: on the tree, and by branch for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.analysis.json_record import plain
from phloem.inference.ml.identical import Distinct
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits, split_members
from phloem.tree.tree import Tree

BOOTSTRAP, TRANSFER = "bootstrap", "TBE"


@dataclass(frozen=True, eq=False)
class BranchSupports:
    """names: in the order of the labels of `tree`, whose inner nodes are labelled in percent. branches: node
    numbers; shares (n, k), 0 to 1, of each, NaN of a branch at a multifurcation, which has no three
    resolutions. replicates: trees of the standard bootstrap."""

    names: tuple[str, ...]
    tree: Tree
    branches: np.ndarray
    shares: np.ndarray
    replicates: Sequence[Tree]

    def to_json(self) -> dict[str, object]:
        """taxa: on the side of a branch without the first taxon."""
        splits = sample_splits(sample_of_trees([self.tree]))[0][self.branches]
        members = split_members(splits, self.tree.n_tips)
        return {
            "names": list(self.names),
            "bootstrap_replicates": len(self.replicates),
            "branches": [
                {
                    "taxa": [self.tree.taxa[i] for i in np.flatnonzero(inside)],
                    "length": float(self.tree.lengths[x]),
                    **{name: plain(share) for name, share in zip(self.names, row)},
                }
                for x, inside, row in zip(self.branches, members, self.shares)
            ],
        }


def supports_of(
    tree: Tree,
    by_split: Mapping[str, Mapping[bytes, float]],
    replicates: Sequence[Tree] | None,
    rows: Distinct,
) -> BranchSupports | None:
    """by_split: name → share by split's bytes. replicates: trees of the standard bootstrap, None without one;
    they give BOOTSTRAP and TRANSFER. None if nothing was asked for. All are of the distinct sequences; copies
    are put back then, and the branches that only tell them apart from others have no support. TRANSFER counts
    taxa, and is of trees of all of them, as whoever has these trees finds it."""
    from phloem.inference.ml.bootstrap import split_shares, transfer_expectation

    branches = np.arange(tree.n_tips, tree.n_nodes - 1)
    if not by_split and replicates is None:
        return None
    splits = sample_splits(sample_of_trees([tree]))[0][branches]
    columns = {name: [shares.get(s.tobytes(), np.nan) for s in splits] for name, shares in by_split.items()}
    places: list[str | None] = [None] * tree.n_nodes
    for k, x in enumerate(branches.tolist()):
        places[x] = str(k)
    whole = rows.put_back(replace(tree, labels=tuple(places)))
    at = {int(label): x for x, label in enumerate(whole.labels or ()) if label is not None}
    nodes = np.array([at[k] for k in range(len(branches))], np.int64)
    trees = [rows.put_back(one) for one in replicates or ()]
    if replicates is not None and len(branches):
        found = split_shares(replicates)
        columns[BOOTSTRAP] = [found.get(s.tobytes(), 0.0) for s in splits]
        own = sample_splits(sample_of_trees([whole]))[0][nodes]
        columns[TRANSFER] = transfer_expectation(own, trees).tolist()
    shares = np.array(list(columns.values())).T.reshape(len(branches), len(columns))
    labels: list[str | None] = [None] * whole.n_nodes
    for k, row in enumerate(shares):
        labels[at[k]] = "/".join(map(_percent, row)) if np.isfinite(row).any() else None
    labelled = replace(whole, labels=tuple(labels))
    return BranchSupports(tuple(columns), labelled, nodes, shares, trees)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") if np.isfinite(share) else "-"
