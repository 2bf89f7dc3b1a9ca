"""Fit branch lengths and kappa by gradient steps in JAX; phloem gives value and gradient.

python examples/jax_gradient.py ALIGNMENT TREE
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp

from phloem import TreeLikelihood, read_alignment, read_tree
from phloem.interop.jax_function import jax_log_likelihood

jax.config.update("jax_enable_x64", True)


def fit(alignment: str, tree: str, steps: int = 200, rate: float = 0.003) -> float:
    likelihood = TreeLikelihood(read_alignment(alignment), read_tree(tree), "HKY+F+G4{0.5}")
    log_likelihood = jax_log_likelihood(likelihood)

    @jax.jit
    @jax.value_and_grad
    def negative(point):
        log_lengths, log_kappa = point
        return -log_likelihood(jnp.exp(log_lengths), {"kappa": jnp.exp(log_kappa)})

    point = (jnp.log(jnp.clip(jnp.asarray(likelihood.branch_lengths), 1e-6)), jnp.asarray(0.0))
    for step in range(steps):
        value, slope = negative(point)
        point = jax.tree.map(lambda x, g: x - rate * g, point, slope)
        if step % 50 == 0:
            print(f"step {step:4d}  log-likelihood {-value:.4f}")
    print(f"kappa {jnp.exp(point[1]):.3f}")
    return -float(value)


if __name__ == "__main__":
    fit(*sys.argv[1:3])
