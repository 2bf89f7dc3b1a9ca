"""One tree whose changes are proposed: a forest of one chain, under the numbers that a caller gives nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from phloem.model.record import SiteModel, SiteModelGradient
from phloem.pruning.cpu.chain_state import COLUMNS_IN, SIZE
from phloem.pruning.gpu.forest import GpuForest
from phloem.pruning.interface import Problem
from phloem.pruning.topology import Topology, match_clades

# Where messages take more than this, and this many times what is in use, all is laid out anew.
SPREAD_BYTES = 256 << 20
MOST_SPREAD = 4


@dataclass(frozen=True)
class State:
    """One evaluated state; accepting or rejecting a proposal is choosing between two of these records.

    node: (N,) number in the forest of every node of the topology. lengths: (N,) or (K, N).
    """

    topology: Topology
    node: np.ndarray
    lengths: np.ndarray
    model: SiteModel

    def is_at(self, lengths: np.ndarray, model: SiteModel) -> bool:
        return self.model is model and np.array_equal(self.lengths, lengths)


class GpuUpdates:
    """Proposals, values and gradients of one tree, from messages that are there. A forest keeps the numbers
    of its nodes; here a subtree is known by its tips, whatever its nodes are called now."""

    def __init__(self, problem: Problem, device: torch.device, state: State, room_for: SiteModel) -> None:
        """The accepted state from scratch; its nodes' numbers become the forest's. room_for: a model that is
        about to be proposed, which may have more processes or sets of branch lengths."""
        n_tips, models = len(problem.tip_codes), (state.model, room_for)
        left, right = (side[None, n_tips:] for side in (state.topology.left, state.topology.right))
        self._n_sets = max(model.n_length_classes for model in models)
        self._n_processes = max(len(model.processes) for model in models)
        self._forest = GpuForest(problem, left, right, device, self._n_sets, self._n_processes)
        self._forest.start(self._in_sets(state.lengths)[None], [state.model])
        self.accepted = self._proposed = replace(state, node=np.arange(self._forest.n_nodes))

    def _in_sets(self, lengths: np.ndarray) -> np.ndarray:
        """(K, …) with the forest's K; what a model does not use repeats its last set."""
        lengths = np.atleast_2d(np.asarray(lengths, np.float64))
        return lengths[np.minimum(np.arange(self._n_sets), len(lengths) - 1)]

    def holds(self, model: SiteModel) -> bool:
        """Whether there is room for a model, and messages have not spread so much that they had better be
        laid out anew."""
        if len(model.processes) > self._n_processes or model.n_length_classes > self._n_sets:
            return False
        messages, (trees, places) = self._forest.arrays["messages"], self._forest.chains[:2]
        if messages.numel() * messages.element_size() <= SPREAD_BYTES:
            return True
        nodes = np.arange(self._forest.n_nodes)
        in_use = places.of[0, trees.node[trees.accepted[0], 0, :, COLUMNS_IN], nodes, SIZE].sum()
        return int(places.used[1]) <= MOST_SPREAD * int(in_use)

    def propose(self, lengths, changed, model: SiteModel | None, left=None, right=None) -> float:
        """Evaluate a change of the accepted state (Evaluator.propose); settle decides about it.

        Under another topology it is seen by comparing lengths which branches are others.
        """
        n_nodes, forest, old = self._forest.n_nodes, self._forest, self.accepted
        lengths = np.array(lengths, np.float64)
        topology, node, other = old.topology, old.node, np.zeros(n_nodes, bool)
        if left is not None:
            match = match_clades(topology, left, right)
            topology, node = match.topology, node[match.old_node]
            for x in match.moved:
                forest.set_children(0, node[x], node[topology.left[x]], node[topology.right[x]])
            if lengths.shape == old.lengths.shape:
                other = (lengths != old.lengths[..., match.old_node]).reshape(-1, n_nodes).any(axis=0)
        else:
            other[changed] = True
        other |= model is not None
        branches = np.flatnonzero(other[:-1])
        forest.set_branches(0, node[branches], self._in_sets(lengths)[:, branches])
        if model is not None and model is not old.model:
            forest.set_model(0, model)
        value = float(forest.evaluate()[0])
        self._proposed = State(topology, node, lengths, model or old.model)
        return value

    def settle(self, accept: bool) -> None:
        self._forest.settle(np.array([accept]))
        if accept:
            self.accepted = self._proposed

    def from_scratch(self, lengths: np.ndarray, model: SiteModel) -> float:
        """The value of the accepted topology there, which becomes the accepted state."""
        value = self.propose(lengths, np.arange(self._forest.n_nodes), model)
        self.settle(True)
        return value

    @property
    def value(self) -> float:
        """The log-likelihood of the accepted state, where nothing is proposed."""
        return float(self._forest.values()[0])

    def gradient(self, parameters: bool) -> tuple[np.ndarray, SiteModelGradient | None]:
        """Of the accepted state: by branch lengths, in their shape, and by the numbers of the model where
        asked for."""
        lengths = self.accepted.lengths
        found = self._forest.gradient(parameters=parameters)[0][: len(np.atleast_2d(lengths))]
        site_model = self._forest.site_model_gradient(0) if parameters else None
        return found[:, self.accepted.node].reshape(lengths.shape), site_model

    def redo_root(self) -> None:
        """What the root finds in the accepted state: its site likelihoods."""
        x = self.accepted.topology.left[-1]
        self.propose(self.accepted.lengths, np.array([x]), None)
        self.settle(False)

    def site_log_likelihoods(self) -> np.ndarray:
        """(P,) of the last evaluation."""
        return self._forest.site_log_likelihoods(0)
