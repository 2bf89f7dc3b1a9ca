"""`phloem distances`, `phloem upgma`, `phloem nj`: from an alignment or a matrix to distances and a tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TextIO

import numpy as np

from phloem.analysis.distance_devices import JOINING
from phloem.analysis.distance_source import (
    DistanceAnalysisSettings,
    Distances,
    Progress,
    Source,
    check_options,
    source_of,
)
from phloem.analysis.draw import at_midpoint, save_picture
from phloem.analysis.ml_outgroup import outgroup_of
from phloem.analysis.outputs import write_json
from phloem.analysis.provenance import provenance
from phloem.clustering.device_distances import DeviceBands, DeviceMatrix
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.settings import Device
from phloem.clustering.support import bootstrap_support, cophenetic_correlation
from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle
from phloem.errors import InputError
from phloem.hardware.notice import on_first_compilation
from phloem.io.distance_matrix import names_beside, write_distance_matrix, write_rows
from phloem.io.trees import newick_text, write_trees
from phloem.plot.drawing import DrawSettings
from phloem.tree.reroot import root_at_midpoint, root_at_outgroup
from phloem.tree.tree import Tree

MATRIX_DIGITS = 9  # of distances written as text


@dataclass(frozen=True, eq=False)
class DistanceAnalysisResult:
    """matrix: the distances, None where a tree was made in their memory. tree: None for distances alone.

    cophenetic: None where not asked for, or where all distances or all paths in the tree are equal.
    choices: how the distances came about. seconds: by step.
    """

    settings: DistanceAnalysisSettings
    taxa: int
    matrix: DistanceMatrix | None
    tree: Tree | None
    cophenetic: float | None
    choices: dict[str, object]
    seconds: dict[str, float]
    provenance: dict[str, Any]

    @property
    def drawn_from_midpoint(self) -> bool:
        """Whether the picture shows a root that the tree does not have."""
        return self.tree is not None and not self.tree.rooted and self.tree.n_tips > 2

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings and dictionaries, with the tree where no file has it."""
        newick = {"tree": tree_text(self)} if self.tree is not None and self.settings.out is None else {}
        return newick | {
            "taxa": self.taxa,
            "distances": self.choices,
            "cophenetic_correlation": self.cophenetic,
            "seconds": self.seconds,
            "settings": asdict(self.settings),
            "provenance": self.provenance,
        }


def run_distance_analysis(
    settings: DistanceAnalysisSettings,
    progress: Progress | None = None,
    compiling: Callable[[str], None] | None = None,
) -> DistanceAnalysisResult:
    """Read, measure, cluster or join, and write settings.out if given.

    progress(step, done, total), total 0 where it is not known; compiling: called with a sentence if kernels
    have to be compiled first (engine.compilation).
    Errors: InputError for data and settings that do not go together.
    """
    check_options(settings)
    if compiling is not None:
        on_first_compilation(compiling)
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    source = source_of(settings, progress)
    matrix, device = source.distances(None), source.devices.tree
    seconds["distances"] = time.perf_counter() - start
    tree, cophenetic = None, None
    if settings.method is not None:
        start = time.perf_counter()
        if progress is not None:
            progress("tree", 0, 0)
        tree = build_tree(matrix, settings, device, overwrite=not settings.cophenetic)
        seconds["tree"] = time.perf_counter() - start
        root = _root_of(tree, settings)
        if settings.cophenetic and not isinstance(matrix, (DeviceMatrix, DeviceBands)):
            found = cophenetic_correlation(
                tree, matrix if isinstance(matrix, DistanceTriangle) else matrix.values
            )
            cophenetic = found if np.isfinite(found) else None
        if settings.bootstrap > 0:
            start = time.perf_counter()
            tree = _with_support(tree, source, settings, progress)
            seconds["bootstrap"] = time.perf_counter() - start
        tree = tree if root is None else root(tree)
    result = DistanceAnalysisResult(
        settings=settings,
        taxa=matrix.n_taxa,
        matrix=matrix if tree is None and isinstance(matrix, DistanceMatrix) else None,
        tree=tree,
        cophenetic=cophenetic,
        choices=source.choices | dict(matrix.settings) | source.devices.choices,
        seconds=seconds,
        provenance=provenance(_inputs(settings, matrix)),
    )
    _write(result, matrix)
    return result


