"""`phloem ml`: from an alignment to its likeliest tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.auspice_options import takes_auspice
from phloem.cli.data_options import LINK, LINKAGE, takes_data
from phloem.cli.streams import message_console, report_console, require_stdout, told_by
from phloem.cli.support_options import takes_supports

if TYPE_CHECKING:
    from phloem.analysis.ml import MlResult
    from phloem.analysis.ml_differences import MlDifferences
    from phloem.analysis.ml_genes import GenesResult


_ROWS = 8  # of the table of models

# What commands that fit trees share (analysis/ml_settings.FitSettings).
MODEL_HELP = "Such as GTR+F+I+G4; by default GTR+F+G4, LG+G4, GY94+F3X4 or MK+G4; @FILE: of a PREFIX.model."
PREFIX = typer.Option(
    None, "--prefix", "-p", help="What the names of all files written begin with; the alignment's name."
)
SEED = typer.Option(1, help="Same seed, same numbers, whatever the number of threads.")
THREADS = typer.Option(None, help="Threads; chosen by problem size if not given.")
GAMMA = typer.Option("mean", help="Rates of +G categories: means or medians.")
REDO = typer.Option(False, "--redo", help="Replace files that exist.")

_MODEL = typer.Option(
    None,
    "--model",
    "-m",
    help=f"{MODEL_HELP} auto (MFP): the best by the criterion; MF: choose, without a search.",
)
_MERGE = typer.Option(
    None, help="With --model auto and --partitions: merge parts first, trying all pairs or the most alike."
)
_TREE = typer.Option(
    None, "--tree", "-t", help="Newick or NEXUS tree to begin from; else BIONJ of the alignment."
)
_FIXED_TREE = typer.Option(
    None,
    "--fixed-tree",
    help="Newick or NEXUS tree that is held: no search, all else. Multifurcations stay.",
)
_LENGTHS = typer.Option(
    None, help="With --fixed-tree: its lengths fitted (usual), scaled by one factor, or as given."
)
_PATIENCE = typer.Option(None, help="Tries in a row without a better tree that end a search; 10.")
_STARTS = typer.Option(
    None,
    help="Searches: of BIONJ or --tree, then in turn of parsimonious and of random trees; 1. "
    "Processes of mpiexec share them.",
)
_FAST = typer.Option(
    False, "--fast", help="Climb once, nothing is tried from elsewhere: --starts 1 --patience 0."
)
_THOROUGH = typer.Option(False, "--thorough", help="Five long searches: --starts 5 --patience 20.")
_ENGINE = typer.Option(
    "auto", help="On patterns, or on differences: for very many nearly equal genomes, GTR+F and simpler."
)
_DEVICE = typer.Option(
    "auto", help="Where a search on patterns runs; auto: on a GPU where a forecast says that it pays."
)
_SPRTA = typer.Option(
    False, "--sprta", help="With the engine of differences: how probable it is that branches are there."
)
_OUTGROUP = typer.Option(None, help="Taxa, separated by commas, beside which the tree is written and drawn.")
_ANCESTRAL = typer.Option(
    False, "--ancestral", help="States at every inner node with their probabilities: PREFIX.state."
)
_IQTREE_FILES = typer.Option(
    False, "--iqtree-files", help="The results under IQ-TREE's names too: PREFIX.treefile, .iqtree, …"
)
_CONSTRAINT = typer.Option(
    None,
    "--constraint",
    "-g",
    help="Newick tree, of some taxa or with multifurcations, to be obeyed.",
)
_GENES = typer.Option(
    False, "--genes", help="ALIGNMENT is a folder: a tree of every alignment in it, and one table."
)
_MERGE_PERCENT = typer.Option(
    None, help="With --merge relaxed: of all pairs, those with the most similar rates; 10."
)


@takes_data(partitions=True)
@takes_auspice
@takes_supports
def ml(
    data: dict[str, Any],
    nextstrain: dict[str, Any],
    supports: dict[str, Any],
    model: str | None = _MODEL,
    model_set: str | None = typer.Option(
        None, help="With --model auto: families to choose from, such as HKY,GTR or LG,WAG,LG4X,C20."
    ),
    rate_set: str | None = typer.Option(None, help="With --model auto: of E,I,G4,I+G4,R,I+R; all but I+R."),
    frequency_set: str | None = typer.Option(
        None,
        help="With --model auto: such as F,FO; F, of empirical matrices also their own; of traits equal, FO.",
    ),
    criterion: Literal["bic", "aicc", "aic"] = typer.Option("bic", help="With --model auto: what decides."),
    most_classes: int = typer.Option(10, help="With --model auto: classes of +R at most."),
    merge: Literal["greedy", "relaxed"] | None = _MERGE,
    merge_percent: float | None = _MERGE_PERCENT,
    tree: str | None = _TREE,
    fixed_tree: str | None = _FIXED_TREE,
    lengths: Literal["fitted", "scaled", "given"] | None = _LENGTHS,
    constraint: str | None = _CONSTRAINT,
    linkage: Literal["linked", "proportional", "unlinked"] | None = LINKAGE,
    link: list[str] | None = LINK,
    prefix: str | None = PREFIX,
    genes: bool = _GENES,
    keep_identical: bool = typer.Option(
        False, "--keep-identical", help="Search with all of several equal sequences, not with one."
    ),
    starts: int | None = _STARTS,
    radius: int = typer.Option(5, help="Nodes that a subtree is moved at most."),
    patience: int | None = _PATIENCE,
    fast: bool = _FAST,
    thorough: bool = _THOROUGH,
    engine: Literal["auto", "patterns", "differences"] = _ENGINE,
    sprta: bool = _SPRTA,
    device: Literal["auto", "cpu", "gpu"] = _DEVICE,
    outgroup: str | None = _OUTGROUP,
    ancestral: bool = _ANCESTRAL,
    iqtree_files: bool = _IQTREE_FILES,
    picture: str | None = typer.Option(None, help="Draw the tree: .svg, .png or .pdf file."),
    progress: str | None = typer.Option(None, help="File that says how far it is, as JSON, every second."),
    seed: int = SEED,
    threads: int | None = THREADS,
    gamma: Literal["mean", "median"] = GAMMA,
    redo: bool = REDO,
) -> None:
    """Maximum-likelihood tree: topology, branch lengths and the model's free parameters."""
    options = dict(locals()) | {"link": tuple(link or ())}
    for name in ("data", "progress", "genes"):
        del options[name]
    from phloem.analysis.processes import assists

    if not assists():
        _run(data | options, progress, genes)


