"""The steps of a command on a terminal: how far each is, how long it took and will take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def shown_steps(console: Console, first: str) -> Iterator[Callable[[str, int, int], None]]:
    """Yields progress(step, done, total), total 0 where it is not known; `first` is shown at once.

    One line, which goes when all is done. Nothing is written where the console is not a terminal.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if not console.is_terminal:
        yield lambda step, done, total: None
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(20), TaskProgressColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(compact=True),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task, shown = bar.add_task(first, total=None), first

        def tell(step: str, done: int, total: int) -> None:
            nonlocal task, shown
            if step != shown:
                bar.remove_task(task)
                task, shown = bar.add_task(step, total=None), step
            bar.update(task, completed=done, total=total or None)

        yield tell
