"""Nearest-neighbour interchange."""

from __future__ import annotations

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.compiled.unrooted import internal_branch, replace
from phloem.inference.mcmc.move_table import TOPOLOGY, Move


def nearest_neighbour_interchange(p):
    """Exchange two subtrees, with their branches, across an internal branch u–v; one of the two ways out of
    the present topology, uniformly. The reverse has the same probability: log Hastings ratio 0 (Lakner et al.
    2008, Systematic Biology 57:86)."""
    adjacency, edge = p.adjacency, p.edge
    u, v = internal_branch(adjacency, p.rng, p.n_tips)
    i, j = 0, 0
    while adjacency[u, i] != v:
        i += 1
    while adjacency[v, j] != u:
        j += 1
    i, j = (i + 1) % 3, (j + 1 + below(p.rng, 2)) % 3
    a, b = adjacency[u, i], adjacency[v, j]
    branch_a, branch_b = edge[u, i], edge[v, j]
    replace(adjacency, edge, a, u, v, branch_a)
    replace(adjacency, edge, b, v, u, branch_b)
    adjacency[u, i], edge[u, i] = b, branch_b
    adjacency[v, j], edge[v, j] = a, branch_a
    return 0.0


MOVE = Move("nni", TOPOLOGY, nearest_neighbour_interchange, 5)
