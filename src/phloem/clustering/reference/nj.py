"""Neighbour joining, BIONJ and UNJ, one join at a time over the whole matrix: the specification."""

from __future__ import annotations

from typing import Literal

import numpy as np

JoiningMethod = Literal["nj", "bionj", "unj"]


def neighbour_joining(
    distances: np.ndarray,
    method: JoiningMethod = "nj",
    variances: np.ndarray | None = None,
    sizes: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join the pair of smallest q_ij = d_ij - u_i - u_j, u_i = Σ_k d_ik / (r - 2), until three are left.

    distances: (n, n) symmetric with zero diagonal, n ≥ 3; arithmetic is float64, entries are kept in the
    input's precision. A cluster is named by its smallest leaf; equal q go to the first (lower, upper).
    variances, sizes: of clusters that are joined already, (n, n) and (n,); else those of leaves.
    NJ: Saitou and Nei 1987, Studier and Keppler 1988. BIONJ: Gascuel 1997a, eqs 3–9. UNJ: Gascuel 1997b.
    Returns (pairs, lengths, last): (n-3, 2) names joined, (n-3, 2) their branch lengths, and (3, 2) the
    names and branch lengths of the final three.
    """
    n = len(distances)
    d, variance = distances.copy(), (distances if variances is None else variances).astype(np.float64)
    sizes = np.ones(n) if sizes is None else sizes.astype(np.float64)
    leaves = float(sizes.sum())
    alive, pairs, lengths = np.arange(n), np.empty((n - 3, 2), np.int64), np.empty((n - 3, 2))
    for step in range(n - 3):
        r = len(alive)
        sub = d[np.ix_(alive, alive)].astype(np.float64)
        u = sub.sum(axis=1) / (r - 2)
        q = np.where(np.triu(np.ones((r, r), bool), 1), sub - u[:, None] - u, np.inf)
        if r == 4:  # two complementary pairs always tie: take the one with the first cluster
            q[1:] = np.inf
        i, j = divmod(int(np.argmin(q)), r)
        a, b = alive[i], alive[j]
        rest = np.delete(alive, [i, j])
        share, above = _join(d, variance, sizes, leaves, a, b, rest, (u[i] - u[j]) / 2, method)
        pairs[step], lengths[step] = (a, b), above
        row = share * (d[a, rest] - above[0]) + (1 - share) * (d[b, rest] - above[1])
        d[a, rest], d[rest, a] = row, row
        variances = share * variance[a] + (1 - share) * variance[b] - share * (1 - share) * variance[a, b]
        variance[a], variance[:, a] = variances, variances
        sizes[a] += sizes[b]
        alive = np.delete(alive, j)
    x, y, z = alive
    xy, xz, yz = float(d[x, y]), float(d[x, z]), float(d[y, z])
    ends = np.array([xy + xz - yz, xy + yz - xz, xz + yz - xy]) / 2
    return pairs, lengths, np.column_stack([alive, ends])


def _join(
    d: np.ndarray,
    variance: np.ndarray,
    sizes: np.ndarray,
    leaves: float,
    a: int,
    b: int,
    rest: np.ndarray,
    half_difference: float,
    method: JoiningMethod,
) -> tuple[float, tuple[float, float]]:
    """Share of a in the new distances, and the branch lengths above a and b."""
    ab = float(d[a, b])
    if method == "unj":
        difference = d[a, rest].astype(np.float64) - d[b, rest]
        half_difference = float(difference @ sizes[rest]) / (2 * (leaves - sizes[a] - sizes[b]))
        share = sizes[a] / (sizes[a] + sizes[b])
    elif method == "bionj" and variance[a, b] > 0:
        excess = float(np.sum(variance[b, rest] - variance[a, rest]))
        share = min(max(0.5 + excess / (2 * len(rest) * variance[a, b]), 0.0), 1.0)
    else:
        share = 0.5
    return share, (ab / 2 + half_difference, ab / 2 - half_difference)
