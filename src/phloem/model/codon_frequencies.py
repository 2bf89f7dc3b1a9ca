"""Codon frequencies as products of nucleotide frequencies: F1X4 and F3X4 (Goldman and Yang 1994)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.model.parameter import Parameter, Values, simplex, softmax_gradient
from phloem.model.substitution import Gradient, Term

NUCLEOTIDES = "ACGT"


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
