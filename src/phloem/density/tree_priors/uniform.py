"""Ages of nodes that are uniform below the root's, and below those of dated clades."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior
from phloem.hardware.numba_compile import uncounted

LOG_2 = math.log(2.0)
ROOT, COMING, LINEAGES = range(3)  # of pieces, while time runs back


def _parameters(scale, options) -> Parameters:
    return Parameters((), {}, np.zeros(0))


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Given the ages of the root and of g.dated nodes. These cut the tree into pieces: of each they are the
    root or tips. In a piece of n tips with ages y₁ ≤ … ≤ yₙ below its root's age t a node's age is uniform on
    (y_i, t) for each i from 2 to n - 1, and at each of these ages any two of the k lineages there are join,
    all alike: log p = Σ_i -log (t - y_i) + Σ_joinings [log m - log k(k-1)/2], m the number of nodes that this
    one may be: k - 1, and k - 2 above yₙ, which brings none (Ronquist et al. 2012, Syst. Biol. 61:973;
    MrBayes' clock:uniform). The ages themselves have no density here: calibrate them."""
    return math.fsum(_of_piece(g, root) for root in {len(g.heights) - 1, *g.dated.tolist()} if root >= 0)


def _of_piece(g: Genealogy, root: int) -> float:
    total, tips, joinings, waiting = 0.0, list[float](), list[float](), [root]
    while waiting:
        for x in np.flatnonzero(g.parent == waiting.pop()).tolist():
            tip = x < g.n_tips or x in g.dated
            (tips if tip else joinings).append(float(g.heights[x]))
            waiting += [] if tip else [x]
    tips, t = sorted(tips), float(g.heights[root])
    total -= sum(math.log(t - y) for y in tips[1:-1])
    for i, age in enumerate(sorted(joinings)):
        seen = sum(y <= age for y in tips)
        k = seen - i
        total += math.log(k - 1 if seen < len(tips) else k - 2) - math.log(k * (k - 1) / 2)
    return total


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    _find_pieces(g)
    total, n = 0.0, g.parent.shape[0]
    for i in range(n - 1):
        node = g.order[i]
        piece = g.pieces[ROOT * n + g.parent[node]]
        coming, lineages = COMING * n + piece, LINEAGES * n + piece
        if node >= g.n_tips and g.pieces[ROOT * n + node] == piece:
            k = g.pieces[lineages]
            total += LOG_2 - math.log(k)
            if g.pieces[coming] == 0:
                total += math.log((k - 2.0) / (k - 1.0))
            g.pieces[lineages] -= 1
            continue
        g.pieces[coming] -= 1
        g.pieces[lineages] += 1
        if g.pieces[coming] > 0 and g.pieces[lineages] > 1:
            room = g.heights[piece] - g.heights[node]
            total -= math.log(room)
            by_height[piece] -= 1.0 / room
            by_height[node] += 1.0 / room
    return total


@uncounted
def _find_pieces(g):
    """Into g.pieces (3, N): the ROOT of the piece that a node is in, of a dated one that of which it is the
    root; and by that root how many tips of it are COMING, LINEAGES being 0."""
    n = g.parent.shape[0]
    for x in range(n):
        g.pieces[ROOT * n + x] = x if x < g.n_tips or x == n - 1 else -1
        g.pieces[COMING * n + x] = g.pieces[LINEAGES * n + x] = 0
    for c in range(g.dated.shape[0]):
        if g.dated[c] >= 0:
            g.pieces[ROOT * n + g.dated[c]] = g.dated[c]
    for i in range(n - 2, -1, -1):
        node = g.order[i]
        above = g.pieces[ROOT * n + g.parent[node]]
        if g.pieces[ROOT * n + node] == node:
            g.pieces[COMING * n + above] += 1
        else:
            g.pieces[ROOT * n + node] = above


PRIOR = TreePrior("uniform", _parameters, log_density, density, needs_root=True)
