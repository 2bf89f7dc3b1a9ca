"""Proposals of which nobody can say how probable they are, of either sampler: how many there were, and that
the run is stopped where that is no accident.

A log Hastings ratio, log prior or log-likelihood that is no number, or +∞, is rejected and counted, by move
and rank of heat, in the state that a checkpoint holds (compiled/undefined.py). A likelihood that overflows at
the edge of what floating-point numbers can say may give one in a long run. Many are an error, in the model or
in phloem, and the posterior is then not that of the model: part of it was never visited. Steps of Hamiltonian
trajectories are not among them: those that leave their range are counted as diverged. On a GPU a likelihood
that is no number ends a run of MC³ (pruning/gpu/forest.py), and is rejected and not counted of dated chains.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from phloem import __version__
from phloem.errors import NumericalError
from phloem.io.output_file import write_file

HANDFUL = 5  # more are told
MOST, MOST_SHARE = 10, 1e-5  # more than both stop the run
# columns of UndefinedCounts.undefined_last; those of JUDGED are between
MOVE, FIRST_NUMBER = 0, 4
JUDGED = "log Hastings ratio", "log prior", "log-likelihood"


class UndefinedCounts(Protocol):
    """A state of either sampler, or the whole one of coupled chains over dated trees. tried, undefined: (M,)
    or (H, M) by rank of heat; undefined_last: (4 + n,) or by chain (H, 4 + n): of the last one the move, what
    it was judged by (what comes after the first that is no number was not evaluated), and the proposal's
    numbers."""

    tried: np.ndarray
    undefined: np.ndarray
    undefined_last: np.ndarray


class UndefinedRun(Protocol):
    """A run of either sampler."""

    @property
    def number(self) -> int: ...
    @property
    def state(self) -> Any: ...
    @property
    def moves(self) -> Sequence[Any]: ...
    @property
    def space(self) -> Any: ...


def n_undefined(runs: Sequence[UndefinedRun]) -> int:
    """Of all moves and chains of all runs."""
    return sum(int(run.state.undefined.sum()) for run in runs)


def undefined_warnings(runs: Sequence[UndefinedRun]) -> list[str]:
    """One sentence for each run that had more than a handful."""
    return [_sentence(run) for run in runs if int(run.state.undefined.sum()) > HANDFUL]


def check_undefined(runs: Sequence[UndefinedRun], prefix: str | None = None) -> None:
    """NumericalError, and a report where there is a prefix, where a run had too many."""
    for run in runs:
        state: UndefinedCounts = run.state
        n = int(state.undefined.sum())
        if n > MOST and n > MOST_SHARE * int(state.tried.sum()):
            told = ""
            if prefix:
                path = f"{prefix}.report.json"
                write_file(path, json.dumps(_report(run), indent=1, ensure_ascii=False) + "\n")
                told = f" {path} has the parameters of the last one of every chain."
            raise NumericalError(
                f"{_sentence(run)}. So many are no accident, and the run was stopped; samples up to the last "
                f"checkpoint are kept.{told} Look at the priors and bounds of the parameters; if they are as "
                "they should be, send the alignment and the command to phloem's authors."
            )


def _sentence(run: UndefinedRun) -> str:
    """How many, by which move and chain most, and what the last one of a chain was judged by."""
    state: UndefinedCounts = run.state
    counts, tried = np.atleast_2d(state.undefined), int(state.tried.sum())
    rank, move = (int(i) for i in np.unravel_index(int(np.argmax(counts)), counts.shape))
    of_chains = enumerate(np.atleast_2d(state.undefined_last))
    chain, last = next((h, one) for h, one in of_chains if _is_noted(one))
    judged = ", ".join(f"{name} {value:g}" for name, value in _judged(last).items())
    return (
        f"run {run.number + 1}: {int(counts.sum()):,} of {tried:,} proposals were rejected since their "
        "log-likelihood, prior or Hastings ratio was no number, or infinite, most of them "
        f"({int(counts[rank, move]):,}) of the move {run.moves[move].name} at heat rank {rank}; the last one "
        f"of chain {chain + 1}, of the move {run.moves[int(last[MOVE])].name}, had {judged}"
    )


def _judged(last: np.ndarray) -> dict[str, float]:
    """What a proposal was judged by, up to what is no number."""
    found: dict[str, float] = {}
    for name, value in zip(JUDGED, last[1:FIRST_NUMBER].tolist()):
        found[name] = value
        if not value < np.inf:
            break
    return found


def _is_noted(last: np.ndarray) -> bool:
    return not bool((last[1:FIRST_NUMBER] < np.inf).all())


def _report(run: UndefinedRun) -> Mapping[str, object]:
    state: UndefinedCounts = run.state
    counts, tried = np.atleast_2d(state.undefined), np.atleast_2d(state.tried)
    generation = np.asarray(run.state.generation).flat[0]
    return {
        "what": "proposals that nobody can judge",
        "run": run.number + 1,
        "generation": int(generation),
        "undefined_proposals": [
            {
                "move": run.moves[m].name,
                "heat_rank": int(rank),
                "undefined": int(counts[rank, m]),
                "tried": int(tried[rank, m]),
            }
            for rank, m in np.argwhere(counts > 0).tolist()
        ],
        "last_of_chains": [
            {"chain": h + 1, "move": run.moves[int(last[MOVE])].name}
            | {name.replace(" ", "_").replace("-", "_"): _plain(x) for name, x in _judged(last).items()}
            | {"numbers": _numbers(run, last[FIRST_NUMBER:])}
            for h, last in enumerate(np.atleast_2d(state.undefined_last))
            if _is_noted(last)
        ],
        "phloem": __version__,
    }


def _numbers(run: UndefinedRun, values: np.ndarray) -> dict[str, list[float | str]]:
    blocks = run.space.unpack(values)
    return {name: [_plain(x) for x in np.atleast_1d(block).tolist()] for name, block in blocks.items()}


def _plain(x: float) -> float | str:
    return x if np.isfinite(x) else str(x)  # JSON has no other numbers
