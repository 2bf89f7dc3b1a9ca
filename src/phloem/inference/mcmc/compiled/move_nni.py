"""Nearest-neighbour interchange."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.compiled.unrooted import replace


@uncounted
def nearest_neighbour_interchange(adjacency, edge, n_tips, rng):
    """Exchange two subtrees, with their branches, across an internal branch u–v; one of the two ways out
    of the present topology, uniformly. The reverse has the same probability: log Hastings ratio 0 (Lakner
    et al. 2008)."""
    u, v = internal_branch(adjacency, rng, n_tips)
    i, j = 0, 0
    while adjacency[u, i] != v:
        i += 1
    while adjacency[v, j] != u:
        j += 1
    i, j = (i + 1) % 3, (j + 1 + below(rng, 2)) % 3
    a, b = adjacency[u, i], adjacency[v, j]
    branch_a, branch_b = edge[u, i], edge[v, j]
    replace(adjacency, edge, a, u, v, branch_a)
    replace(adjacency, edge, b, v, u, branch_b)
    adjacency[u, i], edge[u, i] = b, branch_b
    adjacency[v, j], edge[v, j] = a, branch_a
    return 0.0


@uncounted
def internal_branch(adjacency, rng, n_tips):
    """Both ends of an internal branch, uniformly among the T - 3: a uniform directed branch, until both
    are internal."""
    while True:
        u = n_tips + below(rng, n_tips - 2)
        v = adjacency[u, below(rng, 3)]
        if v >= n_tips:
            return u, v
