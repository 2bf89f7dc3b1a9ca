"""What chains found and how sure it is, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phloem.analysis.mcmc_record import Diagnosis, TraceSummary


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
    return f"{value:.4f}" if not value > 1000 else "over 1000"


def parameter_table(p: TraceSummary, title: str) -> Any:
    """One row a number of the trace."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column("parameter", overflow="fold")
    for name in ("mean", "sd", f"{100 * p.mass:g}% HPD", "ESS", "R-hat"):
        table.add_column(name, justify="right", no_wrap=not name.endswith("HPD"))
    for i, name in enumerate(p.names):
        interval = f"{p.hpd_low[i]:.5g} … {p.hpd_high[i]:.5g}"
        table.add_row(
            name, f"{p.mean[i]:.5g}", f"{p.sd[i]:.3g}", interval, f"{p.ess[i]:.0f}", _r_hat(p.r_hat[i])
        )
    return table
