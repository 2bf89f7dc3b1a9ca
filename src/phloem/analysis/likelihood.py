"""`phloem likelihood`: the likelihood of a given tree, its gradient, and its maximum on that topology."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from phloem.analysis.model_file import file_of_model, model_of, require_gamma_used
from phloem.analysis.negative_lengths import trees_to_fit
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import DataOptions, alignment_of, without_data
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.density.parts import LengthLinkage
from phloem.errors import InputError, in_file
from phloem.hardware.notice import on_first_compilation
from phloem.hardware.ranks import ranks
from phloem.io.trees import newick_text, read_trees, write_trees
from phloem.likelihood.problem import Gradient
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.pruning.calibration import on_calibration
from phloem.pruning.grid import OnRanks
from phloem.tree.layout import tree_layout
from phloem.tree.splits import robinson_foulds
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.optimum import OptimizeResult, Optimum


@dataclass(frozen=True)
class LikelihoodSettings(DataOptions):
    """Everything that `phloem likelihood` can be told; field names are those of its options.

    tree: a file; without one the BIONJ tree of the alignment's distances is taken
    (distance.starting_tree). model: a model string, or @FILE (model_file.py); with partitions, that of the
    subsets to which their file gives none. linkage, link: what parts share (partitioned_likelihood.py);
    without partitions as they are. gamma: what +G means where the model string does not say. optimize: fit
    branch lengths and parameters without a value on this topology. out_tree, json: where the fitted tree and
    the record go (- is for the caller to print); an existing file is replaced only with redo. gpus: of this
    host, the first that this process sees, among which columns are divided where they are on GPUs; not of
    partitions, whose parts processes divide.
    """

    tree: str | None
    model: str | None
    linkage: LengthLinkage = "linked"
    link: tuple[str, ...] = ()
    gamma: Literal["mean", "median"] = "mean"
    multifurcations: bool = False
    gradient: bool = False
    optimize: bool = False
    out_tree: str | None = None
    json: str | None = None
    redo: bool = False
    engine: Literal["auto", "reference", "cpu", "gpu"] = "auto"
    gpus: int = 1
    precision: Literal["float64", "float32"] = "float64"
    threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gpus != 1 and self.partitioned:
            raise InputError(
                "a process has parts on one GPU", hint="phloem likelihood --devices has several."
            )

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        return [*self.data_files, *file_of_model(self.model), *([self.tree] if self.tree is not None else [])]


@dataclass(frozen=True, eq=False)
class LikelihoodResult:
    """What was found. parameters: value by element name; branch_lengths (B,) aligned with branch_names, or
    (K, B) where the model has K sets of them (+H).

    gradient and optimum are None unless asked for; tree: Newick with the branch lengths used, under +H their
    means over sites; class_trees: under +H one a class; tree_origin: the file, or how it came about.
    """

    settings: LikelihoodSettings
    log_likelihood: float
    model: str
    parameters: dict[str, float]
    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    tree: str
    class_trees: tuple[str, ...]
    tree_origin: str
    data: dict[str, object]
    gradient: Gradient | None
    optimum: OptimizeResult | None
    provenance: dict[str, Any]
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        record: dict[str, object] = {
            "log_likelihood": self.log_likelihood,
            "model": self.model,
            "parameters": self.parameters,
            "tree": self.tree,
            **({"class_trees": list(self.class_trees)} if self.class_trees else {}),
            "tree_origin": self.tree_origin,
            "data": self.data,
            "warnings": list(self.warnings),
        }
        if self.gradient is not None:
            record["gradient"] = {
                "branch_lengths": _by_branch(self.gradient, self.branch_lengths),
                "parameters": self.gradient.parameters,
                "simplex_coordinates": "softmax: x = exp(z) / sum(exp(z)), derivatives are d/dz",
            }
        if self.optimum is not None:
            record["optimum"] = optimum_record(self.optimum)
        return record | {"settings": settings_record(self.settings), "provenance": self.provenance}


def settings_record(settings: LikelihoodSettings) -> dict[str, object]:
    """The settings as plain numbers, strings and lists."""
    return asdict(settings) | {"link": list(settings.link), "part": list(settings.part)}


def run_likelihood(
    settings: LikelihoodSettings,
    progress: Callable[[int, float], None] | None = None,
    compiling: Callable[[str], None] | None = None,
    measuring: Callable[[], None] | None = None,
) -> LikelihoodResult:
    """Read, evaluate (and fit), and gather the result; writes settings.out_tree if given.

    progress: called by the optimiser with evaluations and log-likelihood. compiling: called with a
    sentence if kernels have to be compiled first (engine.compilation); measuring: if the engines' speeds are
    measured first. Errors: PhloemError of every kind.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    if measuring is not None:
        on_calibration(measuring)
    check_outputs([settings.out_tree], settings.inputs, settings.redo, [settings.json])
    if settings.linkage != "linked" or settings.link:
        raise InputError(
            "--linkage and --link say what parts share, and there is one", hint="Leave them out."
        )
    alignment = alignment_of(settings)
    trees, origin = trees_of(settings, alignment)
    likelihood = build_likelihood(settings, alignment, trees[0])
    by_class = likelihood.model.n_length_classes > 1 and len(trees) > 1
    if by_class:
        with in_file(settings.tree):
            likelihood.set(branch_lengths=lengths_of_classes(likelihood, trees))
    optimum = _fit(likelihood, progress) if settings.optimize else None
    gradient = likelihood.gradient() if settings.gradient else None
    value = likelihood.log_likelihood()
    warnings = tree_warnings(likelihood.branch_lengths, 1 if by_class else len(trees), settings.optimize)
    warnings += without_data([alignment])
    if optimum is not None:
        warnings += few_sites(optimum.n_free, alignment.n_sites)
    if settings.out_tree:
        write_trees(settings.out_tree, list(likelihood.trees))
    result = LikelihoodResult(
        settings=settings,
        log_likelihood=value,
        model=likelihood.model_text,
        parameters=likelihood.parameters_by_element,
        branch_names=likelihood.branch_names,
        branch_lengths=likelihood.branch_lengths,
        tree=newick_text([likelihood.tree]).strip(),
        class_trees=tuple(newick_text([t]).strip() for t in likelihood.trees if len(likelihood.trees) > 1),
        tree_origin=origin,
        data=_data(likelihood),
        gradient=gradient,
        optimum=optimum,
        provenance=provenance(settings.inputs, likelihood.selection),
        warnings=warnings,
    )
    write_json(result.to_json(), settings.json)
    return result


