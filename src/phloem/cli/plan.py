"""`phloem plan`: memory, time and engine of a likelihood or of a distance tree, forecast."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.data_options import ALIGNMENT_HELP, takes_data

if TYPE_CHECKING:
    from phloem.analysis.pilot import PilotForecast
    from phloem.analysis.plan import RanksPlan

_TOO_SHORT = "the pilot is too short to tell"


@takes_data(
    ambiguity=None, partitions=True, alignment_help=f"{ALIGNMENT_HELP} With --method also a distance matrix."
)
def plan(
    data: dict[str, Any],
    model: str | None = typer.Option(
        None, "--model", "-m", help="Model string, such as GTR+G4 or GY94+F3X4; else that of phloem ml."
    ),
    method: Literal["upgma", "wpgma", "single", "complete", "nj", "bionj", "unj"] | None = typer.Option(
        None, help="Forecast a distance tree instead of a likelihood."
    ),
    tree: str | None = typer.Option(None, "--tree", "-t", help="Tree; without it, an upper bound."),
    distance: str | None = typer.Option(None, "--distance", "-d", help="Distance, with --method."),
    bootstrap: int = typer.Option(0, "--bootstrap", "-b", help="Replicates, with --method."),
    cophenetic: bool = typer.Option(False, "--cophenetic", help="Keep the distances, with --method."),
    engine: Literal["auto", "reference", "cpu", "gpu"] = typer.Option(
        "auto", "--engine", "--device", help="Where to compute."
    ),
    precision: Literal["auto", "float64", "float32"] = typer.Option(
        "auto", help="Of messages (auto: float64) or distances (auto: float64 up to 4,096 taxa)."
    ),
    threads: int | None = typer.Option(None, help="Threads; chosen by problem size if not given."),
    mcmc: bool = typer.Option(
        False, "--mcmc", help="Forecast phloem mcmc on this file, its MRBAYES block obeyed, by a short pilot."
    ),
    ranks: int | None = typer.Option(
        None,
        "--ranks",
        help="Processes: how a likelihood, and phloem mcmc, would be divided among up to so many.",
    ),
    pilot: float | None = typer.Option(None, "--pilot", help="With --mcmc: seconds of the pilot; 20."),
) -> None:
    """Forecast memory and time of a likelihood, a distance tree or phloem mcmc, and what would run it."""
    options: dict[str, Any] = dict(locals())
    options |= {name: value for name, value in options.pop("data").items() if name != "ambiguity" or value}
    seconds = options.pop("pilot")
    if ranks is None or mcmc or method is not None:
        del options["ranks"]
    if ranks is not None and (mcmc or method is not None):
        from phloem.errors import InputError

        raise InputError(f"--ranks is not of {'--mcmc' if mcmc else '--method'}", hint="Leave one out.")
    if options.pop("mcmc"):
        _plan_mcmc(options, seconds)
    elif seconds is not None:
        from phloem.errors import InputError

        raise InputError("--pilot is of --mcmc", hint="Add --mcmc, or leave it out.")
    elif method is not None:
        _plan_distance_tree(options)
    else:
        _plan_likelihood(options)


def _plan_likelihood(options: dict[str, Any]) -> None:
    from phloem.analysis.plan import PlanSettings, run_plan
    from phloem.cli.streams import message_console, print_table, report_console
    from phloem.errors import InputError

    given = [name for name in ("method", "distance", "bootstrap", "cophenetic") if options.pop(name)]
    if given:
        raise InputError(f"--{given[0]} is for a distance tree", hint="Name one with --method.")
    options["precision"] = "float64" if options["precision"] == "auto" else options["precision"]

    console, messages = report_console(), message_console(live=True)
    with messages.status("counting, and timing a sample …"):
        result = run_plan(
            PlanSettings(**options),
            compiling=messages.print,
            measuring=lambda: messages.print("measuring this machine's engines, once for this kind of data"),
        )
    print_table(console, _table(result))
    if len(result.parts) > 1:
        print_table(console, _parts_table(result.parts))
    if result.ranks is not None:
        _show_ranks(result.ranks, len(result.parts), console)
    if result.fits is False:
        console.print("This does not fit in the memory that is free now.", style="red")
    if result.usual:
        named = list(dict.fromkeys(result.usual.values()))
        of = "" if len(result.parts) == 1 else f", of {', '.join(result.usual)}"
        console.print(
            f"No model given{of}: {', '.join(named)}, as phloem ml would take; --model says another."
        )
    if result.random_tree:
        console.print("No tree given: forecast on a random one, an upper bound for a good tree.")


def _show_ranks(found: RanksPlan, n_parts: int, console) -> None:
    from rich.table import Table

    from phloem.cli.streams import print_table

    table = Table("processes", title="phloem likelihood, with the whole gradient", title_justify="left")
    for name in ("busy", "cells each", "time", "faster", "memory each"):
        table.add_column(name, justify="right")
    for row in found.likelihood:
        each = (
            f"{min(row.shares)}-{max(row.shares)}"
            if min(row.shares) < max(row.shares)
            else f"{row.shares[0]}"
        )
        faster = f"{found.likelihood[0].seconds / row.seconds:.2f}"
        cells = f"{len(row.shares)}", each, _seconds(row.seconds), faster, _bytes(row.memory_bytes)
        table.add_row(f"{row.size}", *cells)
    if found.likelihood:
        print_table(console, table)
    else:
        console.print(
            f"phloem likelihood shares the {n_parts} parts, each whole, among processes, as many as it finds "
            "of use at its start: no forecast."
        )
    left = found.remainder
    if left == left:
        most = sum(found.likelihood[0].shares)
        console.print(
            f"Of one process's time {left:.1%} is not divided: matrices, columns that several compute, and "
            f"messages, taken to be of 0.5 ms at 1 GB/s. That ends at {1 / max(left, 1e-3):,.0f} times as "
            f"fast. There are {most} cells: more processes have nothing to do."
        )
    elif found.likelihood:
        console.print("There is too little to divide: one process takes it.")
    table = Table("processes", title="phloem mcmc, 2 runs of 4 chains, a thread each", title_justify="left")
    table.add_column("busy", justify="right")
    table.add_column("generations/s", justify="right")
    table.add_column("memory each, at most", justify="right")
    for one in found.chains:
        memory = "" if one.memory_bytes is None else _bytes(one.memory_bytes)
        table.add_row(f"{one.size}", f"{one.busy}", f"{1 / one.seconds:,.0f}", memory)
    print_table(console, table)
    left = found.remainder_of_chains
    if left == left:
        console.print(
            f"Of a generation {left:.1%} is not divided: swaps, messages, and shares that are not even. By "
            "assumed speeds; a run measures messages at its start."
        )


def _plan_mcmc(options: dict[str, Any], seconds: float | None) -> None:
    from phloem.analysis.pilot import PILOT_SECONDS
    from phloem.analysis.plan_mcmc import plan_mcmc
    from phloem.errors import InputError

    device, precision = options.pop("engine"), options.pop("precision")
    given = [n for n in ("method", "tree", "distance", "bootstrap", "cophenetic") if options.pop(n)]
    if given or device == "reference":
        what = f"--{given[0]}" if given else "--engine reference"
        raise InputError(f"{what} is not of phloem mcmc", hint="Leave it, or --mcmc, out.")
    usual = {"ambiguity": "partial", "partition_name": None, "unassigned_sites": None, "part": ()}
    options = {n: v for n, v in options.items() if v is not None and v != usual.get(n, v is None)}
    seconds = PILOT_SECONDS if seconds is None else seconds
    options |= {"device": device, "precision": "float64" if precision == "auto" else precision}
    show_pilot(seconds, lambda compiling: plan_mcmc(options, compiling, seconds))


def show_pilot(seconds: float, piloted: Callable[[Callable[[str], None]], PilotForecast]) -> None:
    """Run a pilot and print its forecast. piloted: is given whom to tell of compiling."""
    from rich.table import Table

    from phloem.cli.streams import message_console, print_table, report_console

    messages, console = message_console(live=True), report_console()
    with messages.status(f"a pilot of some {seconds:.3g} s …"):
        found = piloted(messages.print)
    chains, pilot, d = found.chains, found.pilot, found.pilot.diagnosis
    each = chains.n_runs * found.of_a_run
    table = Table(show_header=False)
    table.add_row("data", f"{len(found.taxa):,} taxa")
    table.add_row("model", ", ".join(found.models))
    table.add_row("chains", f"{chains.n_runs} runs of {found.of_a_run}")
    table.add_row("device", found.selection.reason)
    table.add_row("memory", f"{_bytes(found.memory_bytes)}, samples of {found.end:,} generations too")
    speed = found.generations_per_second
    table.add_row("speed", f"{speed:,.0f} generations/s, {speed * each:,.0f} chain-generations/s")
    table.add_row(
        "pilot",
        f"{pilot.generations:,} generations in {pilot.seconds:.0f} s; its second half: smallest ESS "
        f"{d.ess:.0f} ({d.limiting}), largest R-hat {'above 100' if d.r_hat > 100 else f'{d.r_hat:.2f}'}",
    )
    most = "at most " if chains.until_converged else ""
    asked = f"{most}{chains.generations:,} generations, {_hours(found.asked_hours)}"
    table.add_row("asked for", "until converged" if found.unlimited else asked)
    if not chains.stones:
        needed = f"about {found.wanted:,.0f} generations, {_hours(found.hours)}"
        known = found.wanted == found.wanted
        table.add_row(f"ESS of {chains.convergence.ess:g}", needed if known else _TOO_SHORT)
    print_table(console, table)
    if not (found.mixed or chains.stones):
        console.print(
            "The pilot's runs had not met: the forecast of the ESS is a guess, and more likely too low.",
            style="yellow",
        )


def _hours(hours: float) -> str:
    return (
        f"{hours:.3g} h"
        if hours >= 1
        else f"{60 * hours:.2g} min"
        if hours > 0.05
        else _seconds(3600 * hours)
    )


def _plan_distance_tree(options: dict[str, Any]) -> None:
    from rich.table import Table

    from phloem.analysis.distance_source import DistanceAnalysisSettings
    from phloem.analysis.plan_distance import plan_distance_tree
    from phloem.cli.streams import print_table, report_console
    from phloem.errors import InputError

    given = {name: options.pop(name) for name in ("partitions", "part", "partition_name", "unassigned_sites")}
    if options.pop("tree") is not None:
        raise InputError("--tree is for a likelihood, and --method for a tree", hint="Leave one out.")
    if given["partitions"] is not None or given["part"]:
        raise InputError(
            "--partitions and --part are for a likelihood, and --method for a tree", hint="Leave one out."
        )
    device: Any = options.pop("engine")
    if device == "reference":
        raise InputError("distance trees have no reference engine", hint="Use cpu, gpu or auto.")
    found = plan_distance_tree(DistanceAnalysisSettings(device=device, **options))
    console = report_console()
    table = Table(show_header=False)
    sites = "a distance matrix" if found.sites is None else f"{found.sites:,} sites"
    table.add_row("data", f"{found.taxa:,} taxa, {sites}")
    table.add_row("tree", f"{found.method}, distances in {found.precision}")
    table.add_row("device", found.device)
    table.add_row("why", found.reason)
    table.add_row("memory", _bytes(found.memory_bytes))
    table.add_row("on a GPU", _bytes(found.device_bytes))
    table.add_row("reading" if found.sites is None else "distances", _roughly(found.input_seconds))
    table.add_row("tree on two cores", _roughly(found.tree_seconds))
    print_table(console, table)
    if found.fits is False:
        console.print("This does not fit in the memory that is free now.", style="red")


def _roughly(seconds: float) -> str:
    return f"about {_seconds(seconds)}" if seconds > 0.1 else "less than 0.1 s"


def _table(result):
    from rich.table import Table

    parts, total = result.parts, result.total
    table = Table(show_header=False)
    sites, patterns = (sum(getattr(part, name) for part in parts) for name in ("sites", "patterns"))
    table.add_row("data", f"{result.taxa:,} taxa, {sites:,} sites, {patterns:,} patterns")
    if len(parts) == 1:
        table.add_row(
            "model", f"{parts[0].model}, {parts[0].states} states, {parts[0].categories} rate categories"
        )
    else:
        table.add_row("parts", f"{len(parts)}")
    by_size = sorted(parts, key=lambda part: part.forecast.work.likelihood_flop)
    for selection in {part.selection.engine: part.selection for part in by_size}.values():
        table.add_row("engine", f"{selection.engine}, {selection.precision}")
        table.add_row("why", selection.reason)
    columns = total(lambda f: f.work.columns)
    share = columns / sum(part.forecast.work.columns / part.forecast.work.share for part in parts)
    table.add_row("distinct columns", f"{columns:,}, {share:.1%} of nodes × patterns")
    table.add_row("memory", _bytes(total(lambda f: f.memory_bytes)))
    table.add_row(
        "likelihood", _cost(total(lambda f: f.work.likelihood_flop), total(lambda f: f.likelihood_seconds))
    )
    table.add_row(
        "with gradient", _cost(total(lambda f: f.work.gradient_flop), total(lambda f: f.gradient_seconds))
    )
    fit = result.optimisation_evaluations * total(lambda f: f.whole_gradient_seconds)
    table.add_row("--optimize", f"about {_seconds(fit)} ({result.optimisation_evaluations} gradients)")
    table.add_row("phloem mcmc", result.chains.reason)
    sampled = total(lambda f: f.sampled_patterns)
    table.add_row("timed on", f"{sampled:,} patterns, scaled by operations")
    return table


def _parts_table(parts):
    """What every part takes, one a line."""
    from rich.table import Table

    table = Table("part", "model")
    for name in ("sites", "patterns", "memory", "likelihood"):
        table.add_column(name, justify="right")
    for part in parts:
        cells = (f"{part.sites:,}", f"{part.patterns:,}", _bytes(part.forecast.memory_bytes))
        table.add_row(part.name, part.model, *cells, _seconds(part.forecast.likelihood_seconds))
    return table


def _cost(flop: float, seconds: float) -> str:
    return f"{flop / 1e9:,.3g} GFLOP, {_seconds(seconds)}, {flop / seconds / 1e9:.3g} GFLOP/s"


def _bytes(n: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:,.4g} {unit}"
        n /= 1024
    raise AssertionError


def _seconds(s: float) -> str:
    if s < 1e-3:
        return f"{s * 1e6:.3g} µs"
    if s < 1:
        return f"{s * 1e3:.3g} ms"
    return f"{s:.3g} s" if s < 600 else f"{s / 3600:.3g} h"
