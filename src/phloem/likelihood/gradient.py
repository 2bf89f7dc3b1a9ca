"""The record that TreeLikelihood.gradient returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Gradient:
    """The log-likelihood and its derivatives, all from one backward pass.

    branch_names: B names. branch_lengths: (B,) d/d length, in the same order, or (K, B) where the model
    has K sets of branch lengths (+H). branch_rates: (B,) d/d rate of
    the branch, where a branch's effective length is length × rate.
    parameters: by element name (kappa, rate_AC, frequency_A, alpha, …); those of a simplex are in softmax
    coordinates z, x = softmax(z) (docs/architecture.md), and sum to 0.
    root_frequencies: (S,) d/d entry of the root distribution, entries taken as independent; None for a
    mixture of processes, each of which has its own.
    Without parameters asked for, parameters is empty and root_frequencies None.
    """

    log_likelihood: float
    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    branch_rates: np.ndarray
    parameters: dict[str, float]
    root_frequencies: np.ndarray | None
