"""Where a command line ends: what it prints, in which encoding and width; streams that are closed or full.

Results (trees, alignments, matrices, JSON) leave as UTF-8, as they would in a file. What people read leaves
in the encoding of their terminal: what that lacks is drawn in ASCII. Nothing printed is taken for markup.
"""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import RawIOBase, TextIOBase, TextIOWrapper
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.table import Column, Table

USUAL_WIDTH = 80  # where the output is no terminal
STDOUT_NAME = "standard output"
LOG_EVERY = 60.0  # seconds between lines of progress in a file
_FOLDED = 8  # columns of names, at least

_PLAIN = "phloem_plain"
# As wide as what they stand for, so that drawings and tables keep their shape.
_SUBSTITUTES = dict(zip("─│┌└├┤┬┴┼┐┘━╸╺×·–—−‘’“”…≤≥→", "-|/\\+++++\\/---x.---''\"\"~<>>"))


class _Closed(TextIOBase):
    """Standard output where it was closed (`>&-`): an error for whoever has something to say there."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed", STDOUT_NAME)


def prepare_streams() -> None:
    """Make the three streams usable whatever they are.

    A closed one is opened on the null device, so that no file of ours gets its number; what goes to standard
    output is then an error, what goes to standard error is lost.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    codecs.register_error(_PLAIN, _in_ascii)
    if sys.stdout is None:
        sys.stdout = _Closed()  # type: ignore[assignment]
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            if isinstance(stream.buffer, RawIOBase):
                stream = _complete(stream)
                setattr(sys, name, stream)
            stream.reconfigure(errors=_PLAIN)


def _complete(stream: TextIOWrapper) -> TextIO:
    """Of a stream without a buffer (PYTHONUNBUFFERED): one that writes all it is given, line by line. Python
    drops in silence what a disk that fills up, or a reader that leaves, has not taken."""
    return open(stream.fileno(), "w", buffering=1, encoding=stream.encoding, closefd=False)


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """In place of what an encoding lacks; bytes of file names that are no text go out as they came in."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return b"".join(map(_plain, found)), error.end


def _plain(letter: str) -> bytes:
    if "\udc80" <= letter <= "\udcff":
        return bytes([ord(letter) - 0xDC00])
    text = _SUBSTITUTES.get(letter) or unicodedata.normalize("NFKD", letter)[:1]
    return text.encode("ascii", "replace")


def require_stdout() -> None:
    """OSError, before anything is computed, where a result has no way out."""
    if isinstance(sys.stdout, _Closed):
        sys.stdout.write("")


@contextmanager
def result_stream() -> Iterator[TextIO]:
    """Standard output for a result: UTF-8, whatever the terminal's encoding."""
    stream = sys.stdout
    if not isinstance(stream, TextIOWrapper):
        yield stream
        return
    encoding, errors = stream.encoding, stream.errors
    stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        yield stream
    finally:
        stream.reconfigure(encoding=encoding, errors=errors)


def print_result(text: str) -> None:
    """A result that ends in a new line."""
    with result_stream() as out:
        out.write(text)


def terminal_width() -> int:
    """Columns of the terminal that standard output is, else USUAL_WIDTH."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    return max(shutil.get_terminal_size((USUAL_WIDTH, 24)).columns, 20)


def report_console() -> Console:
    """For what people read on standard output, as wide as the terminal."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=terminal_width())


def message_console(live: bool = False) -> Console:
    """For messages on standard error; lines are left to the terminal to break, paths stay whole. live: with
    a bar of progress below them, which has to know where lines end."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=not live)


def print_table(console: Console, table: Table) -> None:
    """As wide as the console, wider where numbers would be cut: a terminal breaks lines and loses nothing."""
    own = console.width
    frame = 3 * len(table.columns) + 1
    console.width = max(own, frame + sum(_least_width(console, column) for column in table.columns))
    console.print(table)
    console.width = own


def _least_width(console: Console, column: Column) -> int:
    """Of a column: its longest word, or cell where it may not wrap; less where it may be folded anywhere."""
    if column.overflow == "fold":
        return _FOLDED
    options = console.options.update(width=10_000)
    found = [console.measure(cell, options=options) for cell in (column.header, *column.cells)]
    return max(size.maximum if column.no_wrap else size.minimum for size in found)


def minutely(console: Console) -> Callable[[str], None]:
    """Prints a line of progress, one a minute and the first after a minute, where standard error is no
    terminal but the log of a batch job, say. A terminal is shown a bar, and these lines are not for it."""
    if console.is_terminal:
        return lambda text: None
    due = time.monotonic() + LOG_EVERY

    def tell(text: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            console.print(text, soft_wrap=True)
            due = time.monotonic() + LOG_EVERY

    return tell


def told_by(console: Console, status: Status) -> Callable[[str], None]:
    """What tells how far it is: a terminal by a status line, a file by a line a minute."""
    return status.update if console.is_terminal else minutely(console)


@contextmanager
def shown_steps(console: Console, first: str) -> Iterator[Callable[[str, int, int], None]]:
    """Yields progress(step, done, total), total 0 where it is not known; `first` is shown at once.

    One line, which goes when all is done; a line a minute where the console is not a terminal.
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
        log = minutely(console)
        yield lambda step, done, total: log(f"{step}: {done:,} of {total:,}" if total else f"{step} …")
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


def leave(status: int) -> NoReturn:
    """Write out what is left and end the process at once: to take Numba and LLVM apart object by object costs
    a third of a second."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = status or 1
    except OSError as error:
        status = status or 2
        print(f"error: {STDOUT_NAME}: {error.strerror or error}", file=sys.stderr)
    try:
        sys.stderr.flush()
    except OSError:
        status = status or 1
    os._exit(status)
