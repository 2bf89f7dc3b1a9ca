"""Tasks in an order in which everything a task needs was started before it, and how threads share them.

A task is (node, begin, end, block): a range of the node's columns in one block of categories, or the node's
transition matrix if begin is -1, or a range of the root's site likelihoods if block is -1. Every thread
takes the next task from one counter and waits until what it needs is done; whatever it waits for was taken
earlier by a thread that is working on it, so this cannot lock up. Ranges depend on the problem, never on
the number of threads, and every sum has a fixed order, so results are bitwise the same for any number of
threads.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.atomic import fetch_add, give_way, read_shared

_PATIENCE = 2000  # looks at a counter, some microseconds, before a waiting thread offers its core to others
MOST_RANGES = 16  # of one node: bounds the memory of partial adjoints


@uncounted(forceinline=True)
def next_task(counter):
    """Number of the next task that nobody took."""
    return fetch_add(counter, 0, 1)


@uncounted
def wait_for(done, index, amount):
    """Return when `amount` columns are done. done: (blocks · 2N,) int64, of a block: columns, then
    matrices."""
    patience = _PATIENCE
    while read_shared(done, index) < amount:
        patience -= 1
        if patience < 0:
            give_way()


@uncounted(forceinline=True)
def finish(done, index, amount):
    """Say that `amount` more columns are done."""
    fetch_add(done, index, amount)


def column_tasks(order: np.ndarray, size: np.ndarray, n_tips: int, smallest: int) -> np.ndarray:
    """(n, 4) int64 tasks for the nodes in order, in block 0; a tip is one task, a node at most MOST_RANGES.

    size: (N,) columns of every node; smallest: least columns of a range, a multiple of 6.
    """
    columns = size[order]
    length = np.maximum(smallest, -(-columns // MOST_RANGES // 6) * 6 + 6)
    length = np.where(order < n_tips, np.maximum(columns, 1), length)
    ranges = -(-columns // length)
    last = np.cumsum(ranges)
    index = np.arange(last[-1] if len(last) else 0) - np.repeat(last - ranges, ranges)
    length = np.repeat(length, ranges)
    begin = index * length
    end = np.minimum(begin + length, np.repeat(columns, ranges))
    return np.stack([np.repeat(order, ranges), begin, end, np.zeros_like(begin)], 1)


def with_matrices(tasks: np.ndarray, changed: np.ndarray, ahead: int) -> np.ndarray:
    """tasks with the transition matrix of every changed node put in: `ahead` nodes before its first columns.

    Matrices come just before they are used, so that they are in the cache then; a few nodes ahead where
    several threads work, so that none has to wait for one. Changed nodes without tasks of their own come
    first.
    """
    nodes = tasks[np.flatnonzero(np.diff(tasks[:, 0], prepend=-1)), 0]
    rank = np.zeros(max(nodes.max(initial=0), changed.max(initial=0)) + 1, np.int64)
    rank[nodes] = np.arange(len(nodes))
    matrices = np.full((len(changed), 4), -1, np.int64)
    matrices[:, 0], matrices[:, 3] = changed, 0
    key = np.append(2 * (rank[changed] - ahead), 2 * rank[tasks[:, 0]] + 1)
    return np.concatenate([matrices, tasks])[np.argsort(key, kind="stable")]


def in_blocks(tasks: np.ndarray, blocks: int) -> np.ndarray:
    """The tasks of block 0 for every block, one block after the other."""
    repeated = np.tile(tasks, (blocks, 1))
    repeated[:, 3] = np.repeat(np.arange(blocks), len(tasks))
    return repeated


def site_tasks(tasks: np.ndarray, root: int) -> np.ndarray:
    """The root's site likelihoods, in the ranges that its columns have in tasks (of one block)."""
    own = tasks[(tasks[:, 0] == root) & (tasks[:, 1] >= 0)].copy()
    own[:, 3] = -1
    return own
