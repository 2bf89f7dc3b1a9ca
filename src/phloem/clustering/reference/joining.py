"""Neighbour joining, BIONJ and UNJ, one join at a time over the whole matrix, and simultaneous joining: the
specification.

Simultaneous joining is not neighbour joining. In each round the pair of smallest q_ij = d_ij - u_i - u_j is
joined, and every pair of mutual row minima of q that some reference r confirms: no k has d_ik - d_rk below
d_ij - d_rj, or d_jk - d_rk below d_ij - d_ri. On additive distances that says: seen from r, neither i nor j
shares a deeper ancestor with any k than with the other, so the two are sisters. Mutual minima of q alone need
not be. An additive matrix is therefore recovered.
"""

from __future__ import annotations

import numpy as np

from phloem.clustering.settings import REFERENCES, JoiningMethod


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


def simultaneous_joining(
    distances: np.ndarray, references: int = REFERENCES
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Join in rounds until three clusters are left.

    distances: (n, n) symmetric with zero diagonal, n ≥ 3; arithmetic is float64, entries are kept in the
    input's precision. References of a round: the cluster of largest u, then the one farthest from those
    chosen, and so on.
    references: 0 joins the smallest pair only, which is neighbour joining.
    Returns (pairs, lengths, last) as neighbour_joining, pairs of a round in order of their first name, and
    rounds (n-3,), the round of each join.
    """
    d, names = distances.copy(), np.arange(len(distances))
    pairs: list[tuple[int, int]] = []
    lengths: list[tuple[float, float]] = []
    rounds: list[int] = []
    while len(d) > 3:
        u = d.sum(axis=1, dtype=np.float64) / (len(d) - 2)
        lower, upper = _pairs_of_round(d, u, references)
        half = (u[lower] - u[upper]) / 2
        ab = d[lower, upper].astype(np.float64)
        rounds += [rounds[-1] + 1 if rounds else 0] * len(lower)
        pairs += zip(names[lower].tolist(), names[upper].tolist())
        lengths += zip((ab / 2 + half).tolist(), (ab / 2 - half).tolist())
        d = _joined(d, lower, upper, ab)
        stays = np.delete(np.arange(len(names)), upper)
        d, names = d[np.ix_(stays, stays)], names[stays]
    xy, xz, yz = (float(d[i, j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    ends = np.array([xy + xz - yz, xy + yz - xz, xz + yz - xy]) / 2
    last = np.column_stack([names, ends])
    return np.array(pairs).reshape(-1, 2), np.array(lengths).reshape(-1, 2), last, np.array(rounds, np.int64)


def _pairs_of_round(d: np.ndarray, u: np.ndarray, references: int) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) positions, in order of lower; those of smallest q where three clusters must stay."""
    r = len(d)
    q = d - u[:, None] - u
    np.fill_diagonal(q, np.inf)
    best = q.argmin(axis=1)
    first = int(q[np.arange(r), best].argmin()) if r > 4 else 0
    chosen = [(min(first, int(best[first])), max(first, int(best[first])))]
    if r <= 4:  # complementary pairs of four tie: take the one with the first cluster
        return np.array([chosen[0][0]]), np.array([chosen[0][1]])
    taken = set(chosen[0])
    chosen_references = farthest_first(d, int(u.argmax()), references)
    mutual = [i for i in range(r) if i < best[i] and best[best[i]] == i]
    for i in sorted(mutual, key=lambda i: (q[i, best[i]], i)):
        j = int(best[i])
        free = i not in taken and j not in taken and r - len(chosen) > 3
        if free and any(_confirms(d, i, j, k) for k in chosen_references):
            chosen.append((i, j))
            taken |= {i, j}
    lower, upper = np.array(sorted(chosen)).T
    return lower, upper


def _confirms(d: np.ndarray, i: int, j: int, r: int) -> bool:
    """Whether i and j are each other's deepest relatives seen from r."""
    if r in (i, j):
        return False
    others = np.ones(len(d), bool)
    others[[i, j, r]] = False
    seen = d[r, others].astype(np.float64)
    from_i = np.all(d[i, j] - np.float64(d[j, r]) <= d[i, others] - seen)
    return bool(from_i and np.all(d[i, j] - np.float64(d[i, r]) <= d[j, others] - seen))


def farthest_first(d: np.ndarray, start: int, count: int) -> list[int]:
    """start, and always the row farthest from those chosen before (Gonzalez 1985)."""
    chosen, nearest = [start][:count], d[start].copy()
    while len(chosen) < min(count, len(d)):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, d[chosen[-1]])
    return chosen


def _joined(d: np.ndarray, lower: np.ndarray, upper: np.ndarray, ab: np.ndarray) -> np.ndarray:
    """Rows, then columns, of the pairs averaged, each mean less half the distance within the pair."""
    joined = d.astype(np.float64)
    joined[lower] = (joined[lower] + joined[upper] - ab[:, None]) / 2
    joined[:, lower] = (joined[:, lower] + joined[:, upper] - ab) / 2
    np.fill_diagonal(joined, 0)
    return joined.astype(d.dtype)