def _inputs(settings: DistanceAnalysisSettings, matrix: Distances) -> list[str]:
    """The files read: the names of an array have one of their own."""
    names = (settings.names or names_beside(settings.input)) if "names" in matrix.settings else None
    return [settings.input, *([] if names is None else [names])]


def tree_text(result: DistanceAnalysisResult) -> str:
    """The tree as Newick."""
    return (
        newick_text([result.tree], precision=result.settings.digits).strip()
        if result.tree is not None
        else ""
    )


def print_matrix(result: DistanceAnalysisResult, stream: TextIO) -> None:
    """Write the distances as a square PHYLIP matrix."""
    if result.matrix is not None:
        write_rows(result.matrix, stream, None, result.settings.digits or MATRIX_DIGITS)


def build_tree(
    matrix: Distances,
    settings: DistanceAnalysisSettings,
    device: Device,
    overwrite: bool = False,
) -> Tree:
    """The tree of a matrix by settings.method; overwrite: in the matrix's own memory, which is lost."""
    if matrix.n_taxa < 2:
        raise InputError("a tree needs two taxa", file=settings.input, hint="Add a sequence.")
    method = settings.method or "upgma"
    if method == "nj" or method == "bionj" or method == "unj":
        if isinstance(matrix, DeviceMatrix):
            joins = matrix.neighbour_joining(method)
        else:
            assert isinstance(matrix, DistanceMatrix)  # LINKAGE alone works in a triangle
            joins = neighbour_joining(
                matrix.values, method, simultaneous=settings.simultaneous, overwrite=overwrite,
                threads=settings.cpu_threads, device=device,
            )  # fmt: skip
        return joins.tree(matrix.taxa, settings.negative)
    if isinstance(matrix, (DeviceMatrix, DeviceBands)):
        return matrix.linkage(method).tree(matrix.taxa)
    distances = matrix if isinstance(matrix, DistanceTriangle) else matrix.values
    merges = linkage(distances, method, overwrite=overwrite, threads=settings.cpu_threads, device=device)
    return merges.tree(matrix.taxa)


def _with_support(
    tree: Tree, source: Source, settings: DistanceAnalysisSettings, progress: Progress | None
) -> Tree:
    def build(columns: np.ndarray) -> Tree:
        return build_tree(source.distances(columns), settings, source.devices.tree, overwrite=True)

    told = None if progress is None else lambda done, total: progress("bootstrap", done, total)
    return bootstrap_support(tree, source.n_sites, build, settings.bootstrap, settings.seed, told)


def _root_of(tree: Tree, settings: DistanceAnalysisSettings) -> Callable[[Tree], Tree] | None:
    """How the joined tree is to be rooted; InputError where it cannot be, before a long bootstrap."""
    if settings.outgroup is not None:
        outgroup = outgroup_of(settings.outgroup, tree.taxa)
        root_at_outgroup(tree, outgroup)
        return lambda tree: root_at_outgroup(tree, outgroup)
    if not settings.midpoint or settings.method not in JOINING or tree.n_tips < 3:
        return None
    _refuse_negative_paths(tree, settings)
    return root_at_midpoint


def _refuse_negative_paths(tree: Tree, settings: DistanceAnalysisSettings) -> None:
    """InputError for a tree that has no midpoint."""
    negative = int((tree.lengths[:-1] < 0).sum())
    if negative:
        raise InputError(
            f"{negative:,} branches of the joined tree are negative, and --midpoint measures paths",
            file=settings.input,
            hint="Add --negative zero, or --negative transfer.",
        )


def _write(result: DistanceAnalysisResult, matrix: Distances) -> None:
    """Every file that the settings name."""
    settings, tree = result.settings, result.tree
    if settings.out is not None:
        if tree is not None:
            write_trees(settings.out, tree, precision=settings.digits)
        elif isinstance(matrix, DistanceMatrix):
            write_distance_matrix(matrix, settings.out, settings.digits or MATRIX_DIGITS)
    if settings.picture is not None and tree is not None:
        shown = at_midpoint(tree) if result.drawn_from_midpoint else tree
        save_picture(
            shown, settings.picture, DrawSettings(shape="circular" if settings.circular else "rectangular")
        )
    write_json(result.to_json(), settings.json)
