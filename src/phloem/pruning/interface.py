"""What every engine offers: one evaluator for one data set and one tree, cheap to call again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phloem.model.record import SiteModel, SiteModelGradient


@dataclass(frozen=True)
class Problem:
    """What stays fixed while branch lengths and parameters move.

    tip_codes: (T, P) unsigned; state_sets: (n_codes, S) bool; pattern_weights: (P,) float64.
    ascertained: (P,) bool, patterns that stand for unobservable ones (weight 0), see reference/root.py.
    left, right: (T-1,) int32 children of internal node T+k (binary, children below parents, root last).
    n_categories: C (without invariable sites). repeats: use distinct columns. precision: of the messages.
    """

    tip_codes: np.ndarray
    state_sets: np.ndarray
    pattern_weights: np.ndarray
    ascertained: np.ndarray
    left: np.ndarray
    right: np.ndarray
    n_categories: int
    precision: str = "float64"
    repeats: bool = True


@dataclass(frozen=True)
class EngineGradient:
    """log_likelihood; branch_lengths, in the shape of the lengths, d/d effective length of the branch above
    each node (root 0); site_model: derivatives of the model's numbers, None unless asked for."""

    log_likelihood: float
    branch_lengths: np.ndarray
    site_model: SiteModelGradient | None


class Evaluator(Protocol):
    """A likelihood on one device.

    Lengths are effective branch lengths (length × branch rate), the root's is ignored: (N,), or (K, N) where
    the model has K > 1 length classes. Derivatives by length have the same shape.

    log_likelihood and gradient evaluate from scratch and become the accepted state.
    propose evaluates a change, recomputing only what it dirtied up to the root: changed names the nodes whose
    branch length changed; model is given only if it changed; left and right only if the topology did. Then
    nodes may have other numbers: subtrees are known by their tips, and lengths are compared instead of named.
    accept and reject swap indices and copy nothing; a second propose without either is an error.
    """

    name: str

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float: ...

    def site_log_likelihoods(self) -> np.ndarray:
        """(P,) of the last evaluation, float64."""
        ...

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient: ...

    def site_branch_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        """(N, P) or (K, N, P) d log L_p / d effective length of the branch above each node (root row 0),
        float64.

        Evaluates from scratch, as second_derivatives does (reference/site_derivatives.py).
        """
        ...

    def second_derivatives(self, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
        """(N,) or (K, N) d² log L / d effective length², the diagonal only (root 0)."""
        ...

    def propose(
        self,
        lengths: np.ndarray,
        changed: np.ndarray,
        model: SiteModel | None = None,
        left: np.ndarray | None = None,
        right: np.ndarray | None = None,
    ) -> float: ...

    def accept(self) -> None: ...

    def reject(self) -> None: ...


def require_shape(lengths: np.ndarray, model: SiteModel, n_nodes: int) -> None:
    """ValueError unless lengths are (N,), or (K, N) where the model has K > 1 length classes."""
    k = model.n_length_classes
    wanted = (n_nodes,) if k == 1 else (k, n_nodes)
    if np.shape(lengths) != wanted:
        raise ValueError(f"branch lengths of shape {wanted} expected, got {np.shape(lengths)}")
