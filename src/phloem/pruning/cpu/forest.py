"""The cells of all chains and partitions: the tables through which compiled loops find them, and what Python
asks of them (evaluate, settle, gradient, each under a mask over chains; branch, insertions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from phloem.errors import NumericalError
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.pruning.cpu.cell import settle_cell
from phloem.pruning.cpu.cell_branches import (
    Curve,
    branch_coefficients,
    branch_values,
    edge_scratch,
    new_curve,
)
from phloem.pruning.cpu.cell_insertions import INSERTION_ENTRIES, insertion_sites
from phloem.pruning.cpu.cell_loops import (
    CORRELATE,
    EVALUATE,
    GRADIENT,
    PROPOSE,
    Work,
    address_of_code,
    evaluate_cells,
    gradient_cells,
)
from phloem.pruning.cpu.cell_memory import (
    Part,
    cell_arrays,
    cell_layout,
    cell_scratch,
    cell_sizes,
    down_arrays,
    down_scratch,
    message_arrays,
    pre_order_vectors,
    shared_arrays,
)
from phloem.pruning.cpu.cell_records import (
    MODEL_FIELDS,
    RESCALED,
    TAKEN,
    VALUES,
    CellScratch,
    DownArrays,
    DownScratch,
    ForestTrees,
    P,
    ProposedTree,
    Q,
)
from phloem.pruning.cpu.schedule import Team
from phloem.pruning.cpu.storage import address_of
from phloem.pruning.site_order import powers_of, refuse_neighbours


@dataclass(frozen=True, eq=False)
class BranchCurve:
    """The log-likelihood by the length of one branch. parts: of each, cell_branches.branch_coefficients'
    curve, the weights of its patterns, and which of them could not be seen."""

    parts: tuple[tuple[Curve, np.ndarray, np.ndarray], ...]

    def at(self, length: float) -> tuple[float, float, float]:
        """Value, first and second derivative."""
        total, out = np.zeros(3), np.empty(3)
        for curve, weights, unobservable in self.parts:
            branch_values(curve, weights, unobservable, float(length), out)
            total += out
        return float(total[0]), float(total[1]), float(total[2])


class Forest:
    """H chains × L cells, partitions or ranges of their columns (part_of, (L,): of which). numbers,
    addresses: (H, L, ·) int64 tables for the compiled loops.

    hangs: every tree's root has tip 0 as a child, and its other child a branch of no length; else trees are
    of any form. keeps: False where only from_scratch is asked for: a thread's messages then lie in one place,
    whatever the cell, and stay in its cache. threads: of what is asked for from Python; they take cells, and
    change no result. Memory is taken as columns are first written, so it follows their number, not P.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        n_chains: int,
        hangs: bool = True,
        keeps: bool = True,
        threads: int = 1,
    ) -> None:
        self.parts = tuple(parts)
        shared = [shared_arrays(part) for part in parts]
        passing = None if keeps else message_arrays(parts)
        self.cells = [
            [cell_arrays(part, own, passing or message_arrays([part])) for part, own in zip(parts, shared)]
            for _ in range(n_chains)
        ]
        for chain in self.cells:
            for i, part in enumerate(parts):
                if part.model_of >= 0:
                    own = chain[part.model_of]._asdict()
                    chain[i] = chain[i]._replace(**{name: own[name] for name in MODEL_FIELDS})
        self.part_of = np.cumsum([part.model_of < 0 for part in parts]) - 1
        row = [[*cell_sizes(part, hangs), 0, 0, 0, 0] for part in parts]
        self.numbers = np.array([row] * n_chains, np.int64)
        self.addresses = np.array(
            [[[address_of(array) for array in cell] for cell in chain] for chain in self.cells], np.int64
        )
        self.down: list[list[DownArrays]] = []
        self._downs = np.zeros((n_chains, len(parts), len(DownArrays._fields)), np.int64)
        self._team = Team(threads)
        self._scratch: list[tuple[CellScratch, DownScratch]] = []
        self._other_models = np.zeros((n_chains, len(parts)), np.int64)
        self._hangs, self._keeps, self._passing = hangs, keeps, list[tuple[np.ndarray, ...]]()
        size = self.numbers[0, :, :2].prod(1) * self.numbers[0, :, 6:8].prod(1)
        self._largest_first = np.argsort(-size, kind="stable")
        self._four = np.array([part.state_sets.shape[1] == 4 for part in parts])
        self._along = np.array([part.order is not None for part in parts])
        self._accepted: ForestTrees | None = None
        self._proposed: ForestTrees | None = None

    def set_model(self, chain: int, part: int, slot: int, model: SiteModel) -> None:
        """Write a model's numbers into one of the two slots of a cell. Every eigensystem must be real."""
        cell, states = self.cells[chain][part], len(model.invariant_frequencies)
        order = self.parts[part].order
        if order is None:
            refuse_neighbours(model, "a cell of patterns")
        else:
            cell.neighbours[slot] = powers_of(model, order)
        for m, process in enumerate(model.processes):
            eigen = process.real_eigen
            if eigen is None:
                raise NumericalError("a chain's model has no real eigensystem at the numbers proposed")
            cell.eigenvalues[slot, m] = eigen.values
            # as model_numbers lays them out; what pads them stays zero
            cell.eigen_right[slot, m, :, :states] = eigen.right if states == 4 else eigen.right.T
            cell.eigen_left[slot, m, :, :states] = eigen.left
            cell.root_frequencies[slot, m] = process.root_frequencies
        cell.rates[slot], cell.category_weights[slot] = model.rates, model.weights
        cell.invariant[slot] = model.invariant
        cell.invariant_frequencies[slot] = model.invariant_frequencies

    def scratch(self) -> CellScratch:
        """What one thread of a compiled loop works in."""
        return cell_scratch(self.parts)

    def propose_model(self, chain: int, part: int, model: SiteModel) -> None:
        """The next evaluation of the cell is under this model; errors as set_model."""
        self.set_model(chain, part, 1 - int(self.cells[chain][part].slot[0]), model)
        self._other_models[chain, part] = 1

    def evaluate(self, trees: ForestTrees, mask: np.ndarray | None = None) -> np.ndarray:
        """(H, L) log-likelihoods of proposals: of these trees under the proposed models. Chains outside the
        mask (H,) take no part, and their values are the accepted ones.

        What did not change is not computed again; under another topology, and at first, everything is.
        Not for trees that hang: their chains are evaluated in a compiled loop (cell_loops.propose_cell).
        """
        self._require_kept()
        work = self._changed(self._work(trees, mask), fresh=False)
        self._run(work, False)
        self._proposed = _copy(trees)
        return work.values

    def settle(self, mask: np.ndarray | None = None) -> None:
        """Take the proposals of these chains over; those of the others are forgotten."""
        new, old, chosen = self._proposed, self._accepted, self._chosen(mask)
        if new is None:
            raise RuntimeError("no proposal is pending")
        if old is None and not chosen.all():
            raise RuntimeError("the first evaluation must be taken over by every chain")
        for h in np.flatnonzero(chosen):
            for own, at in zip(self.numbers[h], self.addresses[h]):
                settle_cell(own, at)
        if old is not None:
            new = ForestTrees(*(np.where(_along(chosen, a), a, b) for a, b in zip(new, old)))
        self._accepted, self._proposed = _copy(new), None
        self._other_models[:] = 0

    def from_scratch(
        self, trees: ForestTrees, gradient: bool = False, parameters: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """evaluate, settle and, if asked for, gradient of all chains, with nothing kept but the classes of
        columns while the topology stays. Returns what gradient does; zeros where it was not asked for."""
        work = self._changed(self._work(trees, None), fresh=True)._replace(settle=True, parameters=parameters)
        if gradient:
            self._prepare_down()
        self._run(work, gradient)
        self._accepted, self._proposed = _copy(trees), None
        self._other_models[:] = 0
        return work.values, self._lengths(trees, None) if gradient else np.zeros(trees.lengths.shape)

    def gradient(
        self, mask: np.ndarray | None = None, parameters: bool = False, trees: ForestTrees | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log-likelihoods (H, L), and their derivatives by effective lengths (H, G, N), summed over the
        parts: of the proposal that was evaluated last, else of the accepted state. Zeros outside the mask.

        parameters: also by the models' numbers, which site_model_gradient then reads. trees: those of the
        accepted states, where a compiled loop evaluates and keeps them.
        """
        self._require_kept()
        proposed = trees is None and self._proposed is not None
        now = trees or (self._proposed if proposed else self._accepted)
        if now is None:
            raise RuntimeError("nothing was evaluated yet")
        self._prepare_down()
        work = self._work(now, mask)._replace(which=int(proposed), parameters=parameters)
        self._run(work, True)
        return work.values, self._lengths(now, mask)

    def site_model_gradient(self, chain: int, part: int) -> SiteModelGradient:
        """Derivatives by a model's numbers, of the last gradient with parameters."""
        d, shape = self.down[chain][part], cell_layout(self.parts[part])
        s, width = shape.states, shape.padded
        processes = tuple(
            ProcessGradient(q.reshape(-1, width)[:s, :s].copy(), f.copy())
            for q, f in zip(d.rate_matrix, d.root_frequencies)
        )
        return SiteModelGradient(
            processes, d.rates.copy(), d.weights.copy(), float(d.invariant[-1]), d.invariant[:-1].copy()
        )

    def branch(self, chain: int, node: int, row: int = 0, trees: ForestTrees | None = None) -> BranchCurve:
        """The log-likelihood of a chain as a function of the length of one node's branch in one row of its
        lengths, all else as it is; arguments and state as in gradient, which is taken first."""
        now, which = self._with_messages(chain, trees)
        tree, curves = self._tree_of(now, chain), []
        for i, part in enumerate(self.parts):
            curve, room = new_curve(part), edge_scratch(part, 1)
            numbers, addresses = self.numbers[chain, i], self.addresses[chain, i]
            branch_coefficients(numbers, addresses, tree, which, node, row, room, curve)
            weights, hidden = np.array(part.weights, np.float64), np.array(part.unobservable, np.uint8)
            curves.append((curve, weights, hidden))
        return BranchCurve(tuple(curves))

    def insertions(
        self, chain: int, subtree: int, pendant: np.ndarray | float, trees: ForestTrees | None = None
    ) -> np.ndarray:
        """(N,) log-likelihoods of a chain with a subtree moved into the middle of every node's branch, on a
        pendant branch of this length ((G,), or one for all rows); nan for branches that the tree without
        the subtree does not have. The branches that meet where it was are one, under the sibling's number.

        Arguments and state as in gradient, which is taken first. ValueError for the root and its children.
        """
        now, which = self._with_messages(chain, trees)
        tree = self._tree_of(now, chain)
        if tree.parent[subtree] < 0 or tree.parent[tree.parent[subtree]] < 0:
            raise ValueError("neither the root nor a child of it can be pruned")
        lengths = np.broadcast_to(np.asarray(pendant, np.float64), now.lengths.shape[1:2])
        total, n_nodes = np.zeros(len(tree.parent)), len(tree.parent)
        for i, part in enumerate(self.parts):
            first, n_patterns = part.first_lengths, part.tip_codes.shape[1]
            own = lengths[first : first + int(part.length_class.max()) + 1].copy()
            entries = n_nodes * len(part.process) * part.state_sets.shape[1]
            batch = min(n_patterns, max(1, INSERTION_ENTRIES // entries))
            room, sites = edge_scratch(part, batch), np.empty((n_nodes, n_patterns))
            numbers, addresses = self.numbers[chain, i], self.addresses[chain, i]
            for begin in range(0, n_patterns, batch):
                found = np.empty((n_nodes, min(batch, n_patterns - begin)))
                insertion_sites(numbers, addresses, tree, which, subtree, own, begin, room, found)
                sites[:, begin : begin + found.shape[1]] = found
            seen, hidden = part.weights != 0, np.asarray(part.unobservable, bool)
            total += sites[:, seen] @ part.weights[seen]
            total -= part.weights.sum() * np.log1p(-np.exp(sites[:, hidden]).sum(1))
        return total

    def _with_messages(self, chain: int, trees: ForestTrees | None) -> tuple[ForestTrees, int]:
        """Of a chain's state; which: as in cell_loops.gradient_cell."""
        which = int(trees is None and self._proposed is not None)
        self.gradient(np.arange(len(self.cells)) == chain, trees=trees)
        now = trees or self._proposed or self._accepted
        assert now is not None
        return now, which

    def _tree_of(self, trees: ForestTrees, h: int) -> ProposedTree:
        moved, lengths = np.zeros(trees.left.shape[1], np.uint8), trees.lengths[h]
        return ProposedTree(
            trees.left[h], trees.right[h], trees.parent[h], trees.order[h], 0, moved, lengths, lengths
        )

    def _changed(self, work: Work, fresh: bool) -> Work:
        """With what the trees are compared to; fresh: compute every matrix and message again."""
        if self._hangs:
            raise ValueError("trees that hang from a tip are evaluated in a compiled loop")
        trees, old = work.trees, self._accepted
        if old is None:
            return work
        same = [(a == b).all(1) for a, b in zip(trees[:4], old[:4])]
        everything = 1 - np.all(same, 0).astype(np.int64)
        lengths = np.full(old.lengths.shape, np.nan) if fresh else old.lengths  # no length equals nan
        return work._replace(old_lengths=lengths, everything=everything)

    def _work(self, trees: ForestTrees, mask: np.ndarray | None) -> Work:
        chains = np.flatnonzero(self._chosen(mask))
        return Work(
            cells=(chains * len(self.parts) + self._largest_first[:, None]).reshape(-1),
            numbers=self.numbers,
            addresses=self.addresses,
            downs=self._downs,
            trees=trees,
            old_lengths=trees.lengths,
            everything=np.ones(len(self.cells), np.int64),
            other_models=self._other_models,
            moved=np.zeros(trees.left.shape[1], np.uint8),
            settle=False,
            which=0,
            parameters=False,
            values=np.array([[cell.log_likelihood[0] for cell in chain] for chain in self.cells]),
        )

    def _run(self, work: Work, gradient: bool) -> None:
        """Share the cells among the threads."""
        while len(self._scratch) < self._team.threads:
            self._scratch.append((cell_scratch(self.parts), down_scratch(self.parts)))
            if not self._keeps:
                messages, q = message_arrays(self.parts), pre_order_vectors(self.parts)
                self._passing.append((*messages.values(), q))
        if gradient:
            self.provide(GRADIENT)
        if work.settle or not gradient:
            self.provide(EVALUATE)
        run = gradient_cells if gradient else evaluate_cells
        self._team.run(
            lambda counter, thread: run(
                counter, self._of_thread(work, thread), *self._scratch[thread][: 1 + gradient]
            ),
            len(work.cells),
        )

    def provide(self, *columns: int) -> None:
        """Let compiled loops ask this of the cells: cell_loops.PROPOSE, EVALUATE, GRADIENT."""
        for column in columns:
            for four, along in product((True, False), repeat=2):
                here = (self._four == four) & (self._along == along)
                if column == PROPOSE and along and here.any():
                    self.numbers[:, here, CORRELATE] = address_of_code(CORRELATE, four, along)
                if here.any() and not self.numbers[0, here, column].all():
                    self.numbers[:, here, column] = address_of_code(column, four, along)

    def _of_thread(self, work: Work, thread: int) -> Work:
        """With the tables of a thread: all but the first have messages of their own where none are kept."""
        if self._keeps or thread == 0:
            return work
        *own, q = self._passing[thread]
        addresses, downs = work.addresses.copy(), work.downs.copy()
        for column, array in zip((VALUES, TAKEN, RESCALED, P), own):
            addresses[..., column] = address_of(array)
        downs[..., Q] = address_of(q)
        return work._replace(addresses=addresses, downs=downs)

    def _require_kept(self) -> None:
        if not self._keeps:
            raise ValueError("this forest keeps no messages: ask it from_scratch")

    def _prepare_down(self) -> None:
        """Memory for ways down, once it is needed."""
        if not self.down:
            q = None if self._keeps else pre_order_vectors(self.parts)
            self.down = [
                [down_arrays(part, pre_order_vectors([part]) if q is None else q) for part in self.parts]
                for _ in self.cells
            ]
            self._downs[:] = [[[address_of(array) for array in own] for own in chain] for chain in self.down]

    def _lengths(self, trees: ForestTrees, mask: np.ndarray | None) -> np.ndarray:
        """(H, G, N) sums over the parts, in their order."""
        total = np.zeros(trees.lengths.shape)
        for h in np.flatnonzero(self._chosen(mask)):
            for part, down in zip(self.parts, self.down[h]):
                total[h, part.first_lengths : part.first_lengths + len(down.lengths)] += down.lengths
        return total

    def _chosen(self, mask: np.ndarray | None) -> np.ndarray:
        return np.ones(len(self.cells), bool) if mask is None else np.asarray(mask, bool)


def _copy(trees: ForestTrees) -> ForestTrees:
    return ForestTrees(*(np.array(array, order="C") for array in trees))


def _along(mask: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The mask over the first axis, to be broadcast with the array."""
    return mask.reshape(-1, *[1] * (array.ndim - 1))