def trees_of(settings: LikelihoodSettings, alignment: Alignment) -> tuple[list[Tree], str]:
    """The trees of the file, or the one that stands in, and where they come from.

    Branches without lengths are to be fitted: they have 0.1 where optimize is asked for, and negative ones 0.
    """
    if settings.tree is None:
        found = starting_tree(alignment, "bionj")
        return [found.tree], found.origin
    if settings.optimize:
        return [_with_some_lengths(tree) for tree in trees_to_fit(settings.tree)], settings.tree
    return read_trees(settings.tree), settings.tree


def _with_some_lengths(tree: Tree) -> Tree:
    return replace(tree, lengths=np.append(np.nan_to_num(tree.lengths[:-1], nan=0.1), 0.0))


def lengths_of_classes(likelihood: TreeLikelihood, trees: Sequence[Tree]) -> np.ndarray:
    """(K, B) branch lengths of K trees of one shape, one a class of +H, as fits write them.

    Errors: InputError where their number or shape is another.
    """
    n_classes, wanted = likelihood.model.n_length_classes, likelihood.tree
    if len(trees) != n_classes:
        raise InputError(
            f"{len(trees)} trees are given for {n_classes} classes of branch lengths",
            hint="Give one tree, or one for every class.",
        )
    lengths = np.empty((n_classes, len(likelihood.branch_names)))
    for k, tree in enumerate(trees):
        layout = tree_layout(tree, likelihood.alignment.taxa, multifurcations=True)
        other = layout.tree
        if other.rooted != wanted.rooted or other.n_nodes != wanted.n_nodes or robinson_foulds(other, wanted):
            raise InputError(
                f"tree {k + 1} has another shape than the first", hint="Classes share the shape."
            )
        place = {name: i for i, name in enumerate(layout.names)}
        lengths[k] = [other.lengths[place[name]] for name in likelihood.branch_names]
    return lengths


