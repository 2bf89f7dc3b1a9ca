"""`phloem bayes-factors`: models compared by their marginal likelihoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phloem.analysis.mcmc_record import ModelShare

LEAST_PROBABILITY = 0.05  # of a model in a table of them

FILES = typer.Argument(
    ..., help="PREFIXes of analyses of the same data, by phloem mcmc or time --stepping-stone."
)


def bayes_factors(files: list[str] = FILES) -> None:
    """Compare models: marginal likelihoods, Bayes factors against the best, probabilities."""
    from rich.table import Table

    from phloem.analysis.stones import bayes_factors as compared
    from phloem.cli.streams import message_console, print_table, report_console

    found = compared(files)
    table = Table(title="Models, the best first; natural logarithms", title_justify="left", pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in ("log marginal likelihood", "s.e.", "log Bayes factor", "s.e.", "2 log BF", "probability"):
        table.add_column(name, justify="right")
    names = [m.model for m in found]
    for m in found:
        label = m.model if names.count(m.model) == 1 else f"{m.model} ({m.file})"
        factor = (f"{m.log_bayes_factor:.2f}", f"{m.factor_error:.2f}", f"{2 * m.log_bayes_factor:.2f}")
        table.add_row(label, f"{m.log:.2f}", f"{m.error:.2f}", *factor, f"{m.probability:.3g}")
    print_table(report_console(), table)
    if guessed := [m.file for m in found if m.guessed]:
        told = "have stones with so few effective samples that their standard errors are guesses"
        message_console().print(f"{', '.join(guessed)} {told}: ask for more --generations")
    priors = {m.length_prior: m.file for m in reversed(found) if m.length_prior}
    if len(priors) > 1:
        told = "; ".join(f"{prior} ({file})" for prior, file in priors.items())
        message_console().print(f"Priors of branch lengths differ, and count in the factors: {told}")


def model_table(models: Sequence[ModelShare]) -> Any:
    """The models among which the chains chose."""
    from rich.table import Table

    table = Table(title="Models (.json: all of them)", title_justify="left", pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in ("probability", "sd of runs", "lowest", "highest", "ESS"):
        table.add_column(name, justify="right", no_wrap=True)
    for m in models:
        if m.probability >= LEAST_PROBABILITY:
            numbers = f"{m.probability:.3f}", f"{m.sd:.3f}", f"{m.low:.3f}", f"{m.high:.3f}", f"{m.ess:.0f}"
            table.add_row(f"{m.column}[{m.name}]", *numbers)
    return table
