"""One ancestor drawn anew, given its neighbours: of all sites at which these differ, and of those at which
they are alike with some states, other ones every time."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.time.ancestors.branches import log_of_root
from phloem.inference.time.ancestors.draws import drawn_state
from phloem.inference.time.ancestors.larger.branches import (
    FLOOR,
    log_of_branch,
    move_share,
    weighted_sum,
)
from phloem.inference.time.ancestors.larger.memory import AT_ONCE, UNKNOWN
from phloem.inference.time.ancestors.larger.region import powered


@merged
def draw_one(rng, memory, model, slot, tree):
    """Draw an ancestor from its conditional distribution; values of the branches at it."""
    near, n_states, codes, n_tips = memory.near, memory.right.shape[1], memory.codes, memory.known.shape[0]
    x = n_tips + below(rng, n_tips - 1)
    kin = tree.left[x], tree.right[x], tree.parent[x]
    near.wanted[:] = 0
    first_wanted = below(rng, n_states)
    for k in range(AT_ONCE):
        near.wanted[(first_wanted + k) % n_states] = 1
    near.kinds[:, near.kinds.shape[1] - 1] = 0.0
    for s in range(memory.category.shape[0]):
        a, b = np.int64(codes[kin[0], s]), np.int64(codes[kin[1], s])
        u = np.int64(codes[kin[2], s]) if kin[2] >= 0 else UNKNOWN
        alike = common_state(u, a, b, n_states)
        if alike >= 0 and near.wanted[alike] == 0:
            continue
        c, weights, whole = np.int64(memory.category[s]), memory.weights, 0.0
        if alike >= 0:
            kind = (alike + n_states - first_wanted) % n_states
            row = near.kinds[(c * AT_ONCE + kind) * 4 + 2 * (a == UNKNOWN) + (b == UNKNOWN)]
            weights, whole = row[: memory.weights.shape[0]], row[row.shape[0] - 1]
            if whole == 0.0:
                weigh(memory, model, slot, x, kin, (c, u, a, b), weights)
                for i in range(n_states):
                    whole += weights[i]
                row[row.shape[0] - 1] = whole
            if uniform(rng) * whole < weights[alike]:
                if codes[x, s] != alike:
                    move_share(memory, x, s, alike)
                continue
            for i in range(n_states):
                memory.weights[i] = weights[i]
            memory.weights[alike] = 0.0
        else:
            weigh(memory, model, slot, x, kin, (c, u, a, b), weights)
        state = drawn_state(rng, memory.weights[:n_states])
        if codes[x, s] != state:
            move_share(memory, x, s, state)
    root = tree.parent.shape[0] - 1
    for y in (kin[0], kin[1], x):
        if tree.parent[y] >= 0:
            memory.value[y] = log_of_branch(memory, slot, memory.side[y], y, tree.parent[y], near.sites)
    memory.value[root] = log_of_root(memory.shares[root], model.root_frequencies[0], model.weights)


@uncounted
def common_state(u, a, b, n_states):
    """The state that those of three codes have that are known; -1 where they differ, or none is."""
    state = u
    if state == UNKNOWN:
        state = a if a != UNKNOWN else b
    same = a in (state, UNKNOWN) and b in (state, UNKNOWN)
    return state if same and state < n_states else -1


@uncounted
def weigh(memory, model, slot, x, kin, site, weights):
    """Weights of an ancestor's states at a site: (category, codes of its parent, of its children). kin:
    children and parent."""
    c, u, a, b = site
    n_states, parts = memory.right.shape[1], memory.vectors
    if kin[2] >= 0:
        grown = memory.grown[memory.side[x], x, c]
        for k in range(n_states):
            parts[0, k] = memory.right[slot, u, k] * grown[k]
        weighted_sum(model.left[0, :, : weights.shape[0]], parts[0], parts[1])
        for i in range(n_states):
            weights[i] = max(parts[1, i] + (1.0 if i == u else 0.0), FLOOR)
    else:
        for i in range(n_states):
            weights[i] = model.root_frequencies[0, i] * model.weights[c]
    for n in range(2):
        child, code = (kin[0], a) if n == 0 else (kin[1], b)
        if code == UNKNOWN:
            continue
        add_chances(memory, model, slot, child, c, code)
        for i in range(n_states):
            weights[i] *= parts[1, i]
    if memory.near.power[0] != 1.0:
        for i in range(n_states):
            weights[i] = powered(weights[i], memory.near.power[0])


@uncounted
def add_chances(memory, model, slot, child, c, code):
    """Into memory.vectors[1] the probability of a code below a branch, by the state above."""
    n_states, parts, grown = memory.right.shape[1], memory.vectors, memory.grown[memory.side[child], child, c]
    for k in range(n_states):
        total = 0.0
        if code < n_states:
            total = memory.left[slot, code, k]
        else:
            for j in range(n_states):
                total += memory.left[slot, j, k] if memory.sets[code - n_states, j] != 0 else 0.0
        parts[0, k] = total * grown[k]
    weighted_sum(model.right[0, :, : parts.shape[1]], parts[0], parts[1])
    for i in range(n_states):
        there = i == code or (code >= n_states and memory.sets[code - n_states, i] != 0)
        parts[1, i] = max(parts[1, i] + (1.0 if there else 0.0), FLOOR)
