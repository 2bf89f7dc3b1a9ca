"""`phloem simulate`: an alignment drawn from a tree and a model."""

from __future__ import annotations

from typing import Any, Literal

import typer

from phloem.cli.data_options import GENETIC_CODE


def simulate(
    tree: str | None = typer.Argument(None, help="Newick or NEXUS tree with branch lengths; else --tips."),
    model: str = typer.Option(..., "--model", "-m", help="With all values, as 'HKY{3.5}+FQ+G4{0.5}'; @FILE."),
    sites: int = typer.Option(..., "--sites", "-n", help="Number of sites; of codons for a codon model."),
    seed: int = typer.Option(1, help="Same seed, same tree, same alignment."),
    tips: int | None = typer.Option(None, help="Draw a random tree of so many tips."),
    shape: Literal["yule", "coalescent", "uniform"] = typer.Option(
        "yule", "--tree", help="Kind of random tree; uniform: unrooted, every topology equally likely."
    ),
    height: float | None = typer.Option(
        None, help="Of a yule or coalescent tree, substitutions per site (0.5)."
    ),
    mean_length: float | None = typer.Option(None, help="Of the branches of a uniform tree (0.1)."),
    datatype: str | None = typer.Option(
        None, help="dna, rna, protein, codon, binary, standard; else by the model's name."
    ),
    genetic_code: int = GENETIC_CODE,
    states: int | None = typer.Option(None, help="Number of states of standard data."),
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    out: str | None = typer.Option(None, "--out", "-o", help="Alignment; else it goes to standard output."),
    format: Literal["fasta", "phylip", "nexus"] | None = typer.Option(
        None, "--format", help="Else by the ending of --out (.phy, .nex), else FASTA."
    ),
    out_tree: str | None = typer.Option(None, help="Where the random tree goes; else beside --out, .nwk."),
    json: str | None = typer.Option(
        None, "--json", help="Write settings and provenance as JSON; - is standard output."
    ),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
) -> None:
    """Simulate an alignment along a tree, given or random, under any model of the package."""
    options: dict[str, Any] = dict(locals())
    from phloem.analysis.outputs import STDOUT, json_text
    from phloem.analysis.simulation import SimulationSettings, alignment_text, run_simulation
    from phloem.cli.streams import message_console, print_result, require_stdout

    options["out"] = None if out == STDOUT else out
    settings = SimulationSettings(**options)
    if settings.out is None or json == STDOUT:
        require_stdout()
    result = run_simulation(settings)
    _show(result, message_console())
    if json == STDOUT:
        print_result(json_text(result.to_json()))
    elif settings.out is None:
        print_result(alignment_text(result.alignment, settings.written_format))


def _show(result, console) -> None:
    from rich.text import Text

    settings, data = result.settings, result.alignment
    console.print(
        f"{data.n_taxa:,} taxa, {data.n_sites:,} sites, {data.alphabet.kind}"
        f"{'' if settings.datatype else ' (by the model)'}, seed {settings.seed}, {result.seconds:.2f} s"
    )
    console.print(Text(f"model: {result.model}"))
    if settings.tree_file is not None:
        console.print(Text(f"{settings.shape} tree written to {settings.tree_file}"))
    if settings.out is not None:
        console.print(Text(f"alignment written to {settings.out} ({settings.written_format})"))
