"""`phloem distances`, `phloem upgma`, `phloem nj`: distances and the trees made from them."""

from __future__ import annotations

from typing import Any, Literal

import typer

from phloem.cli.data_options import takes_data

_takes_input = takes_data(
    ambiguity="missing",
    alignment_help="Alignment (FASTA, PHYLIP, NEXUS, …); or distances: PHYLIP, NEXUS, CSV, MEGA, .npy, a "
    "list of pairs; -: standard input.",
)
_DISTANCE = typer.Option(
    None, "--distance", "-d", help="p, jc69, k80, f84, tn93, logdet; poisson, kimura; ml. Else by data type."
)
_MODEL = typer.Option(
    None, "--model", "-m", help="Maximum-likelihood distances under this model, as LG+G4{0.8}."
)
_SHAPE = typer.Option(None, help="Shape of gamma-distributed rates across sites, for a correction.")
_DELETION = typer.Option("pairwise", help="Leave out a site for pairs that lack it, or for all.")
_SATURATED = typer.Option("longest", help="Pairs too different to measure: set to --longest, or error.")
_LONGEST = typer.Option(5.0, help="Longest distance, expected substitutions per site.")
_NAMES = typer.Option(None, help="File of names for a .npy matrix, one a line.")
_TOLERANCE = typer.Option(1e-5, help="How far d(i, j) and d(j, i) may lie apart.")
_PRECISION = typer.Option("auto", help="Of the matrix; auto: float64 up to 4,096 taxa.")
_BOOTSTRAP = typer.Option(0, "--bootstrap", "-b", help="Replicates of the alignment's columns, for support.")
_SEED = typer.Option(1, help="Of the bootstrap; the same seed draws the same columns.")
_COPHENETIC = typer.Option(False, "--cophenetic", help="Correlation of path lengths with distances.")
_DIGITS = typer.Option(None, help="Significant digits of numbers written; all that are needed by default.")
_OUT = typer.Option(None, "--out", "-o", help="Newick (or .nex) file; else, or as -, standard output.")
_PICTURE = typer.Option(None, "--picture", help="Draw the tree: .svg, .png or .pdf file.")
_CIRCULAR = typer.Option(False, "--circular", help="Draw the picture around the root.")
_JSON = typer.Option(None, "--json", help="Write choices and provenance as JSON; - is standard output.")
_REDO = typer.Option(False, "--redo", help="Replace files that exist.")
_THREADS = typer.Option(None, help="CPU threads; all usable cores if not given.")
_DEVICE = typer.Option("auto", help="Where distances and tree are computed.")

Auto = Literal["auto", "float32", "float64"]


@_takes_input
def distances(
    data: dict[str, Any],
    distance: str | None = _DISTANCE,
    model: str | None = _MODEL,
    shape: float | None = _SHAPE,
    deletion: Literal["pairwise", "complete"] = _DELETION,
    saturated: Literal["longest", "error"] = _SATURATED,
    longest: float = _LONGEST,
    names: str | None = _NAMES,
    tolerance: float = _TOLERANCE,
    precision: Auto = _PRECISION,
    digits: int | None = typer.Option(
        None, help="Significant digits of numbers written as text; 9 if not given."
    ),
    out: str = typer.Option(
        ...,
        "--out",
        "-o",
        help="Matrix: .npy, .csv, .tsv, any other name is PHYLIP; .gz packs; - is standard output.",
    ),
    json: str | None = _JSON,
    redo: bool = _REDO,
    threads: int | None = _THREADS,
    device: Literal["auto", "cpu", "gpu"] = _DEVICE,
) -> None:
    """Pairwise distances of an alignment's sequences, or a distance matrix in another format."""
    _run(dict(locals()), None)


@_takes_input
def upgma(
    data: dict[str, Any],
    method: Literal["upgma", "wpgma", "single", "complete"] = typer.Option("upgma", help="Linkage."),
    distance: str | None = _DISTANCE,
    model: str | None = _MODEL,
    shape: float | None = _SHAPE,
    deletion: Literal["pairwise", "complete"] = _DELETION,
    saturated: Literal["longest", "error"] = _SATURATED,
    longest: float = _LONGEST,
    names: str | None = _NAMES,
    tolerance: float = _TOLERANCE,
    precision: Auto = _PRECISION,
    bootstrap: int = _BOOTSTRAP,
    seed: int = _SEED,
    cophenetic: bool = _COPHENETIC,
    digits: int | None = _DIGITS,
    out: str | None = _OUT,
    picture: str | None = _PICTURE,
    circular: bool = _CIRCULAR,
    json: str | None = _JSON,
    redo: bool = _REDO,
    threads: int | None = _THREADS,
    device: Literal["auto", "cpu", "gpu"] = _DEVICE,
) -> None:
    """Ultrametric tree by average linkage (UPGMA), or WPGMA, single or complete linkage."""
    _run(dict(locals()), method)


