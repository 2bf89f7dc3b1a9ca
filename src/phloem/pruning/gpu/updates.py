"""Proposals on the GPU: where both versions of a node's columns, message and matrix lie, and what to redo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from phloem.model.record import SiteModel
from phloem.pruning.cpu.column_store import ColumnStore
from phloem.pruning.cpu.step_lists import pack_rows
from phloem.pruning.cpu.storage import Regions
from phloem.pruning.gpu.tree_batch import GpuBatch
from phloem.pruning.gpu.update_lists import UpdateLists
from phloem.pruning.topology import Topology, match_clades

# Where messages take more than this, and this many times what is in use, all is laid out anew.
SPREAD_BYTES = 256 << 20
MOST_SPREAD = 4


@dataclass(frozen=True)
class State:
    """One evaluated state; accepting or rejecting a proposal is choosing between two of these records.

    columns_at, messages_at: (N,) regions in use, k or k + N, where k is a node's number in the topology that
    the batch was laid out for; matrix_at: (N,) matrices in use, likewise k or k + N - 1.
    """

    topology: Topology
    columns_at: np.ndarray
    messages_at: np.ndarray
    matrix_at: np.ndarray
    lengths: np.ndarray
    model: SiteModel


class GpuUpdates:
    """Changes of the only tree of a batch. Every node has two regions of columns, two of messages and two
    matrices: a proposal writes into those that the accepted state does not use. Regions are made when first
    needed."""

    def __init__(self, batch: GpuBatch) -> None:
        self._batch, classes = batch, batch.layouts[0].classes
        self._nodes = np.arange(batch.n_nodes)
        self._columns = ColumnStore(
            batch.problem,
            self._first_regions(),
            np.concatenate([np.diff(classes.offset), np.zeros(batch.n_nodes, np.int64)]),
            classes.left_class,
            classes.right_class,
            classes.pattern_column,
            [np.empty(0, np.int32)] * 5,
        )
        self._messages = self._first_regions()
        self._lists = self._make_lists(0)

    def _first_regions(self) -> Regions:
        """Those that an evaluation from scratch uses."""
        offset = self._batch.layouts[0].classes.offset
        none = np.zeros(self._batch.n_nodes, np.int64)
        start, size = np.concatenate([offset[:-1], none]), np.concatenate([np.diff(offset), none])
        return Regions(start, size, int(offset[-1]))

    def _make_lists(self, n_steps: int) -> UpdateLists:
        batch, classes = self._batch, self._batch.layouts[0].classes
        most = int((-(-np.diff(classes.offset) // batch.sizes.post_tile)).sum())
        n_root = -(-classes.size(batch.n_nodes - 1) // batch.sizes.root_tile)
        n_branches = batch.n_nodes - 1
        n_steps = max(most, n_steps) * 5 // 4
        return UpdateLists(n_root, n_branches, n_steps, 2 * n_branches, batch.device)

    def restart(self) -> None:
        """After an evaluation of the batch from scratch: every node's first regions are in use."""
        self._messages = self._first_regions()

    def is_spread(self, state: State) -> bool:
        """Whether the regions have grown and moved so much that the batch had better be made anew."""
        messages = self._batch.launch.arrays["messages"]
        if messages.numel() * messages.element_size() <= SPREAD_BYTES:
            return False
        return self._messages.rows > MOST_SPREAD * int(self._columns.size[state.columns_at].sum())

    def propose(self, old: State, lengths, changed, model: SiteModel | None, left, right) -> State:
        """Evaluate a change of the old state (Evaluator.propose); its regions are not written to.

        Under another topology a subtree that is still there keeps its regions, whatever its nodes are called
        now; which matrices are others is seen by comparing lengths.
        """
        n_nodes, root = self._batch.n_nodes, self._batch.n_nodes - 1
        topology, columns_at = old.topology, old.columns_at
        messages_at, matrix_at = old.messages_at.copy(), old.matrix_at.copy()
        other_matrix, moved = np.zeros(n_nodes, bool), self._nodes[:0]
        if left is not None:
            match = match_clades(old.topology, left, right)
            topology, moved, node = match.topology, match.moved, match.old_node
            messages_at, matrix_at = messages_at[node], matrix_at[node]
            columns_at = self._columns.renumber(topology, moved, old.topology, columns_at[node])
            other = np.asarray(lengths) != old.lengths[..., node]
            other_matrix = other.reshape(-1, n_nodes).any(axis=0)
        else:
            other_matrix[changed] = True
        branches = np.flatnonzero(other_matrix[:root]) if model is None else self._nodes[:-1]
        dirty = topology.with_ancestors(np.concatenate([branches, moved, [root]]))
        messages_at[dirty] = (messages_at[dirty] + n_nodes) % (2 * n_nodes)
        matrix_at[branches] = (matrix_at[branches] + root) % (2 * root)
        state = State(
            topology, columns_at, messages_at, matrix_at, np.array(lengths, np.float64), model or old.model
        )
        self._reserve(state, dirty)
        if len(moved):
            self._upload_classes(columns_at[moved])
        self._run(state, dirty, branches)
        return state

    def redo_root(self, state: State) -> None:
        """What the root finds in a state whose messages are there: its site likelihoods and total."""
        nothing = np.zeros(self._batch.n_nodes, bool)
        self._reserve(state, nothing)
        self._run(state, nothing, self._nodes[:0])

    def _reserve(self, state: State, dirty: np.ndarray) -> None:
        """Room on the device for everything that the state is about to use."""
        batch, regions = self._batch, state.messages_at[dirty]
        size = self._columns.size[state.columns_at[dirty]]
        for k in np.flatnonzero(self._messages.capacity[regions] < size):
            self._messages.reserve(regions[k], int(size[k]))
        arrays, n_matrices = batch.launch.arrays, 2 * batch.n_nodes - 1
        n_columns, n_classes = arrays["messages"].shape[1], len(arrays["left_class"])
        rows, class_rows = self._messages.rows, self._columns.regions.rows
        if rows > n_columns or class_rows > n_classes or len(arrays["transition"]) < n_matrices:
            n_columns = n_columns if rows <= n_columns else rows + n_columns // 2
            n_classes = n_classes if class_rows <= n_classes else class_rows + n_classes // 2
            arrays.grow(n_columns, n_classes, n_matrices)
            batch.forget_graphs()

    def _upload_classes(self, regions: np.ndarray) -> None:
        """The rows of new columns, to where they belong."""
        start, size = self._columns.regions.start[regions], self._columns.size[regions]
        n, device = int(size.sum()), self._batch.device
        host = torch.empty(2 * n, dtype=torch.int64, pin_memory=device.type == "cuda")
        places, rows = host.numpy()[:n], host.numpy()[n:].view(np.int32)
        pack_rows(start, size, self._columns.left, self._columns.right, places, rows[:n], rows[n:])
        sent = host.to(device, non_blocking=True)
        values, arrays = sent[n:].view(torch.int32), self._batch.launch.arrays
        arrays["left_class"].index_copy_(0, sent[:n], values[:n])
        arrays["right_class"].index_copy_(0, sent[:n], values[n:])

    def _run(self, state: State, dirty: np.ndarray, branches: np.ndarray) -> None:
        batch, size = self._batch, self._columns.size[state.columns_at]
        tiles, n_tips = (batch.sizes.post_tile, batch.sizes.root_tile), len(batch.problem.tip_codes)
        if not self._lists.holds(dirty, size, tiles[0]):
            self._lists = self._make_lists(int((-(-size // tiles[0])).sum()))
            batch.forget_graphs()
        topology = state.topology
        children = topology.left[n_tips:], topology.right[n_tips:]
        message, classes = (
            self._messages.start[state.messages_at],
            self._columns.regions.start[state.columns_at],
        )
        n_columns = batch.launch.arrays["messages"].shape[1]
        self._lists.write(
            children, topology.parent, dirty, message, classes, size, state.matrix_at, branches, n_columns,
            batch.parts, tiles,
        )  # fmt: skip
        batch.update(state.lengths, state.model, self._lists)
