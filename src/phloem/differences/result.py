"""The engine's tree as a tree of all taxa: branches without a change left out, equal genomes put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from phloem.tree.build import tree_from_parents
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.data.genomes import Genomes
    from phloem.differences.cpu.records import Tree as Branches


def tree_of(
    genomes: Genomes,
    order: np.ndarray,
    branches: Branches,
    steps: np.ndarray,
    labels: Mapping[int, str] | None = None,
) -> Tree:
    """Unrooted, with polytomies. order: the distinct genome of every tip. steps: nodes from the root down.
    labels: of inner nodes, for the branch above. Equal genomes hang on one node, with length 0."""
    tips, child = len(order), int(branches.children[0, 0])
    parent: list[int] = [-1]
    names: list[str | None] = [None]
    lengths = [0.0]
    number = {child: 0}
    members: list[list[int]] = [[] for _ in range(genomes.n_distinct)]
    for taxon, genome in enumerate(genomes.group.tolist()):
        members[genome].append(taxon)

    def add(above: int, length: float, name: str | None) -> int:
        parent.append(above)
        lengths.append(length)
        names.append(name)
        return len(parent) - 1

    def add_tip(tip: int, above: int, length: float) -> None:
        same = members[int(order[tip])]
        if len(same) > 1 and length > 0:
            above, length = add(above, length, None), 0.0
        for taxon in same:
            add(above, length, genomes.taxa[taxon])

    add_tip(0, 0, float(branches.length[child]) if child >= tips else 0.0)
    for x in steps.tolist():
        length = float(branches.length[x])
        if x == child and x >= tips:
            continue
        above = number[int(branches.parent[x])] if x != child else 0
        if x < tips:
            add_tip(x, above, length)
        elif length <= 0.0:
            number[x] = above
        else:
            number[x] = add(above, length, (labels or {}).get(x))
    return tree_from_parents(names, parent, lengths, taxa=genomes.taxa, rooted=False)
