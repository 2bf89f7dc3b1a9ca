"""`phloem time`: from an alignment with sampling dates to dated trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.auspice_options import takes_auspice
from phloem.cli.data_options import DEVICES, takes_coupling, takes_data, takes_thresholds
from phloem.cli.date_options import takes_tip_dates
from phloem.cli.dated_tree_options import takes_clades, takes_trait
from phloem.cli.mcmc import ANCESTRAL, PILOT, SITE_TABLE, UNTIL_CONVERGED

if TYPE_CHECKING:
    from phloem.analysis.stones import StonesResult
    from phloem.analysis.time import TimeResult, TimeTreeSettings
    from phloem.analysis.time_data import TimeInput


PRIOR = typer.Option(None, help="As in 'kappa=lognormal(1,1.25)'; may be repeated.")
CLOCK_CLADE = typer.Option(
    None, help="A clade with its own clock, of --clock local, local-crown: a name, or name=A,B,C."
)
ClockName = Literal[
    "strict", "ucln", "ucgd", "white-noise", "autocorrelated", "local", "local-crown", "random", "shrinkage"
]  # fmt: skip
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
REDO = typer.Option(
    False, "--redo", help="Start anew and replace files that exist; else an interrupted analysis goes on."
)
DRY_RUN = typer.Option(False, "--dry-run", help="Say what would be done, and stop.")
STEPPING_STONE = typer.Option(None, help="Stones, such as 50: estimate the marginal likelihood; 0: none.")
STONE_SHAPE = typer.Option(
    None, help="Powers are quantiles of Beta(shape, 1), of shape 0.4; 1 of --stones-from."
)
STONES_FROM = typer.Option(None, help="As of phloem mcmc: the prefix of a finished analysis by phloem time.")
PRIOR_CONSTANT = typer.Option(
    None, help="Of --stones-from where only sampling tells it: the prefix of stones with --prior-only."
)
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
PREFIX = typer.Option(
    None, "--prefix", "-p", help="What the names of all files written begin with; the alignment's, and .time."
)


@takes_data(partitions=True)
@takes_tip_dates
@takes_coupling
@takes_thresholds
@takes_clades
@takes_trait
@takes_auspice
def time(
    data: dict[str, Any],
    tip_dates: dict[str, Any],
    coupling: dict[str, Any],
    thresholds: dict[str, Any],
    clades: dict[str, Any],
    discrete_trait: dict[str, Any],
    nextstrain: dict[str, Any],
    model: str | None = typer.Option(None, "--model", "-m", help="Such as HKY+FO+G4; by default as of mcmc."),
    linkage: Literal["linked", "proportional", "unlinked"] | None = LINKAGE,
    link: list[str] | None = LINK,
    without: list[str] | None = WITHOUT,
    ordered: str | None = typer.Option(None, help="As of phloem mcmc, for standard characters."),
    character_states: Literal["own", "digits", "all"] = typer.Option("own", help="As of phloem mcmc."),
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
    stone_shape: float | None = STONE_SHAPE,
    stones_from: str | None = STONES_FROM,
    prior_constant: str | None = PRIOR_CONSTANT,
    summary_tree: Literal["mcc", "hipstr", "ccd"] = SUMMARY_TREE,
    predictive: int = PREDICTIVE,
    site_table: bool = SITE_TABLE,
    ancestral: bool = ANCESTRAL,
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    threads: int | None = typer.Option(None, help="Shared by runs and their chains; all cores if not given."),
    progress: str | None = PROGRESS,
    dry_run: bool = DRY_RUN,
    pilot: float | None = PILOT,
    redo: bool = REDO,
) -> None:
    """Dated trees: ages, rates, population sizes and topologies, by Hamiltonian Monte Carlo and moves."""
    run_dated(_settings(dict(locals())), dry_run, devices, pilot, progress)


def run_of_block(asked: tuple[TimeTreeSettings, str], *run: Any) -> None:
    """What `phloem mcmc` does where a MRBAYES block asks for a clock. asked: the settings, and the command
    that says the same. run: as of run_dated."""
    from phloem.cli.mcmc import show_line

    settings, command = asked
    show_line(f"block:   dated trees, as the MRBAYES block of {settings.of_block} says")
    show_line(f"same as: {command}")
    run_dated(settings, *run)


def _on_devices(devices: str | None, settings: TimeTreeSettings) -> TimeTreeSettings:
    """The settings on the devices asked for, in as many processes."""
    from dataclasses import replace

    from phloem.analysis.processes import device_of
    from phloem.analysis.time import most_processes

    asked = devices, settings.device, settings.chains.n_runs
    return replace(settings, device=device_of(*asked, more=lambda: most_processes(settings)))


def _assists() -> bool:
    """Whether this process had a share in what another one does and shows."""
    from phloem.analysis.time import assist_time

    return assist_time()


def _settings(options: dict[str, Any]) -> TimeTreeSettings:
    """The options of the command, sorted into the records of phloem.analysis.time."""
    from phloem.analysis.time_options import time_settings

    for name in ("progress", "dry_run", "pilot", "devices"):  # which are of the command, not of the analysis
        del options[name]
    for name in ("data", "tip_dates", "coupling", "thresholds", "clades", "discrete_trait", "nextstrain"):
        options |= options.pop(name)
    return time_settings(options)


def run_dated(
    settings: TimeTreeSettings, look: bool, devices: str | None, pilot: float | None, progress: str | None
) -> None:
    """What the command does with settings; look: it says no more than what would be done."""
    from phloem.analysis.time import look_at
    from phloem.cli.time_report import introduce_dated, show_dated

    settings = _on_devices(devices, settings)
    if look:
        introduce_dated(*look_at(settings))
    if pilot is not None:
        _foretell(settings, pilot)
    elif not (look or _assists()):
        show_dated(_run(settings, progress))


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
    from phloem.cli.time_report import introduce_dated

    console = message_console(live=True)
    written = ProgressFile(progress, settings.inputs)
    stones = settings.chains.ladder if settings.chains.stones else None
    bar, report, told = chain_progress(console, written.tell, stones)

    def begin(data: TimeInput, device: str) -> None:
        written.check(lambda: output_files(settings) | files_of_draws(settings, data))
        introduce_dated(settings, data, device)
        bar.start()  # only now: what goes to standard output would stand in its line

    try:
        return run_time(settings, progress=report, started=begin, compiling=console.print, told=told)
    except KeyboardInterrupt:
        console.print("The same command goes on from the last checkpoint; --redo starts anew.")
        raise
    finally:
        bar.stop()
