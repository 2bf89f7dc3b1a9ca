"""What every engine offers: one evaluator for one data set and one tree, cheap to call again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from phloem.errors import InputError
from phloem.model.record import SiteModel, SiteModelGradient
from phloem.pruning.site_order import SiteOrder

# Records that every column of kernels shares.


@dataclass(frozen=True)
class ColumnClasses:
    """Distinct columns below every node (site repeats: Kobert, Flouri, Stamatakis 2017).

    Node x owns columns offset[x]:offset[x+1] of one long column axis; K_x is their number.
    n_tips: T. Nodes 0..T-1 are tips, T..N-1 internal with N = 2T-1, root N-1, children below parents.
    left, right: (T-1,) int32, the children of internal node T+k.
    offset: (N+1,) int64.
    left_class, right_class: (offset[N],) int32. At a column of an internal node: the column, counted from
        the child's first, of its left and right child. At a column of a tip: left_class is the character
        code (a row of state_sets), right_class is -1.
    pattern_column: (P,) int32, the root column of each site pattern.
    """

    n_tips: int
    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    left_class: np.ndarray
    right_class: np.ndarray
    pattern_column: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.offset) - 1

    def columns(self, node: int) -> slice:
        return slice(int(self.offset[node]), int(self.offset[node + 1]))

    def size(self, node: int) -> int:
        return int(self.offset[node + 1] - self.offset[node])


# The order in which every engine wants proposals: evaluate, propose, then accept or reject.


State = TypeVar("State")


def refuse_to_propose(proposed: object | None, left: object | None, right: object | None) -> None:
    """RuntimeError while a proposal is pending; ValueError for half a topology."""
    if proposed is not None:
        raise RuntimeError("a proposal is pending: accept or reject it first")
    if (left is None) != (right is None):
        raise ValueError("a changed topology needs both left and right")


def evaluated(state: State | None) -> State:
    """The state; RuntimeError where there is none."""
    if state is None:
        raise RuntimeError("nothing was evaluated yet: call log_likelihood first")
    return state


def pending(proposed: State | None) -> State:
    """The proposed state; RuntimeError where there is none."""
    if proposed is None:
        raise RuntimeError("no proposal is pending")
    return proposed


@dataclass(frozen=True)
class Problem:
    """What stays fixed while branch lengths and parameters move.

    tip_codes: (T, P) unsigned; state_sets: (n_codes, S) bool; pattern_weights: (P,) float64.
    ascertained: (P,) bool, patterns that stand for unobservable ones (weight 0), see reference/recursion.py.
    left, right: (T-1,) int32 children of internal node T+k (binary, children below parents, root last).
    n_categories: C (without invariable sites). repeats: use distinct columns. precision: of the messages.
    order: of the sites, where the categories of neighbours depend on each other.
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
    order: SiteOrder | None = None


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

        Evaluates from scratch, as second_derivatives does (reference/recursion.py).
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


FLOAT32_STATES = 32
"""On a CPU single precision pays from here on: half the time of a gradient of codons. With 20 states it gains
nothing, and with four it takes twice as long: columns must be rescaled much earlier (docs/experiments.md)."""


def refuse_slow_precision(problem: Problem) -> None:
    """InputError where float32 is asked of the CPU engine and gains nothing."""
    states = problem.state_sets.shape[1]
    if problem.precision == "float32" and states < FLOAT32_STATES:
        raise InputError(
            f"float32 is not offered on a CPU for {states} states: it is not faster than float64 there",
            hint=f"Leave the precision at float64; float32 pays from {FLOAT32_STATES} states on (codons).",
        )


def require_shape(lengths: np.ndarray, model: SiteModel, n_nodes: int) -> None:
    """ValueError unless lengths are (N,), or (K, N) where the model has K > 1 length classes."""
    k = model.n_length_classes
    wanted = (n_nodes,) if k == 1 else (k, n_nodes)
    if np.shape(lengths) != wanted:
        raise ValueError(f"branch lengths of shape {wanted} expected, got {np.shape(lengths)}")
