"""Lists of sums for the way down: every column of the parent in one group of its class, no sum long."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from phloem.pruning.cpu.chain_sums import CLASSES, ENTRIES, GROUPS, SEVERAL, _list, most_words, no_sums

LOW = 0xFFFFFFFF


def listed(own, other, side, at_tip, longest):
    """(words, of) of the list for one child; own, other: (n,) classes of the parent's columns."""
    n_classes, sums = int(own.max()) + 1, no_sums(1, 3, len(own), longest)
    first, second = (own, other) if side == 0 else (other, own)
    rows = first.astype(np.int64) | (second.astype(np.int64) << 32)
    words = np.full(most_words(len(own), n_classes, longest), -1)
    n = _list(rows, 32 * side, n_classes, at_tip, sums.of[0, 0, 0, side], words, sums)
    return words[:n], sums.of[0, 0, 0, side]


def wrong(words, of, own, other, most):
    """What the list says that is not so, in words; nothing where all is well."""
    groups, entries = words[: of[GROUPS] + 1], words[of[GROUPS] + 1 :][: of[ENTRIES]]
    first, seen = groups >> 32, np.zeros(len(own), int)
    found = []
    for g, (begin, end) in enumerate(pairwise(first)):
        column = entries[begin:end] & LOW
        seen[column] += 1
        if (own[column] != groups[g] & LOW).any() or (other[column] != entries[begin:end] >> 32).any():
            found.append("class")
        if not 0 < end - begin <= most or (np.diff(column) <= 0).any():
            found.append("length or order")
    n = np.bincount(own)
    combined = words[of[GROUPS] + 1 + of[ENTRIES] :]
    for (k, begin), end in zip(((w & LOW, w >> 32) for w in combined[:-1]), combined[1:] >> 32):
        if (groups[begin:end] & LOW != k).any() or (np.diff(first)[begin:end].sum() != n[k]):
            found.append("pieces")
    sizes = np.diff(first)[of[SEVERAL] :]
    if (np.diff(sizes) > 0).any() or (seen != 1).any() or of[CLASSES] != len(combined) - 1:
        found.append("order of sizes, or a column that is not summed once")
    return found


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("at_tip", [False, True])
@pytest.mark.parametrize(
    "n, n_classes, longest", [(1, 1, 3), (50, 50, 3), (400, 9, 3), (300, 120, 1), (7, 2, 9)]
)
def test_every_column_is_summed_once(n, n_classes, longest, at_tip, side):
    rng = np.random.default_rng(n)
    own = np.sort(rng.integers(n_classes, size=n) ** 2 // n_classes)
    own = np.unique(own, return_inverse=True)[1][rng.permutation(n)]
    other = rng.integers(30, size=n)
    words, of = listed(own, other, side, at_tip, longest)
    largest = np.bincount(own).max()
    most = longest if at_tip else max(longest, int(np.ceil(np.sqrt(largest))))
    assert not wrong(words, of, own, other, most)
    if not at_tip:
        assert largest <= most * most
    # Controls: the first group is of another class, or begins late; an entry has another class beside it.
    for k, planted in ((0, 1), (0, 1 << 32), (of[GROUPS] + 1, 1 << 32)):
        spoiled = words.copy()
        spoiled[k] += planted
        assert wrong(spoiled, of, own, other, most)
