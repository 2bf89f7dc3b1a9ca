"""What a run has drawn so far, and the numbers that a trace prints of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.density.parameterisation import SUBMODEL
from phloem.density.space import Block
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.tied_dirichlet import all_groupings
from phloem.inference.mcmc.priors import number_priors
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.settings import Priors
from phloem.inference.mcmc.structure import N_RATES, ChainModel, printed_names, printed_values
from phloem.inference.mcmc.working import LN_WORKING
from phloem.model.amino_acid import CHOICE, MIXED_MATRICES
from phloem.model.model import Model
from phloem.summary.trace import mixing
from phloem.tree.sample import TreeSample

# The numbers that a trace prints, in MrBayes' order and under its names.


@dataclass(frozen=True)
class TraceColumns:
    """names: of the columns after Gen, LnL and LnPr. The first is TL, the tree length; of several sets of
    branch lengths it is the mean tree's, and TL of every set follow, TL{gene1} or TL{1}. alike: classes of
    sites that a trace has in a stated order, since a chain exchanges them. has_working: whether the log
    density of a working distribution is the last one."""

    names: tuple[str, ...]
    structure: ChainModel
    alike: tuple[AlikeClasses, ...] = ()
    has_working: bool = False

    @cached_property
    def whole(self) -> tuple[int, ...]:
        """Columns of whole numbers: of a model, and how many rates it has."""
        return tuple(i for i, name in enumerate(self.names) if choices_of(name) or name.startswith(N_RATES))

    @cached_property
    def orders(self) -> tuple[list[int], ...]:
        """Of every block in which order its numbers are printed: found once, as draws are many."""
        return tuple(_order(self.structure, block) for block in self.structure.space.blocks)

    def values(self, mean: np.ndarray, lengths: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """(k,) from a chain's mean lengths (N,), those of all sets (G, N), and numbers (n,)."""
        space = self.structure.space
        printed = [printed_values(self.structure, b, numbers[space.place(b.name)]) for b in space.blocks]
        own = [x[order] for order, x in zip(self.orders, printed)]
        of_sets = lengths.sum(axis=1)[: len(self.structure.set_names)]
        return np.concatenate([[mean.sum()], of_sets, *own])


def trace_columns(structure: ChainModel, priors: Priors, has_working: bool = False) -> TraceColumns:
    """TL and every free number; and, where there is a working distribution, its log density."""
    names = ["TL", *(f"TL{{{name}}}" for name in structure.set_names)]
    for block in structure.space.blocks:
        own = printed_names(structure, block)
        names += [own[i] for i in _order(structure, block)]
    names += [LN_WORKING] if has_working else []
    return TraceColumns(tuple(names), structure, alike_classes(structure, priors), has_working)


def _order(structure: ChainModel, block) -> list[int]:
    """GTR's reference, r(G<->T), goes last, before what says which rates are equal, as MrBayes has it."""
    names, last = printed_names(structure, block), ("r(G<->T)", SUBMODEL, N_RATES)
    return sorted(range(len(names)), key=lambda i: [names[i].startswith(x) for x in reversed(last)])


# Columns that hold the number of a model, where a chain chooses among several.


CHOICES = {SUBMODEL: tuple("".join(map(str, groups)) for groups in all_groupings(6)), CHOICE: MIXED_MATRICES}
"""Column → what its numbers 0, 1, … stand for: groups of the rates AC AG AT CG CT GT; matrices."""


def choices_of(column: str) -> tuple[str, ...]:
    """Names of the models whose numbers a column of a trace holds; () of other columns."""
    return CHOICES.get(column.split("{")[0], ())


@dataclass(frozen=True)
class ModelShare:
    """How often the chains were at a model. column: of the trace; name: of the model, as choices_of has it.
    probability: over all runs; sd, low, high: over the runs' own. ess: of being there, or NaN."""

    column: str
    name: str
    probability: float
    sd: float
    low: float
    high: float
    ess: float


def model_shares(names: Sequence[str], draws: np.ndarray) -> tuple[ModelShare, ...]:
    """Of every model that was visited, the most probable first, from draws (n_runs, n, k) of the columns
    names."""
    found = []
    for column, name in enumerate(names):
        if not (models := choices_of(name)):
            continue
        number = draws[:, :, column].astype(np.int64)
        visited = np.unique(number)
        present = (number[..., None] == visited).astype(np.float64)
        each, (ess, _) = present.mean(axis=1), mixing(present)
        rows = [
            ModelShare(name, models[k], *map(float, (p.mean(), p.std(ddof=len(p) > 1), p.min(), p.max(), e)))
            for k, p, e in zip(visited, each.T, ess)
        ]
        found += sorted(rows, key=lambda row: -row.probability)
    return tuple(found)


# Classes of sites that nothing but their numbers tells apart.


@dataclass(frozen=True, eq=False)
class AlikeClasses:
    """K classes of a part's sites whose exchange changes neither likelihood nor prior, so that a chain
    exchanges them, and a number of "class 1" means nothing until the classes are put in order.

    entries: (K, m) of a chain's numbers, those of every class. sets: (K,) its branch lengths, or empty. by:
    which of the m decides, -1 the tree length; falling: the largest first. weights: (K,) where they are given
    in the model string: only classes of equal ones are exchanged.
    """

    entries: np.ndarray
    sets: np.ndarray
    by: int
    falling: bool
    weights: np.ndarray

    def put_in_order(self, lengths: np.ndarray, values: np.ndarray) -> None:
        """Order the classes of lengths (G, N) and numbers (n,), in place."""
        key = lengths[self.sets].sum(axis=1) if self.by < 0 else values[self.entries[:, self.by]]
        order = np.arange(len(self.entries))
        for weight in np.unique(self.weights):
            same = np.flatnonzero(self.weights == weight)
            order[same] = same[np.argsort(-key[same] if self.falling else key[same], kind="stable")]
        values[self.entries] = values[self.entries[order]]
        if len(self.sets):
            lengths[self.sets] = lengths[self.sets[order]]


