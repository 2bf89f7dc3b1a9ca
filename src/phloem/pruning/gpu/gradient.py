"""The gradient of the numbers of models: from the adjoints of transition matrices, and from the roots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.model.transition import rate_matrix_adjoints
from phloem.pruning.gpu.buffers import ADJOINT_BYTES
from phloem.pruning.gpu.kernels.root import root_sums
from phloem.pruning.gpu.models import has_real_eigensystems
from phloem.pruning.gpu.tree_batch import GpuBatch

Tensors = Mapping[str, torch.Tensor]


# What is known of a tree (Adjoints.places): its model's place, first message column of its root, first one
# and number of its root columns, its row of "result".
MODEL, COLUMN, FIRST_ROOT, N_ROOT, RESULT = range(5)


class Adjoints(NamedTuple):
    """What the sums of n trees are made from. All of it lies on the device, so that launches can be captured.

    adjoint: of some branches, (n, b, C, W, W) float64 d log L / d P. times: (n, B, C) rate · length. places:
    (n, 5) int64, what is where. columns: int64, columns of messages. width: W, states with padding.
    """

    adjoint: Callable[[np.ndarray], torch.Tensor]
    times: torch.Tensor
    places: torch.Tensor
    columns: torch.Tensor
    width: int
    ascertained: bool


def branch_gradients(derivatives: np.ndarray, models: Sequence[SiteModel]) -> np.ndarray:
    """(H, N) branch_gradient of trees with one set of branch lengths. derivatives: (H, B, C)."""
    rates = np.array([model.rates for model in models])
    found = np.zeros((derivatives.shape[0], derivatives.shape[1] + 1))
    np.matmul(derivatives, rates[:, :, None], out=found[:, :-1, None])
    return found


def branch_gradient(derivatives: np.ndarray, model: SiteModel) -> np.ndarray:
    """d log L / d length from D (B, C): (N,), or (K, N) where the model has K sets of lengths; root 0."""
    if model.n_length_classes == 1:
        return np.append(derivatives @ model.rates, 0.0)
    found = np.zeros((model.n_length_classes, len(derivatives) + 1))
    for k, own in enumerate(found):
        own[:-1] = derivatives @ np.where(model.length_class == k, model.rates, 0.0)
    return found


def site_model_gradients(
    batch: GpuBatch, lengths: np.ndarray, models: Sequence[SiteModel]
) -> list[SiteModelGradient]:
    """Of every tree of a batch, after evaluate("parameters"). lengths: (H, N) or (H, K, N). One copy brings
    the sums home."""
    numbers, arrays, derivatives = batch.numbers.device, batch.launch.arrays, batch.derivatives()
    what = Adjoints(
        adjoint=batch.launch.adjoint,
        times=numbers["times"][:, :-1],
        places=batch.launch.places,
        columns=arrays.full["sizes"],
        width=batch.sizes.width,
        ascertained=batch.data.are_ascertained,
    )
    on_device = all(has_real_eigensystems(model) for model in models)

    def sums() -> torch.Tensor:
        return parameter_sums(what, arrays, numbers, on_device)

    # A graph keeps the memory of what it makes on the way: only where that is little.
    small = len(branch_blocks(what)) == 1
    found = (batch.replayed((on_device,), sums) if small else sums()).cpu().numpy()
    at = list(zip(np.asarray(lengths, np.float64), models, derivatives))
    return read_sums(found, what, range(len(at)), at)


def parameter_sums(what: Adjoints, arrays: Tensors, numbers: Tensors, on_device: bool) -> torch.Tensor:
    """(n, words) that read_sums takes apart. numbers: of models.ModelNumbers. on_device: all models have
    real eigensystems, through which the adjoints go here."""
    own, c = what.places[:, MODEL], what.times.shape[2]
    seen = _root_sums(what, arrays, c)
    process, weights, invariant, of_invariant = (
        numbers[name].index_select(0, own)
        for name in ("process", "weights", "invariant", "invariant_frequencies")
    )
    by_category = _of_processes(numbers, "frequencies", own, process)
    parts = [
        weights[..., None] * seen[:, :c],  # d root_frequencies by category
        invariant.view(-1, 1) * seen[:, c],  # d invariant_frequencies
        (seen[:, :c] * by_category).sum(2),  # d weights
        (seen[:, c] * of_invariant).sum(1, keepdim=True),  # d invariant
    ]
    if on_device:
        parts.append(_rate_matrix_adjoints(what, numbers, own, process))
    return torch.cat([part.flatten(1) for part in parts], 1)


def read_sums(
    found: np.ndarray,
    what: Adjoints,
    trees: Sequence[int],
    at: Sequence[tuple[np.ndarray, SiteModel, np.ndarray]],
) -> list[SiteModelGradient]:
    """The gradients of some trees from the rows of parameter_sums. at: of each its lengths (N,) or (K, N),
    model and derivatives D (B, C)."""
    found = found[trees]
    c, w = what.times.shape[2], what.width
    ends = np.cumsum([c * w, w, c, 1])
    frequencies, of_invariant, weights, invariant, rest = np.split(found, ends, axis=1)
    by_category, matrices = frequencies.reshape(-1, c, w), rest.reshape(len(found), -1, w, w)
    summed, rates = by_category.sum(1), _by_rates(at)
    gradients = []
    for k, (lengths, model, _) in enumerate(at):
        s, n = len(model.invariant_frequencies), len(model.processes)
        shares = [summed[k]] if n == 1 else [by_category[k, model.process == j].sum(0) for j in range(n)]
        own = matrices[k, :n, :s, :s] if rest.size else _without_eigensystems(what, trees[k], lengths, model)
        gradients.append(
            SiteModelGradient(
                processes=tuple(ProcessGradient(m, f[:s]) for m, f in zip(own, shares)),
                rates=rates[k],
                weights=weights[k],
                invariant=float(invariant[k, 0]),
                invariant_frequencies=of_invariant[k, :s],
            )
        )
    return gradients


def _by_rates(at: Sequence[tuple[np.ndarray, SiteModel, np.ndarray]]) -> np.ndarray | list[np.ndarray]:
    """(n, C) d log L / d rate: Σ over branches of length · D."""
    if all(model.n_length_classes == 1 for _, model, _ in at):
        lengths, derivatives = np.array([own[:-1] for own, _, _ in at]), np.array([d for *_, d in at])
        return (lengths[:, None] @ derivatives)[:, 0]
    return [np.einsum("cx,xc->c", model.by_category(own[..., :-1]), d) for own, model, d in at]


def branch_blocks(what: Adjoints) -> list[np.ndarray]:
    """Branches whose adjoints are held at a time."""
    n, n_branches, c = what.times.shape
    block, branches = max(1, ADJOINT_BYTES // (8 * what.width**2 * c * n)), np.arange(n_branches)
    return [branches[first : first + block] for first in range(0, n_branches, block)]


def _without_eigensystems(
    what: Adjoints, tree: int, lengths: np.ndarray, model: SiteModel
) -> list[np.ndarray]:
    """d Q of every process, by the host."""
    lengths = lengths[..., :-1]
    s = len(model.invariant_frequencies)
    total = [np.zeros((s, s)) for _ in model.processes]
    for nodes in branch_blocks(what):
        adjoint = what.adjoint(nodes)[tree, :, :, :s, :s].cpu().numpy()
        for k, part in enumerate(rate_matrix_adjoints(adjoint, lengths[..., nodes], model)):
            total[k] += part
    return total


def _rate_matrix_adjoints(
    what: Adjoints, numbers: Tensors, own: torch.Tensor, process: torch.Tensor
) -> torch.Tensor:
    """(n, R, W, W) d Q of every process: model/transition.py, rate_matrix_adjoints, with the products on the
    device."""
    values = _of_processes(numbers, "values", own, process)
    before, after = (
        _of_processes(numbers, name, own, process).transpose(-1, -2)[:, None] for name in ("right", "left")
    )
    half = (values[..., :, None] - values[..., None, :])[:, None] / 2
    mean = (values[..., :, None] + values[..., None, :])[:, None] / 2
    total = torch.zeros_like(before[:, 0])
    for nodes in branch_blocks(what):
        t = what.times[:, int(nodes[0]) : int(nodes[-1]) + 1, :, None, None]
        z = half * t
        small = z.abs() < 1e-4
        sinhc = torch.where(small, 1 + z * z / 6, torch.sinh(z) / torch.where(small, 1.0, z))
        through = before @ what.adjoint(nodes) @ after
        total += (through * (t * torch.exp(mean * t) * sinhc)).sum(1)
    right, left = (numbers[name].index_select(0, own) for name in ("right", "left"))
    places = torch.arange(right.shape[1], device=process.device)
    share = (process[:, None, :] == places[:, None]).to(total.dtype)
    sums = (share @ total.flatten(2)).view(right.shape)
    return left.transpose(-1, -2) @ sums @ right.transpose(-1, -2)


def _of_processes(numbers: Tensors, name: str, own: torch.Tensor, process: torch.Tensor) -> torch.Tensor:
    """(n, C, …) of the process of every category. own: (n,) models; process: (n, C)."""
    of = numbers[name]
    found = of.flatten(0, 1).index_select(0, (own[:, None] * of.shape[1] + process).flatten())
    return found.view(*process.shape, *of.shape[2:])


def _root_sums(what: Adjoints, arrays: Tensors, n_categories: int) -> torch.Tensor:
    """(n, C + 1, W): kernels/root.py, root_sums."""
    n, c, w, cuda = len(what.places), n_categories, what.width, what.places.is_cuda
    out = torch.empty((n, c + 1, w), dtype=torch.float64, device=what.places.device)
    block = 4 if w == 4 else 16
    root_sums[(n, c + 1, -(-w // block))](
        what.places, what.columns, arrays["messages"], arrays["exponents"], arrays["column_weights"],
        arrays["ascertained"], arrays["mantissa"], arrays["power"], arrays["site_log"], arrays["result"],
        arrays["result"].shape[1], arrays["invariant_states"], out, c, WIDTH=w, BLOCK=block,
        TILE=2048 // block if cuda else 64, ASCERTAINED=what.ascertained, num_warps=8,
    )  # fmt: skip
    return out
