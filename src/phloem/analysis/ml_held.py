"""`phloem ml --fixed-tree FILE`: a tree that is not searched, with all that is told of one that was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.negative_lengths import without_negative
from phloem.errors import InputError
from phloem.io.trees import read_trees
from phloem.likelihood.problem import refuse_along_sites
from phloem.model.model import Model
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.analysis.ml_data import MlData
    from phloem.inference.ml.branch_tests import SupportSettings
    from phloem.inference.ml.held import HeldData, HeldTree
    from phloem.inference.ml.search_result import SearchResult
    from phloem.inference.ml.search_state import Told
    from phloem.inference.ml.tree_starts import Start

_SEARCH = "Leave it out, or give the tree by --tree to begin a search there."
_OF_SEARCHES = {  # option → why it is not obeyed, and what to do
    "tree": ("begins a search from a tree", "Leave one of the two out."),
    "constraint": ("is about a search among trees", "Leave one of the two out."),
    **dict.fromkeys(("fast", "thorough", "starts", "patience", "radius"), ("is about a search", _SEARCH)),
    "ufboot": (
        "is of the trees that a search meets, and IQ-TREE refuses it beside -te, too",
        "Say --alrt 1000, --lbp 1000 or --abayes; for UFBoot search: --tree FILE.",
    ),
    "bnni": ("is about the ultrafast bootstrap", _SEARCH),
    "bootstrap": (
        "searches a tree of every replicate, and none is searched here",
        "Say --alrt 1000; or search, and hold the replicates against the tree: phloem concordance TREE "
        "--replicates PREFIX.bootstrap.nwk.",
    ),
    "keep_identical": ("is about a search, which keeps equal sequences out", "Leave it out: all stay in."),
    "sprta": ("is of the engine of differences, which searches", "Say --alrt 1000 or --abayes."),
}


def require_held(settings: MlSettings) -> None:
    """InputError for options that are about a search beside a tree that is held, and for --lengths without
    one."""
    usual = MlSettings(settings.alignment)
    if settings.fixed_tree is None:
        if settings.lengths is not None:
            raise InputError("--lengths is about a tree that is held", hint="Add --fixed-tree FILE.")
        return
    for name, (why, hint) in _OF_SEARCHES.items():
        if getattr(settings, name) != getattr(usual, name):
            raise InputError(f"--{name.replace('_', '-')} {why}; --fixed-tree holds the tree", hint=hint)
    if settings.engine == "differences":
        raise InputError("--engine differences searches; --fixed-tree holds the tree", hint="Leave it out.")
    if settings.lengths in (None, "fitted"):
        return
    if settings.automatic:
        raise InputError(
            f"models are compared at their best lengths, and --lengths {settings.lengths} holds those",
            hint="Choose first, with --lengths fitted; then --model @PREFIX.model, or its name.",
        )
    if settings.alrt or settings.lbp or settings.abayes or settings.parametric_alrt:
        raise InputError(
            f"supports fit the lengths around every branch, and --lengths {settings.lengths} holds those",
            hint="Say --lengths fitted, or leave the supports out.",
        )


def read_held(settings: MlSettings, taxa: Sequence[str]) -> HeldTree | None:
    """None without one. InputError for a damaged file, several trees, other taxa than the alignment's."""
    from phloem.inference.ml.held import held_tree

    file = settings.fixed_tree
    if file is None:
        return None
    trees = read_trees(file, allow_negative=True)
    if len(trees) > 1:
        hint = "Keep one; phloem test-trees fits and compares several."
        raise InputError(f"{len(trees):,} trees where one is to be held", file=file, hint=hint)
    lengths = settings.lengths or "fitted"
    if lengths != "fitted" and (trees[0].lengths[:-1] < 0).any():
        hint = "Say --lengths fitted, or mend them."
        raise InputError(f"a branch has a negative length, and --lengths {lengths}", file=file, hint=hint)
    return held_tree(without_negative(trees, file)[0], taxa, file, lengths)


def held_start(held: HeldTree) -> Start:
    from phloem.inference.ml.tree_starts import Start

    return Start(held.tree, f"the tree of {held.file}", held=True)


def held_data(data: MlData, models: Sequence[Model], tree: Tree | None = None) -> HeldData:
    """tree: the same with other lengths to begin from. InputError for lengths to be kept of several sets."""
    from phloem.inference.ml.held import HeldData
    from phloem.inference.ml.held_lengths import require_one_set
    from phloem.inference.ml.searched import SearchedPart

    held, linkage, settings = data.held, data.linkage(models), data.settings
    assert held is not None
    if held.lengths != "fitted":
        require_one_set(linkage.lengths if linkage else None, max(model.n_length_classes for model in models))
    parts = [SearchedPart(part.name, part.alignment, model) for part, model in zip(data.parts, models)]
    held = held if tree is None else replace(held, tree=tree)
    return HeldData(held, parts, linkage, settings.device, settings.threads)


def fitted_held(
    data: MlData, models: Sequence[Model], start: Start, supports: SupportSettings, told: Told | None
) -> SearchResult:
    """start: where the fit begins. ModelError for models that a search refuses, but for +AG, and under +AG
    for what takes sites one by one."""
    from phloem.inference.ml.held import fit_held
    from phloem.inference.ml.searchable import refuse

    settings = data.settings
    by_site = {
        "every support of branches": supports.any,
        "--ancestral": settings.ancestral,
        "--auspice, with states at inner nodes,": settings.auspice,
        "--iqtree-files, with likelihoods of sites,": settings.iqtree_files,
    }
    for model in models:
        refuse(model)
        for what, asked in by_site.items():
            if asked:
                refuse_along_sites(model, what)
    searched = data.searched(models) if supports.any else None
    tree = start.tree if start.values is not None else None
    whole = held_data(data, models, tree)
    return fit_held(whole, searched, supports, settings.seed, start.values, told)


def held_record(held: HeldTree | None) -> dict[str, object]:
    if held is None:
        return {}
    shape = {"multifurcations": held.multifurcations, "rooted_in_file": held.rooted}
    return {"fixed_tree": {"file": held.file, "lengths": held.lengths, **shape}}


_LENGTHS = {
    "fitted": "all lengths fitted",
    "scaled": "its lengths times one factor, which is fitted",
    "given": "its lengths as they are",
}


def held_lines(held: HeldTree | None) -> list[str]:
    """For people."""
    if held is None:
        return []
    lines = [f"the tree of {held.file} is held, not searched; {_LENGTHS[held.lengths]}"]
    if held.multifurcations:
        many = "1 multifurcation stays" if held.multifurcations == 1 else (
            f"{held.multifurcations:,} multifurcations stay"
        )  # fmt: skip
        lines.append(f"{many}: branches there have no other resolutions, and no supports")
    if held.rooted:
        lines.append("its root is left out: the model is reversible, and the likelihood the same anywhere")
    return lines
