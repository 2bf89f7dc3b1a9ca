"""Fit branch lengths, kappa and frequencies with PyTorch's Adam; phloem gives the gradient.

python examples/torch_gradient.py ALIGNMENT TREE
"""

from __future__ import annotations

import sys

import torch

from phloem import TreeLikelihood, read_alignment, read_tree
from phloem.interop.torch_function import torch_log_likelihood


def fit(alignment: str, tree: str, steps: int = 200) -> float:
    likelihood = TreeLikelihood(read_alignment(alignment), read_tree(tree), "HKY+FO+G4{0.5}")
    log_likelihood = torch_log_likelihood(likelihood)
    log_lengths = torch.tensor(likelihood.branch_lengths).clamp(min=1e-6).log().requires_grad_()
    log_kappa = torch.zeros((), dtype=torch.float64, requires_grad=True)
    z = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([log_lengths, log_kappa, z], lr=0.05)
    for step in range(steps):
        optimiser.zero_grad()
        value = log_likelihood(log_lengths.exp(), {"kappa": log_kappa.exp(), "frequencies": z.softmax(0)})
        (-value).backward()
        optimiser.step()
        if step % 50 == 0:
            print(f"step {step:4d}  log-likelihood {value.item():.4f}")
    print(f"kappa {log_kappa.exp().item():.3f}  frequencies {z.softmax(0).tolist()}")
    return value.item()


if __name__ == "__main__":
    fit(*sys.argv[1:3])
