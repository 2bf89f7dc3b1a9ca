"""The standard bootstrap (Felsenstein 1985): a tree of every resampled alignment, and when there are enough.

Replicate k of seed s is the same alone or among others, on any number of threads and processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from phloem.data.alignment import Alignment
from phloem.density.parts import Linkage
from phloem.errors import InputError
from phloem.hardware.machine import available_bytes
from phloem.hardware.ranks import Ranks, ranks
from phloem.hardware.workers import answers_of
from phloem.inference.ml.branch_tests import Sampling
from phloem.inference.ml.constrained import data_of
from phloem.inference.ml.identical import Distinct
from phloem.inference.ml.kept_fits import plain_tree, tree_of_record
from phloem.inference.ml.place import ON_CPU, Device, Place
from phloem.inference.ml.searched import RATES, Searched, SearchedPart
from phloem.inference.ml.tree_search import SearchSettings, climbed_tree
from phloem.inference.ml.tree_starts import Start
from phloem.io.journal import Journal
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.record import ParameterValue
from phloem.pruning.cpu.directed_storage import bytes_of
from phloem.tree.constraint import Constraint
from phloem.tree.splits import split_members, tree_splits
from phloem.tree.tree import Tree

AT_ONCE, MOST = 50, 1000  # replicates between two looks whether there are enough; at most
ENOUGH = 0.03  # weighted Robinson-Foulds distance of two halves
_PERMUTATIONS = 100
_RARE = 0.05  # splits in a smaller share of the replicates do not count
_STREAM = 3  # of random numbers
_WORTH = 4.0  # seconds of work, from which it pays to start processes
_SHARE_OF_MEMORY, _BYTES = 0.5, 2e8  # of what is free, that they may take; of one, without messages

Told = Callable[[int, int], None]


def _resampled(data: Alignment, columns: np.ndarray) -> Alignment:
    """These columns, which are then nobody's neighbours."""
    return replace(data, codes=np.ascontiguousarray(data.codes[:, columns]), places=None)


