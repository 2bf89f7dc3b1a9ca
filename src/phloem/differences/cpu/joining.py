"""Two lists joined at a node, or compared along a branch, in one walk over both.

To the first order in branch lengths, P(t) = I + Q t; where both sides have one and the same state, log P is
Q_ss t (De Maio et al. 2023, methods). In a column that differs the likelihood is then linear in the length of
one branch: α + β t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.differences.cpu.records import (
    COUNT,
    FIRST,
    FIRST_VECTOR,
    MIXED,
    PRIOR,
    SAME,
    UNKNOWN,
    VECTORS,
)
from phloem.hardware.numba_compile import uncounted

IMPOSSIBLE = -1e300
LONGEST = 0.1  # substitutions per site, of a branch
_SMALL, _NEWTON = 1e-100, 60
_NEARLY_NONE = 1e-6  # substitutions per site
_NO_SLOPE = 1e-9


class Columns(NamedTuple):
    """Room of one thread. likelihood (L, 2): α and β of the columns that differ; at (2, 4): what both sides
    say of one column."""

    likelihood: np.ndarray
    at: np.ndarray


@uncounted
def _reach(lists, i, last, column, sites):
    """Whether entry i covers a column; if not, where it begins, else where it ends."""
    if i >= last:
        return False, sites
    if lists.span[i, 0] > column:
        return False, lists.span[i, 0]
    return True, lists.span[i, 1]


@uncounted
def passed(ends, kind, at, vector):
    """The entry of a list and its vector that come next, where the entry at hand ends or not."""
    return (at + 1, vector + (kind == MIXED)) if ends else (at, vector)


@uncounted
def _spread(lists, rates, kind, entry, vector, t, out):
    """out (4,): likelihood of what is known, by the state at a distance t more."""
    numbers = rates.numbers
    if kind == MIXED:
        for s in range(4):
            total = 0.0
            for r in range(4):
                total += numbers[1 + s, r] * lists.vector[vector, r]
            out[s] = lists.vector[vector, s] + t * total
        return
    for s in range(4):
        out[s] = numbers[1 + s, entry] * t
    out[entry] += 1.0


@uncounted
def _put(lists, out, begin, end, kind, distance):
    """Adds an entry, or makes the last one longer."""
    p = lists.place[out]
    last = p[FIRST] + p[COUNT] - 1
    if kind in (SAME, UNKNOWN) and p[COUNT] and lists.span[last, 1] == begin and lists.kind[last] == kind:
        if lists.distance[last] == distance:
            lists.span[last, 1] = end
            return
    lists.span[last + 1, 0], lists.span[last + 1, 1] = begin, end
    lists.kind[last + 1], lists.distance[last + 1] = kind, distance
    p[COUNT] += 1


@uncounted
def _put_vector(lists, rates, out, column, values):
    """values (4,), scaled; a single state where the others are next to nothing. Returns the scale."""
    top, second, best = 0.0, 0.0, 0
    for s in range(4):
        if values[s] > top:
            top, second, best = values[s], top, s
        elif values[s] > second:
            second = values[s]
    if top <= 0.0:
        return 0.0
    if second <= rates.least[0] * top:
        if best != rates.reference[column]:
            _put(lists, out, column, column + 1, best, 0.0)
        return top
    p = lists.place[out]
    here = p[FIRST_VECTOR] + p[VECTORS]
    for s in range(4):
        lists.vector[here, s] = max(values[s], 0.0) / top
    p[VECTORS] += 1
    _put(lists, out, column, column + 1, MIXED, 0.0)
    return top


@uncounted
def join(lists, rates, columns, sides, lengths, out):
    """List `out` of a node from those of two neighbours, at the far ends of branches. sides: their numbers, a
    pair; lengths: of the branches. out has room for records.room_for of both. Returns the logarithm of what
    was taken out of the vectors, IMPOSSIBLE where no state explains a column."""
    a, b = sides
    ta, tb = lengths
    sites, at = len(rates.reference), columns.at
    i, j = lists.place[a, FIRST], lists.place[b, FIRST]
    last_i, last_j = i + lists.place[a, COUNT], j + lists.place[b, COUNT]
    vi, vj = lists.place[a, FIRST_VECTOR], lists.place[b, FIRST_VECTOR]
    lists.place[out, COUNT] = lists.place[out, VECTORS] = 0
    column, total, product = 0, 0.0, 1.0
    while column < sites:
        on_i, end_i = _reach(lists, i, last_i, column, sites)
        on_j, end_j = _reach(lists, j, last_j, column, sites)
        end = min(end_i, end_j)
        if not on_i and not on_j:
            total += (rates.stay[end] - rates.stay[column]) * (ta + tb)
            column = end
            continue
        kind_i, kind_j, da, db = SAME, SAME, ta, tb
        if on_i:
            kind_i, da = lists.kind[i], ta + lists.distance[i]
        if on_j:
            kind_j, db = lists.kind[j], tb + lists.distance[j]
        if kind_i == UNKNOWN or kind_j == UNKNOWN:
            kind, far, vector = (kind_j, db, vj) if kind_i == UNKNOWN else (kind_i, da, vi)
            if kind == UNKNOWN:
                _put(lists, out, column, end, UNKNOWN, 0.0)
            elif kind == MIXED:
                _spread(lists, rates, kind, 0, vector, far, at[0])
                product *= _put_vector(lists, rates, out, column, at[0])
            elif kind != SAME or far > 0.0:
                _put(lists, out, column, end, kind, far)
        elif kind_i == kind_j and kind_i != MIXED:
            if kind_i == SAME:
                total += (rates.stay[end] - rates.stay[column]) * (da + db)
            else:
                total += rates.numbers[1 + kind_i, kind_i] * (da + db)
                _put(lists, out, column, end, kind_i, 0.0)
        else:
            state = rates.reference[column]
            _spread(lists, rates, kind_i, state if kind_i == SAME else kind_i, vi, da, at[0])
            _spread(lists, rates, kind_j, state if kind_j == SAME else kind_j, vj, db, at[1])
            for s in range(4):
                at[0, s] *= at[1, s]
            scale = _put_vector(lists, rates, out, column, at[0])
            if scale <= 0.0:  # branches of length 0 between two states
                da, db = max(da, rates.least[1]), max(db, rates.least[1])
                _spread(lists, rates, kind_i, state if kind_i == SAME else kind_i, vi, da, at[0])
                _spread(lists, rates, kind_j, state if kind_j == SAME else kind_j, vj, db, at[1])
                for s in range(4):
                    at[0, s] *= at[1, s]
                scale = _put_vector(lists, rates, out, column, at[0])
            product *= scale
        if product < _SMALL:
            if product <= 0.0:
                return IMPOSSIBLE
            total += math.log(product)
            product = 1.0
        column = end
        i, vi = passed(on_i and end_i == end, kind_i, i, vi)
        j, vj = passed(on_j and end_j == end, kind_j, j, vj)
    return total + math.log(product)


@uncounted
def compare(lists, rates, columns, a, b):
    """Two lists at the ends of a branch. Writes α and β of the columns that differ; returns their number, the
    slope of log L by the length in all others, and log L in all others at length 0."""
    sites, at, numbers = len(rates.reference), columns.at, rates.numbers
    i, j = lists.place[a, FIRST], lists.place[b, FIRST]
    last_i, last_j = i + lists.place[a, COUNT], j + lists.place[b, COUNT]
    vi, vj = lists.place[a, FIRST_VECTOR], lists.place[b, FIRST_VECTOR]
    column, n, slope, constant = 0, 0, 0.0, 0.0
    while column < sites:
        on_i, end_i = _reach(lists, i, last_i, column, sites)
        on_j, end_j = _reach(lists, j, last_j, column, sites)
        end = min(end_i, end_j)
        kind_i, kind_j, da, db = SAME, SAME, 0.0, 0.0
        if on_i:
            kind_i, da = lists.kind[i], lists.distance[i]
        if on_j:
            kind_j, db = lists.kind[j], lists.distance[j]
        if kind_i == UNKNOWN or kind_j == UNKNOWN:
            kind, vector = (kind_j, vj) if kind_i == UNKNOWN else (kind_i, vi)
            if kind == MIXED:
                total = 0.0
                for s in range(4):
                    total += numbers[PRIOR, s] * lists.vector[vector, s]
                constant += math.log(total)
            elif kind == SAME:
                constant += rates.prior[end] - rates.prior[column]
            elif kind != UNKNOWN:
                constant += math.log(numbers[PRIOR, kind])
        elif kind_i == kind_j and kind_i != MIXED:
            if kind_i == SAME:
                rate = rates.stay[end] - rates.stay[column]
                constant += rates.prior[end] - rates.prior[column]
            else:
                rate = numbers[1 + kind_i, kind_i]
                constant += math.log(numbers[PRIOR, kind_i])
            slope += rate
            constant += rate * (da + db)
        else:
            state = rates.reference[column]
            _spread(lists, rates, kind_i, state if kind_i == SAME else kind_i, vi, da, at[0])
            _spread(lists, rates, kind_j, state if kind_j == SAME else kind_j, vj, db, at[1])
            alpha = beta = 0.0
            for s in range(4):
                left = numbers[PRIOR, s] * at[0, s]
                alpha += left * at[1, s]
                for r in range(4):
                    beta += left * numbers[1 + s, r] * at[1, r]
            columns.likelihood[n, 0] = max(alpha, beta * rates.least[1])
            columns.likelihood[n, 1] = beta
            n += 1
        column = end
        i, vi = passed(on_i and end_i == end, kind_i, i, vi)
        j, vj = passed(on_j and end_j == end, kind_j, j, vj)
    return n, slope, constant


@uncounted
def value_at(columns, n, slope, constant, t):
    """log L of a branch of length t, from what compare wrote."""
    total, product = constant + slope * t, 1.0
    for k in range(n):
        one = columns.likelihood[k, 0] + columns.likelihood[k, 1] * t
        if one <= 0.0:
            return IMPOSSIBLE
        product *= one
        if product < _SMALL:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@uncounted
def best_length(columns, n, slope):
    """The length of the highest log L: it is concave, so the zero of its derivative, or 0. Newton's steps
    between lengths whose slopes are known."""
    if n == 0:
        return 0.0
    slope = min(slope, -_NO_SLOPE)  # of genomes that have nothing else in common
    none, at_zero = 0, slope
    for k in range(n):
        alpha, beta = columns.likelihood[k, 0], columns.likelihood[k, 1]
        if alpha <= _NEARLY_NONE * beta:
            none += 1
        else:
            at_zero += beta / alpha
    if none == 0 and at_zero <= 0.0:
        return 0.0
    low, high = 0.0, min(-n / slope * 2.0, LONGEST)
    t = min(max(-none / slope - _NEARLY_NONE, 0.0), high) if none else 0.0
    for _ in range(_NEWTON):
        first, second = slope, 0.0
        for k in range(n):
            ratio = columns.likelihood[k, 1] / (columns.likelihood[k, 0] + columns.likelihood[k, 1] * t)
            first += ratio
            second -= ratio * ratio
        if first > 0.0:
            low = t
        else:
            high = t
        step = -first / second if second < 0.0 else 0.0
        new = t + step
        if new <= low or new >= high:
            new = 0.5 * (low + high)
        if abs(new - t) <= 1e-9 * t + 1e-15:
            return new
        t = new
    return t


@uncounted
def score(lists, rates, columns, branch, genome, t, least):
    """log of how probable list `genome`, at distance t, is given list `branch`, which holds all else that is
    known there; what is below least may be any such value. Columns of which branch knows nothing count
    for 0."""
    sites, at, numbers = len(rates.reference), columns.at, rates.numbers
    i, j = lists.place[branch, FIRST], lists.place[genome, FIRST]
    last_i, last_j = i + lists.place[branch, COUNT], j + lists.place[genome, COUNT]
    vi, vj = lists.place[branch, FIRST_VECTOR], lists.place[genome, FIRST_VECTOR]
    column, total = 0, rates.stay[sites] * t
    while column < sites:
        on_i, end_i = _reach(lists, i, last_i, column, sites)
        on_j, end_j = _reach(lists, j, last_j, column, sites)
        end = min(end_i, end_j)
        if not on_i and not on_j:
            column = end
            continue
        kind_i, kind_j, da, db = SAME, SAME, 0.0, t
        if on_i:
            kind_i, da = lists.kind[i], lists.distance[i]
        if on_j:
            kind_j, db = lists.kind[j], t + lists.distance[j]
        if kind_i == UNKNOWN or kind_j == UNKNOWN:
            total -= (rates.stay[end] - rates.stay[column]) * t
        elif kind_i == SAME and kind_j == SAME:
            total += (rates.stay[end] - rates.stay[column]) * (da + db - t)
        elif kind_i == kind_j and kind_i != MIXED:
            total += numbers[1 + kind_i, kind_i] * (da + db - t)
        else:
            state = rates.reference[column]
            total -= numbers[1 + state, state] * t
            one = kind_i if kind_i != SAME else state
            other = kind_j if kind_j != SAME else state
            if one != MIXED and other != MIXED:
                total += math.log(numbers[1 + one, other] * (da + db))
            else:
                _spread(lists, rates, one, one, vi, da, at[0])
                _spread(lists, rates, other, other, vj, db, at[1])
                known = both = 0.0
                for s in range(4):
                    left = numbers[PRIOR, s] * at[0, s]
                    known += left
                    both += left * at[1, s]
                if both <= 0.0:
                    return IMPOSSIBLE
                total += math.log(both / known)
            if total < least:
                return total
        column = end
        i, vi = passed(on_i and end_i == end, kind_i, i, vi)
        j, vj = passed(on_j and end_j == end, kind_j, j, vj)
    return total
