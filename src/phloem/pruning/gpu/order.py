"""The order of post-order steps on a GPU: programs take them one after the other, so it decides who waits."""

from __future__ import annotations

import numpy as np

from phloem.pruning.cpu.step_order import list_schedule
from phloem.pruning.gpu.step_schedule import Chain


def critical_path_first(items: np.ndarray, chains: list[Chain], n_at_a_time: int) -> np.ndarray:
    """Post-order steps of all nodes of all chains, reordered so that n_at_a_time programs seldom wait.

    By level, the narrow top of a tree comes last, with most programs idle; here deep nodes go first and the
    wide levels fill up the rounds. Steps depend on earlier ones only, in this order too.
    """
    first_counter = int(chains[0].counter(np.array([0]))[0])
    n_nodes = chains[0].layout.classes.n_nodes
    node = items[:, 7] - first_counter
    by_node = np.argsort(node, kind="stable")
    n_tiles = np.bincount(node, minlength=n_nodes * len(chains))
    parent = np.concatenate(
        [np.where(c.layout.parent >= 0, c.layout.parent + k * n_nodes, -1) for k, c in enumerate(chains)]
    )
    depth = np.concatenate([c.layout.depth for c in chains])
    order = list_schedule(np.cumsum(n_tiles) - n_tiles, n_tiles, parent, depth, n_at_a_time)
    return items[by_node[order]]
