"""`phloem likelihood`: value, gradient and maximum on a given tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.data_options import takes_data

if TYPE_CHECKING:
    from phloem.analysis.likelihood import Gradient, LikelihoodResult, OptimizeResult

_WIDTH = 80
_SIMPLEX = ("frequency", "root_frequency", "weight", "class_weight")


@takes_data()
def likelihood(
    data: dict[str, Any],
    tree: str | None = typer.Option(
        None, "--tree", "-t", help="Newick or NEXUS tree with lengths; else BIONJ of the alignment."
    ),
    model: str = typer.Option(..., "--model", "-m", help="Model string, such as 'HKY{3.5}+F+G4{0.5}'."),
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    multifurcations: bool = typer.Option(
        False, "--multifurcations", help="Resolve multifurcations by zero-length branches."
    ),
    gradient: bool = typer.Option(False, "--gradient", help="Derivatives by every branch and parameter."),
    optimize: bool = typer.Option(
        False, "--optimize", help="Fit branch lengths and parameters without a value."
    ),
    out_tree: str | None = typer.Option(None, help="Write the tree with fitted branch lengths here."),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
    engine: Literal["auto", "reference", "cpu", "gpu"] = typer.Option("auto", help="Where to compute."),
    precision: Literal["float64", "float32"] = typer.Option("float64", help="Precision of the messages."),
    threads: int | None = typer.Option(None, help="Threads; chosen by problem size if not given."),
    json: str | None = typer.Option(
        None, "--json", help="Write the whole result as JSON; - is standard output."
    ),
) -> None:
    """Log-likelihood of a tree, its gradient, and with --optimize its maximum on that topology."""
    options: dict[str, Any] = dict(locals())
    del options["json"], options["data"]
    from rich.console import Console

    from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
    from phloem.analysis.provenance import refuse_to_overwrite

    refuse_to_overwrite(
        [json] if json not in (None, "-") else [], redo, [data["alignment"], *([tree] if tree else [])]
    )
    messages = Console(stderr=True, highlight=False)
    with messages.status("computing …") as status:
        result = run_likelihood(
            LikelihoodSettings(**data, **options),
            progress=lambda n, value: status.update(f"fitting: evaluation {n}, log-likelihood {value:.4f}"),
            compiling=messages.print,
            measuring=lambda: messages.print("measuring this machine's engines, once for this kind of data"),
        )
    if json != "-":
        _show(result, Console(highlight=False, width=_WIDTH, soft_wrap=False))
    if json is not None:
        _write_json(result, json)


def _write_json(result: LikelihoodResult, target: str) -> None:
    from json import dumps
    from pathlib import Path

    text = dumps(result.to_json(), indent=1, allow_nan=False)
    if target == "-":
        print(text)
    else:
        Path(target).write_text(text + "\n")


def _show(result: LikelihoodResult, console) -> None:
    from rich.text import Text

    data, engine = result.data, result.provenance["engine"]
    console.print(f"{data['taxa']} taxa, {data['sites']:,} sites, {data['patterns']:,} patterns")
    console.print(_reading(data))
    console.print(Text(f"tree: {result.tree_origin}"))
    console.print(Text(f"engine: {engine['name']}, {engine['precision']}; {engine['reason']}"))
    console.print(Text(f"{'fitted ' if result.optimum else ''}model: {result.model}"), soft_wrap=True)
    for warning in result.warnings:
        console.print(f"[yellow]warning:[/] {warning}")
    console.print(f"log-likelihood: [bold]{result.log_likelihood:.6f}[/]")
    if result.optimum is not None:
        _show_optimum(result.optimum, result.settings.out_tree, console)
    if result.parameters:
        console.print(_parameters(result))
    if result.gradient is not None and any(name.startswith(_SIMPLEX) for name in result.parameters):
        console.print("frequencies and weights: derivatives by z, where x = exp(z) / sum(exp(z))")
    if result.gradient is not None:
        console.print(_branches(result.gradient, result.branch_lengths))


def _reading(data: dict[str, Any]) -> str:
    """How the characters were read."""
    chosen = data["alignment_settings"]
    parts = [f"{data['datatype']}{' (guessed)' if chosen['datatype_guessed'] else ''}"]
    if "genetic_code" in chosen:
        parts.append(f"genetic code {chosen['genetic_code']}")
    parts += [f"{data['states']} states", f"ambiguous characters: {chosen['ambiguity']}"]
    parts[-1] += f" ({chosen['n_ambiguous']:,} found)"
    if chosen.get("n_stop_codons_masked"):
        parts.append(f"{chosen['n_stop_codons_masked']:,} stop codons masked")
    return ", ".join(parts)


def _show_optimum(optimum: OptimizeResult, out_tree: str | None, console) -> None:
    state = "converged" if optimum.converged else "[yellow]not converged[/]"
    console.print(
        f"fitted {optimum.n_free} numbers in {optimum.evaluations} evaluations from "
        f"{len(optimum.starting_log_likelihoods)} start(s): {state}"
    )
    console.print(f"AIC {optimum.aic:.4f}, BIC {optimum.bic:.4f}")
    if out_tree:
        console.print(f"tree written to {out_tree}")


def _parameters(result: LikelihoodResult):
    table = _table("Parameters", "parameter", "value", *(["d log L"] if result.gradient else []))
    for name, value in result.parameters.items():
        slope = [f"{result.gradient.parameters[name]:.6g}"] if result.gradient else []
        table.add_row(name, f"{value:.6g}", *slope)
    return table


def _branches(gradient: Gradient, lengths):
    table = _table("Branches", "branch", "length (subst./site)", "d log L")
    for name, length, slope in zip(gradient.branch_names, lengths, gradient.branch_lengths):
        table.add_row(name, f"{length:.8g}", f"{slope:.6f}")
    return table


def _table(title: str, first: str, *others: str):
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column(first, overflow="fold")
    for other in others:
        table.add_column(other, justify="right", no_wrap=True)
    return table
