"""What `phloem time` says of an analysis before it begins, and of its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phloem.analysis.stones import StonesResult
    from phloem.analysis.time import TimeResult, TimeTreeSettings
    from phloem.analysis.time_data import TimeInput
    from phloem.analysis.time_record import Ancestors

SHOWN_ROUTES = SHOWN_ANCESTORS = 20


def introduce_dated(settings: TimeTreeSettings, data: TimeInput, device: str) -> None:
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
    show_line(_dates_text(data))
    own = ", ".join(c.name for c in model.own_clocks)
    kinds = {
        "strict": "strict",
        "ucln": f"uncorrelated log-normal, spread by {settings.tree.clock_sd}",
        "ucgd": "uncorrelated gamma",
        "local": f"local, of its own for {own}",
        "local-crown": f"local, of its own for {own}, not on the branch above",
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
    if settings.stones_from is not None:
        show_line(f"stones:  from a working distribution, fitted to draws of {settings.stones_from}")
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


def _dates_text(data: TimeInput) -> str:
    """From when the taxa are."""
    if data.dates is None:
        return "dates:   none; all taxa are of one time"
    uncertain = int((~data.dates.exact).sum())
    told = f", {uncertain} within limits" if uncertain else ""
    first, last = data.dates.lower.min(), data.dates.upper.max()
    if data.ages_are_given:
        return f"ages:    {-first:.6g} to {abs(last):.6g} before the present{told}"
    return f"dates:   {first:.6g} to {last:.6g}{told}"


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


def show_dated(result: TimeResult | StonesResult) -> None:
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
    from phloem.cli.mcmc import show_files
    from phloem.cli.streams import print_table, report_console
    from phloem.plot.terminal_tree import draw_tree

    console = report_console()
    name = SUMMARY_TREES[result.settings.summary_tree]
    console.print(
        f"\n{name[0].upper()}{name[1:].rstrip(',')}, median ages, clade probabilities at its branches\n"
    )
    print(draw_tree(result.tree, console.width))
    console.print()
    title = f"Parameters; ages before {result.ages_before}"
    print_table(console, parameter_table(result.parameters, title))
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
    speed = f", {result.speed:,.0f} {unit}/s" if result.speed > 0 else ", nothing left to sample"
    console.print(f"{result.seconds:.1f} s{speed}{resumed}{undefined}")
    show_files(result.files, result.was_finished)


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
