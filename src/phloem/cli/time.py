"""`phloem time`: from an alignment with sampling dates to dated trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.clade_options import takes_clades
from phloem.cli.data_options import DEVICES, takes_coupling, takes_data, takes_thresholds
from phloem.cli.date_options import takes_tip_dates
from phloem.cli.mcmc import ANCESTRAL, PILOT, SITE_TABLE, UNTIL_CONVERGED

if TYPE_CHECKING:
    from phloem.analysis.stones import StonesResult
    from phloem.analysis.time import TimeResult, TimeTreeSettings
    from phloem.analysis.time_data import TimeInput
    from phloem.analysis.time_record import Ancestors


PRIOR = typer.Option(None, help="As in 'kappa=lognormal(1,1.25)'; may be repeated.")
CLOCK_CLADE = typer.Option(None, help="A clade with its own clock, of --clock local: a name, or name=A,B,C.")
ClockName = Literal["strict", "ucln", "ucgd", "white-noise", "autocorrelated", "local", "random", "shrinkage"]
CLOCK = typer.Option(
    "strict",
    help="One rate; log-normal or gamma branch rates, gamma by what a branch lasts; drawn about the parent's;"
    " of clades; few changes, or small ones.",
)
LINKAGE = typer.Option(
    None, help="Parts have one clock and rate; as usual one clock, a rate each; or a clock each."
)
LINK = typer.Option(
    None, help="What parts share: alpha, alpha:gene1,gene2; lengths:gene1,gene2, one clock; may be repeated."
)
WITHOUT = typer.Option(None, help="A taxon to leave out; may be repeated.")
CLOCK_SD = typer.Option(
    "cv",
    help="Spread of ucln: coefficient of variation of rates, or sd of their logarithms, about the mean rate"
    " or the median; of autocorrelated the variance of rates, or of their logarithms.",
)
START = typer.Option(
    "random", help="Trees to start from; lsd: one by neighbour joining, dated by least squares."
)
SUMMARY_TREE = typer.Option(
    "mcc", help="A sampled tree, or the best one of sampled clades, in sampled pairs or in any."
)
TREE_PRIOR = typer.Option(
    "constant",
    help="constant, exponential, skyline, skyride, skygrid, skygrid-linear, yule, bd, bd-root, uniform, "
    "bdss, bdsky, fbd or fbd-root.",
)
ENGINE = typer.Option(
    "auto", help="On patterns, or with sequences of ancestors sampled: for many nearly equal genomes."
)
DEVICE = typer.Option("auto", help="Where likelihoods are found; auto: a GPU where forecasts say it pays.")
STEPPING_STONE = typer.Option(None, help="Stones, such as 50: estimate the marginal likelihood; 0: none.")
SAMPLED = typer.Option(None, help="Share of the living that is sampled, of births and deaths.")
FOSSILS = typer.Option(
    None, help="Of fbd: dated samples may be ancestors of others; are tips, given that none is; end lineages."
)
SAMPLING = typer.Option(None, help="Of fbd-root: the living were sampled at random, or to be diverse.")
CONDITION = typer.Option(
    None, help="Of bdss, bdsky, fbd: given that something was sampled, or something that lives, besides."
)
NUMBERS = typer.Option(None, help="Of fbd: rates, or net diversification, relative death and proportion.")
SHIFT = typer.Option(
    None, help="When a number of bdsky, bdss or fbd changes: sampling_proportion=2014.3; may be repeated."
)
SAMPLE_EVERY = typer.Option(None, help="Generations between samples; 200, of 200 taxa and more 2 for each.")
PREDICTIVE = typer.Option(0, help="Data sets simulated from the draws, to be held against the data.")
GENERATIONS = typer.Option(None, help="Moves of every run: just so many; none: until converged.")
PROGRESS = typer.Option(None, help="File that says as JSON, every second, how far the runs are.")
TRAIT = typer.Option(None, help="Table with a header: taxa and the state of each, such as a location.")
TRAIT_COLUMN = typer.Option(None, help="Which column of --trait has the states, where it has several.")
TRAIT_RATES = typer.Option("symmetric", help="Of a route and the way back: one rate, or two.")
TRAIT_ROOT = typer.Option("equal", help="Frequencies of the trait's states at the root.")
BSSVS = typer.Option(False, "--bssvs", help="Routes of the trait come and go; few are expected.")
PREFIX = typer.Option(
    None, "--prefix", "-p", help="What the names of all files written begin with; the alignment's, and .time."
)


@takes_data(partitions=True)
@takes_tip_dates
@takes_coupling
@takes_thresholds
@takes_clades
def time(
    data: dict[str, Any],
    tip_dates: dict[str, Any],
    coupling: dict[str, Any],
    thresholds: dict[str, Any],
    clades: dict[str, Any],
    model: str | None = typer.Option(None, "--model", "-m", help="Such as HKY+FO+G4; by default as of mcmc."),
    linkage: Literal["linked", "proportional", "unlinked"] | None = LINKAGE,
    link: list[str] | None = LINK,
    without: list[str] | None = WITHOUT,
    ordered: str | None = typer.Option(None, help="As of phloem mcmc, for standard characters."),
    character_states: Literal["own", "all"] = typer.Option("own", help="As of phloem mcmc."),
    asc: Literal["lewis", "mrbayes"] = typer.Option("lewis", help="As of phloem mcmc."),
    clock: ClockName = CLOCK,
    clock_clade: list[str] | None = CLOCK_CLADE,
    clock_sd: Literal["cv", "log", "log-median"] = CLOCK_SD,
    tree_prior: str = TREE_PRIOR,
    pieces: int | None = typer.Option(None, help="Sizes of a skyline or skygrid, R of bdsky; 10."),
    cutoff: float | None = typer.Option(None, help="Age of the last point of a grid; the dates' span."),
    sampled: float | None = SAMPLED,
    fossils: Literal["ancestors", "tips", "ends"] | None = FOSSILS,
    sampling: Literal["random", "diversified"] | None = SAMPLING,
    condition: Literal["time", "sampling", "survival"] | None = CONDITION,
    numbers: Literal["rates", "diversification"] | None = NUMBERS,
    shift: list[str] | None = SHIFT,
    prior: list[str] | None = PRIOR,
    trait: str | None = TRAIT,
    trait_column: str | None = TRAIT_COLUMN,
    trait_rates: Literal["symmetric", "asymmetric"] = TRAIT_RATES,
    bssvs: bool = BSSVS,
    trait_root: Literal["equal", "free"] = TRAIT_ROOT,
    prefix: str | None = PREFIX,
    generations: int | None = GENERATIONS,
    until_converged: bool = UNTIL_CONVERGED,
    runs: int = typer.Option(2, help="Independent runs from random trees, to compare with each other."),
    start: Literal["random", "lsd"] = START,
    engine: Literal["auto", "patterns", "ancestors"] = ENGINE,
    device: Literal["auto", "cpu", "gpu"] = DEVICE,
    devices: str | None = DEVICES,
    seed: int = typer.Option(1, help="Same seed, same numbers, whatever the number of threads."),
    sample_every: int | None = SAMPLE_EVERY,
    check_every: int = typer.Option(50_000, help="Generations between checkpoints."),
    warm_up: float = typer.Option(0.2, help="Share in which moves adapt; summaries leave it out."),
    prior_only: bool = typer.Option(False, "--prior-only", help="Ignore the data: sample the prior."),
    stepping_stone: int | None = STEPPING_STONE,
    stone_shape: float = typer.Option(0.4, help="Powers of the stones are quantiles of Beta(shape, 1)."),
    summary_tree: Literal["mcc", "hipstr", "ccd"] = SUMMARY_TREE,
    predictive: int = PREDICTIVE,
    site_table: bool = SITE_TABLE,
    ancestral: bool = ANCESTRAL,
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    threads: int | None = typer.Option(None, help="Shared by runs and their chains; all cores if not given."),
    progress: str | None = PROGRESS,
    pilot: float | None = PILOT,
    redo: bool = typer.Option(False, "--redo", help="Start anew and replace files that exist."),
) -> None:
    """Dated trees: ages, rates, population sizes and topologies, by Hamiltonian Monte Carlo and tree moves.

    An interrupted analysis is resumed from its checkpoint when the same command is given again."""
    run_dated(_settings(dict(locals())), devices, pilot, progress)


def run_of_block(asked: tuple[TimeTreeSettings, str], look: bool, *run: Any) -> None:
    """What `phloem mcmc` does where a MRBAYES block asks for a clock. asked: the settings, and the command
    that says the same. look: whether to say no more than that. run: as of run_dated."""
    from phloem.cli.mcmc import show_line

    settings, command = asked
    show_line(f"block:   dated trees, as the MRBAYES block of {settings.of_block} says")
    show_line(f"same as: {command}")
    if not look:
        return run_dated(settings, *run)
    for text in settings.told:
        show_line(f"note:    {text}")


def _on_devices(devices: str | None, settings: TimeTreeSettings) -> TimeTreeSettings:
    """The settings on the devices asked for, in as many processes."""
    from dataclasses import replace

    from phloem.analysis.processes import device_of

    return replace(settings, device=device_of(devices, settings.device, settings.chains.n_runs))


def _assists() -> bool:
    """Whether this process had a share in what another one does and shows."""
    from phloem.analysis.time import assist_time

    return assist_time()


def _settings(options: dict[str, Any]) -> TimeTreeSettings:
    """The options of the command, sorted into the records of phloem.analysis.time."""
    from phloem.analysis.time_options import time_settings

    for name in ("progress", "pilot", "devices"):  # which are of the command, not of the analysis
        del options[name]
    for name in ("data", "tip_dates", "coupling", "thresholds", "clades"):
        options |= options.pop(name)
    return time_settings(options)


def run_dated(
    settings: TimeTreeSettings, devices: str | None, pilot: float | None, progress: str | None
) -> None:
    """What the command does with settings."""
    settings = _on_devices(devices, settings)
    if pilot is not None:
        _foretell(settings, pilot)
    elif not _assists():
        _show_any(_run(settings, progress))


def _foretell(settings: TimeTreeSettings, pilot: float) -> None:
    from phloem.analysis.plan_time import forecast_time
    from phloem.analysis.processes import refuse_several
    from phloem.cli.plan import show_pilot

    refuse_several("time --pilot")

    show_pilot(pilot, lambda compiling: forecast_time(settings, compiling, pilot))


def _run(settings: TimeTreeSettings, progress: str | None) -> TimeResult | StonesResult:
    from phloem.analysis.progress import ProgressFile
    from phloem.analysis.time import output_files, run_time
    from phloem.analysis.time_of_draws import files_of_draws
    from phloem.cli.chain_tables import chain_progress
    from phloem.cli.streams import message_console

    console = message_console(live=True)
    written = ProgressFile(progress, settings.inputs)
    bar, report, told = chain_progress(console, written.tell)

    def begin(data: TimeInput, device: str) -> None:
        written.check(lambda: output_files(settings) | files_of_draws(settings, data))
        _introduce(settings, data, device)
        bar.start()  # only now: what goes to standard output would stand in its line

    try:
        return run_time(settings, progress=report, started=begin, compiling=console.print, told=told)
    except KeyboardInterrupt:
        console.print("The same command goes on from the last checkpoint; --redo starts anew.")
        raise
    finally:
        bar.stop()


def _introduce(settings: TimeTreeSettings, data: TimeInput, device: str) -> None:
    from textwrap import fill

    from phloem.analysis.mcmc_record import length_text
    from phloem.analysis.model_file import shown_model
    from phloem.analysis.time import family_text
    from phloem.analysis.time_record import model_text
    from phloem.cli.mcmc import show_line
    from phloem.cli.streams import terminal_width

    c, model = settings.chains, data.model
    for text in (*settings.told, *data.told):
        show_line(f"note:    {text}")
    letters = ", ".join(dict.fromkeys(own.alphabet.kind for own in data.alignments))
    show_line(f"{len(data.taxa)} taxa, {data.n_sites:,} sites, {letters}")
    show_line(fill(f"model:   {shown_model(model_text(model))}", terminal_width(), subsequent_indent=" " * 9))
    if len(model.engine.parts) > 1:
        show_line(f"parts:   {_parts_text(settings, data)}")
    if data.dates is None:
        show_line("dates:   none; all taxa are of one time")
    else:
        uncertain = int((~data.dates.exact).sum())
        told = f", {uncertain} within limits" if uncertain else ""
        show_line(f"dates:   {data.dates.lower.min():.6g} to {data.dates.latest:.6g}{told}")
    kinds = {
        "strict": "strict",
        "ucln": f"uncorrelated log-normal, spread by {settings.tree.clock_sd}",
        "ucgd": "uncorrelated gamma",
        "local": f"local, of its own for {', '.join(c.name for c in model.own_clocks)}",
        "random": "random local, log 2 changes expected",
        "shrinkage": "rates that change along the tree, most very little",
        "white-noise": "white noise: gamma, the variance falls as a branch lasts",
        "autocorrelated": f"autocorrelated log-normal, spread by {settings.tree.clock_sd}",
    }
    show_line(f"clock:   {kinds[settings.tree.clock]}")
    told = ", ".join((model.tree_prior.name, *model.parameters.shifts_text))
    show_line(fill(f"tree:    {told}", terminal_width(), subsequent_indent=" " * 9))
    if model.trait is not None:
        tips, rates = model.trait.tips, "one rate a route" if model.trait.symmetric else "two rates a route"
        chosen = ", few of them expected (BSSVS)" if model.trait.few else ""
        told = f"{tips.name}, {tips.n_states} states, {rates}{chosen}; {tips.n_missing} taxa unknown"
        show_line(fill(f"trait:   {told}", terminal_width(), subsequent_indent=" " * 9))
    priors = [f"{p.block} {family_text(p.family)}" for p in model.priors]
    priors += [f"{name} fixed" for name in sorted(model.fixed)]
    priors += [f"{x} CTMC reference" for x, own in zip(model.rate_names, model.reference) if own]
    priors += ["trait_clock CTMC reference"] if model.trait_reference else []
    priors += [f"age of {x.name} {x.age_text}" for x in model.clades if x.age is not None and not x.of_tip]
    if n := sum(x.of_tip for x in model.clades):
        priors.append(f"dates of {n} taxa normal, by their errors")
    text = "prior:   " + ", ".join(priors)
    show_line(fill(text, terminal_width(), subsequent_indent=" " * 9))
    if held := [text for clade in model.clades if (text := clade.constraint_text)]:
        show_line(fill(f"clades:  {', '.join(held)}", terminal_width(), subsequent_indent=" " * 9))
    origin = "random trees" if c.start == "random" else "a tree dated by least squares"
    each = f" of {c.n_chains} chains, heating {c.heating:g}" if c.n_chains > 1 else ""
    show_line(f"chains:  {c.n_runs} runs{each}, seed {c.seed}, {length_text(c)}, {origin}")
    show_line(fill(f"device:  {device}", terminal_width(), subsequent_indent=" " * 9))
    if not c.use_data:
        show_line("data:    ignored; this samples the prior")


def _parts_text(settings: TimeTreeSettings, data: TimeInput) -> str:
    """How many, and what they share."""
    model = data.model
    n, shared = len(model.engine.parts), ", ".join(settings.link) or "nothing else"
    if not settings.partitioned:
        return f"{n} by numbers of states, on one clock, which share all numbers"
    if settings.linkage == "unlinked":
        clocks = "one clock" if model.n_clocks == 1 else f"{model.n_clocks} clocks"
        return f"{n} on {clocks}; shared: {shared}"
    rates = "one rate" if settings.linkage == "linked" else "a rate each"
    return f"{n} on one clock, {rates}; shared: {shared}"


def _show_any(result: TimeResult | StonesResult) -> None:
    from phloem.analysis.stones import StonesResult
    from phloem.cli.mcmc import show_stones

    if isinstance(result, StonesResult):
        show_stones(result)
    else:
        _show(result)


def _show(result: TimeResult) -> None:
    from rich.text import Text

    from phloem.analysis.time_record import SUMMARY_TREES
    from phloem.cli.bayes_factors import model_table
    from phloem.cli.chain_tables import checks_table, left_out_text, parameter_table, show_convergence
    from phloem.cli.mcmc import show_line
    from phloem.cli.streams import print_table, report_console
    from phloem.plot.terminal_tree import draw_tree

    console = report_console()
    name = SUMMARY_TREES[result.settings.summary_tree]
    console.print(
        f"\n{name[0].upper()}{name[1:].rstrip(',')}, median ages, clade probabilities at its branches\n"
    )
    print(draw_tree(result.tree, console.width))
    console.print()
    print_table(console, parameter_table(result.parameters, "Parameters; ages before the youngest tip"))
    if result.models:
        print_table(console, model_table(result.models))
    if result.routes:
        print_table(console, _routes(result))
    if result.ancestors and result.ancestors.taxa:
        print_table(console, _ancestors(result.ancestors))
    if result.predictive:
        print_table(console, checks_table(result.predictive, result.settings.predictive))
    if result.left_out is not None:
        console.print(left_out_text(result.left_out))
    show_convergence(result.diagnosis, result.settings.chains.convergence, console)
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    resumed = f" (resumed at generation {result.resumed_at:,})" if result.resumed_at is not None else ""
    n = result.undefined_proposals
    undefined = f"; {n:,} undefined proposals were rejected" if n else ""
    if result.swaps:
        shares = ", ".join("–" if x != x else f"{x:.2f}" for x in result.swaps)
        console.print(f"Swaps accepted between neighbouring ranks of heat, from the cold chain on: {shares}")
    unit = "chain-generations" if result.swaps else "generations"
    console.print(f"{result.seconds:.1f} s, {result.speed:,.0f} {unit}/s{resumed}{undefined}")
    if result.was_finished:
        console.print("This analysis was finished before, and its files are as they were:")
    else:
        console.print("Files written:")
    for file, content in result.files.items():
        show_line(f"  {file}  {content}")


SHOWN_ROUTES = SHOWN_ANCESTORS = 20


def _ancestors(found: Ancestors):
    from rich.table import Table

    shown = found.taxa[:SHOWN_ANCESTORS]
    more = f"; {len(found.taxa) - len(shown)} more in the table" if len(shown) < len(found.taxa) else ""
    table = Table(title=f"Sampled ancestors{more}", title_justify="left", pad_edge=False)
    table.add_column("sample")
    for name in ("share of draws", *(f"run {r + 1}" for r in range(len(found.shares)))):
        table.add_column(name, justify="right")
    for taxon, own in zip(shown, found.shares.T):
        table.add_row(taxon, *(f"{x:.3f}" for x in (own.mean(), *own)))
    return table


def _routes(result: TimeResult):
    from rich.table import Table

    found = result.routes[:SHOWN_ROUTES]
    more = f"; {len(result.routes) - len(found)} more in the table" if len(found) < len(result.routes) else ""
    table = Table(title=f"Routes of the trait{more}", title_justify="left", pad_edge=False)
    table.add_column("route", overflow="fold")
    for name in ("proba-\nbility", "ESS", "Bayes\nfactor", "rate", "changes", "95% HPD"):
        table.add_column(name, justify="right")
    for r in found:
        there = ("", "", "")
        if r.probability is not None:
            ess = f"{r.ess:.0f}" if r.ess == r.ess else "–"  # in all draws, or in none
            there = (f"{r.probability:.3f}", ess, f"{r.bayes_factor:.3g}")
        table.add_row(r.name, *there, f"{r.rate:.3g}", f"{r.changes:.3g}", f"{r.low:.0f} … {r.high:.0f}")
    return table
