"""The gradient of the model's numbers: from the adjoints of transition matrices, and from the root."""

from __future__ import annotations

import numpy as np
import torch

from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.model.transition import rate_matrix_adjoints
from phloem.pruning.gpu.buffers import ADJOINT_BYTES, has_real_eigensystems
from phloem.pruning.gpu.tree_batch import GpuBatch


def branch_gradient(derivatives: np.ndarray, model: SiteModel) -> np.ndarray:
    """d log L / d length from D (B, C): (N,), or (K, N) where the model has K sets of lengths; root 0."""
    if model.n_length_classes == 1:
        return np.append(derivatives @ model.rates, 0.0)
    found = np.zeros((model.n_length_classes, len(derivatives) + 1))
    for k, own in enumerate(found):
        own[:-1] = derivatives @ np.where(model.length_class == k, model.rates, 0.0)
    return found


def site_model_gradient(
    batch: GpuBatch, chain: int, lengths: np.ndarray, model: SiteModel, derivatives: np.ndarray
) -> SiteModelGradient:
    """After evaluate("parameters"). derivatives: D (B, C) of this chain. One copy brings the sums home."""
    s, c, r = len(model.invariant_frequencies), model.n_categories, len(model.processes)
    lengths, width = np.asarray(lengths, np.float64)[..., :-1], batch.sizes.width
    on_device = has_real_eigensystems(model)

    def sums() -> torch.Tensor:
        more = _rate_matrix_adjoints(batch, chain, model) if on_device else []
        return torch.cat([array.flatten() for array in (*_root_sums(batch, chain), *more)])

    # A graph keeps the memory of what it makes on the way: only where that is little.
    small = len(_branch_blocks(batch)) == 1
    key = (chain, on_device, *model.process.tolist())
    found = (batch.replayed(key, sums) if small else sums()).cpu().numpy()
    ends = np.cumsum([c * width, width, c, 1])
    frequencies, of_invariant, weights, invariant, rest = np.split(found, ends)
    by_category = frequencies.reshape(c, width)[:, :s]
    matrices = (
        list(rest.reshape(r, width, width)[:, :s, :s])
        if on_device
        else _without_eigensystems(batch, chain, lengths, model)
    )
    return SiteModelGradient(
        processes=tuple(
            ProcessGradient(d_q, by_category[model.process == k].sum(0)) for k, d_q in enumerate(matrices)
        ),
        rates=np.einsum("cx,xc->c", model.by_category(lengths), derivatives),
        weights=weights,
        invariant=float(invariant[0]),
        invariant_frequencies=of_invariant[:s],
    )


def _branch_blocks(batch: GpuBatch) -> list[np.ndarray]:
    """Branches whose adjoints are held at a time."""
    each = 8 * batch.sizes.width**2 * batch.problem.n_categories
    block, branches = max(1, ADJOINT_BYTES // each), np.arange(batch.n_nodes - 1)
    return [branches[first : first + block] for first in range(0, len(branches), block)]


def _without_eigensystems(
    batch: GpuBatch, chain: int, lengths: np.ndarray, model: SiteModel
) -> list[np.ndarray]:
    """lengths: without the root's."""
    place, s = batch.chains[chain], len(model.invariant_frequencies)
    total = [np.zeros((s, s)) for _ in model.processes]
    for nodes in _branch_blocks(batch):
        adjoint = batch.launch.adjoint(place, nodes)[:, :, :s, :s].cpu().numpy()
        for k, part in enumerate(rate_matrix_adjoints(adjoint, lengths[..., nodes], model)):
            total[k] += part
    return total


def _rate_matrix_adjoints(batch: GpuBatch, chain: int, model: SiteModel) -> list[torch.Tensor]:
    """(W, W) of every process: model/transition.py, rate_matrix_adjoints, with the products on the device."""
    numbers = batch.numbers.device
    eigen = [
        [numbers[name][chain, k] for name in ("values", "right", "left")] for k in range(len(model.processes))
    ]
    total = [torch.zeros_like(right) for _, right, _ in eigen]
    for nodes in _branch_blocks(batch):
        adjoint = batch.launch.adjoint(batch.chains[chain], nodes)
        times = numbers["times"][chain, int(nodes[0]) : int(nodes[-1]) + 1]
        for k, (values, right, left) in enumerate(eigen):
            own = slice(None) if len(eigen) == 1 else np.flatnonzero(model.process == k).tolist()
            mean, half = (values[:, None] + values) / 2, (values[:, None] - values) / 2
            t = times[:, own, None, None]
            z = half * t
            small = z.abs() < 1e-4
            sinhc = torch.where(small, 1 + z * z / 6, torch.sinh(z) / torch.where(small, 1.0, z))
            through = right.T @ adjoint[:, own] @ left.T
            total[k] += (through * (t * torch.exp(mean * t) * sinhc)).sum((0, 1))
    return [left.T @ sums @ right.T for sums, (_, right, left) in zip(total, eigen)]


def _root_sums(batch: GpuBatch, chain: int) -> tuple[torch.Tensor, ...]:
    """d root_frequencies by category (C, W), d invariant_frequencies (W,), d weights (C,), d invariant:
    root_adjoint of pruning/reference/recursion.py."""
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
    weights, constant = numbers["weights"][chain], numbers["invariant_frequencies"][chain]
    f = numbers["frequencies"][chain].index_select(0, numbers["process"][chain])
    invariant = numbers["invariant"][chain]
    return weights[:, None] * seen, invariant * share, (seen * f).sum(1), (share @ constant)[None]
