"""Expected numbers of substitutions on all branches, for the rates' next values (an EM step)."""

from __future__ import annotations

from phloem.differences.cpu.joining import _reach, _spread, passed
from phloem.differences.cpu.records import (
    COUNT,
    FIRST,
    FIRST_VECTOR,
    LOW,
    MIXED,
    PRIOR,
    SAME,
    UNKNOWN,
    UP,
)
from phloem.hardware.numba_compile import uncounted


@uncounted
def _count_column(rates, at, t, numbers, dwell):
    """One column that differs: at (2, 4), likelihoods by the state above and below."""
    total = 0.0
    q = rates.numbers
    for s in range(4):
        for r in range(4):
            total += q[PRIOR, s] * at[0, s] * ((1.0 if s == r else 0.0) + q[1 + s, r] * t) * at[1, r]
    if total <= 0.0:
        return
    for s in range(4):
        left = q[PRIOR, s] * at[0, s] / total
        for r in range(4):
            if r == s:
                dwell[s] += t * left * at[1, s] * (1.0 + q[1 + s, s] * t)
            else:
                part = left * q[1 + s, r] * t * at[1, r]
                numbers[s, r] += part
                dwell[s] += 0.5 * t * part
                dwell[r] += 0.5 * t * part


@uncounted
def count_branch(lists, rates, columns, a, b, t, numbers, dwell):
    """Of a branch of length t between lists a and b; dwell of columns as the reference is left out but for
    what differs from `all reference`."""
    sites, at = len(rates.reference), columns.at
    i, j = lists.place[a, FIRST], lists.place[b, FIRST]
    last_i, last_j = i + lists.place[a, COUNT], j + lists.place[b, COUNT]
    vi, vj = lists.place[a, FIRST_VECTOR], lists.place[b, FIRST_VECTOR]
    column = 0
    while column < sites:
        on_i, end_i = _reach(lists, i, last_i, column, sites)
        on_j, end_j = _reach(lists, j, last_j, column, sites)
        end = min(end_i, end_j)
        kind_i = lists.kind[i] if on_i else SAME
        kind_j = lists.kind[j] if on_j else SAME
        da = lists.distance[i] if on_i else 0.0
        db = lists.distance[j] if on_j else 0.0
        state = rates.reference[column]
        if kind_i == UNKNOWN or kind_j == UNKNOWN:
            for k in range(column, end):
                dwell[rates.reference[k]] -= t
        elif kind_i == kind_j and kind_i != MIXED:
            if kind_i != SAME:
                dwell[state] -= t
                dwell[kind_i] += t
        else:
            dwell[state] -= t
            _spread(lists, rates, kind_i, state if kind_i == SAME else kind_i, vi, da, at[0])
            _spread(lists, rates, kind_j, state if kind_j == SAME else kind_j, vj, db, at[1])
            _count_column(rates, at, t, numbers, dwell)
        column = end
        i, vi = passed(on_i and end_i == end, kind_i, i, vi)
        j, vj = passed(on_j and end_j == end, kind_j, j, vj)


@uncounted
def count_all(lists, rates, columns, tree, numbers, dwell):
    """Adds all branches of the tree to numbers (4, 4) and dwell (4,); lists are right."""
    n, total = len(tree.parent), 0.0
    for x in range(1, n):
        if tree.parent[x] >= 0 and tree.length[x] > 0.0:
            total += tree.length[x]
            count_branch(lists, rates, columns, n * UP + x, n * LOW + x, tree.length[x], numbers, dwell)
    for k in range(len(rates.reference)):
        dwell[rates.reference[k]] += total
