"""Where a search on differences stands between two steps, as its checkpoint has it, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from phloem.model.record import ParameterValue
from phloem.tree.tree import Tree


class Round(NamedTuple):
    """Subtrees tried, how many moved, and the log-likelihood with lengths fitted behind them."""

    tried: int
    moved: int
    log_likelihood: float


@dataclass(eq=False)
class DifferencesState:
    """placed: genomes on the tree. parent, children, length: of its nodes, as the engine has them. values: of
    the model. first: log-likelihood when all were placed. waiting: nodes that this round is still to try, in
    order; touched: around those that moved in it; tried, moved: in it. rounds: that are done."""

    placed: int
    parent: np.ndarray
    children: np.ndarray
    length: np.ndarray
    values: dict[str, ParameterValue]
    first: float | None = None
    waiting: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    touched: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    tried: int = 0
    moved: int = 0
    rounds: list[Round] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers; doubles are written so that they are read back as they are."""
        return {
            "placed": self.placed,
            "parent": self.parent.tolist(),
            "children": self.children.ravel().tolist(),
            "length": self.length.tolist(),
            "values": {k: np.asarray(v).tolist() for k, v in self.values.items()},
            "first": self.first,
            "waiting": self.waiting.tolist(),
            "touched": self.touched.tolist(),
            "tried": self.tried,
            "moved": self.moved,
            "rounds": [list(one) for one in self.rounds],
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> DifferencesState:
        values = record["values"]
        return DifferencesState(
            record["placed"],
            np.array(record["parent"], np.int64),
            np.array(record["children"], np.int64).reshape(-1, 2),
            np.array(record["length"], np.float64),
            {k: np.array(v) if isinstance(v, list) else float(v) for k, v in values.items()},
            record["first"],
            np.array(record["waiting"], np.int64),
            np.array(record["touched"], np.int64),
            record["tried"],
            record["moved"],
            [Round(*one) for one in record["rounds"]],
        )


@dataclass(frozen=True, eq=False)
class DifferencesResult:
    """tree: of all taxa, unrooted, with polytomies. log_likelihood: to the first order in branch lengths.
    values: of the model's parameters; model_text: with them; n_free: free numbers, counted ones among them.
    first: log-likelihood after placement; rounds of moves after it. converged: whether a further fit of
    lengths and parameters changed less than asked for. supports: of how many branches, and their shares, in
    the order of the tree's labels, if asked for. entries: in the lists at the end."""

    tree: Tree
    log_likelihood: float
    values: dict[str, ParameterValue]
    model_text: str
    n_free: int
    first: float
    rounds: tuple[Round, ...]
    converged: bool
    supports: np.ndarray | None
    entries: int
