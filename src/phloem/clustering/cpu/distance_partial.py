"""What partly ambiguous characters add to the counts of site pairs: few sites, so one look-up each."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled


@compiled
def add_partial(partial, i, first, n, counts):
    """counts[:, :n] += the sites at which sequence i or first + j, j < n, is partly ambiguous.

    partial: (rows, columns, starts, places, shares, states). rows: (sequences, M) codes of the sites with a
    partly ambiguous character; columns: (M, sequences) the same; places[starts[i]:starts[i + 1]]: at which
    of them sequence i has one; shares: (K, codes, codes) what a site with these two codes adds to counts
    (K, width).
    """
    rows, columns, starts, places, shares, states = partial
    if len(places) == 0:
        return
    mine = rows[i]
    for k in range(len(counts)):
        added, share = np.zeros(n), shares[k]
        for place in places[starts[i] : starts[i + 1]]:
            own, theirs = share[mine[place]], columns[place, first : first + n]
            for j in range(n):
                added[j] += own[theirs[j]]
        for j in range(n):
            theirs, total = rows[first + j], 0.0
            for place in places[starts[first + j] : starts[first + j + 1]]:
                if mine[place] < states:
                    total += share[mine[place], theirs[place]]
            counts[k, j] += added[j] + total