def tree_warnings(lengths: np.ndarray, n_trees: int, fitted: bool) -> tuple[str, ...]:
    found = []
    if n_trees > 1:
        found.append(f"the tree file has {n_trees:,} trees: this is the first")
    if lengths.mean() > 0.5:
        what = "the data hardly tell of so long ones" if fitted else "is the tree in units of time?"
        found.append(f"branches have {lengths.mean():.3g} substitutions per site on average: {what}")
    return tuple(found)


def _fit(likelihood: TreeLikelihood, progress: Callable[[int, float], None] | None) -> OptimizeResult:
    from phloem.inference.ml.optimize import optimize  # SciPy's optimisers take a quarter of a second to load

    return optimize(likelihood, progress=progress)


def build_likelihood(settings: LikelihoodSettings, alignment: Alignment, tree: Tree) -> TreeLikelihood:
    """The likelihood that the settings describe, nothing evaluated yet."""
    if settings.model is None:
        raise InputError("no model is given", hint="Add --model, such as --model GTR+F+G4.")
    model = model_of(settings.model, alignment, settings.gamma)
    require_gamma_used(settings.gamma, [model])
    with in_file(settings.tree):
        return TreeLikelihood(
            alignment,
            tree,
            model,
            engine=OnRanks(settings.engine, ranks(), settings.gpus),
            precision=settings.precision,
            threads=settings.threads,
            multifurcations=settings.multifurcations,
        )


def _data(likelihood: TreeLikelihood) -> dict[str, object]:
    alignment = likelihood.alignment
    return {
        "taxa": alignment.n_taxa,
        "sites": alignment.n_sites,
        "patterns": likelihood.n_patterns,
        "datatype": alignment.alphabet.kind,
        "states": alignment.alphabet.n_states,
        "rooted": likelihood.tree.rooted,
        "alignment_settings": {key: plain(value) for key, value in alignment.settings.items()},
    }


def plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _by_branch(gradient: Gradient, lengths: np.ndarray) -> list[dict[str, object]]:
    rows = zip(gradient.branch_names, lengths.T.tolist(), gradient.branch_lengths.T.tolist())
    return [{"branch": name, "length": length, "derivative": derivative} for name, length, derivative in rows]


def criteria_line(aic: float, aicc: float, bic: float) -> str:
    """For people."""
    return f"AIC {aic:.4f}, AICc {f'{aicc:.4f}' if np.isfinite(aicc) else 'not defined'}, BIC {bic:.4f}"


def few_sites(n_free: int, n_sites: int) -> tuple[str, ...]:
    """A warning where AICc is not defined (criteria.criteria), as numbers cannot be told from these data."""
    if n_sites > n_free + 1:
        return ()
    return (
        f"{n_free} free numbers are fitted to {n_sites} sites, which hardly tell them: AICc is not defined, "
        "and AIC and BIC are not to be relied on",
    )


def optimum_record(optimum: Optimum) -> dict[str, object]:
    return {
        "free_numbers": optimum.n_free,
        "aic": optimum.aic,
        "aicc": optimum.aicc if np.isfinite(optimum.aicc) else None,
        "bic": optimum.bic,
        "evaluations": optimum.evaluations,
        "converged": optimum.converged,
        "largest_derivative": optimum.largest_derivative,
        "log_likelihood_of_each_start": list(optimum.starting_log_likelihoods),
    }