def alike_classes(structure: ChainModel, priors: Priors) -> tuple[AlikeClasses, ...]:
    """Of every part: classes with lengths of their own (+H, *H) by falling weight, or by falling tree length
    where the model string gives the weights; those of free rates (+R), of M3 and of hidden
    rates (+MM) by rising rate or ω."""
    families = {prior.block: prior.family for prior in number_priors(structure, priors)}
    found: dict[tuple[int, ...], AlikeClasses] = {}
    for part, own in enumerate(structure.parts):
        blocks = _blocks_of(structure, part)
        several = [_with_lengths(structure, part, blocks, families)] if own.model.n_length_classes > 1 else []
        for pair in (("rates", "weights"), ("omegas", "mixture_weights"), ("class_rates", "class_weights")):
            if set(pair) <= set(blocks) and not own.model.fused:
                several.append(_of_entries(structure, [blocks[name] for name in pair]))
        for classes in several:
            if classes is not None and _are_alike(structure, classes, families):
                found[tuple(classes.entries.ravel().tolist()) + tuple(classes.sets.tolist())] = classes
    return tuple(found.values())


def _blocks_of(structure: ChainModel, part: int) -> dict[str, Block]:
    """The blocks of a chain's numbers that a part's model reads, by their names without those of parts."""
    names = dict.fromkeys(r.block for r in structure.parameterisation.readings[part])
    return {name.split("{")[0]: structure.space.block(name) for name in names if name in structure.space}


def _of_entries(structure: ChainModel, blocks: list[Block]) -> AlikeClasses:
    """Classes that have an entry in each of some blocks, the first of which orders them, rising."""
    entries = np.stack([np.arange(b.size) + structure.space.place(b.name).start for b in blocks], axis=1)
    return AlikeClasses(entries, entries[:0, 0], 0, False, np.zeros(len(entries)))


def _with_lengths(
    structure: ChainModel, part: int, blocks: Mapping[str, Block], families
) -> AlikeClasses | None:
    """Classes with branch lengths of their own; under *H with processes of their own too, whose blocks end in
    the number of the class. None where processes or priors differ."""
    model, sets = structure.parts[part].model, np.array(structure.sets[part])
    free = "weights" in blocks
    weights = np.zeros(len(sets)) if free else np.asarray(model.parameter("weights").value)
    entries, forms = [], []
    for k in range(len(sets)):
        own = {name: b for name, b in blocks.items() if name.endswith(f".{k + 1}") and model.fused}
        places = [np.arange(b.size) + structure.space.place(b.name).start for b in own.values()]
        first = [structure.space.place(blocks["weights"].name).start + k] if free else []
        entries.append(np.concatenate([first, *places]).astype(np.int64))
        forms.append(
            [(n.rpartition(".")[0], b.size, b.lower, b.upper, families[b.name]) for n, b in own.items()]
        )
    if any(form != forms[0] for form in forms) or (model.fused and not _one_process(model)):
        return None
    return AlikeClasses(np.stack(entries), sets, 0 if free else -1, True, weights)


def _one_process(model: Model) -> bool:
    """Whether all processes are one where their free parameters have the values of the first one's."""
    values = model.start_values()
    for p in model.free:
        base, dot, _ = p.name.rpartition(".")
        values[p.name] = values.get(f"{base}.1", values[p.name]) if dot else values[p.name]
    made = model.mixture.evaluate(values)
    first = made.processes[0]
    return all(
        np.allclose(p.rate_matrix, first.rate_matrix) and np.allclose(p.frequencies, first.frequencies)
        for p in made.processes
    ) and bool(np.ptp(made.rates) == 0)


def _are_alike(structure: ChainModel, classes: AlikeClasses, families) -> bool:
    """Whether the priors of the classes' blocks are symmetric, and the same parts read all of them."""
    space, readers = structure.space, set()
    for block in space.blocks:
        place = space.place(block.name)
        inside = ((classes.entries >= place.start) & (classes.entries < place.stop)).any(axis=1)
        if not inside.any():
            continue
        family = families[block.name]
        if inside.all() and isinstance(family, Dirichlet) and np.ptp(np.atleast_1d(family.concentration)) > 0:
            return False
        read = [any(r.block == block.name for r in own) for own in structure.parameterisation.readings]
        readers.add(tuple(read))
    return len(readers) < 2


# What a run has drawn so far: numbers and trees as arrays that grow.


@dataclass(frozen=True, eq=False)
class Samples:
    """n draws of one run's cold chain. generation: (n,). numbers: (n, 2 + k): log-likelihood, log prior,
    then the trace's columns. parent: (n, 2T-2) and lengths: (n, 2T-2), trees in the order of phloem.tree
    (tips first, children before parents, a basal node of three children last). sets: (n, G, 2T-2) where there
    are several sets of branch lengths, whose mean over sites lengths then are; else (n, 0, 2T-2). Trees of
    2T-1 nodes are rooted."""

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
        rooted = self.parent.shape[1] == 2 * len(taxa) - 1
        return TreeSample(taxa, self.parent[first:], self.lengths[first:], rooted)


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
    values = state.values[h, s].copy()
    for classes in columns.alike:
        classes.put_in_order(lengths, values)
    mean = columns.structure.mean_lengths(lengths, values)
    numbers = columns.values(mean, lengths, values)
    last = [state.log_working[h]] if columns.has_working else []
    row = np.concatenate([[state.log_likelihood[h], state.log_prior[h]], numbers, last])
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
