"""The gradient of the numbers of models: from the adjoints of transition matrices, and from the roots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch

from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient
from phloem.model.transition import rate_matrix_adjoints
from phloem.pruning.gpu.buffers import ADJOINT_BYTES
from phloem.pruning.gpu.models import has_real_eigensystems
from phloem.pruning.gpu.tree_batch import GpuBatch

Tensors = Mapping[str, torch.Tensor]


class Adjoints(NamedTuple):
    """What the sums of n trees are made from.

    adjoint: of some branches, (n, b, C, W, W) float64 d log L / d P. times: (n, B, C) rate · length. models:
    of each tree, the place of its model's numbers. columns, first_root: first message column of each root,
    and of what is known of root columns; n_root: columns of each. result: of each tree, row of "result".
    width: W, states with padding.
    """

    adjoint: Callable[[np.ndarray], torch.Tensor]
    times: torch.Tensor
    models: Sequence[int]
    columns: Sequence[int]
    first_root: Sequence[int]
    n_root: int
    result: Sequence[int]
    width: int
    ascertained: bool


def branch_gradient(derivatives: np.ndarray, model: SiteModel) -> np.ndarray:
    """d log L / d length from D (B, C): (N,), or (K, N) where the model has K sets of lengths; root 0."""
    if model.n_length_classes == 1:
        return np.append(derivatives @ model.rates, 0.0)
    found = np.zeros((model.n_length_classes, len(derivatives) + 1))
    for k, own in enumerate(found):
        own[:-1] = derivatives @ np.where(model.length_class == k, model.rates, 0.0)
    return found


def site_model_gradient(
    batch: GpuBatch, lengths: np.ndarray, model: SiteModel, derivatives: np.ndarray
) -> SiteModelGradient:
    """Of the only tree of a batch, after evaluate("parameters"). derivatives: its D (B, C). One copy brings
    the sums home."""
    numbers, arrays, chain = batch.numbers.device, batch.launch.arrays, batch.chains[0]
    root = np.array([batch.n_nodes - 1])

    def adjoint(nodes: np.ndarray) -> torch.Tensor:
        return batch.launch.adjoint(chain, nodes)[None]

    what = Adjoints(
        adjoint=adjoint,
        times=numbers["times"][:1, :-1],
        models=[0],
        columns=[int(chain.column(root)[0])],
        first_root=[chain.first_root],
        n_root=chain.layout.classes.size(batch.n_nodes - 1),
        result=[0],
        width=batch.sizes.width,
        ascertained=bool(batch.problem.ascertained.any()),
    )
    on_device = has_real_eigensystems(model)

    def sums() -> torch.Tensor:
        return parameter_sums(what, arrays, numbers, on_device)

    # A graph keeps the memory of what it makes on the way: only where that is little.
    small = len(branch_blocks(what)) == 1
    found = (batch.replayed((on_device,), sums) if small else sums()).cpu().numpy()[0]
    return read_sums(found, what, 0, (np.asarray(lengths, np.float64), model, derivatives))


def parameter_sums(what: Adjoints, arrays: Tensors, numbers: Tensors, on_device: bool) -> torch.Tensor:
    """(n, words) that read_sums takes apart. numbers: of models.ModelNumbers. on_device: all models have
    real eigensystems, through which the adjoints go here."""
    parts = [*_root_sums(what, arrays, numbers)]
    if on_device:
        parts.append(_rate_matrix_adjoints(what, numbers))
    return torch.cat([part.flatten(1) for part in parts], 1)


def read_sums(
    found: np.ndarray, what: Adjoints, tree: int, at: tuple[np.ndarray, SiteModel, np.ndarray]
) -> SiteModelGradient:
    """The gradient of one of the trees from its row of parameter_sums. at: its lengths (N,) or (K, N), model
    and derivatives D (B, C)."""
    lengths, model, derivatives = at
    s, c, lengths = len(model.invariant_frequencies), model.n_categories, lengths[..., :-1]
    width = what.width
    ends = np.cumsum([c * width, width, c, 1])
    frequencies, of_invariant, weights, invariant, rest = np.split(found, ends)
    by_category = frequencies.reshape(c, width)[:, :s]
    if len(rest):
        matrices = list(rest.reshape(-1, width, width)[:, :s, :s])
    else:
        matrices = _without_eigensystems(what, tree, lengths, model)
    return SiteModelGradient(
        processes=tuple(
            ProcessGradient(matrices[k], by_category[model.process == k].sum(0))
            for k in range(len(model.processes))
        ),
        rates=np.einsum("cx,xc->c", model.by_category(lengths), derivatives),
        weights=weights,
        invariant=float(invariant[0]),
        invariant_frequencies=of_invariant[:s],
    )


def branch_blocks(what: Adjoints) -> list[np.ndarray]:
    """Branches whose adjoints are held at a time."""
    n, n_branches, c = what.times.shape
    block, branches = max(1, ADJOINT_BYTES // (8 * what.width**2 * c * n)), np.arange(n_branches)
    return [branches[first : first + block] for first in range(0, n_branches, block)]


def _without_eigensystems(
    what: Adjoints, tree: int, lengths: np.ndarray, model: SiteModel
) -> list[np.ndarray]:
    """d Q of every process, by the host. lengths: without the root's."""
    s = len(model.invariant_frequencies)
    total = [np.zeros((s, s)) for _ in model.processes]
    for nodes in branch_blocks(what):
        adjoint = what.adjoint(nodes)[tree, :, :, :s, :s].cpu().numpy()
        for k, part in enumerate(rate_matrix_adjoints(adjoint, lengths[..., nodes], model)):
            total[k] += part
    return total


