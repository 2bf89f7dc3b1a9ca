"""The least number of changes on a tree, set by set: the specification."""

from __future__ import annotations

import numpy as np

from phloem.data.patterns import SitePatterns
from phloem.tree.tree import Tree


def parsimony_score(tree: Tree, patterns: SitePatterns) -> int:
    """Fitch 1971 on a tree of any form whose taxa are the patterns', ambiguous characters as sets of states.

    At a node of several children the states that most of them allow stay, the others are changes (Hartigan
    1973), which for two children is Fitch's rule.
    """
    n_states = patterns.state_sets.shape[1]
    rows = [patterns.taxa.index(name) for name in tree.taxa]
    sets = np.zeros((tree.n_nodes, len(patterns.weights), n_states), bool)
    sets[: tree.n_tips] = patterns.state_sets[patterns.codes[rows]]
    changes = np.zeros(len(patterns.weights))
    for x in range(tree.n_tips, tree.n_nodes):
        votes = sets[tree.children(x)].sum(0)
        most = votes.max(1)
        sets[x] = votes == most[:, None]
        changes += len(tree.children(x)) - most
    return int(changes @ patterns.weights)
