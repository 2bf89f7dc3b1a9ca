"""Tasks in an order in which what a task needs was started before it; what counts and shares them."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from phloem.hardware.numba_compile import compiled, uncounted
from phloem.pruning.cpu.lanes import element_pointer

# Counters that threads share.


@intrinsic
def fetch_add(typing_context, array, index, amount):
    """Add amount to the int64 array[index] and return what it held before, as one indivisible step."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.atomic_rmw("add", pointer, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def exchange(typing_context, array, index, value):
    """Store value in the int64 array[index] and return what it held before, as one indivisible step: a lock
    is taken where that was 0 and 1 is stored, and given back by storing 0."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.atomic_rmw("xchg", pointer, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def raise_to(typing_context, array, index, value):
    """Store value in the int64 array[index] if it is larger than what that held before, which is returned, as
    one indivisible step."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.atomic_rmw("max", pointer, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def read_shared(typing_context, array, index):
    """The int64 array[index]; what its writer stored before is visible afterwards."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.int64), generate


_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


@intrinsic
def give_way(typing_context):
    """Let the operating system run another thread on this core, if one waits for it."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, _YIELD), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def call_with_two(typing_context, function, first, second):
    """Call a C function of two pointers that returns an int, all given as int64."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.IntType(32), [word, word])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int32(types.int64, types.int64, types.int64), generate


# In which order a machine of many programs should start steps that wait for each other.


@compiled
def list_schedule(first, n_tiles, parent, depth, n_programs):
    """Order in which to start the tiles of a forest walked from its tips: deepest ready node first, a round
    of n_programs tiles at a time (list scheduling by the longest way to go; Hu 1961, Operations Research 9).

    first, n_tiles, parent, depth: (N,) int64: place of each node's first tile, number of tiles (0: nothing to
    do), parent (-1: none), edges to the root. Returns the places in order.
    """
    waits = np.zeros(len(parent), np.int64)
    for x in range(len(parent)):
        if n_tiles[x] > 0 and parent[x] >= 0:
            waits[parent[x]] += 1
    ready = [(-depth[x], x) for x in range(len(parent)) if n_tiles[x] > 0 and waits[x] == 0]
    heapq.heapify(ready)
    order, n_ordered = np.empty(n_tiles.sum(), np.int64), 0
    begun, finished = np.zeros(len(parent), np.int64), np.empty(len(parent), np.int64)
    while len(ready) > 0:
        room, n_finished = n_programs, 0
        while len(ready) > 0 and room > 0:
            x = ready[0][1]
            taken = min(n_tiles[x] - begun[x], room)
            for place in range(first[x] + begun[x], first[x] + begun[x] + taken):
                order[n_ordered] = place
                n_ordered += 1
            begun[x] += taken
            room -= taken
            if begun[x] == n_tiles[x]:
                heapq.heappop(ready)
                finished[n_finished] = x
                n_finished += 1
        for x in finished[:n_finished]:
            above = parent[x]
            if above >= 0:
                waits[above] -= 1
                if waits[above] == 0 and n_tiles[above] > 0:
                    heapq.heappush(ready, (-depth[above], above))
    return order


# The threads of one evaluator.


class Team:
    """A number of threads, of which the caller is one. They share the tasks of a pass over the tree."""

    def __init__(self, threads: int | None) -> None:
        self.threads = max(1, threads or 1)
        self._others = ThreadPoolExecutor(self.threads - 1, "phloem") if self.threads > 1 else None

    def run(self, work: Callable[[np.ndarray, int], None], n_tasks: int) -> None:
        """Call work(counter, thread) in every thread; together they take the tasks from the counter."""
        counter = np.zeros(1, np.int64)
        if self._others is None:
            return work(counter, 0)
        others: list[Future] = []
        try:
            for thread in range(1, min(self.threads, n_tasks)):
                others.append(self._others.submit(work, counter, thread))
            work(counter, 0)
        finally:  # even if that failed, nobody writes on once this has returned
            for other in others:
                other.result()


# Tasks in an order in which everything a task needs was started before it, and how threads share them.
#
# A task is (node, begin, end, block): a range of the node's columns in one block of categories, or the node's
# transition matrix if begin is -1, or a range of the root's site likelihoods if block is -1. Every thread
# takes the next task from one counter and waits until what it needs is done; whatever it waits for was taken
# earlier by a thread that is working on it, so this cannot lock up. Ranges depend on the problem, never on
# the number of threads, and every sum has a fixed order, so results are bitwise the same for any number of
# threads.


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


def downward(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """All nodes from the root on, both children of a node one after the other: what lies above them, which
    both read, is in the cache then. The child that came last is gone on with.

    left, right: (N,) children, -1 at tips; the root is the last node.
    """
    children = np.sort(np.stack([left, right], 1), 1).tolist()  # tips have lower numbers
    order, waiting = [len(left) - 1], [len(left) - 1]
    while waiting:
        pair = children[waiting.pop()]
        order += pair
        waiting += [x for x in pair if children[x][0] >= 0]
    return np.array(order)


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
