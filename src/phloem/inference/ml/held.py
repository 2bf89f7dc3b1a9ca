"""A tree whose topology is held: its lengths and the models' numbers fitted, its branches supported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from phloem.density.parts import Linkage
from phloem.errors import InputError
from phloem.inference.ml.branch_tests import SupportSettings, branch_supports
from phloem.inference.ml.held_lengths import fit_at_lengths
from phloem.inference.ml.optimize import SHORTEST, Progress, optimize, refine
from phloem.inference.ml.optimum import Optimum, result_of
from phloem.inference.ml.search_result import SearchResult
from phloem.inference.ml.search_state import Doing, Told
from phloem.inference.ml.searched import Fit, Likelihood, Searched, SearchedPart
from phloem.inference.ml.starts import Start as Values
from phloem.inference.ml.tree_starts import with_lengths
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.match import match_taxa
from phloem.tree.reroot import unroot
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits
from phloem.tree.tree import Tree

Lengths = Literal["fitted", "scaled", "given"]


@dataclass(frozen=True, eq=False)
class HeldTree:
    """tree: unrooted, tips numbered as the alignment's, without labels; its multifurcations stay, and are
    points, not branches of length 0 that a fit could draw out. lengths: what becomes of those that it has.
    rooted: whether the file's tree had a root, which reversible models do not see."""

    tree: Tree
    file: str
    lengths: Lengths = "fitted"
    rooted: bool = False

    @property
    def multifurcations(self) -> int:
        """Inner nodes of more than three branches."""
        return int((_degrees(self.tree)[self.tree.n_tips :] > 3).sum())

    def resolved_branches(self) -> frozenset[bytes]:
        """Splits (tree/splits.py) of the inner branches between two nodes of three branches: only these have
        two other resolutions."""
        tree, three = self.tree, _degrees(self.tree) == 3
        inner = np.arange(tree.n_tips, tree.n_nodes - 1)
        inner = inner[three[inner] & three[tree.parent[inner]]]
        return frozenset(s.tobytes() for s in sample_splits(sample_of_trees([tree]))[0][inner])


def held_tree(tree: Tree, taxa: Sequence[str], file: str, lengths: Lengths = "fitted") -> HeldTree:
    """Of all taxa. Errors: InputError as match_taxa; for fewer than three taxa, and where lengths that are to
    be kept are missing, or all are 0 and to be scaled."""
    own = unroot(match_taxa(tree, taxa, file=file))
    if own.n_tips < 3:
        raise InputError("a tree of two taxa has no topology", file=file, hint="Add taxa.")
    own = replace(own, labels=None, annotations={})
    if lengths == "fitted":
        return HeldTree(with_lengths(own), file, lengths, tree.rooted)
    if not np.isfinite(own.lengths[:-1]).all():
        missing = int((~np.isfinite(own.lengths[:-1])).sum())
        raise InputError(
            f"--lengths {lengths} keeps the tree's lengths, and {missing} of {own.n_nodes - 1} branches have "
            "none",
            file=file,
            hint="Give a tree with all lengths, or say --lengths fitted.",
        )
    if lengths == "scaled" and not own.lengths[:-1].any():
        raise InputError("all lengths are 0, whatever they are multiplied by", file=file, hint="Fit them.")
    return HeldTree(own, file, lengths, tree.rooted)


def _degrees(tree: Tree) -> np.ndarray:
    """(N,) branches at every node."""
    return np.diff(tree.child_offsets) + (np.arange(tree.n_nodes) < tree.n_nodes - 1)


@dataclass(frozen=True, eq=False)
class HeldData:
    """Parts, in the order of a file, on a held tree. linkage: None of one alignment without parts. engine,
    threads: as of TreeLikelihood."""

    held: HeldTree
    parts: Sequence[SearchedPart]
    linkage: Linkage | None
    engine: Literal["auto", "cpu", "gpu"] = "cpu"
    threads: int | None = None

    def likelihood(self) -> Likelihood:
        """Nothing is fitted yet. Errors: ModelError for models that need a root or other data."""
        tree, on, threads = self.held.tree, self.engine, self.threads
        if self.linkage is None:
            one = self.parts[0]
            return TreeLikelihood(one.alignment, tree, one.model, on, threads=threads, multifurcations=True)
        parts: dict[str, tuple] = {part.name: (part.alignment, part.model) for part in self.parts}
        return PartitionedLikelihood(parts, tree, self.linkage, on, threads=threads, multifurcations=True)

    def fit(
        self, near: Likelihood | None = None, values: Values | None = None, progress: Progress | None = None
    ) -> tuple[Fit, Likelihood]:
        """From all starts of the models, or near the values (of one alignment) of a fit that was made."""
        likelihood = near or self.likelihood()
        if self.held.lengths != "fitted":
            return fit_at_lengths(likelihood, self.held.lengths == "scaled", progress), likelihood
        if values is None:
            return _idle_tips_cut(optimize(likelihood, progress=progress), likelihood), likelihood
        assert isinstance(likelihood, TreeLikelihood)
        likelihood.set(parameters=values)
        return _idle_tips_cut(refine(likelihood), likelihood), likelihood


def _idle_tips_cut(fit: Fit, likelihood: Likelihood) -> Fit:
    """With the shortest length at tips of which no data tell, where any is as good, as after a search
    (searched.idle_tips_cut); the log-likelihood is the same."""
    known, taxa, linkage = likelihood.taxa_with_data, likelihood.tree.taxa, likelihood.linkage
    if known.all():
        return fit
    shared = isinstance(likelihood, TreeLikelihood) or linkage.lengths != "unlinked" or len(known) == 1
    names = [part.name for part in likelihood.part_models]
    for name in names[:1] if shared else names:
        together = names if shared else next((g for g in linkage.together if name in g), (name,))
        some = known[[other in together for other in names]].any(axis=0)
        cut = {taxa[i]: SHORTEST for i in np.flatnonzero(~some)}
        if isinstance(likelihood, TreeLikelihood) or shared:
            likelihood.set(branch_lengths=cut)
        else:
            likelihood.set(branch_lengths={name: cut})
    return result_of(likelihood, {own.name: getattr(fit, own.name) for own in fields(Optimum)})


def fit_held(
    data: HeldData,
    searched: Searched | None,
    supports: SupportSettings,
    seed: int,
    values: Mapping | None = None,
    told: Told | None = None,
) -> SearchResult:
    """What a search gives back, of a tree that is not searched. searched: the same data as a search has them,
    for supports; None without."""

    def counted(evaluations: int, value: float) -> None:
        if told is not None:
            told(Doing("fit", evaluations, None, f"fit, evaluation {evaluations}"), value)

    fit, likelihood = data.fit(values=None if values is None else dict(values), progress=counted)
    found: dict[str, dict[bytes, float]] = {}
    if supports.any and searched is not None and len(searched.taxa) > 3:
        if told is not None:
            told(Doing("supports"), fit.log_likelihood)
        messages = searched.messages(1, data.threads or 1)
        searched.put(messages, searched.values_of(fit))
        hilltops, only = [searched.edges_of(fit)], data.held.resolved_branches()
        found = branch_supports(messages, searched.weights, hilltops, supports, seed, 1, only)
    return SearchResult(fit, likelihood, (), 0, (), None, found)
