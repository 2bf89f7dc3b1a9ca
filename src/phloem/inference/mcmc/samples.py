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
    """names: of the columns after Gen, LnL and LnPr. The first is TL, the tree length; of several sets of
    branch lengths it is the mean tree's, and TL of every set follow, TL{gene1} or TL{1}."""

    names: tuple[str, ...]
    structure: ChainModel

    def values(self, mean: np.ndarray, lengths: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """(k,) from a chain's mean lengths (N,), those of all sets (G, N), and numbers (n,)."""
        space = self.structure.space
        printed = [printed_values(self.structure, b, numbers[space.place(b.name)]) for b in space.blocks]
        own = [x[_order(self.structure, b)] for b, x in zip(space.blocks, printed)]
        of_sets = lengths.sum(axis=1)[: len(self.structure.set_names)]
        return np.concatenate([[mean.sum()], of_sets, *own])


def trace_columns(structure: ChainModel) -> TraceColumns:
    """TL and every free number."""
    names = ["TL", *(f"TL{{{name}}}" for name in structure.set_names)]
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
    (tips first, children before parents, a basal node of three children last). sets: (n, G, 2T-2) where there
    are several sets of branch lengths, whose mean over sites lengths then are; else (n, 0, 2T-2)."""

    generation: np.ndarray
    numbers: np.ndarray
    parent: np.ndarray
    lengths: np.ndarray
    sets: np.ndarray

    @property
    def n(self) -> int:
        return len(self.generation)

    def tree_and_numbers(
        self, i: int, names: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
        """Draw i: parent, lengths (2T-2,), or (G, 2T-2) of several sets, and its numbers after LnL and LnPr
        by their names."""
        lengths = self.sets[i] if self.sets.shape[1] else self.lengths[i]
        return self.parent[i], lengths, dict(zip(names, self.numbers[i, 2:].tolist()))

    def tree_sample(self, taxa: tuple[str, ...], first: int = 0) -> TreeSample:
        return TreeSample(taxa, self.parent[first:], self.lengths[first:], False)


def no_samples(n_columns: int, n_nodes: int, n_sets: int = 0) -> Samples:
    """Where a run starts."""
    return Samples(
        np.zeros(0, np.int64),
        np.zeros((0, 2 + n_columns)),
        np.zeros((0, n_nodes), np.int32),
        np.zeros((0, n_nodes)),
        np.zeros((0, n_sets, n_nodes)),
    )


def extended(samples: Samples, drawn: list[Samples]) -> Samples:
    """All of them, one after the other."""
    parts = [samples, *drawn]
    return Samples(
        *(
            np.concatenate([getattr(p, name) for p in parts])
            for name in ("generation", "numbers", "parent", "lengths", "sets")
        )
    )


def draw(state: ChainState, columns: TraceColumns, rank: int = 0) -> Samples:
    """The present state of the chain at a rank of heat, by default of the one at temperature 1."""
    h = int(np.flatnonzero(state.rank == rank)[0])
    s = int(state.slot[h])
    parent, lengths = renumbered(state.parent[h, s], state.lengths[h, s], state.order[h, s])
    mean = columns.structure.mean_lengths(lengths, state.values[h, s])
    numbers = columns.values(mean, lengths, state.values[h, s])
    row = np.concatenate([[state.log_likelihood[h], state.log_prior[h]], numbers])
    sets = lengths[: len(columns.structure.set_names)]
    return Samples(state.generation.copy(), row[None], parent[None], mean[None], sets[None])


def renumbered(parent: np.ndarray, length: np.ndarray, order: np.ndarray):
    """A tree of records.py, rooted on the branch of tip 0, in the order of phloem.tree: without that root,
    the node beside tip 0 is last. length: (…, N)."""
    n_tips, root = (len(parent) + 1) // 2, len(parent) - 1
    inner = order[(order >= n_tips) & (order < root)]
    number = np.empty(len(parent), np.int32)
    number[:n_tips] = np.arange(n_tips)
    number[inner] = np.arange(n_tips, root)
    beside = inner[-1]
    new_parent, new_length = np.empty(root, np.int32), np.zeros((*length.shape[:-1], root))
    new_parent[number[:root]] = number[parent[:root]]
    new_length[..., number[:root]] = length[..., :root]
    new_parent[0] = number[beside]
    new_parent[-1], new_length[..., -1] = -1, 0.0
    return new_parent, new_length
