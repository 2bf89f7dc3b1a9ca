"""`phloem distances`, `phloem upgma`, `phloem nj`: from an alignment or a matrix to distances and a tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from phloem.analysis.distance_devices import JOINING, DistanceDevices, Method, choose_devices, on_all_devices
from phloem.analysis.provenance import provenance, refuse_to_overwrite
from phloem.data.alignment import Alignment
from phloem.data.distance_matrix import DistanceMatrix
from phloem.data.distance_triangle import DistanceTriangle
from phloem.distance.alignment_distances import pairwise_distances, pairwise_triangle
from phloem.distance.bootstrap import bootstrap_support
from phloem.distance.cophenetic import cophenetic_correlation
from phloem.distance.device_bands import DeviceBands, distances_in_bands
from phloem.distance.device_distances import DeviceAlignment, DeviceMatrix
from phloem.distance.distance_settings import DistanceMethod, DistanceSettings, usual_method
from phloem.distance.linkage import linkage
from phloem.distance.memory import LINKAGE, require_memory
from phloem.distance.neighbour_joining import NegativeBranches, check_simultaneous, neighbour_joining
from phloem.engine.compilation import on_first_compilation
from phloem.engine.hardware import usable_cores
from phloem.engine.select import Device
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.distance_heading import is_distance_matrix, taxa_of_matrix
from phloem.io.distance_matrix import (
    precision_of,
    read_distance_matrix,
    read_distance_triangle,
    write_distance_matrix,
)
from phloem.io.trees import newick_text, write_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.tree.reroot import root_at_midpoint
from phloem.tree.tree import Tree

Progress = Callable[[str, int, int], None]
Distances = DistanceMatrix | DistanceTriangle | DeviceMatrix | DeviceBands


@dataclass(frozen=True)
class DistanceAnalysisSettings:
    """Everything that the distance commands can be told; field names are those of their options.

    input: an alignment, or a distance matrix. device: of distances and tree (select_distance_device).
    method: None for the distances alone. distance: None for jc69 with nucleotides, poisson with proteins, p
    with anything else; ml where a model is given. precision: of the matrix, "auto" is float64 up to 4,096
    taxa. bootstrap: replicates, from an alignment. negative: what becomes of negative branches in neighbour
    joining. simultaneous: join mutual best pairs in rounds, which is not the neighbour-joining tree.
    midpoint: root the joined tree there. out: file of the tree, or of the matrix where method is None;
    replaced only with redo.
    """

    input: str
    method: Method | None = None
    distance: DistanceMethod | None = None
    model: str | None = None
    shape: float | None = None
    ambiguity: Literal["missing", "average"] = "missing"
    deletion: Literal["pairwise", "complete"] = "pairwise"
    saturated: Literal["longest", "error"] = "longest"
    longest: float = 5.0
    datatype: str | None = None
    sites: str | None = None
    names: str | None = None
    tolerance: float = 1e-5
    precision: Literal["auto", "float32", "float64"] = "auto"
    bootstrap: int = 0
    seed: int = 1
    negative: NegativeBranches = "keep"
    simultaneous: bool = False
    midpoint: bool = False
    cophenetic: bool = False
    digits: int | None = None
    out: str | None = None
    redo: bool = False
    threads: int | None = None
    device: Device = "auto"

    @property
    def cpu_threads(self) -> int:
        return self.threads or usable_cores()[0]


@dataclass(frozen=True, eq=False)
class DistanceAnalysisResult:
    """matrix: the distances, None where a tree was made in their memory. tree: None for distances alone.

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

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings and dictionaries."""
        return {
            "taxa": self.taxa,
            "distances": self.choices,
            "cophenetic_correlation": self.cophenetic,
            "seconds": self.seconds,
            "settings": asdict(self.settings),
            "provenance": self.provenance,
        }


@dataclass(frozen=True)
class _Source:
    """distances(columns): of the input (None), or of a replicate with these of its n_sites columns."""

    distances: Callable[[np.ndarray | None], Distances]
    n_sites: int
    devices: DistanceDevices


def run_distance_analysis(
    settings: DistanceAnalysisSettings,
    progress: Progress | None = None,
    compiling: Callable[[str], None] | None = None,
) -> DistanceAnalysisResult:
    """Read, measure, cluster or join, and write settings.out if given.

    progress(step, done, total); compiling: called with a sentence if kernels have to be compiled
    first (engine.compilation).
    Errors: InputError for data and settings that do not go together.
    """
    refuse_to_overwrite([settings.out] if settings.out else [], settings.redo)
    check_simultaneous(settings.method, settings.simultaneous)
    if compiling is not None:
        on_first_compilation(compiling)
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    source = _source(settings, progress)
    matrix, device = source.distances(None), source.devices.tree
    seconds["distances"] = time.perf_counter() - start
    tree, cophenetic = None, None
    if settings.method is not None:
        start = time.perf_counter()
        tree = build_tree(matrix, settings, device, overwrite=not settings.cophenetic)
        seconds["tree"] = time.perf_counter() - start
        if settings.cophenetic and not isinstance(matrix, (DeviceMatrix, DeviceBands)):
            cophenetic = cophenetic_correlation(
                tree, matrix if isinstance(matrix, DistanceTriangle) else matrix.values
            )
        if settings.bootstrap > 0:
            start = time.perf_counter()
            tree = _with_support(tree, source, settings, progress)
            seconds["bootstrap"] = time.perf_counter() - start
        if settings.midpoint and settings.method in JOINING and tree.n_tips > 2:
            tree = _at_midpoint(tree, settings)
    if settings.out:
        _write(settings, matrix, tree)
    return DistanceAnalysisResult(
        settings=settings,
        taxa=matrix.n_taxa,
        matrix=matrix if tree is None and isinstance(matrix, DistanceMatrix) else None,
        tree=tree,
        cophenetic=cophenetic,
        choices=dict(matrix.settings) | source.devices.choices,
        seconds=seconds,
        provenance=provenance([settings.input]),
    )


def tree_text(result: DistanceAnalysisResult) -> str:
    """The tree as Newick."""
    return (
        newick_text([result.tree], precision=result.settings.digits).strip()
        if result.tree is not None
        else ""
    )


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


def _read_matrix(
    settings: DistanceAnalysisSettings, progress: Progress | None
) -> DistanceMatrix | DistanceTriangle:
    _refuse_alignment_options(settings)
    n = taxa_of_matrix(settings.input)
    _require_memory(n, precision_of(settings.precision, n), settings)
    read = read_distance_triangle if settings.method in LINKAGE else read_distance_matrix
    return read(
        settings.input,
        names=settings.names,
        precision=settings.precision,
        tolerance=settings.tolerance,
        progress=None if progress is None else lambda done, total: progress("reading", done, total),
    )


def _source(settings: DistanceAnalysisSettings, progress: Progress | None) -> _Source:
    """What the input gives, and where."""
    method = settings.method
    if is_distance_matrix(settings.input):
        matrix = _read_matrix(settings, progress)
        devices = choose_devices(settings.device, matrix.n_taxa, method, simultaneous=settings.simultaneous)
        if method in LINKAGE:
            values = matrix.entries if isinstance(matrix, DistanceTriangle) else matrix.values
            devices = on_all_devices(devices, matrix.n_taxa, values.itemsize)
        return _Source(lambda _: matrix, 0, devices)
    alignment = read_alignment(settings.input, datatype=settings.datatype, sites=settings.sites)
    measure = distance_settings(settings, alignment)
    devices = choose_devices(
        settings.device, alignment.n_taxa, method, alignment, measure, 1 + settings.bootstrap,
        settings.cophenetic, settings.simultaneous,
    )  # fmt: skip
    if devices.by_rows:
        return _Source(
            lambda columns: distances_in_bands(_drawn(alignment, columns), measure),
            alignment.n_sites,
            devices,
        )
    if devices.stays:
        return _Source(DeviceAlignment(alignment, measure).distances, alignment.n_sites, devices)
    if method in LINKAGE:
        devices = on_all_devices(devices, alignment.n_taxa, np.dtype(measure.precision).itemsize)
    _require_memory(alignment.n_taxa, measure.precision, settings)
    measure_pairs = pairwise_triangle if method in LINKAGE else pairwise_distances
    measure = replace(measure, device=devices.distances)

    def distances(columns: np.ndarray | None) -> DistanceMatrix | DistanceTriangle:
        if columns is not None:
            return measure_pairs(_drawn(alignment, columns), measure)
        told = None if progress is None else lambda done, total: progress("distances", done, total)
        return measure_pairs(alignment, measure, told)

    return _Source(distances, alignment.n_sites, devices)


def _drawn(alignment: Alignment, columns: np.ndarray | None) -> Alignment:
    """A bootstrap replicate with these columns; None: the alignment itself."""
    if columns is None:
        return alignment
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, columns]))


def distance_settings(settings: DistanceAnalysisSettings, alignment: Alignment) -> DistanceSettings:
    """The choices left open made for this alignment."""
    usual = usual_method(alignment.alphabet.kind)
    method = settings.distance or ("ml" if settings.model is not None else usual)
    model = model_for_alignment(settings.model, alignment).evaluate() if settings.model is not None else None
    return DistanceSettings(
        method=method,
        shape=settings.shape,
        ambiguity=settings.ambiguity,
        deletion=settings.deletion,
        saturated=settings.saturated,
        longest=settings.longest,
        model=model,
        precision=precision_of(settings.precision, alignment.n_taxa),
        threads=settings.cpu_threads,
        device=settings.device,
    )


def _refuse_alignment_options(settings: DistanceAnalysisSettings) -> None:
    """A distance matrix cannot be measured again or resampled: say so rather than ignore the option."""
    for name in ("distance", "model", "shape", "datatype", "sites", "bootstrap"):
        if getattr(settings, name):
            raise InputError(
                f"--{name} needs an alignment, and this is a distance matrix",
                file=settings.input,
                hint="Give the alignment instead.",
            )


def _require_memory(
    n: int, precision: Literal["float32", "float64"], settings: DistanceAnalysisSettings
) -> None:
    keeps = settings.method is not None and settings.cophenetic
    require_memory(n, settings.method, precision, settings.input, cophenetic=keeps)


def _with_support(
    tree: Tree, source: _Source, settings: DistanceAnalysisSettings, progress: Progress | None
) -> Tree:
    def build(columns: np.ndarray) -> Tree:
        return build_tree(source.distances(columns), settings, source.devices.tree, overwrite=True)

    told = None if progress is None else lambda done, total: progress("bootstrap", done, total)
    return bootstrap_support(tree, source.n_sites, build, settings.bootstrap, settings.seed, told)


def _at_midpoint(tree: Tree, settings: DistanceAnalysisSettings) -> Tree:
    negative = int((tree.lengths[:-1] < 0).sum())
    if negative:
        raise InputError(
            f"{negative:,} branches of the joined tree are negative, and --midpoint measures paths",
            file=settings.input,
            hint="Add --negative zero, or --negative transfer.",
        )
    return root_at_midpoint(tree)


def _write(settings: DistanceAnalysisSettings, matrix: Distances, tree: Tree | None) -> None:
    assert settings.out is not None
    if tree is not None:
        write_trees(settings.out, tree, precision=settings.digits)
    elif isinstance(matrix, DistanceMatrix):
        write_distance_matrix(matrix, settings.out, settings.digits or 9)
