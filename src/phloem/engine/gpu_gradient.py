"""The gradient of the model's numbers, from the adjoints of the transition matrices."""

from __future__ import annotations

import numpy as np
import torch

from phloem.engine.gpu_batch import GpuBatch
from phloem.engine.gpu_buffers import has_real_eigensystem
from phloem.engine.gpu_memory import ADJOINT_BYTES
from phloem.kernels.reference.root import root_adjoint, total_log_likelihood
from phloem.kernels.reference.transition import rate_matrix_adjoint
from phloem.model.record import SiteModel, SiteModelGradient


def site_model_gradient(
    batch: GpuBatch, chain: int, lengths: np.ndarray, model: SiteModel, derivatives: np.ndarray
) -> SiteModelGradient:
    """After evaluate("parameters"). derivatives: D (B, C) of this chain."""
    place, s = batch.chains[chain], len(model.root_frequencies)
    lengths = np.asarray(lengths, np.float64)
    width = batch.sizes.width
    block = max(1, ADJOINT_BYTES // (8 * width * width * len(model.rates)))
    d_q = np.zeros((s, s))
    for first in range(0, batch.n_nodes - 1, block):
        nodes = np.arange(first, min(first + block, batch.n_nodes - 1))
        adjoint = batch.launch.adjoint(place, nodes)[:, :, :s, :s]
        if has_real_eigensystem(model):
            d_q += _rate_matrix_adjoint(adjoint, lengths[nodes], model)
        else:
            d_q += rate_matrix_adjoint(adjoint.cpu().numpy(), lengths[nodes], model)
    d_frequencies, d_weights, d_invariant = _root_gradient(batch, chain, model)
    d_rates = lengths[:-1] @ derivatives
    return SiteModelGradient(d_q, d_frequencies, d_rates, d_weights, d_invariant)


def _rate_matrix_adjoint(adjoint: torch.Tensor, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
    """kernels/reference/transition.py, rate_matrix_adjoint, with the products on the device."""
    assert model.eigen is not None
    device = adjoint.device
    values, right, left = (
        torch.from_numpy(np.ascontiguousarray(a, np.float64)).to(device)
        for a in (model.eigen.values, model.eigen.right, model.eigen.left)
    )
    t = torch.from_numpy(lengths[:, None] * model.rates[None, :]).to(device)[..., None, None]
    mean, half = (values[:, None] + values) / 2, (values[:, None] - values) / 2
    z = half * t
    small = z.abs() < 1e-4
    sinhc = torch.where(small, 1 + z * z / 6, torch.sinh(z) / torch.where(small, torch.ones_like(z), z))
    g = right.T @ adjoint @ left.T
    total = (g * (t * torch.exp(mean * t) * sinhc)).sum((0, 1))
    return (left.T @ total @ right.T).cpu().numpy()


def _root_gradient(batch: GpuBatch, chain: int, model: SiteModel):
    place = batch.chains[chain]
    root = batch.n_nodes - 1
    n, s = place.layout.classes.size(root), len(model.root_frequencies)
    column = slice(int(place.column(np.array([root]))[0]), int(place.column(np.array([root]))[0]) + n)
    on_root = slice(place.first_root, place.first_root + n)
    arrays = batch.launch.arrays
    partials = arrays["messages"][:, column, :s].cpu().numpy().swapaxes(1, 2).astype(np.float64)
    exponents = arrays["exponents"][:, column].cpu().numpy()
    site_log, weights, ascertained, invariant = (
        arrays[name][on_root].cpu().numpy()
        for name in ("site_log", "column_weights", "ascertained", "invariant_states")
    )
    _, weights = total_log_likelihood(site_log, weights, ascertained.astype(bool))
    _, *gradients = root_adjoint(partials, exponents, model, invariant[:, :s].astype(bool), site_log, weights)
    return gradients
