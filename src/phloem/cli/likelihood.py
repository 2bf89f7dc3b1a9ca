"""`phloem likelihood`: value, gradient and maximum on a given tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.data_options import DEVICES, LINK, takes_data
from phloem.cli.streams import (
    message_console,
    print_result,
    print_table,
    report_console,
    require_stdout,
    told_by,
)

if TYPE_CHECKING:
    from phloem.analysis.likelihood import Gradient, LikelihoodResult, Optimum
    from phloem.analysis.partitioned_likelihood import PartitionedGradient, PartitionedResult

_SIMPLEX = ("frequency", "root_frequency", "weight", "class_weight", "mixture_weight")


@takes_data(partitions=True)
def likelihood(
    data: dict[str, Any],
    tree: str | None = typer.Option(
        None, "--tree", "-t", help="Newick or NEXUS tree with lengths; else BIONJ of the alignment."
    ),
    model: str | None = typer.Option(
        None,
        "--model",
        "-m",
        help="Model string, such as 'HKY{3.5}+F+G4{0.5}', or @FILE; of parts, where they have none.",
    ),
    linkage: Literal["linked", "proportional", "unlinked"] = typer.Option(
        "linked", help="Branch lengths of parts: the same, the same times a rate a part, or a part's own."
    ),
    link: list[str] | None = LINK,
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    multifurcations: bool = typer.Option(
        False, "--multifurcations", help="Resolve multifurcations by zero-length branches."
    ),
    gradient: bool = typer.Option(False, "--gradient", help="Derivatives by every branch and parameter."),
    optimize: bool = typer.Option(
        False, "--optimize", help="Fit branch lengths and parameters without a value."
    ),
    out_tree: str | None = typer.Option(None, help="Write the tree with fitted branch lengths here."),
    progress: str | None = typer.Option(
        None, help="With --optimize: file that says as JSON, every second, how far the fit is."
    ),
    redo: bool = typer.Option(False, "--redo", help="Replace files that exist."),
    engine: Literal["auto", "reference", "cpu", "gpu"] = typer.Option("auto", help="Where to compute."),
    precision: Literal["float64", "float32"] = typer.Option(
        "float64", help="Precision of the messages; float32 for GPUs and codons."
    ),
    devices: str | None = DEVICES,
    threads: int | None = typer.Option(None, help="Threads; chosen by problem size if not given."),
    json: str | None = typer.Option(
        None, "--json", help="Write the whole result as JSON; - is standard output."
    ),
) -> None:
    """Log-likelihood of a tree, its gradient, and with --optimize its maximum on that topology."""
    options: dict[str, Any] = dict(locals())
    del options["data"], options["devices"]
    from phloem.analysis.outputs import STDOUT, json_text
    from phloem.analysis.partitioned_likelihood import PartitionedResult
    from phloem.analysis.processes import assists, dismiss

    options |= _on_devices(devices, engine, bool(data["partitions"] or data["part"]))
    if assists():
        return
    require_stdout()
    result = _computed(data | options | {"link": tuple(link or ())}, message_console(live=True))
    dismiss()
    if json == STDOUT:
        print_result(json_text(result.to_json()))
        return
    console = report_console()
    if isinstance(result, PartitionedResult):
        _show_parts(result, console)
    else:
        _show(result, console)


def _on_devices(devices: str | None, engine: str, partitioned: bool) -> dict[str, Any]:
    """Options of the devices asked for: GPUs of this process for columns, processes for parts."""
    from phloem.analysis.processes import MANY, device_of, devices_here

    if partitioned:
        return {"engine": device_of(devices, engine, MANY, "--engine")}
    return dict(zip(("engine", "gpus"), devices_here(devices, engine, MANY, "--engine")))


def _computed(options: dict[str, Any], messages) -> LikelihoodResult | PartitionedResult:
    from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
    from phloem.analysis.outputs import STDOUT
    from phloem.analysis.partitioned_likelihood import run_partitioned_likelihood
    from phloem.analysis.progress import ProgressFile
    from phloem.errors import InputError

    run = run_partitioned_likelihood if options["partitions"] or options["part"] else run_likelihood
    path, settings = options.pop("progress"), LikelihoodSettings(**options)
    if path is not None and not settings.optimize:
        raise InputError("--progress is of a fit", hint="Add --optimize, or leave it out.")
    written = ProgressFile(path, settings.inputs)
    written.check(lambda: [file for file in (settings.out_tree, settings.json) if file not in (None, STDOUT)])
    with messages.status("computing …") as status:
        show = told_by(messages, status)

        def told(n: int, value: float) -> None:
            show(f"fitting: evaluation {n}, log-likelihood {value:.4f}")
            written.tell_fit(n, value)

        return run(
            settings,
            progress=told,
            compiling=messages.print,
            measuring=lambda: messages.print("measuring this machine's engines, once for this kind of data"),
        )


def _show(result: LikelihoodResult, console) -> None:
    from rich.text import Text

    from phloem.analysis.model_file import shown_model

    data, engine = result.data, result.provenance["engine"]
    console.print(f"{data['taxa']} taxa, {data['sites']:,} sites, {data['patterns']:,} patterns")
    console.print(_reading(data))
    console.print(Text(f"tree: {result.tree_origin}"))
    console.print(Text(f"engine: {engine['name']}, {engine['precision']}; {engine['reason']}"))
    fitted = "fitted " if result.optimum else ""
    console.print(Text(f"{fitted}model: {shown_model(result.model)}"), soft_wrap=True)
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    console.print(Text.assemble("log-likelihood: ", (f"{result.log_likelihood:.6f}", "bold")))
    if result.optimum is not None:
        _show_optimum(result.optimum, result.settings.out_tree, console)
    _show_parameters(result, console)
    if result.gradient is None:
        return
    if result.branch_lengths.ndim == 1:
        print_table(console, _branches(result.gradient, result.branch_lengths))
        return
    for k, (own, slopes) in enumerate(zip(result.branch_lengths, result.gradient.branch_lengths), 1):
        print_table(console, _branches(result.gradient, own, slopes, f"Branches of class {k}"))


def _show_parts(result: PartitionedResult, console) -> None:
    from rich.text import Text

    engine, shared = result.provenance["engine"], result.settings.linkage != "unlinked"
    n_sites, n_patterns = (sum(getattr(p, what) for p in result.parts) for what in ("sites", "patterns"))
    console.print(f"{len(result.parts)} parts, {n_sites:,} characters, {n_patterns:,} patterns")
    console.print(f"branch lengths: {result.settings.linkage}, per {result.length_unit}")
    console.print(Text(f"tree: {result.tree_origin}"))
    console.print(Text(f"engine: {engine['name']}, {engine['precision']}; {engine['reason']} (largest part)"))
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    console.print(Text.assemble("log-likelihood: ", (f"{result.log_likelihood:.6f}", "bold")))
    if result.optimum is not None:
        _show_optimum(result.optimum, result.settings.out_tree, console)
    last = "rate" if result.settings.linkage == "proportional" else "tree length"
    table = _table("Parts", "part", "data", "sites", "patterns", last, "log-likelihood")
    for p in result.parts:
        number = p.rate if last == "rate" else p.tree_length
        counts = f"{p.sites:,}", f"{p.patterns:,}"
        table.add_row(p.name, p.datatype, *counts, f"{number:.6g}", f"{p.log_likelihood:.4f}")
    print_table(console, table)
    for p in result.parts:
        console.print(
            Text(f"{'fitted ' if result.optimum else ''}model of {p.name}: {p.model}"), soft_wrap=True
        )
    _show_parameters(result, console)
    if result.gradient is None:
        return
    if result.settings.linkage == "proportional":
        table = _table("Rates of parts", "part", "rate", "d log L")
        for p, slope in zip(result.parts, result.gradient.partition_rates):
            table.add_row(p.name, f"{p.rate:.6g}", f"{slope:.6g}")
        print_table(console, table)
    if shared:
        print_table(console, _branches(result.gradient, result.branch_lengths))
        return
    for p, lengths, slopes in zip(result.parts, result.branch_lengths, result.gradient.branch_lengths):
        print_table(console, _branches(result.gradient, lengths, slopes, f"Branches of {p.name}"))


def _show_parameters(result: LikelihoodResult | PartitionedResult, console) -> None:
    if result.parameters:
        print_table(console, _parameters(result))
    if result.gradient is not None and any(name.startswith(_SIMPLEX) for name in result.parameters):
        console.print("frequencies and weights: derivatives by z, where x = exp(z) / sum(exp(z))")


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


def _show_optimum(optimum: Optimum, out_tree: str | None, console) -> None:
    from phloem.analysis.likelihood import criteria_line

    console.print(
        f"fitted {optimum.n_free} numbers in {optimum.evaluations} evaluations from "
        f"{len(optimum.starting_log_likelihoods)} start(s): {'' if optimum.converged else 'not '}converged",
        style=None if optimum.converged else "yellow",
    )
    console.print(criteria_line(optimum.aic, optimum.aicc, optimum.bic))
    if out_tree:
        console.print(f"tree written to {out_tree}")


def _parameters(result: LikelihoodResult | PartitionedResult):
    table = _table("Parameters", "parameter", "value", *(["d log L"] if result.gradient else []))
    for name, value in result.parameters.items():
        slope = [f"{result.gradient.parameters[name]:.6g}"] if result.gradient else []
        table.add_row(name, f"{value:.6g}", *slope)
    return table


def _branches(gradient: Gradient | PartitionedGradient, lengths, slopes=None, title: str = "Branches"):
    table = _table(title, "branch", "length (subst./site)", "d log L")
    slopes = gradient.branch_lengths if slopes is None else slopes
    for name, length, slope in zip(gradient.branch_names, lengths, slopes):
        table.add_row(name, f"{length:.8g}", f"{slope:.6f}")
    return table


def _table(title: str, first: str, *others: str):
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column(first, overflow="fold")
    for other in others:
        table.add_column(other, justify="right", no_wrap=True)
    return table