def _run(options: dict[str, Any], progress: str | None, genes: bool) -> None:
    from phloem.analysis.ml import run_ml
    from phloem.analysis.ml_differences import MlDifferences
    from phloem.analysis.ml_genes import files_of, genes_of, run_genes
    from phloem.analysis.ml_settings import MlSettings
    from phloem.analysis.processes import dismiss
    from phloem.analysis.progress import ProgressFile

    require_stdout()
    options |= options.pop("nextstrain") | options.pop("supports")
    options["metadata_column"] = tuple(options["metadata_column"] or ())
    messages, settings = message_console(live=True), MlSettings(**options)
    inputs = list(genes_of(settings).values()) if genes else settings.inputs
    written = ProgressFile(progress, inputs)
    written.check(lambda: files_of(settings) if genes else settings.files)
    try:
        with messages.status("reading …") as status:
            told = written.teller(told_by(messages, status))
            if genes:
                many = run_genes(settings, told, messages.print)
            else:
                result = run_ml(settings, told, messages.print)
    except KeyboardInterrupt:
        kept = "genes.checkpoint" if genes else "checkpoint"
        if os.path.exists(f"{settings.file_prefix}.{kept}"):
            messages.print("The same command goes on from the last checkpoint.")
        raise
    dismiss()
    if not genes:
        if isinstance(result, MlDifferences):
            _show_differences(result)
        else:
            _show(result)
        return
    _show_genes(many)
    if many.failed:
        raise typer.Exit(1)


