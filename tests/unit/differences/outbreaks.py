"""Small outbreaks, with their true trees, missing ends and ambiguous characters."""

from __future__ import annotations

import numpy as np

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.tree.build import tree_from_parents
from phloem.tree.tree import Tree

SITES = 600


def outbreak(tips: int, seed: int, mutations: float = 1.0, gaps: bool = True) -> tuple[Alignment, Tree]:
    """Genomes of SITES nucleotides; the tree has the numbers of mutations / SITES as lengths, polytomies."""
    rng = np.random.default_rng(seed)
    parent, number, leaves = [-1], [0], [0]
    while len(leaves) < tips:
        node = leaves.pop(int(rng.integers(len(leaves))))
        for _ in range(2):
            leaves.append(len(parent))
            parent.append(node)
            number.append(int(rng.poisson(mutations)))
    genomes = [rng.integers(4, size=SITES)]
    for x in range(1, len(parent)):
        own = genomes[parent[x]].copy()
        for site in rng.choice(SITES, number[x], replace=False):
            own[site] = (own[site] + 1 + rng.integers(3)) % 4
        genomes.append(own)
    texts = {}
    for k, leaf in enumerate(leaves):
        text = np.array(list("ACGT"))[genomes[leaf]]
        if gaps:
            text[: rng.integers(8)], text[SITES - rng.integers(8) :] = "N", "-"
            text[int(rng.integers(SITES))] = "RYSWKM"[int(rng.integers(6))]
            begin = int(rng.integers(SITES))
            text[begin : begin + 30 * int(rng.random() < 0.3)] = "N"
        texts[f"t{k}"] = "".join(text)
    names = [f"t{leaves.index(x)}" if x in leaves else None for x in range(len(parent))]
    lengths = np.array(number) / SITES
    tree = tree_from_parents(names, parent, lengths, taxa=tuple(texts), rooted=True)
    return alignment_from_sequences(texts, alphabet("dna")), tree


def with_mutations(tree: Tree) -> set[frozenset[str]]:
    """Splits of inner branches with a length, each by the side without the first taxon."""
    below: list[set[str]] = [set() for _ in range(tree.n_nodes)]
    for x in range(tree.n_nodes):
        below[x] |= {tree.taxa[x]} if x < tree.n_tips else set()
        if tree.parent[x] >= 0:
            below[tree.parent[x]] |= below[x]
    everything, found = set(tree.taxa), set()
    for x in range(tree.n_nodes - 1):
        side = everything - below[x] if tree.taxa[0] in below[x] else below[x]
        if tree.lengths[x] > 1e-9 and 1 < len(side) < tree.n_tips - 1:
            found.add(frozenset(side))
    return found
