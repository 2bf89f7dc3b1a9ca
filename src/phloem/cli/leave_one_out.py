"""`phloem leave-one-out`: models compared by sites that they have not seen."""

from __future__ import annotations

import typer

PREFIXES = typer.Argument(
    ..., help="PREFIXes of analyses of the same data by phloem mcmc or time --site-table."
)


def leave_one_out(prefixes: list[str] = PREFIXES) -> None:
    """Compare models: how well each foretells sites that it has not seen."""
    from rich.table import Table

    from phloem.analysis.left_out import compared_models
    from phloem.cli.streams import print_table, report_console

    found = compared_models(prefixes)
    table = Table(title="Models, the best first; natural logarithms", title_justify="left", pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in ("sites left out", "s.e.", "below the best", "s.e.", "parameters"):
        table.add_column(name, justify="right")
    names = [m.model for m in found]
    for m in found:
        label = m.model if names.count(m.model) == 1 else f"{m.model} ({m.prefix})"
        below = ("", "") if m is found[0] else (f"{m.below:.2f}", f"{m.below_error:.2f}")
        table.add_row(label, f"{m.log_density:.2f}", f"{m.error:.2f}", *below, f"{m.numbers:.1f}")
    console = report_console()
    print_table(console, table)
    for m in found:
        if m.unreliable:
            console.print(f"{m.prefix}: {m.unreliable:,} sites whose estimate is unreliable (Pareto k > 0.7)")
