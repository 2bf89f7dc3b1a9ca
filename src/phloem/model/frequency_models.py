"""How a model gets its stationary frequencies: built in, or a simplex of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phloem.model.parameter import Values, simplex, softmax_gradient
from phloem.model.substitution import Gradient, Term


class FrequencyModel(Protocol):
    """Stationary frequencies π (S,) from parameters."""

    @property
    def term(self) -> Term: ...

    def evaluate(self, values: Values) -> np.ndarray: ...

    def backpropagate(self, values: Values, gradient: np.ndarray) -> Gradient: ...


@dataclass(frozen=True, eq=False)
class BuiltInFrequencies:
    """Constant frequencies: equal ones, or those published with an empirical matrix."""

    frequencies: np.ndarray
    label: str = ""

    @property
    def term(self) -> Term:
        return Term(self.label)

    def evaluate(self, values: Values) -> np.ndarray:
        return self.frequencies

    def backpropagate(self, values: Values, gradient: np.ndarray) -> Gradient:
        return {}


@dataclass(frozen=True, eq=False)
class SimplexFrequencies:
    """One frequency for every state, elements frequency_<state>.

    start: (S,) where free ones start, all above 0; None: equal.
    """

    states: tuple[str, ...]
    start: np.ndarray | None = None

    @property
    def term(self) -> Term:
        elements = tuple(f"frequency_{s}" for s in self.states)
        return Term("+FO", (simplex("frequencies", elements, self.start),), label_with_values="+F")

    def evaluate(self, values: Values) -> np.ndarray:
        return np.asarray(values["frequencies"])

    def backpropagate(self, values: Values, gradient: np.ndarray) -> Gradient:
        return {"frequencies": softmax_gradient(self.evaluate(values), gradient)}


def equal_frequencies(n_states: int, label: str = "") -> BuiltInFrequencies:
    """1 / S for every state."""
    return BuiltInFrequencies(np.full(n_states, 1.0 / n_states), label)
