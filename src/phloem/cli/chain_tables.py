"""What chains found and how sure it is, for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phloem.analysis.mcmc import Progress as SamplerProgress
    from phloem.analysis.mcmc_record import Check, Diagnosis, LeftOut, TraceSummary
    from phloem.analysis.stones import Ladder


def show_convergence(d: Diagnosis, wanted: Any, console) -> None:
    """The last diagnosis beside what was wanted."""
    from rich.text import Text

    needed = "" if d.forecast != d.forecast else f", about {_rounded(d.forecast):,} by what was drawn"
    verdict = "all thresholds met" if d.met else f"thresholds not met: go on with more --generations{needed}"
    if d.asdsf == d.asdsf:  # there are several runs, with trees
        console.print(
            f"Average standard deviation of split frequencies: {d.asdsf:.6f}  (want < {wanted.asdsf:g})"
        )
    console.print(
        f"Smallest ESS {d.ess:.0f} ({d.limiting}; want > {wanted.ess:g}), "
        f"largest R-hat {_r_hat(d.r_hat)} (want < {wanted.r_hat:g})"
    )
    console.print(
        Text.assemble(
            (verdict, "green" if d.met else "yellow"),
            f"; {d.n_draws:,} samples a run after the burn-in, {d.generation:,} generations",
        )
    )


def _rounded(generations: float) -> int:
    """Two digits of a forecast."""
    return int(float(f"{generations:.1e}"))


def _r_hat(value: float) -> str:
    """Runs that never leave values of their own have one of fifteen digits."""
    return "–" if value != value else f"{value:.4f}" if value <= 1000 else "over 1000"


def parameter_table(p: TraceSummary, title: str) -> Any:
    """One row a number of the trace."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column("parameter", overflow="fold")
    for name in ("mean", "sd", f"{100 * p.mass:g}% HPD", "ESS", "R-hat"):
        table.add_column(name, justify="right", no_wrap=not name.endswith("HPD"))
    for i, name in enumerate(p.names):
        mean, low, high = p.texts(i)
        ess = f"{p.ess[i]:.0f}" if p.ess[i] > 0 else "–"  # none of a number that is held
        table.add_row(name, mean, f"{p.sd[i]:.3g}", f"{low} … {high}", ess, _r_hat(p.r_hat[i]))
    return table


def checks_table(checks: Sequence[Check], n: int) -> Any:
    """One row a statistic of data that were simulated; n times were asked for."""
    from rich.table import Table

    there = checks[0].data_sets if checks and checks[0].data_sets else n
    fewer = f", of which there are no {n:,}" if there < n else ""
    title = f"The data beside {there:,} simulated from the draws{fewer}; p: of a larger one"
    table = Table(title=title, title_justify="left", pad_edge=False)
    for name in ("statistic", "data", "simulated", "95% of them", "p"):
        table.add_column(name, justify="left" if name == "statistic" else "right", overflow="fold")
    for c in checks:
        interval = f"{c.low:.5g} … {c.high:.5g}"
        table.add_row(c.name, f"{c.observed:.5g}", f"{c.mean:.5g}", interval, f"{c.p:.3f}")
    return table


def left_out_text(of: LeftOut) -> str:
    """How well sites are foretold that the model has not seen."""
    doubt = (
        f"; of {of.unreliable:,} of {of.sites:,} sites unreliable (Pareto k > 0.7)" if of.unreliable else ""
    )
    return (
        f"Leave-one-out over sites: {of.log_density:.2f}, standard error {of.error:.2f}, "
        f"{of.numbers:.1f} effective parameters, from {of.draws:,} draws{doubt}"
    )


def chain_progress(console, written: Callable[[Any], None], stones: Ladder | None = None):
    """A bar of the generations of all chains, not started yet; what moves it (a sampler.Progress); and what
    moves it while single draws are looked at (mcmc_draws.Told). written: is told the generations, too.
    stones: those that chains climb, whose samples are of no one density, so that nothing is to agree."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from phloem.cli.streams import minutely

    columns = (
        BarColumn(16),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[agreement]}"),
        TimeRemainingColumn(compact=True),
    )
    bar, now_about = Progress(*columns, console=console, transient=True), [""]
    task, log = bar.add_task("", total=None, done="", speed="", agreement=""), minutely(console)

    def report(now) -> None:
        asdsf = now.diagnosis.asdsf if now.diagnosis else float("nan")
        agreement = f"ASDSF {asdsf:.4f}" if asdsf == asdsf else ""
        agreement = _stone_text(stones, now.generation) if stones else agreement
        bar.update(
            task,
            completed=now.generation,
            total=now.total,
            done=f"{now.generation:,}" + (f"/{now.total:,}" if now.total else ""),
            speed=f"{now.speed:,.0f} chain-gen/s",
            agreement=agreement,
        )
        log(_log_line(now, stones))
        written(now)

    def told(what: str, done: int, n: int) -> None:
        if what != now_about[0]:
            now_about[0] = what
            bar.reset(task, total=n, done="", speed="", agreement=what)
        bar.update(task, completed=done, done=f"{done:,}/{n:,} draws")
        log(f"{what}: {done:,} of {n:,} draws")

    return bar, report, told


def _stone_text(stones: Ladder, generation: int) -> str:
    """The stone that a generation is at, and its power of the likelihood."""
    n = len(stones.powers) - 1
    if generation < stones.first:
        return f"before the first of {n} stones"
    k = min((generation - stones.first) // stones.each, n - 1)
    return f"stone {k + 1} of {n}, power {stones.stone(k)[0]:.3g}"


def _log_line(now: SamplerProgress, stones: Ladder | None) -> str:
    """How far chains are, for a file."""
    from phloem.analysis.progress import in_words

    told = [f"{now.generation:,} generations" + (f" of {now.total:,}" if now.total else "")]
    told += [f"{now.speed:,.0f} chain-generations/s"]
    if stones is not None:
        told += [_stone_text(stones, now.generation)]
    elif (found := now.diagnosis) is not None:
        told += [f"ASDSF {found.asdsf:.4f}"] if found.asdsf == found.asdsf else []
        told += [f"least ESS {found.ess:.0f} ({found.limiting})"] if found.ess == found.ess else []
    told += [f"about {in_words(now.seconds_left)} left"] if now.total and isfinite(now.seconds_left) else []
    return ", ".join(told)
