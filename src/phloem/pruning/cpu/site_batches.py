"""What the CPU engine's derivatives by site need: batches, tasks, the rate matrix as the kernels want it."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.matrix_product import ROWS
from phloem.pruning.cpu.records import Shape, Unsummed

SMALLEST_BATCH, LARGEST_BATCH = 2 * ROWS, 16 * ROWS
_BATCH_ENTRIES = 1 << 18  # of pre-order vectors of a whole tree: they stay in the second-level cache or near
MOST_TASKS = 64  # bounds the memory of their shares


def batch_size(n_tips: int, shape: Shape) -> int:
    """Root columns that are done together: memory is (T-1) · width entries for each of them."""
    batch = _BATCH_ENTRIES // ((n_tips - 1) * shape.width) // ROWS * ROWS
    return min(max(batch, SMALLEST_BATCH), LARGEST_BATCH)


def site_ranges(n_columns: int, batch: int) -> np.ndarray:
    """(n, 2) ranges of root columns, whole batches but the last; they do not depend on threads."""
    length = -(-n_columns // (MOST_TASKS * batch)) * batch
    begin = np.arange(0, n_columns, length)
    return np.stack([begin, np.minimum(begin + length, n_columns)], 1)


def unsummed(model: SiteModel, of_rates, shape: Shape, precision: str, weights, hidden, tasks, n_nodes: int,
             batch: int, want_sites: bool) -> Unsummed:  # fmt: skip
    """The kernels' record; of_rates: (C,) rates of the categories whose lengths are meant, else 0; hidden:
    (K,) share of the visible probability that an ascertained column lacks, L_k / (1 - H), else 0. Outputs
    that are not wanted are empty."""
    first = np.empty((n_nodes if want_sites else 0, len(weights)))
    share = np.zeros((0 if want_sites else len(tasks), 3, n_nodes))
    rates = np.zeros(shape.blocks * shape.exponents, precision)
    rates[: shape.categories] = of_rates
    return Unsummed(
        batch, _rate_matrices(model, shape, precision), rates, np.ones(len(weights)), weights,
        hidden, first, share, want_sites,
    )  # fmt: skip


def _rate_matrices(model: SiteModel, shape: Shape, precision: str) -> np.ndarray:
    """(blocks, ·), as records.Unsummed says."""
    by_process = np.stack([p.rate_matrix for p in model.processes]).astype(precision)
    if shape.padded == 4:
        flat = np.zeros((shape.blocks * shape.exponents, 16), precision)
        flat[: shape.categories] = by_process[model.process].reshape(-1, 16)
        q = flat.reshape(shape.blocks, shape.exponents, 16)
        return np.ascontiguousarray(q.swapaxes(1, 2)).reshape(shape.blocks, -1)
    wide = np.pad(by_process.swapaxes(1, 2), ((0, 0), (0, 0), (0, shape.padded - shape.states)))
    return np.ascontiguousarray(wide[model.process].reshape(shape.categories, -1))


def second_derivatives(share: np.ndarray, total_weight: float) -> np.ndarray:
    """(N,) from every task's sums, in their order (reference: branch_second_derivatives)."""
    seen, slope, curve = share.sum(0)
    return seen + total_weight * (curve + slope**2)
