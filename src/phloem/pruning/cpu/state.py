"""States of the CPU engine, and what a proposal changes of one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.column_store import ColumnStore
from phloem.pruning.topology import Topology, match_clades


class State(NamedTuple):
    """One evaluated state. It names the region in use of every node, so that accepting or rejecting a
    proposal is choosing between two of these records. slot: which of the two sets of root arrays it owns.
    lengths: (K, N). log_likelihood: not a number until it is evaluated."""

    topology: Topology
    columns_at: np.ndarray
    messages_at: np.ndarray
    matrix_at: np.ndarray
    lengths: np.ndarray
    model: SiteModel
    slot: int
    log_likelihood: float = np.nan


def proposed_state(
    old: State, columns: ColumnStore, lengths, changed, model: SiteModel | None, left, right
) -> tuple[State, np.ndarray, np.ndarray]:
    """The state after a change (arguments as Evaluator.propose has them), not evaluated yet; the nodes whose
    matrices it changes, and those whose messages it does, ascending. Both get the regions that the old state
    does not use, as do the columns that another topology changes, which are numbered here."""
    lengths, root = two_dimensional(lengths), old.lengths.shape[1] - 1
    state = old._replace(lengths=lengths, slot=1 - old.slot, log_likelihood=np.nan)
    moved = np.empty(0, np.int64)
    if left is not None:
        match = match_clades(old.topology, left, right)
        moved, node = match.moved, match.old_node
        changed = np.flatnonzero((lengths != old.lengths[:, node]).any(0))
        state = state._replace(
            topology=match.topology,
            columns_at=columns.renumber(match.topology, moved, old.topology, old.columns_at[node]),
            messages_at=old.messages_at[node],
            matrix_at=old.matrix_at[node],
        )
    if model is not None:
        state, changed = state._replace(model=model), np.arange(root)
    changed = np.setdiff1d(np.asarray(changed, np.int64), [root])
    above = state.topology.with_ancestors(np.concatenate([changed, moved, [root]]))
    dirty = np.flatnonzero(above)
    messages_at, matrix_at = _flipped(state.messages_at, dirty), _flipped(state.matrix_at, changed)
    return state._replace(messages_at=messages_at, matrix_at=matrix_at), changed, dirty


def two_dimensional(lengths: np.ndarray) -> np.ndarray:
    """(K, N) own copy of lengths (N,) or (K, N)."""
    return np.array(np.atleast_2d(lengths), np.float64, order="C")


def _flipped(regions: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The same regions, but the other one of `nodes`."""
    n_nodes, result = len(regions), regions.copy()
    result[nodes] = np.where(result[nodes] < n_nodes, result[nodes] + n_nodes, result[nodes] - n_nodes)
    return result
