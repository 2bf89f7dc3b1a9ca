"""`phloem ml`: the likeliest tree of an alignment, with every length and parameter fitted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phloem.analysis.likelihood import optimum_record, plain
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import DataOptions, alignment_of
from phloem.data.alignment import Alignment
from phloem.errors import STANDARD_INPUT, InputError
from phloem.hardware.limits import require_threads
from phloem.hardware.notice import on_first_compilation
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, read_trees, write_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.plot.terminal_tree import draw_tree
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.tree_search import SearchResult

USUAL_MODEL = {
    "dna": "GTR+F+G4",
    "rna": "GTR+F+G4",
    "protein": "LG+G4",
    "codon": "GY94+F3X4",
    "binary": "MK+G4",
}


@dataclass(frozen=True)
class MlSettings(DataOptions):
    """Everything that `phloem ml` can be told; field names are those of its options.

    model: a model string; by default one for the kind of data (USUAL_MODEL). tree: a file with a tree to
    begin from. prefix: what the names of the files written begin with; by default the alignment's name.
    radius, patience, seed, threads: inference/ml/tree_search.py. gamma: what +G means where the model
    string does not say. Existing files are replaced only with redo.
    """

    model: str | None = None
    tree: str | None = None
    prefix: str | None = None
    radius: int = 5
    patience: int = 10
    seed: int = 1
    threads: int | None = None
    gamma: Literal["mean", "median"] = "mean"
    redo: bool = False

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        return [*self.data_files, *([self.tree] if self.tree is not None else [])]

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with."""
        name = "stdin" if self.alignment == STANDARD_INPUT else Path(self.alignment).name
        return self.prefix or name.removesuffix(".gz").rsplit(".", 1)[0]


@dataclass(frozen=True, eq=False)
class MlResult:
    """found: what the search found. tree: Newick, with its drawing for a terminal. files: name → what it
    holds. seconds: of the search, without reading and compiling."""

    settings: MlSettings
    found: SearchResult
    tree: str
    drawing: str
    data: dict[str, object]
    files: dict[str, str]
    seconds: float
    provenance: dict[str, Any]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        optimum = self.found.optimum
        return {
            "log_likelihood": optimum.log_likelihood,
            "model": optimum.model_text,
            "tree": self.tree,
            "optimum": optimum_record(optimum),
            "start": {"origin": self.found.origin, "log_likelihood": self.found.first},
            "tries": self.found.tries,
            "better_trees": [better._asdict() for better in self.found.found],
            "seconds": self.seconds,
            "data": self.data,
            "warnings": list(self.warnings),
            "settings": asdict(self.settings),
            "provenance": self.provenance,
        }


def run_ml(
    settings: MlSettings,
    told: Callable[[str, float], None] | None = None,
    compiling: Callable[[str], None] | None = None,
) -> MlResult:
    """Read, search, write PREFIX.tree, PREFIX.json and PREFIX.report.

    told: called with what is being done and the best log-likelihood so far. compiling: called with a sentence
    if kernels have to be compiled first. Errors: PhloemError of every kind.
    """
    from phloem.inference.ml.tree_search import SearchSettings, search_tree

    if compiling is not None:
        on_first_compilation(compiling)
    require_threads(settings.threads)
    files = _files(settings)
    check_outputs(files, settings.inputs, settings.redo)
    alignment = alignment_of(settings)
    start, warnings = _start(settings)
    model = model_for_alignment(_model_text(settings, alignment), alignment, settings.gamma)
    of_search = SearchSettings(settings.radius, settings.patience, settings.seed, settings.threads)
    begin = time.perf_counter()
    found = search_tree(alignment, model, start, of_search, told)
    seconds = time.perf_counter() - begin
    if not found.optimum.converged:
        warnings.append("the last fit of lengths and parameters did not converge")
    result = MlResult(
        settings=settings,
        found=found,
        tree=newick_text([found.optimum.tree]).strip(),
        drawing=draw_tree(found.optimum.tree, 100),
        data=_data(alignment),
        files=files,
        seconds=seconds,
        provenance=provenance(settings.inputs, found.selection) | {"seed": settings.seed},
        warnings=tuple(warnings),
    )
    tree_file, record_file, report_file = files
    write_trees(tree_file, [found.optimum.tree])
    write_json(result.to_json(), record_file)
    write_file(report_file, report_text(result))
    return result


def _files(settings: MlSettings) -> dict[str, str]:
    prefix = settings.file_prefix
    if not Path(prefix).name or prefix.endswith(os.sep):
        raise InputError("the prefix names a folder", file=prefix, hint="Add how the files' names begin.")
    return {
        f"{prefix}.tree": "the tree, in substitutions per site",
        f"{prefix}.json": "the whole result, for programs",
        f"{prefix}.report": "the same, for people",
    }


def _start(settings: MlSettings) -> tuple[Tree | None, list[str]]:
    if settings.tree is None:
        return None, []
    trees = list(read_trees(settings.tree))
    more = [f"the tree file has {len(trees):,} trees: this starts from the first"] if len(trees) > 1 else []
    return trees[0], more


def _model_text(settings: MlSettings, alignment: Alignment) -> str:
    return settings.model or USUAL_MODEL.get(alignment.alphabet.kind, "MK+G4")


def _data(alignment: Alignment) -> dict[str, object]:
    return {
        "taxa": alignment.n_taxa,
        "sites": alignment.n_sites,
        "datatype": alignment.alphabet.kind,
        "states": alignment.alphabet.n_states,
        "alignment_settings": {key: plain(value) for key, value in alignment.settings.items()},
    }


def report_text(result: MlResult) -> str:
    """Data, model, how the search went, parameters, and the tree drawn."""
    optimum, data = result.found.optimum, result.data
    lines = [
        f"phloem {result.provenance['version']}, {result.provenance['date']}",
        "",
        f"alignment: {result.settings.alignment}",
        f"  {data['taxa']} taxa, {data['sites']:,} sites, {data['datatype']}, {data['states']} states",
        f"model: {optimum.model_text}",
        "",
        f"log-likelihood: {optimum.log_likelihood:.4f}",
        f"free numbers: {optimum.n_free}",
        f"AIC {optimum.aic:.4f}, AICc {optimum.aicc:.4f}, BIC {optimum.bic:.4f}",
        f"tree length: {optimum.branch_lengths.sum():.6f} substitutions per site",
        f"seconds: {result.seconds:.2f}, seed {result.settings.seed}",
        "",
        "search:",
        f"  from {result.found.origin}: {result.found.first:.4f}",
        f"  {result.found.tries} tries from elsewhere, {len(result.found.found)} led to a better tree",
        *(f"  try {b.number} ({b.kind}): {b.log_likelihood:.4f}" for b in result.found.found),
        *(f"warning: {warning}" for warning in result.warnings),
        "",
        result.drawing,
        "",
        "The tree is unrooted: where it is drawn from carries no information.",
    ]
    return "\n".join(lines) + "\n"
