"""The tree of very many genomes, and everything that is done to it; the arithmetic is compiled (cpu)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from phloem.data.genomes import MISSING, Genomes

if TYPE_CHECKING:
    from phloem.differences.cpu.placement import Reach, Room
    from phloem.differences.cpu.records import Lists, Rates

_ARRIVALS, _ARRIVAL_ENTRIES = 1500, 200  # lists of a walk, and entries of each on average
_WAITING, _BEST = 20_000, 8
_NEGLIGIBLE = 1e-8  # entries of vectors below this share of the largest are 0 (as De Maio et al. 2023)


class Engine:
    """Tips are distinct genomes in the order in which they are added (`order`, of genomes), tip 0 is the
    root; inner node T + k came with tip k + 2. Numbers do not depend on threads."""

    def __init__(
        self,
        genomes: Genomes,
        order: np.ndarray,
        threads: int = 1,
        negligible: float = _NEGLIGIBLE,
        shortest: float | None = None,
    ) -> None:
        from phloem.differences.cpu.records import Tree
        from phloem.differences.cpu.updates import Queue

        self.genomes, self.order, self._negligible = genomes, order, negligible
        self._shortest = 1e-3 / genomes.n_sites if shortest is None else shortest
        self.tips = len(order)
        n = self.nodes = max(2 * self.tips - 2, 2)
        self.tree = Tree(np.full(n, -1), np.full((n, 2), -1), np.zeros(n), np.zeros(n))
        self._queue = Queue(np.zeros(4 * n, np.int64), np.zeros(2 * n, np.int8), np.zeros(3, np.int64),
                            np.ones(n, np.int8))  # fmt: skip
        self.placed = 0
        self.rates: Rates | None = None
        self._threads = threads
        self._lists, self._fixed = self._memory(threads)
        self._rooms = [self._room(k) for k in range(threads)]
        self._reserve = 4 * genomes.n_sites
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._write_tips()

    # Memory: scratch of every thread, then the tips' lists, which stay, then those of the tree.

    def _memory(self, threads: int) -> tuple[Lists, np.ndarray]:
        from phloem.differences.cpu.records import Lists

        sites, g = self.genomes.n_sites, self.genomes
        own = sites + _ARRIVALS * _ARRIVAL_ENTRIES
        fixed = np.array([threads * own, threads * own])
        entries = int(fixed[0] + 8 * sites + 4 * len(g.states))
        vectors = int(fixed[1] + 8 * sites + 4 * self.nodes)
        n_lists = 3 * self.nodes + threads * (1 + _ARRIVALS)
        lists = Lists(
            np.zeros((n_lists, 6), np.int64),
            np.zeros((entries, 2), np.int32),
            np.zeros(entries, np.int8),
            np.zeros(entries),
            np.zeros((vectors, 4)),
            fixed.copy(),
        )
        return lists, fixed

    def _room(self, k: int) -> Room:
        from phloem.differences.cpu.joining import Columns
        from phloem.differences.cpu.placement import Heap, Room, Walk

        sites, first = self.genomes.n_sites, 3 * self.nodes + k * (1 + _ARRIVALS)
        own = sites + _ARRIVALS * _ARRIVAL_ENTRIES
        self._lists.place[first] = k * own, 0, sites, k * own, 0, sites
        begin, end = k * own + sites, (k + 1) * own
        waiting = max(_WAITING, self.nodes + 2)
        heap = Heap(
            np.zeros(waiting),
            np.zeros(waiting, np.int64),
            np.zeros(_BEST),
            np.zeros(_BEST, np.int64),
            np.zeros(2, np.int64),
        )
        walk = Walk(
            np.zeros((_WAITING, 4), np.int64),
            np.array([first, first + 1, first + _ARRIVALS, 0]),
            np.array([begin, end, begin, begin, end, begin]),
            np.zeros((2, 3)),
        )
        return Room(Columns(np.zeros((sites + 1, 2)), np.zeros((2, 4))), heap, walk)

    def _write_tips(self) -> None:
        """Lists of the genomes: single states, missing runs, sets as vectors of 0 and 1."""
        g, at = self.genomes, int(self._lists.used[0])
        single = np.full(16, 6, np.int8)
        single[[1, 2, 4, 8, MISSING]] = 0, 1, 2, 3, 5
        kinds = single[g.states]
        sets = (g.states[:, None] >> np.arange(4) & 1).astype(np.float64)
        lists, vector = self._lists, int(self._lists.used[1])
        for tip, genome in enumerate(self.order):
            begin, end = g.offsets[genome], g.offsets[genome + 1]
            mixed = np.flatnonzero(kinds[begin:end] == 6) + begin
            n, v = int(end - begin), len(mixed)
            lists.span[at : at + n], lists.kind[at : at + n] = g.span[begin:end], kinds[begin:end]
            lists.vector[vector : vector + v] = sets[mixed]
            lists.place[tip] = at, n, n, vector, v, v
            at, vector = at + n, vector + v
        lists.used[:] = at, vector

    def _grow(self) -> None:
        """Lists are packed in the order of their numbers, and there is half as much room again."""
        from phloem.differences.cpu.storage import pack

        old, live = self._lists, 3 * self.nodes
        need = old.place[:live, [1, 4]].sum(0) * np.array([1.25, 1.5]) + 3 * live
        sizes = [int(1.5 * n + f + 2 * self._reserve) for n, f in zip(need, self._fixed)]
        new = old._replace(
            span=np.zeros((sizes[0], 2), np.int32), kind=np.zeros(sizes[0], np.int8),
            distance=np.zeros(sizes[0]), vector=np.zeros((sizes[1], 4)), used=self._fixed.copy(),
        )  # fmt: skip
        pack(old, new, live)
        self._lists = new

    def _roomy(self) -> None:
        lists = self._lists
        if lists.used[0] + self._reserve > len(lists.kind) or lists.used[1] + self._reserve > len(
            lists.vector
        ):
            self._grow()

    def _until(self, done: Callable[[], bool]) -> None:
        """Again, with more memory, until it is done."""
        self._roomy()
        while not done():
            self._grow()

    # Numbers of the model.

    def set_rates(self, rate_matrix: np.ndarray, frequencies: np.ndarray) -> None:
        from phloem.differences.cpu.records import Rates

        reference = self.genomes.reference
        stay, prior = np.diag(rate_matrix)[reference], np.log(frequencies)[reference]
        self.rates = Rates(
            np.vstack([frequencies, rate_matrix]),
            np.concatenate([[0.0], np.cumsum(stay)]),
            np.concatenate([[0.0], np.cumsum(prior)]),
            reference,
            np.array([self._negligible, self._shortest]),
        )

    # The tree.

    def add(self, most: int, reach: Reach) -> None:
        """Places genomes until there are `most`."""
        while self.placed < most:
            self._add(self.placed, reach)
            self.placed += 1

    def _add(self, tip: int, reach: Reach) -> None:
        from phloem.differences.cpu.placement import add_tip, share_root

        tree = self.tree
        if tip < 2:
            if tip == 1:
                tree.parent[1], tree.children[0, 0] = 0, 1
                share_root(self._lists, tree)
                self.fit_lengths(1)
            return
        where = tip, self.tips + tip - 2
        self._until(
            lambda: add_tip(self._lists, self.rates, self._rooms[0], self.tree, self._queue, reach, where)
        )
        self._settle()

    def _settle(self) -> None:
        from phloem.differences.cpu.updates import settle

        columns, _, walk = self._rooms[0]
        self._until(lambda: settle(self._lists, self.rates, columns, self.tree, self._queue, walk.lists[0]))

    def fit_lengths(self, rounds: int) -> None:
        """Every length at its best given the others, so many times over; then all lists are made anew."""
        for _ in range(rounds):
            self.make_lists(fit=True)
        self.make_lists()

    def make_lists(self, fit: bool = False) -> None:
        """All lists, from nothing but the tree and the rates."""
        from phloem.differences.cpu.storage import round_trip, way_down, way_up
        from phloem.differences.cpu.updates import make_all

        columns, _, walk = self._rooms[0]
        for steps in (round_trip(self.tree),) if fit else (way_up(self.tree), way_down(self.tree)):
            k = 0
            while k < len(steps):
                self._roomy()
                arguments = self._lists, self.rates, columns, self.tree, self._queue
                k = make_all(*arguments, steps, k, fit, walk.lists[0])
                if k < len(steps):
                    self._grow()

    def log_likelihood(self) -> float:
        """Of the tree as it is; lists must have been made anew."""
        from phloem.differences.cpu.updates import log_likelihood

        return float(log_likelihood(self._lists, self.rates, self._rooms[0][0], self.tree))

    def substitutions(self) -> tuple[np.ndarray, np.ndarray]:
        """(4, 4) expected numbers of substitutions from state to state, and (4,) the sum over branches and
        columns of length where a state is, in substitutions per site."""
        from phloem.differences.cpu.counts import count_all

        numbers, dwell = np.zeros((4, 4)), np.zeros(4)
        columns = self._rooms[0][0]
        count_all(self._lists, self.rates, columns, self.tree, numbers, dwell)
        return numbers, dwell

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def entries(self) -> int:
        """In all lists of the tree."""
        return int(self._lists.used[0] - self._fixed[0])

    def resume(self, placed: int) -> None:
        """Goes on from the tree as it stands, with so many genomes."""
        from phloem.differences.cpu.placement import share_root

        self.placed = placed
        if placed > 1:
            share_root(self._lists, self.tree)
            self.make_lists()

    # Moves.

    def improve(self, nodes: np.ndarray, reach: Reach) -> tuple[int, float, np.ndarray]:
        """Subtrees of nodes are moved where that gains; how many, what they gained by forecast, and the nodes
        around. Lists must be right."""
        found = self._walks(nodes, reach, every=False)
        touched = []
        gaining = np.flatnonzero(found[:, 0] >= 0)
        moved, total = 0, 0.0
        for i in gaining[np.argsort(-found[gaining, 1], kind="stable")]:
            x, z = int(nodes[i]), int(found[i, 0])
            around = self._move(x, z)
            if around:
                touched += around
                moved, total = moved + 1, total + float(found[i, 1])
        return moved, total, np.unique(np.array(touched, np.int64))

    def supports(self, nodes: np.ndarray, reach: Reach) -> np.ndarray:
        """How probable it is that the subtree of each node hangs where it does, among all places near."""
        return self._walks(nodes, reach, every=True)[:, 2]

    def _walks(self, nodes: np.ndarray, reach: Reach, every: bool) -> np.ndarray:
        """regrafts.propose of every node, by all threads."""
        from phloem.differences.cpu.regrafts import propose
        from phloem.differences.cpu.updates import refresh_middles

        columns, _, walk = self._rooms[0]
        k = 0
        while k < self.nodes:
            self._roomy()
            k = refresh_middles(self._lists, self.rates, columns, self.tree, self._queue, k, walk.lists[0])
            if k < self.nodes:
                self._grow()
        found = np.zeros((len(nodes), 3))

        def work(k: int) -> None:
            own = slice(k, None, self._threads)
            mine, result = np.ascontiguousarray(nodes[own]), np.zeros((len(nodes[own]), 3))
            propose(self._lists, self.rates, self._rooms[k], self.tree, reach, mine, every, result)
            found[own] = result

        if self._pool is None:
            work(0)
        else:
            list(self._pool.map(work, range(self._threads)))
        return found

    def _move(self, x: int, z: int) -> list[int]:
        """The nodes around, none where the subtree went back to where it was."""
        from phloem.differences.cpu.regrafts import cut, put_back

        tree = self.tree
        p = int(tree.parent[x])
        if p <= 0 or tree.length[x] <= 0:
            return []
        y = int(cut(self._lists, tree, self._queue, x))
        self._settle()
        self._roomy()
        columns, _, walk = self._rooms[0]
        where = x, p, y, y if z == p else z
        branch = int(put_back(self._lists, self.rates, columns, tree, self._queue, where, walk.lengths,
                              walk.lists[0]))  # fmt: skip
        self._settle()
        return [] if branch == y else [x, p, y, branch, int(tree.parent[p]), int(tree.parent[y])]
