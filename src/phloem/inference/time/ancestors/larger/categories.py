"""Rates of sites are drawn given all sequences, as those of nucleotides are (ancestors/categories.py)."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import merged
from phloem.inference.time.ancestors.categories import to_weights
from phloem.inference.time.ancestors.draws import drawn_state
from phloem.inference.time.ancestors.larger.branches import chance
from phloem.inference.time.ancestors.larger.memory import UNKNOWN


@merged
def draw_categories(rng, memory, model, slot, tree):
    """Categories of all sites from their conditional distribution; all values are to be found anew."""
    set_below(memory, tree)
    logs, below, root = memory.by_site, memory.below, tree.parent.shape[0] - 1
    for s in range(memory.category.shape[0]):
        for c in range(logs.shape[1]):
            logs[s, c] = math.log(model.weights[c]) + below[root, c, memory.codes[root, s]]
    for x in range(root):
        add_changes(memory, slot, x, tree.parent[x])
    for s in range(memory.category.shape[0]):
        to_weights(logs[s], memory.near.power[0])
        memory.category[s] = drawn_state(rng, logs[s])


@merged
def set_below(memory, tree):
    """Σ log P_ii over the branches below every node, by category and state i."""
    below = memory.below
    for x in tree.order:
        below[x] = 0.0
        for child in (tree.left[x], tree.right[x]):
            if child >= 0:
                for c in range(below.shape[1]):
                    stay = memory.stay[memory.side[child], child, c]
                    for i in range(below.shape[2]):
                        below[x, c, i] += below[child, c, i] + stay[i]


@merged
def add_changes(memory, slot, x, above):
    """What the sites that change on the branch above x, or are not known below, say besides."""
    logs, below, codes, inner = memory.by_site, memory.below, memory.codes, x >= memory.known.shape[0]
    one, other = memory.words[x], memory.words[above]
    for w in range(one.shape[0]):
        if one[w] == other[w]:
            continue
        for s in range(8 * w, min(8 * w + 8, memory.category.shape[0])):
            i, code = np.int64(codes[above, s]), np.int64(codes[x, s])
            if i == code:
                continue
            for c in range(logs.shape[1]):
                grown, stay = memory.grown[memory.side[x], x, c], memory.stay[memory.side[x], x, c, i]
                logs[s, c] -= stay
                if code != UNKNOWN:
                    logs[s, c] += math.log(chance(memory, slot, grown, i, code))
                if inner:
                    logs[s, c] += below[x, c, code] - below[x, c, i]
