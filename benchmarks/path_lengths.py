"""Path lengths on trees, and whether neighbour joining finds a tree that is written down.

`additive`: leaves 0 … n-1 of a tree that halves runs of 2^level leaves, with a whole number of units above
every node: all distances, and all that neighbour joining makes of them, are whole numbers that float32 holds.
"""

from __future__ import annotations

import numpy as np
import torch


def on_a_tree(n: int, lengths: np.ndarray, seed: int, device: torch.device, width: int = 512) -> torch.Tensor:
    """Path lengths on a random recursive tree: every new tip hangs on an earlier one.

    width: tips that are added at a time.
    """
    rng, d = np.random.default_rng(seed), torch.zeros((n, n), device=device)
    parents = np.array([0] + [int(rng.integers(0, i)) for i in range(1, n)])
    for begin in range(0, n, width):
        end = min(begin + width, n)
        anchor, way = np.zeros(end - begin, int), np.zeros(end - begin)  # last ancestor before `begin`
        within = np.full((end - begin, end - begin), np.inf)  # between tips whose paths stay behind it
        for k, i in enumerate(range(begin, end)):
            parent = parents[i] - begin
            within[k, k] = 0.0
            if parent < 0 or i == 0:
                anchor[k], way[k] = parents[i], lengths[i]
            else:
                within[k, :k] = within[:k, k] = within[parent, :k] + lengths[i]
                anchor[k], way[k] = anchor[parent], way[parent] + lengths[i]
        anchors, ways = torch.from_numpy(anchor).to(device), torch.from_numpy(way).float().to(device)
        rows = d[anchors, :begin] + ways[:, None]
        d[begin:end, :begin], d[:begin, begin:end] = rows, rows.T
        paths = torch.from_numpy(within).float().to(device)
        around = d[anchors][:, anchors] + ways[:, None] + ways
        d[begin:end, begin:end] = torch.where(torch.isinf(paths), around, paths)
    return d


LONGEST = 64  # units above a node


def _edges(n: int) -> list[np.ndarray]:
    """Lengths above the nodes of every level, leaves first."""
    rng = np.random.default_rng(4)
    return [rng.integers(1, LONGEST + 1, -(-n >> level)) for level in range((n - 1).bit_length())]


def additive(n: int, device: torch.device, width: int = 2048) -> torch.Tensor:
    """Path lengths of the tree that `is_joined` asks for."""
    d, depths = torch.empty((n, n), device=device), [np.zeros(1, int)]
    for edges in reversed(_edges(n)):
        depths.insert(0, np.repeat(depths[0], 2)[: len(edges)] + edges)
    first = torch.from_numpy(np.cumsum([0] + [len(depth) for depth in depths])).to(device)
    depth = torch.from_numpy(np.concatenate(depths)).float().to(device)
    leaf = torch.arange(n, device=device)
    for x in leaf.split(width):
        for y in leaf[: int(x[-1]) + 1].split(width):
            level = torch.frexp((x[:, None] ^ y).double())[1].long()
            common = depth[first[level] + (x[:, None] >> level)]
            block = depth[x][:, None] + depth[y] - 2 * common
            d[x[0] : x[-1] + 1, y[0] : y[-1] + 1] = block
            d[y[0] : y[-1] + 1, x[0] : x[-1] + 1] = block.T
    return d


def _splits(sides: np.ndarray, lengths: np.ndarray, everything: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Every split once, in order, and its length; a side of a split is the xor of its leaves' numbers."""
    splits, which = np.unique(np.minimum(sides, sides ^ everything), return_inverse=True)
    return splits, np.bincount(which, lengths)


def is_joined(result, n: int) -> bool:
    """Whether GpuJoins are the tree of `additive`: its splits, and their lengths to 1e-6 units."""
    numbers = np.random.default_rng(5).integers(1, 2**63, n, dtype=np.uint64)
    everything, sides, lengths = np.bitwise_xor.reduce(numbers), [], []
    for level, edges in enumerate(_edges(n)):
        sides.append(np.bitwise_xor.reduceat(numbers, np.arange(len(edges)) << level))
        lengths.append(edges)
    planted = _splits(np.concatenate(sides), np.concatenate(lengths).astype(float), everything)
    found = np.empty((n - 3, 2), np.uint64)
    for join, (a, b) in enumerate(result.pairs):
        found[join] = numbers[a], numbers[b]
        numbers[a] ^= numbers[b]
    sides = np.concatenate([found.ravel(), numbers[result.last]])
    joined = _splits(sides, np.concatenate([result.lengths.ravel(), result.last_lengths]), everything)
    return np.array_equal(planted[0], joined[0]) and bool(np.all(np.abs(planted[1] - joined[1]) < 1e-6))
