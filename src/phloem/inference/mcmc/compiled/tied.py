"""Shares some of which are equal, as moves change them: groups and their sums, in a move's room.

x: (k + 1,) shares and, behind them, which are equal (density/terms/tied_dirichlet.py). room: of 3 k numbers
the first k are the group 0, 1, … of every share, the next the shares in every group, the last the groups'
sums.
"""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted


@uncounted
def read_groups(x, room):
    """Fill room from x; the number of groups."""
    k, code, groups = x.shape[0] - 1, int(x[x.shape[0] - 1] + 0.5), 0
    for i in range(k, 2 * k):
        room[i] = 0.0
    for i in range(k - 1, -1, -1):
        g = code % 10 - 1
        code //= 10
        room[i] = g
        room[k + g] += 1.0
        room[2 * k + g] = x[i]
        groups = max(groups, g + 1)
    for g in range(groups):
        room[2 * k + g] *= room[k + g]
    return groups


@uncounted
def write_groups(x, room, low):
    """Write x from room, its groups numbered as they appear. False where a share is below low: x is then
    of no use."""
    k, code, seen = x.shape[0] - 1, 0, 0
    for i in range(k):
        g, number = int(room[i]), 0
        x[i] = room[2 * k + g] / room[k + g]
        if not x[i] >= low:
            return False
        for j in range(i):
            if room[j] == room[i]:
                number = code // 10 ** (i - 1 - j) % 10
        if number == 0:
            seen += 1
            number = seen
        code = 10 * code + number
    x[k] = code
    return True


@uncounted
def several(room, k, groups):
    """How many groups have more than one share."""
    found = 0
    for g in range(groups):
        found += room[k + g] > 1.0
    return found