def _show_processes(what: str, more: str = "") -> None:
    from phloem.analysis.processes import shared_line

    line = shared_line(what)
    if line is not None:
        report_console().print(line + more)


def _show_genes(result: GenesResult) -> None:
    from rich.text import Text

    console, failed = report_console(), result.failed
    _show_processes("genes")
    for row in failed:
        console.print(Text.assemble((f"{row['gene']}: ", "yellow"), row["error"]))
    console.print(f"{len(result.rows) - len(failed)} of {len(result.rows)} genes have a tree")
    if result.warned:
        record = next(name for name in result.files if name.endswith(".json"))
        first = result.warned[0]
        many = f"{len(result.warned)} with warnings, which are in {record}; {first['gene']}: "
        console.print(Text.assemble((many, "yellow"), first["warnings"][0]))
    if result.kept:
        console.print(f"{result.kept} of them were done by an earlier run")
    console.print(f"{result.seconds:.2f} seconds")
    for name, what in result.files.items():
        console.print(Text(f"{name}: {what}"))


def _show_differences(result: MlDifferences) -> None:
    from rich.text import Text

    from phloem.analysis.ml_differences import data_line, round_lines, support_lines
    from phloem.analysis.model_file import shown_model

    console, found = report_console(), result.found
    console.print(Text(f"{data_line(result)}; engine of differences"))  # why was told before it began
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    console.print(Text(f"fitted model: {shown_model(found.model_text)}"), soft_wrap=True)
    value = f"{found.log_likelihood:.6f}"
    console.print(Text.assemble("log-likelihood: ", (value, "bold"), " (to the first order in lengths)"))
    for line in [*round_lines(found), *support_lines(found)]:
        console.print(Text(line))
    console.print(f"{result.seconds:.2f} seconds, reading {result.reading_seconds:.2f}")
    for name, what in result.files.items():
        console.print(Text(f"{name}: {what}"))


def _show(result: MlResult) -> None:
    from rich.text import Text

    from phloem.analysis.likelihood import criteria_line
    from phloem.analysis.ml_constraint import constraint_lines
    from phloem.analysis.ml_held import held_lines
    from phloem.analysis.ml_report import (
        all_choice_lines,
        difficulty_lines,
        merge_lines,
        model_text_of,
        part_lines,
        start_lines,
        support_lines,
    )
    from phloem.analysis.model_file import shown_model

    console, found = report_console(), result.found
    settings = result.settings
    shared = ["searches"] * (settings.effort.starts > 1) + ["bootstrap replicates"] * bool(settings.bootstrap)
    _show_processes(" and the ".join(shared), "; the first did all else")
    console.print(f"{result.data['taxa']} taxa, {result.data['sites']:,} sites, {result.data['datatype']}")
    for line in [*merge_lines(result), *all_choice_lines(result.choices, _ROWS)]:
        console.print(Text(line), soft_wrap=True)
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    if found is not None:
        optimum = found.optimum
        for line in part_lines(found.likelihood) or [f"fitted model: {model_text_of(optimum)}"]:
            console.print(Text(shown_model(line)), soft_wrap=True)
        console.print(Text.assemble("log-likelihood: ", (f"{optimum.log_likelihood:.6f}", "bold")))
        console.print(criteria_line(optimum.aic, optimum.aicc, optimum.bic))
        if result.rows.n_copies:
            console.print(f"{result.rows.copies} kept out of the search and put back")
        for line in [*constraint_lines(result.constraint), *start_lines(found)]:
            console.print(Text(line.removeprefix("  ")))
        for line in held_lines(result.held):
            console.print(Text(line))
        if result.selection is not None:
            if result.selection.engine == "gpu":
                console.print(Text(f"searched on the {result.selection.reason}"))
            console.print(f"{found.tries} tries from elsewhere, {len(found.found)} led to a better tree")
        for line in difficulty_lines(found):
            console.print(Text(line.removeprefix("  ")))
    for line in support_lines(result):
        console.print(Text(line))
    console.print(f"{result.seconds:.2f} seconds")
    for name, what in result.files.items():
        console.print(Text(f"{name}: {what}"))
