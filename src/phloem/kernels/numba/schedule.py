"""Tasks in an order in which everything a task needs was started before it, and how threads share them.

A task is (node, begin, end): a range of the node's columns, or its transition matrix if begin is -1. Every
thread takes the next task from one counter and waits until what it needs is done; since whatever it waits
for was taken earlier by a thread that is working on it, this cannot lock up. Ranges depend on the problem,
never on the number of threads, and every sum has a fixed order, so results are bitwise the same for any
number of threads.
"""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.atomic import fetch_add, read_shared
from phloem.kernels.numba.compile import compiled

MOST_RANGES = 16  # of one node: bounds the memory of partial adjoints


@compiled(forceinline=True)
def next_task(counter):
    """Number of the next task that nobody took."""
    return fetch_add(counter, 0, 1)


@compiled
def wait_for(done, node, amount):
    """Return when `amount` columns of node are done."""
    while read_shared(done, node) < amount:
        pass


@compiled(forceinline=True)
def finish(done, node, amount):
    """Say that `amount` more columns of node are done."""
    fetch_add(done, node, amount)


def column_tasks(order: np.ndarray, size: np.ndarray, n_tips: int, smallest: int) -> np.ndarray:
    """(n, 3) int64 tasks for the nodes in order; a tip is one task, a node at most MOST_RANGES.

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
    return np.stack(
        [np.repeat(order, ranges), begin, np.minimum(begin + length, np.repeat(columns, ranges))], 1
    )


def matrix_tasks(nodes: np.ndarray) -> np.ndarray:
    """(n, 3) int64 tasks for the transition matrices of nodes."""
    tasks = np.full((len(nodes), 3), -1, np.int64)
    tasks[:, 0] = nodes
    return tasks