@dataclass(frozen=True, eq=False)
class Resampling:
    """What a replicate is drawn from. parts: name, alignment and model string of each; linkage: what several
    share, None of one. rows: identical sequences, which the trees are without; frequencies are counted in
    all. constraint: what the trees have to obey. device: of the searches. sampling: of what; parts that are
    not drawn are not in a replicate."""

    parts: Sequence[tuple[str, Alignment, str]]
    linkage: Linkage | None
    rows: Distinct
    gamma: Literal["mean", "median"] = "mean"
    constraint: Constraint | None = None
    device: Device = "cpu"
    sampling: Sampling = "site"

    def drawn(self, rng: np.random.Generator, place: Place = ON_CPU) -> Searched:
        """As many columns of every part as it has, with repetition, or as many parts as there are."""
        made, n = [], len(self.parts)
        times = [1] * n
        if self.sampling != "site":
            times = np.bincount(rng.integers(0, n, n), minlength=n).tolist()
        for (name, data, text), often in zip(self.parts, times):
            if often == 0:
                continue
            if self.sampling == "gene":
                columns = np.tile(np.arange(data.n_sites), often)
            else:
                columns = rng.integers(0, data.n_sites, often * data.n_sites)
            made.append((name, _resampled(data, columns), text))
        return self._searched(made, place)

    def values_of(self, drawn: Searched, values: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
        """Those that are free in a replicate, from values of the whole data."""
        own = {name: value for name, value in values.items() if name in drawn.free}
        if RATES in own:
            rates = dict(zip((name for name, _, _ in self.parts), np.atleast_1d(own[RATES])))
            there = np.array([rates[name] for name in drawn.part_sites])
            own[RATES] = there / np.average(there, weights=list(drawn.part_sites.values()))
        return own

    def whole(self, place: Place) -> Searched:
        """What is resampled."""
        return self._searched(self.parts, place)

    def _searched(self, parts: Sequence[tuple[str, Alignment, str]], place: Place) -> Searched:
        made = []
        for name, data, text in parts:
            model = model_for_alignment(text, data, self.gamma)
            made.append(SearchedPart(name, self.rows.rows_of(data), model))
        linkage = None if self.linkage is None else self.linkage.among({part.name for part in made})
        return data_of(made, linkage, self.constraint, place)


def bootstrap_trees(
    resampling: Resampling,
    values: Mapping[str, ParameterValue],
    replicates: int | Literal["auto"],
    settings: SearchSettings,
    told: Told | None = None,
    here: Ranks | None = None,
    journal: Journal | None = None,
) -> list[Tree]:
    """Of every replicate a parsimonious tree of a random order of taxa, climbed once under the model, whose
    free numbers are fitted to it again, from values on, and whose counted ones are counted again.

    replicates: a number, or "auto": by AT_ONCE until `distance_of_halves` is below ENOUGH, at most MOST.
    here: processes that share the replicates; the first of them has all trees, others return none. journal:
    of replicates that are done, which a killed run does not do again.
    """
    here = here or Ranks()
    done = {} if journal is None else {record["replicate"]: record for record in journal.read()}
    arguments = resampling, values, replicates, settings, journal, done
    return here.together(_shared_replicates, *arguments, told=told)


def _shared_replicates(
    here: Ranks,
    resampling: Resampling,
    values: Mapping[str, ParameterValue],
    replicates: int | Literal["auto"],
    settings: SearchSettings,
    journal: Journal | None,
    known: Mapping[int, Any],
    told: Told | None = None,
) -> list[Tree]:
    kept = _Kept(known, None if journal is None else journal.of(here.number))
    automatic = replicates == "auto"
    most = MOST if isinstance(replicates, str) else replicates
    trees: list[Tree] = []
    enough, done = False, 0
    while done < most and not enough:
        until = done + AT_ONCE if automatic else most
        numbers = range(done + here.number, until, here.size)

        def counted(k: int, first: int = done, last: int = until) -> None:
            if told is not None:
                told(min(first + k * here.size, last), most)

        own = _own_replicates(numbers, resampling, values, settings, kept, counted)
        done, parts = until, here.gather(own)
        if parts is not None:
            trees += [part[i] for i in range(len(parts[0])) for part in parts if i < len(part)]
            if automatic:
                rng = np.random.default_rng([settings.seed, _STREAM, 1, done - 1])
                enough = distance_of_halves(presence(trees)[1], rng) < ENOUGH
        enough = here.broadcast(enough)
    return trees


class _Kept:
    """Replicates that an earlier run has done, and the journal of those that this process does. known: their
    records by number."""

    def __init__(self, known: Mapping[int, Any], journal: Journal | None) -> None:
        self.known, self._journal = known, journal

    def tree(self, k: int) -> Tree:
        return tree_of_record(self.known[k])

    def add(self, k: int, tree: Tree) -> Tree:
        if self._journal is not None:
            self._journal.add({"replicate": k} | plain_tree(tree))
        return tree


def _own_replicates(
    numbers: Sequence[int],
    resampling: Resampling,
    values: Mapping[str, ParameterValue],
    settings: SearchSettings,
    kept: _Kept,
    told: Callable[[int], None],
) -> list[Tree]:
    """Those of one process, on a GPU abreast. told: how many are there."""
    missing = [k for k in numbers if k not in kept.known]
    n_kept = len(numbers) - len(missing)

    def work(k: int) -> Callable[[Place], Tree]:
        return lambda place: kept.add(k, _replicate(k, resampling, values, settings, place))

    if resampling.device == "gpu" and missing:
        from phloem.inference.ml.replicates_on_gpu import Abreast

        groups = resampling.whole(Place("gpu")).groups
        done = Abreast(groups, len(missing)).run([work(k) for k in missing], lambda n: told(n_kept + n))
        made = dict(zip(missing, done))
    else:
        made = dict[int, Tree]()
        for k in missing:
            begin = time.perf_counter()
            made[k] = work(k)(ON_CPU)
            told(n_kept + len(made))
            left = missing[len(made) :]
            worth = (time.perf_counter() - begin) * len(left) > _WORTH
            processes = _processes(resampling, settings) if worth else 1
            if processes > 1:
                how = replace(settings, threads=1)
                one = partial(_replicate, resampling=resampling, values=values, settings=how, place=ON_CPU)
                for number, tree in answers_of(one, left, processes):
                    made[number] = kept.add(number, tree)
                    told(n_kept + len(made))
                break
    return [made[k] if k in made else kept.tree(k) for k in numbers]


def _processes(resampling: Resampling, settings: SearchSettings) -> int:
    """That may share replicates on this host: one a core, as far as there is memory."""
    cores, free = settings.threads or ranks().cores, available_bytes()
    own = _BYTES + sum(map(bytes_of, resampling.whole(ON_CPU).groups))
    return cores if free is None else min(cores, int(_SHARE_OF_MEMORY * free / own))


def _replicate(
    k: int,
    resampling: Resampling,
    values: Mapping[str, ParameterValue],
    settings: SearchSettings,
    place: Place,
) -> Tree:
    """Number k, from 0."""
    rng = np.random.default_rng([settings.seed, _STREAM, 0, k])
    if place.seat is not None:  # the searches take turns
        settings = replace(settings, threads=1)
    try:
        data = resampling.drawn(rng, place)
        own = resampling.values_of(data, values)
        return climbed_tree(data, Start(data.parsimony().tree(rng).tree, "", own), settings)
    except InputError as error:
        raise InputError(
            f"in bootstrap replicate {k + 1}: {error.message}", file=error.file, hint=error.hint
        ) from None


def presence(trees: Sequence[Tree]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct inner splits (S, W) of trees of the same taxa, and (n, S) bool which tree has which."""
    by_tree = [tree_splits(tree) for tree in trees]
    distinct: dict[bytes, int] = {}
    for splits in by_tree:
        for split in splits:
            distinct.setdefault(split.tobytes(), len(distinct))
    has = np.zeros((len(trees), len(distinct)), bool)
    for row, splits in zip(has, by_tree):
        row[[distinct[split.tobytes()] for split in splits]] = True
    words = by_tree[0].shape[1] if by_tree else 1
    keys = np.frombuffer(b"".join(distinct), np.uint64).reshape(-1, words)
    return keys, has


def distance_of_halves(has: np.ndarray, rng: np.random.Generator) -> float:
    """Weighted Robinson-Foulds distance between random halves of the replicates, the mean of many draws:
    Σ |a - b| / Σ (a + b) over the shares a, b of both that have a split, rare ones left out.

    has (n, S): which replicate has which split. In the manner of Pattengale et al. 2010 (J. Comput. Biol.
    17:337), who compare consensus trees of the halves.
    """
    n, often = len(has), has[:, has.mean(0) >= _RARE].astype(np.float64)
    if not often.size:
        return 0.0
    total = 0.0
    for _ in range(_PERMUTATIONS):
        order = rng.permutation(n)
        a, b = often[order[: n // 2]].mean(0), often[order[n // 2 : 2 * (n // 2)]].mean(0)
        total += float(np.abs(a - b).sum() / (a + b).sum())
    return total / _PERMUTATIONS


def split_shares(trees: Sequence[Tree]) -> dict[bytes, float]:
    """Share of the trees that have a split, by its bytes (tree/splits.py)."""
    keys, has = presence(trees)
    return {key.tobytes(): float(share) for key, share in zip(keys, has.mean(0))}


def transfer_expectation(splits: np.ndarray, trees: Sequence[Tree]) -> np.ndarray:
    """(k,) transfer bootstrap expectation of inner splits (k, W): 1 - mean over trees of δ / (p - 1)
    (Lemoine et al. 2018, Nature 556:452).

    δ: the fewest tips that have to change sides so that the split is a branch of the tree; p: tips on its
    smaller side, p - 1 what a branch to a single tip costs.
    """
    n = trees[0].n_tips
    own = split_members(splits, n).astype(np.float32)
    size = own.sum(1)
    smaller = np.minimum(size, n - size)
    total = np.zeros(len(splits))
    for tree in trees:
        other = split_members(tree_splits(tree), n).astype(np.float32)
        apart = size[:, None] + other.sum(1) - 2.0 * (own @ other.T)
        nearest = np.minimum(apart, n - apart).min(1, initial=n)
        total += np.minimum(nearest, smaller - 1.0)
    return 1.0 - total / len(trees) / (smaller - 1.0)
