"""How much device memory a problem takes, before any of it is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.gpu.layout import TreeLayout
from phloem.pruning.gpu.tiling import Tiling

# Offsets inside one node's messages are 32-bit in the kernels.
LARGEST_NODE = 2**31 - 1


@dataclass(frozen=True)
class Sizes:
    """What decides how much memory a batch takes, before proposals add to it (gpu_updates.py)."""

    n_chains: int
    n_nodes: int
    n_categories: int
    n_columns: int
    n_pre_columns: int
    n_entries: int
    n_root_columns: int
    n_partials: int
    n_steps: int
    n_codes: int


def batch_sizes(layouts: list[TreeLayout], tiles: Tiling, n_categories: int, n_codes: int) -> Sizes:
    """The sizes of a batch of these topologies, one layout a chain."""
    n_nodes = layouts[0].classes.n_nodes
    root = n_nodes - 1
    post = sum(int((-(-np.diff(l.classes.offset)[:-1] // tiles.post_tile)).sum()) for l in layouts)
    partials = sum(int(l.tile_offset[-1]) for l in layouts)
    return Sizes(
        n_chains=len(layouts),
        n_nodes=n_nodes,
        n_categories=n_categories,
        n_columns=sum(int(l.classes.offset[-1]) for l in layouts),
        n_pre_columns=sum(int(l.pre_offset[-1]) for l in layouts),
        n_entries=sum(len(l.entry_parent) for l in layouts),
        n_root_columns=sum(l.classes.size(root) for l in layouts),
        n_partials=partials,
        n_steps=post + partials + sum(-(-l.classes.size(root) // tiles.root_tile) for l in layouts),
        n_codes=n_codes,
    )


def largest_node(layouts: list[TreeLayout], tiles: Tiling) -> int:
    """Elements of the largest node's messages in one category, either pass."""
    columns = max(int(np.diff(l.classes.offset).max()) for l in layouts)
    pre_columns = max(int(np.diff(l.pre_offset).max()) for l in layouts)
    return max(columns, pre_columns) * tiles.width


def device_arrays(
    n: Sizes, tiles: Tiling, precision: str, gradient: bool, parameters: bool
) -> dict[str, int]:
    """Bytes of every array on the device. The first six are shared by the column blocks of a split
    problem."""
    real = 8 if precision == "float64" else 4
    c, w = n.n_categories, tiles.width
    matrices = n.n_chains * (n.n_nodes - 1) * c * w * w
    q = c * n.n_pre_columns * w * real
    return {
        "messages": c * n.n_columns * w * real,
        "exponents": c * n.n_columns * 4,
        "shifts": c * n.n_columns * 4,
        "q": q if gradient or parameters else 0,
        "u": q if parameters else 0,
        "transition": matrices * real,
        "adjoint": min(matrices * 8, ADJOINT_BYTES) * 8 if parameters else 0,
        "classes": (2 * n.n_columns + n.n_pre_columns + 2 * n.n_entries) * 4,
        "steps": n.n_steps * 16 * 8,
        "partial": n.n_partials * c * tiles.chunks * 8,
        "root": n.n_root_columns * (8 + 1 + w + 8 + 4 + 8),
        "models": n.n_chains * (n.n_nodes * c + 3 * w * w + 3 * w + 3 * c + 1) * 8,
        "state_sets": n.n_codes * w * real,
        "lists": n.n_chains * n.n_nodes * ((4 + 3) * 8 + 2 * 4),
        "result": n.n_chains * (2 + n.n_nodes * c) * 8,
    }


# Adjoints of transition matrices held at a time: 20,000 branches at S = 256 in float64 would need 10 GB a
# category. Their transform by the eigensystem holds seven more of the same size.
ADJOINT_BYTES = 128 << 20
SHARED = ("messages", "exponents", "shifts", "q", "u", "transition")
