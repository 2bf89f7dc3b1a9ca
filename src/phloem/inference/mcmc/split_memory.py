"""Which splits the chains of a run have had while moves adapt, and how long branches beside them were: what
moves that draw by them know (compiled/known_splits.py)."""

from __future__ import annotations

import numpy as np

from phloem.inference.mcmc.compiled.known_splits import beside
from phloem.inference.mcmc.records import ChainData, ChainState
from phloem.pruning.cpu.column_classes import tip_keys

EVERY = 100  # generations between two looks at the chains


def no_splits(n_tips: int, n_sets: int) -> dict[str, np.ndarray]:
    """Fields of ChainState before any look: room for eighty branches beside splits a taxon, half of it to
    stay empty."""
    size = 1 << int(np.ceil(np.log2(160 * n_tips)))
    return {
        "split_keys": np.zeros(size, np.uint64),
        "split_sums": np.zeros((size, 1 + 2 * n_sets)),
        "split_looks": np.zeros(1),
    }


def keys_below(state: ChainState, h: int) -> np.ndarray:
    """(N,) uint64 of every node of chain h's tree the key of the tips below."""
    slot = state.slot[h]
    n_tips = state.parent.shape[2] // 2 + 1
    keys = np.append(tip_keys(n_tips), np.zeros(n_tips - 1, np.uint64)).tolist()
    left, right = state.left[h, slot].tolist(), state.right[h, slot].tolist()
    for x in state.order[h, slot].tolist():
        if x >= n_tips:
            keys[x] = (keys[left[x]] + keys[right[x]]) % 2**64
    return np.array(keys, np.uint64)


def looked_at(data: ChainData, state: ChainState) -> np.ndarray:
    """(H, (2 + G) · 5 n) of every chain, for its n = T - 3 splits and the four branches beside each: the
    halves of a key of the two, and the branch's lengths."""
    root, rows = 2 * data.n_tips - 2, []
    for h, slot in enumerate(state.slot):
        parent, left, right = (getattr(state, name)[h, slot] for name in ("parent", "left", "right"))
        below = keys_below(state, h)
        x = np.arange(data.n_tips, root)
        x = x[parent[x] != root]
        up = parent[x]
        sibling = np.where(left[up] == x, right[up], left[up])
        above = np.where(parent[up] == root, 0, up)
        near = np.stack([x, left[x], right[x], sibling, above])
        keys = beside.py_func(below[x], below[near]).ravel()
        halves = [keys >> np.uint64(32), keys & np.uint64(2**32 - 1)]
        rows.append(np.concatenate([*halves, state.lengths[h, slot][:, near.ravel()].ravel()]))
    return np.array(rows)


def note(state: ChainState, n_tips: int, rows: np.ndarray) -> None:
    """One look; rows: of all chains, as looked_at gives them. What finds no place is not noted."""
    n = 5 * (n_tips - 3)
    for row in rows:
        first, second = row[:n].astype(np.uint64), row[n : 2 * n].astype(np.uint64)
        at = places(state.split_keys, (first << np.uint64(32)) | second)
        y = np.log(row[2 * n :].reshape(-1, n).T[at >= 0])
        state.split_sums[at[at >= 0]] += np.column_stack([np.ones(len(y)), y, y**2])
        state.split_looks[0] += 1


def places(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where keys stand in the table, which takes those that are new; -1 where it is half full."""
    mask = np.uint64(len(keys) - 1)
    at = (wanted & mask).astype(np.int64)
    while (other := (keys[at] != wanted) & (keys[at] != 0)).any():
        at[other] = (at[other] + 1) % len(keys)
    free = len(keys) // 2 - np.count_nonzero(keys)
    for i in np.flatnonzero(keys[at] == 0).tolist():
        while keys[at[i]] != 0 and keys[at[i]] != wanted[i]:  # those before it were put there
            at[i] = (at[i] + 1) % len(keys)
        if keys[at[i]] == 0:
            if free > 0:
                keys[at[i]], free = wanted[i], free - 1
            else:
                at[i] = -1
    return at


def forget(state: ChainState) -> None:
    """Begin anew."""
    state.split_keys[:], state.split_sums[:], state.split_looks[0] = 0, 0.0, 0.0
