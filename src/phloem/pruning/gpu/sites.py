"""Derivatives by site on the GPU: the order of the walk, and its launches block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.model.record import SiteModel
from phloem.pruning.gpu.kernels.site_derivatives import second_sums, site_ratios
from phloem.pruning.gpu.step_schedule import ROW, Chain
from phloem.pruning.gpu.tree_batch import GpuBatch

# Of the ratios and of the walk's slots at a time; root columns beyond that are done in a further block.
SITE_BYTES = 256 << 20


def site_branch_derivatives(batch: GpuBatch, model: SiteModel) -> np.ndarray:
    """(N, P) d log L_p / d effective length after evaluate("likelihood") of one chain; (K, N, P) where the
    model has K sets of lengths."""
    classes = batch.chains[0].layout.classes
    root = classes.n_nodes - 1
    rates = torch.from_numpy(_rates_by_set(model)).to(batch.device)
    found = np.zeros((len(rates), classes.n_nodes, classes.size(root)))
    for columns, ratios in _ratios(batch, second=False):
        found[:, :-1, columns] = torch.tensordot(rates, ratios[0], dims=1).cpu().numpy()
    return _finite(found if len(rates) > 1 else found[0])[..., classes.pattern_column]


def _rates_by_set(model: SiteModel) -> np.ndarray:
    """(K, C) rates of the categories that use each set of branch lengths, 0 for the others."""
    return np.where(model.length_class == np.arange(model.n_length_classes)[:, None], model.rates, 0.0)


def second_derivatives(batch: GpuBatch, model: SiteModel) -> np.ndarray:
    """(N,) d² log L / d effective length² after evaluate("likelihood") of one chain; (K, N) where the model
    has K sets of lengths.

    Ascertained columns add W [H'' / (1 - H) + (H' / (1 - H))²] (reference/recursion.py); the device
    left W / (1 - H) behind the total. They lie in one block of columns, so the blocks' results add up.
    """
    n_branches, arrays = batch.n_nodes - 1, batch.launch.arrays
    rates = torch.from_numpy(_rates_by_set(model)).to(batch.device)
    total = np.zeros((len(rates), n_branches, 3))
    for columns, ratios in _ratios(batch, second=True):
        sums = torch.empty((len(rates), n_branches, 3), dtype=torch.float64, device=batch.device)
        for k in range(len(rates)):
            second_sums[(n_branches,)](
                ratios, rates[k], arrays["column_weights"][columns],
                arrays["ascertained"][columns], arrays["site_log"][columns], sums[k], ratios.shape[-1],
                n_branches,
                batch.problem.n_categories, LANES=128, num_warps=4,
            )  # fmt: skip
        total += sums.cpu().numpy()
    seen, slope, curve = np.moveaxis(total, -1, 0)
    if batch.problem.ascertained.any():
        factor = float(batch.launch.host_result()[0, 1])
        seen = seen + factor * curve + (factor * slope) ** 2 / batch.total_weights[0]
    found = np.pad(seen, ((0, 0), (0, 1)))
    return _finite(found if len(found) > 1 else found[0])


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise NumericalError("a derivative by site is not a finite number")
    return values


def _ratios(batch: GpuBatch, second: bool) -> Iterator[tuple[slice, torch.Tensor]]:
    """Blocks of root columns and their ratios (1 + second, C, branches, columns) of site_ratios."""
    chain, c, width = batch.chains[0], batch.problem.n_categories, batch.sizes.width
    walk, n_slots = walk_order(chain)
    tile, _ = _tile(width)
    real = batch.launch.arrays["messages"].element_size()
    each = c * (8 * (1 + second) * (batch.n_nodes - 1) + n_slots * (width * real + 4))
    n_columns = chain.layout.classes.size(batch.n_nodes - 1)
    block = max(1, SITE_BYTES // (each * tile)) * tile
    qt = batch.numbers.device["generator"][0]
    generator = torch.stack([qt, qt @ qt], 1)
    rows = torch.from_numpy(walk).to(batch.device)
    for begin in range(0, n_columns, block):
        n = min(block, n_columns - begin)
        yield slice(begin, begin + n), _launch(batch, rows, n_slots, generator, begin, n, second)


def _tile(width: int) -> tuple[int, int]:
    """Root columns and warps of a program."""
    return (32, 1) if width == 4 else (16, 4)


def _launch(batch: GpuBatch, walk, n_slots: int, generator, begin: int, n: int, second: bool):
    launch, numbers, device = batch.launch, batch.numbers.device, batch.device
    a, c, width = launch.arrays, batch.problem.n_categories, batch.sizes.width
    tile, warps = _tile(width)
    n_tiles, root = -(-n // tile), int(batch.chains[0].column(np.array([batch.n_nodes - 1]))[0])
    sizes = [a["messages"].shape[1], len(walk), n_slots, batch.n_nodes - 1, begin, n, root]
    scratch = (n_tiles * c, n_slots, tile)
    q = torch.empty((*scratch, width), dtype=a["messages"].dtype, device=device)
    slot_class = torch.empty(scratch, dtype=torch.int32, device=device)
    ratios = torch.empty((1 + second, c, batch.n_nodes - 1, n), dtype=torch.float64, device=device)
    site_ratios[(n_tiles, c)](
        walk, torch.tensor(sizes, dtype=torch.int64, device=device), a["messages"], a["exponents"],
        a["shifts"], a["left_class"], a["right_class"], a["mantissa"], a["power"], numbers["process"],
        numbers["frequencies"], numbers["weights"], generator, a["transition"], q, slot_class, ratios, c,
        **launch.constants, TILE=tile, PRODUCT=launch.product, SECOND=second,
        num_warps=warps,
    )  # fmt: skip
    return ratios


def walk_order(chain: Chain) -> tuple[np.ndarray, int]:
    """Steps of pruning/gpu/kernels/site_derivatives.py, one a branch, and the slots they need.

    A node's vectors stay in a slot until its second child has taken them. The child whose subtree needs
    fewer slots goes first (Sethi and Ullman 1970, Journal of the ACM 17:715), so log2(T) + 2 suffice.
    """
    classes, root = chain.layout.classes, chain.layout.classes.n_nodes - 1
    first, last = _children_by_need(classes.left, classes.right)
    order: list[int] = []
    free: list[int] = []
    slots, used = np.zeros((root + 1, 2), np.int64), 1
    waiting = [(last[-1], True), (first[-1], False)]
    while waiting:
        x, parent_is_done = waiting.pop()
        slots[x, 0] = slots[chain.layout.parent[x], 1]
        order.append(x)
        if x >= classes.n_tips:
            if not free:
                free.append(used)
                used += 1
            slots[x, 1] = free.pop()
            waiting += [(last[x - classes.n_tips], True), (first[x - classes.n_tips], False)]
        if parent_is_done:
            free.append(int(slots[x, 0]))
    nodes = np.array(order)
    parent = chain.layout.parent[nodes]
    walk = np.zeros((len(nodes), ROW), np.int64)
    walk[:, 0] = nodes >= classes.n_tips
    walk[:, 1] = classes.left[parent - classes.n_tips] == nodes
    walk[:, 2:4] = slots[nodes]
    walk[:, 4] = chain.column(parent)
    walk[:, 5], walk[:, 6] = chain.column(nodes), chain.column(chain.layout.sibling[nodes])
    walk[:, 7], walk[:, 8] = chain.matrix(nodes), nodes
    return walk, used


def _children_by_need(left: np.ndarray, right: np.ndarray) -> tuple[list[int], list[int]]:
    """Children of every internal node, the one that needs fewer slots first."""
    need, first, last = [0] * (len(left) + 1), [], []
    for a, b in zip(left.tolist(), right.tolist()):
        a, b = (a, b) if need[a] <= need[b] else (b, a)
        need.append(max(1 + need[a], 2 if need[b] else 1, need[b]))
        first.append(a)
        last.append(b)
    return first, last
