"""What samplers have drawn, for tables and plots elsewhere: numbers by name, runs apart, no tuning."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.analysis.trace_view import Traces, read_trace_files, read_traces
from phloem.errors import InputError
from phloem.summary.spread import first_used
from phloem.summary.trace import TraceSummary, trace_summary


@dataclass(frozen=True, eq=False)
class Draws:
    """Numbers of R runs, D draws each, that summaries use.

    names: K. generations: (R, D). values: (R, D, K) float64.
    """

    names: tuple[str, ...]
    generations: np.ndarray
    values: np.ndarray

    def __repr__(self) -> str:
        runs, draws, numbers = self.values.shape
        return f"Draws({runs} runs × {draws:,} draws × {numbers:,} numbers: {', '.join(self.names[:6])}, …)"

    def __getitem__(self, name: str) -> np.ndarray:
        """(R, D) of one number."""
        if name not in self.names:
            raise KeyError(f"there is no '{name}'; there are {', '.join(self.names[:40])}")
        return self.values[:, :, self.names.index(name)]

    def by_name(self) -> dict[str, np.ndarray]:
        """name → (R, D): chains and draws as ArviZ has them."""
        return {name: self[name] for name in self.names}

    def columns(self) -> dict[str, np.ndarray]:
        """run, generation and every number as columns of R × D rows, as pandas.DataFrame takes them."""
        runs = np.repeat(np.arange(1, len(self.values) + 1), self.values.shape[1])
        own = {"run": runs, "generation": self.generations.ravel().astype(np.int64)}
        return own | {name: drawn.ravel() for name, drawn in self.by_name().items()}

    def summary(self, mass: float = 0.95) -> TraceSummary:
        """Means, intervals, effective sample sizes and R-hat."""
        return trace_summary(self.names, self.values, mass)


def read_draws(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, burn_in: float | None = None
) -> Draws:
    """The draws of an analysis by its prefix (of `phloem mcmc` or `phloem time`), or of trace files of
    phloem, MrBayes, BEAST or RevBayes, a file a run.

    burn_in: share of the samples that is left out. Of a finished analysis None leaves out what its own
    summaries do, its tuning or warm-up among them; else it must be said. Runs are cut to the length of the
    shortest. Errors: InputError.
    """
    listed = [files] if isinstance(files, str | os.PathLike) else list(files)
    paths = [os.fspath(file) for file in listed]
    if burn_in is not None and not 0 <= burn_in < 1:
        raise InputError(f"the burn-in is a share from 0 to below 1, not {burn_in}")
    if len(paths) != 1 or Path(paths[0]).is_file():
        if burn_in is None:
            hint = "Say it, such as burn_in=0.25, or name a finished analysis by its prefix."
            raise InputError("trace files do not say what burn-in they need", file=paths[0], hint=hint)
        return _draws(read_trace_files(paths), burn_in, -1, paths[0])
    traces = read_traces(paths[0])
    if traces is None:
        hint = "Give the --prefix of an analysis, or its trace files."
        raise InputError("there is no trace of this prefix", file=f"{paths[0]}.run1.p", hint=hint)
    share, tuning = left_out(paths[0]) if burn_in is None else (burn_in, -1)
    return _draws(traces, share, tuning, paths[0])


def left_out(prefix: str) -> tuple[float, int]:
    """Share of the samples, and the last generation of the tuning, as a finished analysis has them."""
    record = Path(f"{prefix}.json")
    try:
        chains = json.loads(record.read_text(encoding="utf-8"))["settings"]["chains"]
        if chains.get("stones"):
            raise InputError(
                "these draws are of power posteriors, at every stepping stone of another",
                file=str(record),
                hint="Run the same command without --stepping-stone, or say burn_in=0.0 to have them all.",
            )
        return float(chains.get("burn_in", 0.0)), int(chains["tuning_generations"])
    except (OSError, ValueError, KeyError, TypeError):
        hint = "Let it finish, or say what is left out, such as burn_in=0.25."
        told = "this analysis is not finished, and its burn-in not known"
        raise InputError(told, file=str(record), hint=hint) from None


def _draws(traces: Traces, burn_in: float, tuning: int, file: str) -> Draws:
    n = min(len(values) for values in traces.values)
    first = first_used(traces.generations[0][:n], burn_in, tuning)
    if first >= n:
        raise InputError(
            "no draw is left behind the burn-in", file=file, hint="Draw more, or leave out less."
        )
    generations = np.stack([one[first:n] for one in traces.generations])
    return Draws(traces.names, generations, np.stack([one[first:n] for one in traces.values]))
