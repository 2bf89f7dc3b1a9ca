"""Lists of steps and sums for the GPU, in compiled code, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.pruning.cpu.step_lists import StepNodes, count_steps, group_columns, list_root, list_steps

# ((0, 1), (2, 3)), 4 tips, root 6
LEFT, RIGHT = np.array([0, 2, 4]), np.array([1, 3, 5])
PARENT = np.array([4, 4, 5, 5, 6, 6, -1])
SIZE = np.array([3, 5, 2, 4, 9, 7, 21])
NODES = StepNodes(LEFT, RIGHT, PARENT, np.arange(7) * 100, SIZE, np.arange(7) + 50)


def steps(tile=4, parts=3):
    rows = np.full((count_steps(SIZE, tile), 16), -7, np.int64)
    assert list_steps(NODES, 0, 2, tile, parts, rows) == len(rows)
    return rows


def test_the_tiles_of_a_tip_and_of_its_parent():
    rows = steps()
    rows = rows[np.isin(rows[:, 7], (2 + 1, 2 + 4))]  # tip 1 in two tiles, node 4 in three
    assert rows[:, 7].tolist() == [3, 3, 6, 6, 6]
    assert rows[:, 2].tolist() == [4, 1, 4, 4, 1]
    assert rows[:, 1].tolist() == rows[:, 6].tolist() == [100, 104, 400, 404, 408]
    assert rows[:, 8].tolist() == [0, 0, 9, 9, 9]  # three tiles of the children, three programs each
    assert rows[:, 9].tolist() == [6, 6, 8, 8, 8]
    assert rows[2:, 3:6].tolist() == [[0, 100, 54]] * 3


def test_everything_waits_for_both_children_and_comes_after_them():
    rows = steps()
    assert rows[rows[:, 7] == 2 + 5, 8].tolist() == [6, 6]  # one tile each of tips 2 and 3
    assert (np.diff(rows[:, 15]) >= 0).all()
    assert not (rows[:, 7] == 2 + 6).any()  # the root has a list of its own


def test_the_root():
    rows = np.full((3, 16), -7, np.int64)
    list_root(NODES, 1, 30, 40, 8, rows)
    assert rows[:, 1].tolist() == [600, 608, 616] and rows[:, 2].tolist() == [8, 8, 5]
    assert rows[:, 10].tolist() == [30, 38, 46] and rows[:, 12].tolist() == [40, 48, 56]
    assert rows[0, [3, 4, 13, 14]].tolist() == [400, 500, 1, 1]


def grouped(own, other, tile, longest):
    """group_columns by sorting."""
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    rank = np.arange(len(own)) - np.repeat(starts, np.diff(np.append(starts, len(own))))
    group = np.cumsum(rank % longest == 0) - 1
    size = np.bincount(group)
    by_size = np.argsort(-size, kind="stable")
    column = np.argsort(by_size, kind="stable")
    tile_longest = size[by_size][::tile]
    base = np.concatenate([[0], np.cumsum(tile_longest * tile)])
    place = base[column[group] // tile] + (rank % longest) * tile + column[group] % tile
    entry_parent, entry_sibling = np.full(base[-1], -1), np.zeros(base[-1], int)
    entry_parent[place], entry_sibling[place] = order, other[order]
    stands_for = ordered[rank % longest == 0][by_size]
    return stands_for, tile_longest, tile_longest * tile, entry_parent, entry_sibling


@pytest.mark.parametrize(
    "n, n_classes, tile, longest", [(1, 1, 4, 3), (200, 9, 4, 3), (57, 50, 8, 5), (90, 1, 4, 9)]
)
def test_groups_of_columns(n, n_classes, tile, longest):
    rng = np.random.default_rng(n)
    own = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n)])[-n:].astype(np.int32)
    other = rng.integers(30, size=n).astype(np.int32)
    found, wanted = group_columns(own, other, n_classes, tile, longest), grouped(own, other, tile, longest)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted))
    own[0] = (own[0] + 1) % n_classes  # negative control
    if n_classes > 1:
        found = group_columns(own, other, n_classes, tile, longest)
        assert not all(np.array_equal(a, b) for a, b in zip(found, wanted))
