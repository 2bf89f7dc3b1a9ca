"""Stationary frequencies: built in, free, products over codon positions (F1X4, F3X4), or counted in data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.record import Parameter, Values, simplex, softmax_gradient
from phloem.model.substitution import Gradient, Term

NUCLEOTIDES = "ACGT"
MAX_STEPS = 2000
_NOTHING = 1e-6  # characters: a state that has no more of them on its way to none has none


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


@dataclass(frozen=True)
class CodonTable:
    """Sense codons in state order (alphabetical over A C G T) and the amino acid that each encodes."""

    codons: tuple[str, ...]
    amino_acids: str

    @cached_property
    def nucleotides(self) -> np.ndarray:
        """(S, 3) index in ACGT of the nucleotide at every codon position."""
        text = [c.upper().replace("U", "T") for c in self.codons]
        return np.array([[NUCLEOTIDES.index(n) for n in c] for c in text])


@dataclass(frozen=True)
class EqualPositions:
    """All four nucleotides equally frequent at every position, so all sense codons are."""

    table: CodonTable
    label: str

    @property
    def term(self) -> Term:
        return Term(self.label)

    def by_position(self, values: Values) -> np.ndarray:
        """φ (3, 4)."""
        return np.full((3, 4), 0.25)

    def evaluate(self, values: Values) -> np.ndarray:
        n = len(self.table.codons)
        return np.full(n, 1.0 / n)

    def backpropagate(self, values: Values, gradient: np.ndarray) -> Gradient:
        return {}

    def gradient_by_name(self, values: Values, d_by_position: np.ndarray) -> Gradient:
        return {}


@dataclass(frozen=True)
class PositionFrequencies:
    """π_c ∝ Π_k φ_k[c_k] over sense codons. n_sets 1: one φ for all positions (F1X4), 3: one each (F3X4)."""

    table: CodonTable
    n_sets: int

    @property
    def term(self) -> Term:
        label = f"F{self.n_sets}X4"
        return Term(f"+FO{self.n_sets}X4", self._parameters, label_with_values=f"+{label}")

    @property
    def _parameters(self) -> tuple[Parameter, ...]:
        if self.n_sets == 1:
            return (simplex("frequencies", tuple(f"frequency_{n}" for n in NUCLEOTIDES)),)
        return tuple(
            simplex(f"frequencies_{k}", tuple(f"frequency_{k}_{n}" for n in NUCLEOTIDES)) for k in (1, 2, 3)
        )

    def by_position(self, values: Values) -> np.ndarray:
        """φ (3, 4)."""
        sets = np.array([values[p.name] for p in self._parameters])
        return np.broadcast_to(sets, (3, 4))

    def evaluate(self, values: Values) -> np.ndarray:
        product = self._factors(values).prod(axis=1)
        return product / product.sum()

    def backpropagate(self, values: Values, gradient: np.ndarray) -> Gradient:
        factors = self._factors(values)
        product = factors.prod(axis=1)
        total = product.sum()
        d_product = (gradient - gradient @ product / total) / total
        d_phi = np.zeros((3, 4))
        for k in range(3):
            others = np.delete(factors, k, axis=1).prod(axis=1)
            np.add.at(d_phi[k], self.table.nucleotides[:, k], d_product * others)
        return self.gradient_by_name(values, d_phi)

    def gradient_by_name(self, values: Values, d_by_position: np.ndarray) -> Gradient:
        """From derivatives by φ (3, 4), entries independent, to softmax coordinates by parameter."""
        d = d_by_position.sum(0, keepdims=True) if self.n_sets == 1 else d_by_position
        return {p.name: softmax_gradient(np.asarray(values[p.name]), g) for p, g in zip(self._parameters, d)}

    def _factors(self, values: Values) -> np.ndarray:
        return self.by_position(values)[np.arange(3), self.table.nucleotides]


def empirical_frequencies(codes: np.ndarray, state_sets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Frequencies of states in the data, (S,), that sum to 1.

    codes: (T, P); state_sets: (n_codes, S) bool; weights: (P,) how often each pattern occurs.
    Wholly missing characters are left out. A partly ambiguous character is shared among its states in
    proportion to their frequencies, repeated until the frequencies no longer change or 2,000 times: the EM
    algorithm for the maximum-likelihood estimate from independent characters (IQ-TREE takes eight steps).
    What is on its way to 0 there is 0.
    Raises ModelError where nothing is observed.
    """
    sets, counts = _counted_sets(codes, state_sets, weights)
    frequencies = np.full(state_sets.shape[1], 1.0 / state_sets.shape[1])
    for _ in range(MAX_STEPS):
        shares = sets * frequencies
        updated = (counts / shares.sum(1)) @ shares / counts.sum()
        settled = np.abs(updated - frequencies).max() < 1e-13
        frequencies = updated
        if settled:
            break
    kept = np.where(frequencies * counts.sum() < _NOTHING, 0.0, frequencies)
    return kept / kept.sum()


def codon_position_counts(
    codes: np.ndarray, state_sets: np.ndarray, weights: np.ndarray, table: CodonTable
) -> np.ndarray:
    """Nucleotides A, C, G, T counted at the three codon positions, (3, 4).

    From the sense codons of codon data, arguments as in empirical_frequencies. Partly ambiguous codons
    are shared among the codons they allow in proportion to empirical_frequencies, as they are there.
    """
    sets, counts = _counted_sets(codes, state_sets, weights)
    shares = sets * empirical_frequencies(codes, state_sets, weights)
    by_codon = (counts / shares.sum(1)) @ shares
    result = np.zeros((3, 4))
    for position in range(3):
        np.add.at(result[position], table.nucleotides[:, position], by_codon)
    return result


def _counted_sets(codes, state_sets, weights) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sets of states in the data (K, S), and how often each occurs (K,); missing left out."""
    weight = np.broadcast_to(weights, codes.shape).ravel()
    counts = np.bincount(codes.ravel(), weights=weight, minlength=len(state_sets))
    informative = (counts > 0) & ~state_sets.all(axis=1)
    if not informative.any():
        raise ModelError("every character is missing: there are no frequencies to count")
    return state_sets[informative].astype(np.float64), counts[informative]