@_takes_input
def nj(
    data: dict[str, Any],
    method: Literal["nj", "bionj", "unj"] = typer.Option("nj", help="Neighbour joining, BIONJ or UNJ."),
    distance: str | None = _DISTANCE,
    model: str | None = _MODEL,
    shape: float | None = _SHAPE,
    deletion: Literal["pairwise", "complete"] = _DELETION,
    saturated: Literal["longest", "error"] = _SATURATED,
    longest: float = _LONGEST,
    names: str | None = _NAMES,
    tolerance: float = _TOLERANCE,
    precision: Auto = _PRECISION,
    negative: Literal["keep", "zero", "transfer"] = typer.Option(
        "keep", help="Negative branches: keep, set to zero, or also shorten the sister branch by as much."
    ),
    simultaneous: bool = typer.Option(
        False,
        "--simultaneous",
        help="Join mutual best pairs in rounds: an approximation, not the neighbour-joining tree.",
    ),
    midpoint: bool = typer.Option(
        False, "--midpoint", help="Root the tree in the middle of its longest path."
    ),
    outgroup: str | None = typer.Option(
        None, help="Root the tree between these taxa, separated by commas, and all others."
    ),
    bootstrap: int = _BOOTSTRAP,
    seed: int = _SEED,
    cophenetic: bool = _COPHENETIC,
    digits: int | None = _DIGITS,
    out: str | None = _OUT,
    picture: str | None = _PICTURE,
    circular: bool = _CIRCULAR,
    json: str | None = _JSON,
    redo: bool = _REDO,
    threads: int | None = _THREADS,
    device: Literal["auto", "cpu", "gpu"] = _DEVICE,
) -> None:
    """Neighbour-joining tree (exact), or BIONJ or UNJ."""
    _run(dict(locals()), method)


def _run(options: dict[str, Any], method: str | None) -> None:
    from phloem.analysis.distance import print_matrix, run_distance_analysis, tree_text
    from phloem.analysis.distance_source import DistanceAnalysisSettings
    from phloem.analysis.outputs import STDOUT, json_text
    from phloem.cli.streams import (
        message_console,
        print_result,
        require_stdout,
        result_stream,
        shown_steps,
    )

    options |= options.pop("data")
    options["out"] = None if options["out"] == STDOUT else options["out"]
    settings = DistanceAnalysisSettings(**(options | {"method": method}))
    if settings.out is None or settings.json == STDOUT:
        require_stdout()
    live = message_console(live=True)
    with shown_steps(live, "reading") as progress:
        result = run_distance_analysis(settings, progress=progress, compiling=live.print)
    _show(result, message_console())
    if settings.json == STDOUT:
        print_result(json_text(result.to_json()))
    elif settings.out is None and result.tree is not None:
        print_result(tree_text(result) + "\n")
    elif settings.out is None:
        with result_stream() as out:
            print_matrix(result, out)


def _show(result, console) -> None:
    from textwrap import wrap

    places = [name for name in ("measuring", "matrix", "tree") if name in result.choices]
    known = [
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
        for name, value in result.choices.items()
        if value is not None and value is not False and name not in places
    ]
    choices = ", ".join(known)
    for line in wrap(f"{result.taxa:,} taxa; {choices}", 80, subsequent_indent="  ", break_long_words=False):
        console.print(line)
    reasons: dict[str, list[str]] = {}
    for name in places:
        reasons.setdefault(str(result.choices[name]), []).append(name)
    for reason, names in reasons.items():
        console.print(f"{' and '.join(names)}: {reason}")
    if result.choices.get("saturated_pairs"):
        console.print(
            f"{result.choices['saturated_pairs']:,} pairs are saturated: {result.choices['saturated']}",
            style="yellow",
        )
    if result.settings.simultaneous:
        console.print("not the neighbour-joining tree: joins mutual best pairs in rounds", style="yellow")
    console.print("; ".join(f"{name} {seconds:.2f} s" for name, seconds in result.seconds.items()))
    if result.settings.cophenetic:
        none = "none: all distances, or all paths in the tree, are equal"
        value = none if result.cophenetic is None else f"{result.cophenetic:.4f}"
        console.print(f"cophenetic correlation {value}")
    if result.settings.out is not None:
        console.print(f"{'tree' if result.tree is not None else 'matrix'} written to {result.settings.out}")
    if result.settings.picture is not None:
        root = ", drawn from the midpoint" if result.drawn_from_midpoint else ""
        console.print(f"picture written to {result.settings.picture}{root}")
