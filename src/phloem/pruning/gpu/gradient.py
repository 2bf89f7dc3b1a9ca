"""The gradient of the model's numbers: from the adjoints of transition matrices, and from the root."""

from __future__ import annotations

import numpy as np
import torch

from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.model.transition import rate_matrix_adjoints
from phloem.pruning.gpu.memory import ADJOINT_BYTES
from phloem.pruning.gpu.tree_batch import GpuBatch


def site_model_gradient(
    batch: GpuBatch, chain: int, lengths: np.ndarray, model: SiteModel, derivatives: np.ndarray
) -> SiteModelGradient:
    """After evaluate("parameters"). derivatives: D (B, C) of this chain. One copy brings the sums home."""
    s, c = len(model.single.frequencies), len(model.rates)
    lengths, width = np.asarray(lengths, np.float64), batch.sizes.width
    on_device = model.single.real_eigen is not None

    def sums() -> torch.Tensor:
        more = (_rate_matrix_adjoint(batch, chain),) if on_device else ()
        return torch.cat([array.flatten() for array in (*_root_sums(batch, chain), *more)])

    # A graph keeps the memory of what it makes on the way: only where that is little.
    small = len(_branch_blocks(batch)) == 1
    found = (batch.replayed((chain, on_device), sums) if small else sums()).cpu().numpy()
    ends = np.cumsum([width, width, c, 1])
    frequencies, of_invariant, weights, invariant, rest = np.split(found, ends)
    d_q = rest.reshape(width, width)[:s, :s] if on_device else _without_eigensystem(batch, chain, model)
    return SiteModelGradient(
        processes=(ProcessGradient(d_q, frequencies[:s]),),
        rates=lengths[:-1] @ derivatives,
        weights=weights,
        invariant=float(invariant[0]),
        invariant_frequencies=of_invariant[:s],
    )


def _branch_blocks(batch: GpuBatch) -> list[np.ndarray]:
    """Branches whose adjoints are held at a time."""
    each = 8 * batch.sizes.width**2 * batch.problem.n_categories
    block, branches = max(1, ADJOINT_BYTES // each), np.arange(batch.n_nodes - 1)
    return [branches[first : first + block] for first in range(0, len(branches), block)]


def _without_eigensystem(batch: GpuBatch, chain: int, model: SiteModel) -> np.ndarray:
    place, s = batch.chains[chain], len(model.single.frequencies)
    lengths = batch.numbers.host["lengths"][chain]
    total = np.zeros((s, s))
    for nodes in _branch_blocks(batch):
        adjoint = batch.launch.adjoint(place, nodes)[:, :, :s, :s].cpu().numpy()
        total += rate_matrix_adjoints(adjoint, lengths[nodes], model)[0]
    return total


def _rate_matrix_adjoint(batch: GpuBatch, chain: int) -> torch.Tensor:
    """(W, W): model/transition.py, rate_matrix_adjoint, with the products on the device."""
    numbers = batch.numbers.device
    values, right, left = (numbers[name][chain] for name in ("values", "right", "left"))
    mean, half = (values[:, None] + values) / 2, (values[:, None] - values) / 2
    total = torch.zeros_like(mean)
    for nodes in _branch_blocks(batch):
        adjoint = batch.launch.adjoint(batch.chains[chain], nodes)
        lengths = numbers["lengths"][chain, int(nodes[0]) : int(nodes[-1]) + 1]
        t = (lengths[:, None] * numbers["rates"][chain])[..., None, None]
        z = half * t
        small = z.abs() < 1e-4
        sinhc = torch.where(small, 1 + z * z / 6, torch.sinh(z) / torch.where(small, 1.0, z))
        total += ((right.T @ adjoint @ left.T) * (t * torch.exp(mean * t) * sinhc)).sum((0, 1))
    return left.T @ total @ right.T


def _root_sums(batch: GpuBatch, chain: int) -> tuple[torch.Tensor, ...]:
    """d root_frequencies, d invariant_frequencies (W,), d weights (C,), d invariant: root_adjoint of
    pruning/reference/root.py."""
    place, root = batch.chains[chain], np.array([batch.n_nodes - 1])
    n, numbers = place.layout.classes.size(batch.n_nodes - 1), batch.numbers.device
    column, own = int(place.column(root)[0]), slice(place.first_root, place.first_root + n)
    arrays = batch.launch.arrays
    partials = arrays["messages"][:, column : column + n].to(torch.float64)
    exponents = arrays["exponents"][:, column : column + n]
    weights, mantissa, power = (arrays[name][own] for name in ("column_weights", "mantissa", "power"))
    if batch.problem.ascertained.any():
        hidden = arrays["ascertained"][own] * torch.exp(arrays["site_log"][own])
        weights = weights + hidden * arrays["result"][chain, 1]
    weights = torch.where(weights > 0, weights / mantissa, 0.0)
    scale = weights * torch.exp2((exponents - power).to(torch.float64))
    seen = torch.bmm(scale[:, None, :], partials)[:, 0]
    allowed = arrays["invariant_states"][own].to(torch.float64)
    # Where no state is allowed 2**-power may overflow, and does not matter.
    share = torch.where(allowed.any(1), weights * torch.exp2(-power.to(torch.float64)), 0.0) @ allowed
    f = numbers["frequencies"][chain]
    return numbers["weights"][chain] @ seen, numbers["invariant"][chain] * share, seen @ f, share @ f
