"""The command line: one thin file a command, which reads options, calls phloem.analysis and prints."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from phloem.cli.streams import STDOUT_NAME, leave, prepare_streams

# Command → "module:function". A command's module imports only typer at its top, so that --help stays quick.
COMMANDS = {
    "upgma": "phloem.cli.distance:upgma",
    "nj": "phloem.cli.distance:nj",
    "distances": "phloem.cli.distance:distances",
    "draw": "phloem.cli.draw:draw",
    "likelihood": "phloem.cli.likelihood:likelihood",
    "temporal-signal": "phloem.cli.temporal_signal:temporal_signal",
    "date": "phloem.cli.date:date",
    "ml": "phloem.cli.ml:ml",
    "test-trees": "phloem.cli.tree_tests:tree_tests",
    "concordance": "phloem.cli.concordance:concordance",
    "mcmc": "phloem.cli.mcmc:mcmc",
    "time": "phloem.cli.time:time",
    "bayes-factors": "phloem.cli.bayes_factors:bayes_factors",
    "leave-one-out": "phloem.cli.leave_one_out:leave_one_out",
    "summarize": "phloem.cli.summarise:summarise",
    "summarise": "phloem.cli.summarise:summarise",
    "concatenate": "phloem.cli.concatenate:concatenate",
    "simulate": "phloem.cli.simulate:simulate",
    "plan": "phloem.cli.plan:plan",
    "examples": "phloem.cli.examples:examples",
    "page": "phloem.cli.page:page",
    "doctor": "phloem.cli.doctor:doctor",
}

# The kernels have threads of their own. Those of BLAS only get small matrices here, and where other programs
# keep the cores busy they wait for each other: a fit took four times as long with two of them.
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# Looking for garbage in what numba and SciPy define at import took a tenth of a short command's time.
_ALLOCATIONS_PER_COLLECTION = 50_000

_INTERRUPTED = 130  # exit status
_OF_SIGNALS = 128  # exit statuses, less the signal's number

# They lock the prefix of their files, and soon see a signal. Others hold nothing, and it ends them at once.
_LOCKING = ("ml", "mcmc", "time", "test-trees")


def build_app():
    """The typer application with every command of COMMANDS."""
    import typer

    from phloem.cli.naming import Command

    app = typer.Typer(
        name="phloem",
        help="Statistical phylogenetics on many-core hardware: likelihoods, gradients, posteriors, trees.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_version_option())
    for name, target in COMMANDS.items():
        module, function = target.split(":")
        app.command(name, cls=Command)(getattr(import_module(module), function))
    return app


def _version_option():
    import typer

    def show(value: bool) -> None:
        if value:
            from phloem import __version__

            typer.echo(f"phloem {__version__}")
            raise typer.Exit

    def options(
        version: bool = typer.Option(
            False, "--version", callback=show, is_eager=True, help="Print the version."
        ),
    ) -> None:
        """Statistical phylogenetics on many-core hardware: likelihoods, gradients, posteriors, trees."""

    return options


def main() -> None:
    """Entry point of the command `phloem`."""
    prepare_streams()
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"  # without phloem's own line
    from phloem.analysis.processes import be_quiet, take_leave

    kept = be_quiet()
    status = run()
    take_leave(status, kept)
    atexit._run_exitfuncs()
    leave(status)


def run() -> int:
    """Run the command and return its exit status: 2 for what the user can mend, which is printed."""
    for library in _BLAS_THREADS:
        os.environ.setdefault(library, "1")
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    command = next((word for word in sys.argv[1:] if word in COMMANDS), "")
    with _requests_to_end(command) as came:
        status = _status(command)
    if status == _INTERRUPTED:  # typer catches the interrupt, and says nothing
        print(f"ended by {came[0].name}" if came else "interrupted", file=sys.stderr)
        return _OF_SIGNALS + came[0] if came else status
    return status


@contextmanager
def _requests_to_end(command: str) -> Iterator[list[signal.Signals]]:
    """Meanwhile SIGTERM and SIGHUP, as batch systems send them and terminals that go away, are interrupts,
    and noted: what was drawn is kept, the lock goes. A second one ends the process at once. Where one is
    ignored (nohup) it stays so; several processes end at once, as each may be waiting for another."""
    from phloem.analysis.processes import is_alone

    came: list[signal.Signals] = []

    def interrupt(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        came.append(signal.Signals(number))
        raise KeyboardInterrupt

    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if command not in _LOCKING or not is_alone() or threading.current_thread() is not threading.main_thread():
        asked = []
    usual = [one for one in asked if signal.getsignal(one) is signal.SIG_DFL]
    for one in usual:
        signal.signal(one, interrupt)
    try:
        yield came
    finally:
        for one in usual:
            signal.signal(one, signal.SIG_DFL)


def _status(command: str) -> int:
    from phloem.analysis.processes import refuse_several
    from phloem.errors import PhloemError

    try:
        refuse_several(command)
        build_app()()
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except PhloemError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # of a reader that has seen enough
        return 1
    except OSError as error:  # files have errors of their own: this is a stream
        print(f"error: {error.filename or STDOUT_NAME}: {error.strerror or error}", file=sys.stderr)
        return 2
    except MemoryError:
        print("error: the memory is used up\n  hint: Use a machine with more, or less data.", file=sys.stderr)
        return 2
    return 0
