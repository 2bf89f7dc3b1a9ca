"""`phloem ml --genes FOLDER`: a tree of every alignment in a folder, with one table.

Several processes share the genes; each keeps a journal of its own, and all of them are read on a resume.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from phloem import __version__
from phloem.analysis.gene_files import alignments_in
from phloem.analysis.ml import analysed, checked
from phloem.analysis.ml_adequacy import IN_A_ROW
from phloem.analysis.ml_data import settings_of
from phloem.analysis.ml_files import tree_text
from phloem.analysis.ml_report import model_text_of
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.outputs import alone, check_outputs
from phloem.analysis.provenance import provenance
from phloem.errors import InputError, PhloemError
from phloem.hardware.notice import on_first_compilation
from phloem.hardware.ranks import Ranks, ranks
from phloem.io.input_file import input_digest
from phloem.io.journal import Journal
from phloem.io.output_file import write_file

if TYPE_CHECKING:
    from phloem.inference.ml.search_state import Told

COLUMNS = (
    "gene", "taxa", "sites", "model", "log_likelihood", "tree_length", "support_mean", *IN_A_ROW, "seconds",
    "error",
)  # fmt: skip
_FORM = 3
_NOT_HERE = (
    "partitions", "part", "tree", "picture", "linkage", "link", "block", "outgroup", "engine", "sprta",
    "constraint", "ancestral", "iqtree_files", "auspice", "fixed_tree", "lengths",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class GenesResult:
    """rows: of every gene, by the names of COLUMNS; error is "" of a gene that has a tree, and tree is
    that in Newick. kept: genes that an earlier run had done. files: name → what it holds."""

    rows: tuple[dict[str, Any], ...]
    kept: int
    files: dict[str, str]
    seconds: float

    @property
    def warned(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["warnings"]]

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["error"]]


def run_genes(
    settings: MlSettings,
    told: Told | None = None,
    compiling: Callable[[str], None] | None = None,
    here: Ranks | None = None,
) -> GenesResult:
    """settings.alignment: the folder. Every gene is analysed with the other settings, as phloem ml would, but
    without the taxa of which it knows nothing: drawn anywhere they would count against branches. One that
    cannot be has its error in the table, and the others go on.

    What is done is in PREFIX.genes.checkpoint, from which a run that was killed goes on. here: processes that
    share the genes; of the others than the first, which calls this, each has a checkpoint beside it. Errors:
    InputError for a folder without alignments, options that are of one alignment only, and outputs that
    exist.
    """
    checked(settings)
    if compiling is not None:
        on_first_compilation(compiling)
    genes = genes_of(settings)
    with alone(settings.file_prefix, genes.values()):
        return _run_alone(settings, genes, told, here or ranks())


def _run_alone(settings: MlSettings, genes: dict[str, str], told: Told | None, here: Ranks) -> GenesResult:
    """run_genes, while no other process works on the same files."""
    begin, files = time.perf_counter(), files_of(settings)
    trees = f"{settings.file_prefix}.gene_trees"
    journal = _journal(settings)
    done = {row["gene"]: row for row in journal.read()}
    check_outputs([*files][:-1], genes.values(), settings.redo)
    if os.path.isdir(trees) and os.listdir(trees) and not (done or settings.redo):
        hint = "Give another --prefix, or --redo to replace what is in it."
        raise InputError("this folder exists already", file=trees, hint=hint)
    os.makedirs(trees, exist_ok=True)
    rows = here.together(_shared_rows, settings, genes, done, told=told)
    kept = sum(done.get(row["gene"]) == row for row in rows)
    result = GenesResult(tuple(rows), kept, files, time.perf_counter() - begin)
    table, every, record, _ = files
    lines = ["\t".join(COLUMNS), *("\t".join(_cell(row[name]) for name in COLUMNS) for row in rows)]
    write_file(table, "\n".join(lines) + "\n")
    write_file(every, "".join(row["tree"].splitlines()[-1] + "\n" for row in rows if row["tree"]))
    write_file(record, json.dumps(_record(settings, rows, result.seconds), indent=1) + "\n")
    journal.remove()
    return result


def _shared_rows(
    here: Ranks,
    settings: MlSettings,
    genes: dict[str, str],
    done: Mapping[str, Any],
    told: Told | None = None,
) -> list[dict[str, Any]]:
    """Rows of all genes, on rank 0; done: those of an earlier run."""
    from phloem.inference.ml.search_state import Doing

    own = shares_of_genes(genes, here.size)[here.number]
    journal, rows, seen = _journal(settings).of(here.number), {}, 0
    for name in own:
        digest, row = input_digest(genes[name]), done.get(name)
        if row is None or row["digest"] != digest:
            row = {"digest": digest} | _row(
                name, replace(settings, alignment=genes[name], prefix=name, genes=True)
            )
            journal.add(row)
        path = os.path.join(f"{settings.file_prefix}.gene_trees", f"{name}.tree")
        if row["tree"]:
            write_file(path, row["tree"])
        elif os.path.exists(path):
            os.unlink(path)  # of other data or settings
        rows[name] = row
        if told is not None:
            seen, value = min(seen + here.size, len(genes)), row["log_likelihood"]
            doing = Doing("genes", seen, len(genes), f"gene {seen} of {len(genes)}, {name}", "about")
            told(doing, np.nan if value is None else value)
    found: dict[str, Any] = {}
    for part in here.gather(rows) or ():
        found |= part
    return [found[name] for name in genes if name in found]


def shares_of_genes(genes: Mapping[str, str], size: int) -> list[list[str]]:
    """Names for every process: the largest files first, each to whom has least; of one process, in order."""
    if size == 1:
        return [list(genes)]
    sizes = {name: os.path.getsize(path) for name, path in genes.items()}
    shares: list[list[str]] = [[] for _ in range(size)]
    burden = [0] * size
    for name in sorted(genes, key=lambda name: (-sizes[name], name)):
        least = burden.index(min(burden))
        shares[least].append(name)
        burden[least] += sizes[name]
    return shares


def genes_of(settings: MlSettings) -> dict[str, str]:
    """Name of every gene → its file, in order of names."""
    folder, usual = settings.alignment, MlSettings("")
    for name in _NOT_HERE:
        if getattr(settings, name) != getattr(usual, name):
            raise InputError(
                f"--{name.replace('_', '-')} is of one alignment, and --genes takes many",
                hint="Leave it out.",
            )
    if not settings.searches:
        raise InputError("--genes makes trees, and --model MF searches none", hint="Say --model auto.")
    if not os.path.isdir(folder):
        raise InputError("--genes wants a folder with an alignment a gene", file=folder, hint="Name one.")
    return alignments_in(folder)


def files_of(settings: MlSettings) -> dict[str, str]:
    """Name → what is written there."""
    prefix = settings.file_prefix
    return {
        f"{prefix}.genes.tsv": "a row a gene: model, log-likelihood, tree length, supports, or its error",
        f"{prefix}.genes.nwk": "the trees, in the order of the table",
        f"{prefix}.genes.json": "the whole result, for programs",
        f"{prefix}.gene_trees": "a folder with a tree file a gene",
    }


def _row(name: str, settings: MlSettings) -> dict[str, Any]:
    begin = time.perf_counter()
    row: dict[str, Any] = dict.fromkeys(COLUMNS) | {"gene": name, "error": "", "tree": "", "warnings": []}
    try:
        result = analysed(settings)[0]
    except PhloemError as error:
        row |= {"error": " ".join(str(error).split()), "seconds": time.perf_counter() - begin}
        return row
    assert result.found is not None
    optimum, supports = result.found.optimum, result.supports
    means = [] if supports is None or not len(supports.shares) else (100 * supports.shares.mean(0)).tolist()
    return row | {
        "taxa": result.data["taxa"],
        "sites": result.data["sites"],
        "model": model_text_of(optimum),
        "log_likelihood": optimum.log_likelihood,
        "tree_length": float(optimum.tree.lengths[:-1].sum()),
        "support_mean": "/".join(f"{mean:.1f}" for mean in means),
        **result.adequacy.parts[0].in_a_row(),
        "seconds": time.perf_counter() - begin,
        "tree": tree_text(result),
        "warnings": list(result.warnings),
    }


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:.6f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.3e}"


def _record(settings: MlSettings, rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    about = provenance([], None) | {"seed": settings.seed}
    chosen = {"effort": settings.effort._asdict(), "settings": settings_of(settings)}
    return {"genes": rows, "seconds": seconds, **chosen, "provenance": about}


def _journal(settings: MlSettings) -> Journal:
    """Rows of genes; a kill loses the gene that is being done."""
    others = ("alignment", "prefix", "threads", "redo")
    chosen = {k: v for k, v in settings_of(settings).items() if k not in others}
    files = [input_digest(file) for file in settings.inputs if file != settings.alignment]
    text = json.dumps([_FORM, __version__, chosen, files], sort_keys=True, default=str)
    identity = hashlib.sha256(text.encode()).hexdigest()
    return Journal(f"{settings.file_prefix}.genes.checkpoint", identity, settings.redo)
