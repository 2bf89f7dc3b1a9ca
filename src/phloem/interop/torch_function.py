"""The log-likelihood as a function that PyTorch can differentiate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from phloem.interop.derivatives import Impossible, value, value_and_derivatives
from phloem.likelihood.tree_likelihood import TreeLikelihood


def torch_log_likelihood(likelihood: TreeLikelihood, impossible: Impossible = "error") -> Callable[..., Any]:
    """log_likelihood(branch_lengths, parameters={}) → scalar tensor, once differentiable.

    branch_lengths: (B,) tensor aligned with likelihood.branch_names; parameters: tensors by parameter name (a
    simplex such as frequencies as its values, for instance from torch.softmax). Computed on the likelihood's
    own engine; tensors are copied from and to their device. impossible: "error", or "-inf" for samplers,
    whose trajectories may lead to where the likelihood is zero. Needs PyTorch.
    """
    import torch

    def array(tensor) -> np.ndarray:
        return tensor.detach().to("cpu", torch.float64).numpy()

    class LogLikelihood(torch.autograd.Function):
        @staticmethod
        def forward(ctx, names, branch_lengths, *tensors):
            values = {name: array(tensor) for name, tensor in zip(names, tensors)}
            if not any(ctx.needs_input_grad):
                return branch_lengths.new_tensor(value(likelihood, array(branch_lengths), values, impossible))
            found, by_branch, by_name = value_and_derivatives(
                likelihood, array(branch_lengths), values, impossible
            )
            slopes = [by_branch, *(by_name[name] for name in names)]
            inputs = (branch_lengths, *tensors)
            ctx.save_for_backward(*(x.new_tensor(np.asarray(g)) for x, g in zip(inputs, slopes)))
            return branch_lengths.new_tensor(found)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, upstream):
            return None, *(upstream.to(slope) * slope for slope in ctx.saved_tensors)

    def log_likelihood(branch_lengths, parameters: Mapping[str, Any] | None = None):
        given = dict(parameters or {})
        return LogLikelihood.apply(tuple(given), branch_lengths, *given.values())

    return log_likelihood
