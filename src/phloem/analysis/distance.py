"""`phloem distances`, `phloem upgma`, `phloem nj`: from an alignment or a matrix to distances and a tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TextIO

import numpy as np

from phloem.analysis.distance_devices import JOINING, DistanceDevices, choose_devices, on_all_devices
from phloem.analysis.distance_options import (
    DistanceAnalysisSettings,
    check_options,
    refuse_options_of_other_inputs,
)
from phloem.analysis.provenance import provenance
from phloem.data.alignment import Alignment
from phloem.data.distance_matrix import DistanceMatrix
from phloem.data.distance_triangle import DistanceTriangle
from phloem.distance.alignment_distances import pairwise_distances, pairwise_triangle
from phloem.distance.bootstrap import bootstrap_support
from phloem.distance.cophenetic import cophenetic_correlation
from phloem.distance.deletion import measured_sites
from phloem.distance.device_bands import DeviceBands, distances_in_bands
from phloem.distance.device_distances import DeviceAlignment, DeviceMatrix
from phloem.distance.distance_settings import DistanceSettings, usual_method
from phloem.distance.linkage import linkage
from phloem.distance.memory import LINKAGE, require_memory
from phloem.distance.neighbour_joining import neighbour_joining
from phloem.engine.compilation import on_first_compilation
from phloem.engine.select import Device
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.distance_heading import is_distance_matrix, taxa_of_matrix
from phloem.io.distance_matrix import (
    precision_of,
    read_distance_matrix,
    read_distance_triangle,
    write_distance_matrix,
    write_rows,
)
from phloem.io.trees import newick_text, write_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.record import SiteModel
from phloem.tree.reroot import root_at_midpoint
from phloem.tree.tree import Tree

Progress = Callable[[str, int, int], None]
MATRIX_DIGITS = 9  # of distances written as text
# Choices made in reading an alignment, and what they are called here.
_READING = {
    "datatype": "datatype",
    "datatype_guessed": "datatype_guessed",
    "genetic_code": "genetic_code",
    "n_stop_codons_masked": "stop_codons_masked",
}
Distances = DistanceMatrix | DistanceTriangle | DeviceMatrix | DeviceBands


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


@dataclass(frozen=True)
class _Source:
    """distances(columns): of the input (None), or of a replicate with these of its n_sites columns.

    choices: how an alignment was read.
    """

    distances: Callable[[np.ndarray | None], Distances]
    n_sites: int
    devices: DistanceDevices
    choices: dict[str, object] = field(default_factory=dict)


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
    source = _source(settings, progress)
    matrix, device = source.distances(None), source.devices.tree
    seconds["distances"] = time.perf_counter() - start
    tree, cophenetic = None, None
    if settings.method is not None:
        start = time.perf_counter()
        if progress is not None:
            progress("tree", 0, 0)
        tree = build_tree(matrix, settings, device, overwrite=not settings.cophenetic)
        seconds["tree"] = time.perf_counter() - start
        at_midpoint = settings.midpoint and settings.method in JOINING and tree.n_tips > 2
        if at_midpoint:
            _refuse_negative_paths(tree, settings)
        if settings.cophenetic and not isinstance(matrix, (DeviceMatrix, DeviceBands)):
            found = cophenetic_correlation(
                tree, matrix if isinstance(matrix, DistanceTriangle) else matrix.values
            )
            cophenetic = found if np.isfinite(found) else None
        if settings.bootstrap > 0:
            start = time.perf_counter()
            tree = _with_support(tree, source, settings, progress)
            seconds["bootstrap"] = time.perf_counter() - start
        if at_midpoint:
            tree = root_at_midpoint(tree)
    if settings.out:
        _write(settings, matrix, tree)
    return DistanceAnalysisResult(
        settings=settings,
        taxa=matrix.n_taxa,
        matrix=matrix if tree is None and isinstance(matrix, DistanceMatrix) else None,
        tree=tree,
        cophenetic=cophenetic,
        choices=source.choices | dict(matrix.settings) | source.devices.choices,
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


def _read_matrix(
    settings: DistanceAnalysisSettings, progress: Progress | None
) -> DistanceMatrix | DistanceTriangle:
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
    method, is_matrix = settings.method, is_distance_matrix(settings.input)
    refuse_options_of_other_inputs(settings, is_matrix)
    if is_matrix:
        matrix = _read_matrix(settings, progress)
        devices = choose_devices(settings.device, matrix.n_taxa, method, simultaneous=settings.simultaneous)
        if method in LINKAGE:
            values = matrix.entries if isinstance(matrix, DistanceTriangle) else matrix.values
            devices = on_all_devices(devices, matrix.n_taxa, values.itemsize)
        return _Source(lambda _: matrix, 0, devices)
    alignment = alignment_of(settings)
    measure = distance_settings(settings, alignment)
    alignment = measured_sites(alignment, measure)  # before the bootstrap draws from its columns
    choices = {_READING[name]: value for name, value in alignment.settings.items() if name in _READING}
    devices = choose_devices(
        settings.device, alignment.n_taxa, method, alignment, measure, 1 + settings.bootstrap,
        settings.cophenetic, settings.simultaneous,
    )  # fmt: skip
    if devices.by_rows:
        return _Source(
            lambda columns: distances_in_bands(_drawn(alignment, columns), measure),
            alignment.n_sites,
            devices,
            choices,
        )
    if devices.stays:
        return _Source(DeviceAlignment(alignment, measure).distances, alignment.n_sites, devices, choices)
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

    return _Source(distances, alignment.n_sites, devices, choices)


def alignment_of(settings: DistanceAnalysisSettings) -> Alignment:
    """The alignment that the settings name."""
    return read_alignment(
        settings.input,
        datatype=settings.datatype,
        genetic_code=settings.genetic_code,
        stop_codons=settings.stop_codons,
        sites=settings.sites,
    )


def _drawn(alignment: Alignment, columns: np.ndarray | None) -> Alignment:
    """A bootstrap replicate with these columns; None: the alignment itself."""
    if columns is None:
        return alignment
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, columns]))


def distance_settings(settings: DistanceAnalysisSettings, alignment: Alignment) -> DistanceSettings:
    """The choices left open made for this alignment."""
    usual = usual_method(alignment.alphabet.kind)
    method = settings.distance or ("ml" if settings.model is not None else usual)
    model = _site_model(settings.model, alignment) if settings.model is not None else None
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


def _site_model(text: str, alignment: Alignment) -> SiteModel:
    model = model_for_alignment(text, alignment)
    if model.free:
        raise InputError(
            f"{', '.join(parameter.name for parameter in model.free)} of {model.name} have no value",
            hint="Write it in braces, as HKY{2.5}+F+G4{0.5}; +F counts frequencies in the data.",
        )
    return model.evaluate()


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


def _refuse_negative_paths(tree: Tree, settings: DistanceAnalysisSettings) -> None:
    """Before a long bootstrap rather than after it."""
    negative = int((tree.lengths[:-1] < 0).sum())
    if negative:
        raise InputError(
            f"{negative:,} branches of the joined tree are negative, and --midpoint measures paths",
            file=settings.input,
            hint="Add --negative zero, or --negative transfer.",
        )


def _write(settings: DistanceAnalysisSettings, matrix: Distances, tree: Tree | None) -> None:
    assert settings.out is not None
    if tree is not None:
        write_trees(settings.out, tree, precision=settings.digits)
    elif isinstance(matrix, DistanceMatrix):
        write_distance_matrix(matrix, settings.out, settings.digits or MATRIX_DIGITS)
