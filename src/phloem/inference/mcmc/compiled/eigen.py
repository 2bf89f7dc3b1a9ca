"""The eigensystem of a reversible rate matrix from parameters, by cyclic Jacobi rotations."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted


@uncounted
def symmetric_rates(base, share_of, shares, with_shares, pi, a):
    """A = D^½ Q D^-½ of Q_ij = base_ij share_ij π_j / μ, D = diag(π), into a (S, S): symmetric where Q is
    reversible (Tavaré 1986). μ makes it one expected substitution per unit of branch length. share_of: which
    of the shares multiplies an entry; with_shares: False leaves them out."""
    s = a.shape[0]
    for i in range(s):
        a[i, i] = 0.0
    mean = 0.0
    for i in range(s):
        for j in range(i):
            r = base[i, j] * shares[share_of[i, j]] if with_shares else base[i, j]
            a[i, j] = r * math.sqrt(pi[i] * pi[j])
            a[j, i] = a[i, j]
            a[i, i] -= r * pi[j]
            a[j, j] -= r * pi[i]
            mean += 2.0 * r * pi[i] * pi[j]
    for i in range(s):
        for j in range(s):
            a[i, j] /= mean


@uncounted
def jacobi(a, v):
    """Diagonalise symmetric a in place; columns of v become its eigenvectors (Golub and Van Loan, §8.5).

    A fixed order of rotations: the result is a function of a alone, which an exact resume needs.
    """
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            v[i, j] = 1.0 if i == j else 0.0
    for _ in range(60):
        off = 0.0
        size = 0.0
        for i in range(n):
            size += a[i, i] * a[i, i]
            for j in range(i):
                off += a[i, j] * a[i, j]
        if off <= 1e-33 * size:
            return
        for p in range(n - 1):
            for q in range(p + 1, n):
                if a[p, q] != 0.0:
                    _rotate(a, v, p, q, n)


@uncounted
def _rotate(a, v, p, q, n):
    theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
    t = 1.0 / (abs(theta) + math.sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
    c = 1.0 / math.sqrt(t * t + 1.0)
    s = t * c
    app, aqq, apq = a[p, p], a[q, q], a[p, q]
    for k in range(n):
        x, y = a[p, k], a[q, k]
        a[p, k] = c * x - s * y
        a[q, k] = s * x + c * y
    for k in range(n):
        a[k, p] = a[p, k]
        a[k, q] = a[q, k]
        x, y = v[k, p], v[k, q]
        v[k, p] = c * x - s * y
        v[k, q] = s * x + c * y
    a[p, p] = app - t * apq
    a[q, q] = aqq + t * apq
    a[p, q] = 0.0
    a[q, p] = 0.0
