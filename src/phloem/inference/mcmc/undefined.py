"""Proposals of which nobody can say how probable they are: how many there were, and that the run is stopped
where that is no accident.

A log Hastings ratio, log prior or log-likelihood that is no number, or +∞, is rejected and counted, by move
and rank of heat, in the state that a checkpoint holds (compiled/undefined.py). A likelihood that overflows at
the edge of what floating-point numbers can say may give one in a long run. Many are an error, in the model or
in phloem, and the posterior is then not that of the model: part of it was never visited. On a GPU a
likelihood that is no number ends the run at once (pruning/gpu/forest.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from phloem import __version__
from phloem.errors import NumericalError
from phloem.inference.mcmc.run import Run
from phloem.io.output_file import write_file

HANDFUL = 5  # more are told
MOST, MOST_SHARE = 10, 1e-5  # more than both stop the run
# columns of ChainState.undefined_last: the move; what the proposal was judged by, of which what comes after
# the first that is no number was not evaluated; and its numbers
MOVE, FIRST_NUMBER = 0, 4
JUDGED = "log Hastings ratio", "log prior", "log-likelihood"


def n_undefined(runs: Sequence[Run]) -> int:
    """Of all moves and chains of all runs."""
    return sum(int(run.state.undefined.sum()) for run in runs)


def undefined_warnings(runs: Sequence[Run]) -> list[str]:
    """One sentence for each run that had more than a handful."""
    return [_sentence(run) for run in runs if int(run.state.undefined.sum()) > HANDFUL]


def check_undefined(runs: Sequence[Run], prefix: str | None = None) -> None:
    """NumericalError, and a report where there is a prefix, where a run had too many."""
    for run in runs:
        state = run.state
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


def _sentence(run: Run) -> str:
    """How many, by which move and chain most, and what the last one of a chain was judged by."""
    state = run.state
    counts, tried = state.undefined, int(state.tried.sum())
    rank, move = (int(i) for i in np.unravel_index(int(np.argmax(counts)), counts.shape))
    of_chains = enumerate(state.undefined_last)
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


def _report(run: Run) -> Mapping[str, object]:
    state = run.state
    counts, tried = state.undefined, state.tried
    return {
        "what": "proposals that nobody can judge",
        "run": run.number + 1,
        "generation": run.generation,
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
            for h, last in enumerate(state.undefined_last)
            if _is_noted(last)
        ],
        "phloem": __version__,
    }


def _numbers(run: Run, values: np.ndarray) -> dict[str, list[float | str]]:
    blocks = run.structure.space.unpack(values)
    return {name: [_plain(x) for x in np.atleast_1d(block).tolist()] for name, block in blocks.items()}


def _plain(x: float) -> float | str:
    return x if np.isfinite(x) else str(x)  # JSON has no other numbers
