"""What a run has drawn so far, and the numbers that a trace prints of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.structure import ChainModel, printed_names, printed_values
from phloem.tree.sample import TreeSample

# The numbers that a trace prints, in MrBayes' order and under its names.


@dataclass(frozen=True)
class TraceColumns:
    """names: of the columns after Gen, LnL and LnPr. The first is TL, the tree length."""

    names: tuple[str, ...]
    structure: ChainModel

    def values(self, tree_length: float, numbers: np.ndarray) -> np.ndarray:
        """(k,) from a chain's numbers (n,)."""
        space = self.structure.space
        printed = [printed_values(self.structure, b, numbers[space.place(b.name)]) for b in space.blocks]
        return np.concatenate(
            [[tree_length], *(x[_order(self.structure, b)] for b, x in zip(space.blocks, printed))]
        )


def trace_columns(structure: ChainModel) -> TraceColumns:
    """TL and every free number."""
    names = ["TL"]
    for block in structure.space.blocks:
        own = printed_names(structure, block)
        names += [own[i] for i in _order(structure, block)]
    return TraceColumns(tuple(names), structure)


def _order(structure: ChainModel, block) -> list[int]:
    """GTR's reference, r(G<->T), goes last, as MrBayes has it."""
    names = printed_names(structure, block)
    return sorted(range(len(names)), key=lambda i: names[i].startswith("r(G<->T)"))


# What a run has drawn so far: numbers and trees as arrays that grow.


@dataclass(frozen=True, eq=False)
class Samples:
    """n draws of one run's cold chain. generation: (n,). numbers: (n, 2 + k): log-likelihood, log prior,
    then the trace's columns. parent: (n, 2T-2) and lengths: (n, 2T-2), trees in the order of phloem.tree
    (tips first, children before parents, a basal node of three children last)."""

    generation: np.ndarray
    numbers: np.ndarray
    parent: np.ndarray
    lengths: np.ndarray

    @property
    def n(self) -> int:
        return len(self.generation)

    def tree_and_numbers(
        self, i: int, names: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
        """Draw i: parent and lengths, and its numbers after LnL and LnPr by their names."""
        return self.parent[i], self.lengths[i], dict(zip(names, self.numbers[i, 2:].tolist()))

    def tree_sample(self, taxa: tuple[str, ...], first: int = 0) -> TreeSample:
        return TreeSample(taxa, self.parent[first:], self.lengths[first:], False)


def no_samples(n_columns: int, n_nodes: int) -> Samples:
    """Where a run starts."""
    return Samples(
        np.zeros(0, np.int64),
        np.zeros((0, 2 + n_columns)),
        np.zeros((0, n_nodes), np.int32),
        np.zeros((0, n_nodes)),
    )


def extended(samples: Samples, drawn: list[Samples]) -> Samples:
    """All of them, one after the other."""
    parts = [samples, *drawn]
    return Samples(
        *(
            np.concatenate([getattr(p, name) for p in parts])
            for name in ("generation", "numbers", "parent", "lengths")
        )
    )


def draw(state: ChainState, columns: TraceColumns, rank: int = 0) -> Samples:
    """The present state of the chain at a rank of heat, by default of the one at temperature 1."""
    h = int(np.flatnonzero(state.rank == rank)[0])
    s = int(state.slot[h])
    parent, lengths = renumbered(state.parent[h, s], state.lengths[h, s, 0], state.order[h, s])
    numbers = columns.values(float(lengths.sum()), state.values[h, s])
    row = np.concatenate([[state.log_likelihood[h], state.log_prior[h]], numbers])
    return Samples(state.generation.copy(), row[None], parent[None], lengths[None])


def renumbered(parent: np.ndarray, length: np.ndarray, order: np.ndarray):
    """A tree of records.py, rooted on the branch of tip 0, in the order of phloem.tree: without that root,
    the node beside tip 0 is last."""
    n_tips, root = (len(parent) + 1) // 2, len(parent) - 1
    inner = order[(order >= n_tips) & (order < root)]
    number = np.empty(len(parent), np.int32)
    number[:n_tips] = np.arange(n_tips)
    number[inner] = np.arange(n_tips, root)
    beside = inner[-1]
    new_parent, new_length = np.empty(root, np.int32), np.zeros(root)
    new_parent[number[:root]] = number[parent[:root]]
    new_length[number[:root]] = length[:root]
    new_parent[0] = number[beside]
    new_parent[-1], new_length[-1] = -1, 0.0
    return new_parent, new_length