def _rate_matrix_adjoints(what: Adjoints, numbers: Tensors) -> torch.Tensor:
    """(n, R, W, W) d Q of every process: model/transition.py, rate_matrix_adjoints, with the products on the
    device."""
    own = what.models
    process, right, left = (_of_models(numbers, name, own) for name in ("process", "right", "left"))
    values = _stack([numbers["values"][m].index_select(0, p) for m, p in zip(own, process)])
    by_category = [_stack([x.index_select(0, p) for x, p in zip(of, process)]) for of in (right, left)]
    before, after = (of.transpose(-1, -2)[:, None] for of in by_category)
    half = (values[..., :, None] - values[..., None, :])[:, None] / 2
    mean = (values[..., :, None] + values[..., None, :])[:, None] / 2
    total = torch.zeros_like(by_category[0])
    for nodes in branch_blocks(what):
        t = what.times[:, int(nodes[0]) : int(nodes[-1]) + 1, :, None, None]
        z = half * t
        small = z.abs() < 1e-4
        sinhc = torch.where(small, 1 + z * z / 6, torch.sinh(z) / torch.where(small, 1.0, z))
        through = before @ what.adjoint(nodes) @ after
        total += (through * (t * torch.exp(mean * t) * sinhc)).sum(1)
    places = torch.arange(right.shape[1], device=process.device)
    share = (process[:, None, :] == places[:, None]).to(total.dtype)
    sums = (share @ total.flatten(2)).view(right.shape)
    return left.transpose(-1, -2) @ sums @ right.transpose(-1, -2)


def _root_sums(what: Adjoints, arrays: Tensors, numbers: Tensors) -> tuple[torch.Tensor, ...]:
    """d root_frequencies by category (n, C, W), d invariant_frequencies (n, W), d weights (n, C),
    d invariant (n, 1): root_adjoint of pruning/reference/recursion.py."""
    n, own = what.n_root, what.models
    partials = _stack([arrays["messages"][:, at : at + n] for at in what.columns]).to(torch.float64)
    exponents = _stack([arrays["exponents"][:, at : at + n] for at in what.columns])

    def of_root(name: str) -> torch.Tensor:
        return _stack([arrays[name][at : at + n] for at in what.first_root])

    weights, mantissa, power = (of_root(name) for name in ("column_weights", "mantissa", "power"))
    if what.ascertained:
        beside = _stack([arrays["result"][row, 1] for row in what.result])
        weights = weights + of_root("ascertained") * torch.exp(of_root("site_log")) * beside[:, None]
    weights = torch.where(weights > 0, weights / mantissa, 0.0)
    scale = weights[:, None] * torch.exp2((exponents - power[:, None]).to(torch.float64))
    seen = (scale[:, :, None] @ partials)[:, :, 0]
    allowed = of_root("invariant_states").to(torch.float64)
    # Where no state is allowed 2**-power may overflow, and does not matter.
    share = torch.where(allowed.any(2), weights * torch.exp2(-power.to(torch.float64)), 0.0)[:, None]
    share = (share @ allowed)[:, 0]
    process, invariant = _of_models(numbers, "process", own), _of_models(numbers, "invariant", own)
    f = _stack([numbers["frequencies"][m].index_select(0, p) for m, p in zip(own, process)])
    constant = (share * _of_models(numbers, "invariant_frequencies", own)).sum(1)
    by_frequency = _of_models(numbers, "weights", own)[..., None] * seen
    return by_frequency, invariant.view(-1, 1) * share, (seen * f).sum(2), constant[:, None]


def _of_models(numbers: Tensors, name: str, models: Sequence[int]) -> torch.Tensor:
    """One by one: a list of places would have to travel to the device, which no graph can capture."""
    return _stack([numbers[name][m] for m in models])


def _stack(arrays: Sequence[torch.Tensor]) -> torch.Tensor:
    """One on the other; the only one is not copied."""
    return arrays[0][None] if len(arrays) == 1 else torch.stack(list(arrays))
