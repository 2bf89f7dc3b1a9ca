"""`phloem mcmc`: from an alignment to a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import typer

from phloem.cli.data_options import DEVICES, LINK, LINKAGE, takes_data, takes_thresholds
from phloem.errors import InputError

if TYPE_CHECKING:
    from phloem.analysis.mcmc import McmcResult, McmcSettings
    from phloem.analysis.mcmc_data import ChainInput
    from phloem.analysis.stones import StonesResult
    from phloem.analysis.time_record import TimeTreeSettings

MODEL = typer.Option(
    None, "--model", "-m", help="Such as GTR+I+G4, MIXED+G4; by default GTR+G4, LG+G4, GY94+F3X4 or MK+G4."
)
CHARACTER_STATES = typer.Option(
    "own", help="States under MK: each character's own number, by symbols or digits; or all of the matrix."
)
START = typer.Option(
    "random",
    help="Starting trees: random, nj, bionj, upgma, parsimony, or a tree file; perturbed for each chain.",
)
START_TREE = typer.Option(None, help="Of a tree file: the tree of this name, or number from 1; the first.")
FIXED_TOPOLOGY = typer.Option(
    False,
    "--fixed-topology",
    help="The topology of --start holds; lengths and parameters are sampled.",
)
PREFIX = typer.Option(
    None, "--prefix", "-p", help="What the names of all files written begin with; the alignment's name."
)
MRBAYES_BLOCK = typer.Option("obey", help="Of a NEXUS file: it says what the analysis is, or nothing.")
DRY_RUN = typer.Option(False, "--dry-run", help="Say what would be done, as options too, and stop.")
PILOT = typer.Option(None, help="Sample so many seconds, forecast the whole analysis from them, and stop.")
STEPPING_STONE = typer.Option(
    None, help="Stones, such as 50: estimate the marginal likelihood from so many power posteriors; 0: none."
)
STONE_SHAPE = typer.Option(0.4, help="Powers are quantiles of Beta(shape, 1); 1 of --stones-from.")
STONES_FROM = typer.Option(
    None,
    help="Stones begin near the posterior that the finished analysis of this prefix drew, not at the prior.",
)
GENERATIONS = typer.Option(
    None, help="Of every chain: just so many; none: until converged (1,000,000 of stepping stones)."
)
UNTIL_CONVERGED = typer.Option(
    False,
    "--until-converged",
    help="Stop at ASDSF < 0.01, every ESS > 200, every R-hat < 1.01; at --generations the latest.",
)
CONSENSUS = typer.Option("majority", help="Consensus: splits of half the trees, or all that fit.")
BRANCH_PRIOR = typer.Option(
    "gammadir(1,0.1,1,1)",
    help="On lengths in substitutions per site (of codons: per nucleotide); or exponential(10).",
)
DEVICE = typer.Option("auto", help="Where chains are evaluated; auto: a GPU where forecasts say it pays.")
PRECISION = typer.Option("float64", help="Of conditional likelihoods on a GPU; sums are of float64.")
HEATING = typer.Option(None, help="Chain i runs at 1 / (1 + heating i); 0.1, less where swaps are rare.")
USUAL_WEIGHTS = typer.Option(
    False, "--usual-weights", help="Moves are tried as often as usual, not as burn-in shows that it pays."
)
PRIOR = typer.Option(None, help="As in 'alpha=uniform(0.1,50)' or 'alpha{gene1}=…'; may be repeated.")
WITHOUT = typer.Option(None, help="Taxon to leave out; may be repeated.")
SITE_TABLE = typer.Option(
    False, "--site-table", help="PREFIX.sites too: log-likelihood, leave-one-out and rate of every site."
)
ANCESTRAL = typer.Option(
    False, "--ancestral", help="PREFIX.state too: states at inner nodes, averaged over draws."
)
PREDICTIVE = typer.Option(0, help="Simulate so many data sets from draws, to hold against the data.")
PROGRESS = typer.Option(None, help="File that says as JSON, every second, how far the chains are.")
CONSTRAINT = typer.Option(
    None,
    help="'name: taxon, …', a split of all trees; 'name negative: …'; 'name partial: … | …'. Repeatable.",
)


@takes_data(partitions=True, alignment_default=None)
@takes_thresholds
def mcmc(
    data: dict[str, Any],
    thresholds: dict[str, Any],
    context: typer.Context,
    model: str | None = MODEL,
    linkage: Literal["linked", "proportional", "unlinked"] | None = LINKAGE,
    link: list[str] | None = LINK,
    ordered: str | None = typer.Option(None, help="Columns of standard characters with ordered states."),
    character_states: Literal["own", "digits", "all"] = CHARACTER_STATES,
    asc: Literal["lewis", "mrbayes"] = typer.Option("lewis", help="+ASC as published, or as in MrBayes."),
    without: list[str] | None = WITHOUT,
    constraint: list[str] | None = CONSTRAINT,
    outgroup: str | None = typer.Option(None, help="Taxon that the consensus hangs from."),
    start: str = START,
    start_tree: str | None = START_TREE,
    fixed_topology: bool = FIXED_TOPOLOGY,
    prefix: str | None = PREFIX,
    settings: str | None = typer.Option(None, help="TOML file of options, as lines 'option = value'."),
    mrbayes_block: Literal["obey", "ignore"] = MRBAYES_BLOCK,
    dry_run: bool = DRY_RUN,
    pilot: float | None = PILOT,
    generations: int | None = GENERATIONS,
    until_converged: bool = UNTIL_CONVERGED,
    runs: int = typer.Option(2, help="Independent runs, to compare with each other."),
    chains: int = typer.Option(4, help="Metropolis-coupled chains in each run."),
    seed: int = typer.Option(1, help="Same seed, same numbers, whatever the number of threads."),
    swap_seed: int | None = typer.Option(None, help="Of the swaps of chains; the seed."),
    swap_every: int = typer.Option(1, help="Generations between tries to swap two chains."),
    sample_every: int = typer.Option(500, help="Generations between samples."),
    check_every: int = typer.Option(50_000, help="Generations between checkpoints."),
    burn_in: float = typer.Option(0.25, help="Share of the samples that summaries leave out."),
    consensus: Literal["majority", "allcompat"] = CONSENSUS,
    heating: float | None = HEATING,
    usual_weights: bool = USUAL_WEIGHTS,
    branch_prior: str = BRANCH_PRIOR,
    prior: list[str] | None = PRIOR,
    stepping_stone: int | None = STEPPING_STONE,
    stone_shape: float = STONE_SHAPE,
    stone_burn_in: int | None = typer.Option(None, help="Generations before the first stone; those of one."),
    stones_from_prior: bool = typer.Option(False, "--stones-from-prior", help="Stones from the prior up."),
    stones_from: str | None = STONES_FROM,
    prior_only: bool = typer.Option(False, "--prior-only", help="Ignore the data: sample the prior."),
    gamma: Literal["mean", "median"] = typer.Option("mean", help="Rates of +G categories: means or medians."),
    device: Literal["auto", "cpu", "gpu"] = DEVICE,
    devices: str | None = DEVICES,
    precision: Literal["float64", "float32"] = PRECISION,
    threads: int | None = typer.Option(None, help="Shared by runs and their chains; all cores if not given."),
    progress: str | None = PROGRESS,
    report: bool = typer.Option(False, "--report", help="PREFIX.html too: a page of numbers, traces, tree."),
    site_table: bool = SITE_TABLE,
    ancestral: bool = ANCESTRAL,
    predictive: int = PREDICTIVE,
    redo: bool = typer.Option(False, "--redo", help="Start anew and replace files that exist."),
) -> None:
    """Bayesian analysis: trees, branch lengths and parameters sampled by Metropolis-coupled MCMC.

    A NEXUS file with a MRBAYES block describes its analysis itself; options stand before what it says. An
    interrupted analysis is resumed from its checkpoint when the same command is given again.
    """
    _carry_out(_settings(dict(locals())), dry_run, devices, pilot, progress)


def _carry_out(
    asked: McmcSettings | tuple[TimeTreeSettings, str],
    look: bool,
    devices: str | None,
    pilot: float | None,
    progress: str | None,
) -> None:
    """The analysis, or what would be done; where a MRBAYES block asks for a clock, that of `phloem time`."""
    from phloem.cli.time import run_of_block

    if isinstance(asked, tuple):
        return run_of_block(asked, look, devices, pilot, progress)
    analysis = _on_devices(devices, asked)
    if look or pilot is not None:
        _foretell(analysis, look, pilot)
    elif not _assists():
        result = _run(analysis, progress)
        (show_stones if analysis.chains.stones else _show)(result)


def _on_devices(devices: str | None, settings: McmcSettings) -> McmcSettings:
    """The settings on the devices asked for."""
    from dataclasses import replace

    from phloem.analysis.processes import MANY, devices_here

    device, gpus = devices_here(devices, settings.device, MANY)
    return replace(settings, device=device, chains=replace(settings.chains, gpus=gpus))


def _assists() -> bool:
    """Whether this process had a share in what another one does and shows."""
    from phloem.analysis.mcmc import assist_mcmc

    return assist_mcmc()


def _settings(options: dict[str, Any]) -> McmcSettings | tuple[TimeTreeSettings, str]:
    """The settings that the options given ask for, before those of a settings file and a MRBAYES block; of a
    block with a clock those of dated trees, and their command."""
    from dataclasses import replace

    from phloem.analysis.mcmc_options import mcmc_settings, merged_options, read_settings
    from phloem.analysis.mrbayes import block_analysis
    from phloem.analysis.time_options import dated_analysis

    options |= options.pop("data") | options.pop("thresholds")
    file, option = options.pop("settings"), options.pop("mrbayes_block")
    for name in ("dry_run", "pilot", "progress", "devices"):
        del options[name]
    source = options.pop("context").get_parameter_source
    given = {name: value for name, value in options.items() if source(name).name != "DEFAULT"}
    from_file = read_settings(file) if file is not None else {}
    in_file = from_file.pop("mrbayes_block", "obey")
    given.pop("mrbayes_block", None)
    obeys = (option if source("mrbayes_block").name != "DEFAULT" else in_file) == "obey"
    alignment = given.get("alignment") or from_file.get("alignment")
    if alignment is None:
        raise InputError("there is no alignment", hint="Name its file: phloem mcmc FILE.")
    found_block = given.get("block") or from_file.get("block")
    block = block_analysis(alignment, found_block) if obeys else None
    if block is not None and block.dated:
        return dated_analysis(block, {**from_file, **given})
    merged, told = merged_options(block, from_file, given)
    analysis = mcmc_settings(merged)
    if not obeys:
        return replace(analysis, of_block="")
    return analysis if block is None else replace(analysis, of_block=block.file, told=(*block.notes, *told))


def _foretell(settings: McmcSettings, look: bool, pilot: float | None) -> None:
    """What would be done, and how long it would take, without doing it."""
    from phloem.analysis.mcmc import look_at
    from phloem.analysis.mcmc_options import settings_text
    from phloem.analysis.plan_mcmc import forecast_mcmc
    from phloem.analysis.processes import refuse_several
    from phloem.cli.plan import show_pilot

    if look:
        _introduce(settings, *look_at(settings))
        print("\nThe same as a settings file:\n")
        print(settings_text(settings), end="")
    if pilot is not None:
        refuse_several("mcmc --pilot")
        show_pilot(pilot, lambda compiling: forecast_mcmc(settings, compiling, pilot))


def _run(settings: McmcSettings, progress: str | None) -> Any:
    from phloem.analysis.mcmc import ladder, run_mcmc
    from phloem.analysis.mcmc_record import output_files
    from phloem.analysis.progress import ProgressFile
    from phloem.cli.chain_tables import chain_progress
    from phloem.cli.streams import message_console

    console = message_console(live=True)
    written = ProgressFile(progress, settings.inputs)
    stones = ladder(settings.chains) if settings.chains.stones else None
    bar, report, told = chain_progress(console, written.tell, stones)

    def begin(*chosen) -> None:
        prefix, chains = settings.file_prefix, settings.chains
        written.check(lambda: output_files(prefix, chains.n_runs, chains.stones, settings.report))
        _introduce(settings, *chosen)
        bar.start()  # only now: what goes to standard output would stand in its line

    try:
        return run_mcmc(
            settings,
            progress=report,
            started=begin,
            compiling=console.print,
            measuring=lambda: console.print("measuring this machine's engines, once for this kind of data"),
            told=told,
        )
    except KeyboardInterrupt:
        console.print("The same command goes on from the last checkpoint; --redo starts anew.")
        raise
    finally:
        bar.stop()


def _introduce(settings: McmcSettings, data: ChainInput, start: str, device: str) -> None:
    from textwrap import fill

    from phloem.analysis.mcmc_data import prior_text
    from phloem.analysis.mcmc_options import command_line
    from phloem.analysis.mcmc_record import heating_text, length_text
    from phloem.analysis.model_file import shown_model
    from phloem.cli.streams import terminal_width

    c = settings.chains
    if settings.of_block:
        show_line(f"block:   as the MRBAYES block of {settings.of_block} says")
    for name, alignment in data.alignments.items():
        of_part = "" if len(data.alignments) == 1 else f"{name}: "
        show_line(
            f"{of_part}{alignment.n_taxa} taxa, {alignment.n_sites:,} sites, {alignment.alphabet.kind} "
            f"({alignment.alphabet.n_states} states), ambiguous characters: {settings.ambiguity}"
        )
        chosen = "" if settings.model or of_part else "  (default for this kind of data)"
        show_line(f"model:   {shown_model(data.models[name].text())}{chosen}")
    if len(data.alignments) > 1 and settings.partitioned:
        shared = ", ".join(settings.link) or "no parameters"
        show_line(f"parts:   branch lengths {settings.linkage or 'proportional'}; shared: {shared}")
    if data.dropped:
        show_line(f"left out: columns {data.dropped}")
    for text in (*settings.told, *data.told):
        show_line(f"note:    {text}")
    prior = "prior:   " + prior_text(data.structure, data.priors, c.fixed_topology)
    show_line(fill(prior, terminal_width(), subsequent_indent=" " * 9))
    show_line(
        f"chains:  {c.n_runs} runs of {c.n_chains} chains, heating {heating_text(c)}, seed {c.seed}, "
        f"{length_text(c)}"
    )
    show_line(f"start:   {start}")
    show_line(fill(f"device:  {device}", terminal_width(), subsequent_indent=" " * 9))
    if not c.use_data:
        show_line("data:    ignored; this samples the prior")
    if data.working is not None:
        n = data.working.n_draws
        show_line(f"stones:  from a working distribution, fitted to {n:,} draws of {settings.stones_from}")
    if settings.of_block:
        show_line(f"same as: {command_line(settings)}")


def show_line(text: str) -> None:
    """A line of the report, folded where it is long."""
    from rich.text import Text

    from phloem.cli.streams import report_console

    report_console().print(Text(text, overflow="fold"))


def _show(result: McmcResult) -> None:
    from rich.text import Text

    from phloem.cli.bayes_factors import model_table
    from phloem.cli.chain_tables import checks_table, left_out_text, parameter_table, show_convergence
    from phloem.cli.streams import print_table, report_console
    from phloem.plot.terminal_tree import draw_tree

    console = report_console()
    console.print("\nMajority-rule consensus, clade probabilities at its branches\n")
    print(draw_tree(result.consensus, console.width))
    console.print()
    print_table(console, parameter_table(result.parameters, f"Parameters; TL in {result.length_unit}"))
    if result.models:
        print_table(console, model_table(result.models))
    show_convergence(result.diagnosis, result.settings.chains.convergence, console)
    if result.left_out is not None:
        console.print(left_out_text(result.left_out))
    if result.checks:
        print_table(console, checks_table(result.checks, result.settings.predictive))
    for warning in result.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning))
    resumed = f" (resumed at generation {result.resumed_at:,})" if result.resumed_at is not None else ""
    n = result.undefined_proposals
    undefined = f"; {n:,} undefined proposals were rejected" if n else ""
    speed = f", {result.speed:,.0f} chain-generations/s" if result.speed > 0 else ", nothing left to sample"
    console.print(f"{result.seconds:.1f} s{speed}{resumed}{undefined}")
    show_files(result.files, result.was_finished)


def show_files(files: dict[str, str], were_there: bool = False) -> None:
    """Names and contents of files, written now or before."""
    if were_there:
        show_line("This analysis was finished before, and its files are as they were:")
    else:
        show_line("Files written:")
    for file, content in files.items():
        show_line(f"  {file}  {content}")


def show_stones(result: StonesResult) -> None:
    """An estimate, how sure it is, and its files."""
    m, constant = result.marginal, result.constant
    runs = ", ".join(f"{x - m.log + result.log:.3f}" for x in m.per_run)
    what = "constant of the prior" if result.of_prior else "marginal likelihood"
    show_line(f"\nLog {what}: {result.log:.3f}, standard error {result.error:.3f}")
    if constant is not None:
        show_line(f"which is {m.log:.3f} ± {m.error:.3f} of likelihood and prior as its density is written,")
        show_line(f"less {constant.log:.3f} ± {constant.error:.3f} of the prior alone ({constant.file})")
    show_line(f"of the runs by themselves: {runs}")
    worst = max(m.stones, key=lambda stone: stone.error)
    show_line(
        f"least certain stone: from power {worst.power:.4g} to {worst.reaches:.4g}, error {worst.error:.3f}, "
        f"ESS {worst.ess:.0f}"
    )
    if m.n_guessed:
        show_line(
            f"{m.n_guessed} of {len(m.stones)} stones have so few effective samples that the standard error "
            "is a guess, and more likely too small: ask for more --generations"
        )
    resumed = f" (resumed at generation {result.resumed_at:,})" if result.resumed_at is not None else ""
    show_line(f"{result.seconds:.1f} s, {result.speed:,.0f} chain-generations/s{resumed}")
    show_files(result.files)
    if result.of_prior:
        return
    show_line(f"Compare models: phloem bayes-factors {result.prefix}.json OTHER.ss.json")
