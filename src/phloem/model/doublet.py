"""Models of RNA stems: pairs of nucleotides of which one side at a time changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.model.frequencies import FrequencyModel
from phloem.model.nucleotide import NucleotideModel, NucleotideModelName, nucleotide_names
from phloem.model.record import Parameter, Values
from phloem.model.substitution import Gradient, Process, Term, reversible_adjoint, reversible_process

_SIDES = np.divmod(np.arange(16), 4)  # of each doublet, in the order AA, AC, … TT
_FIRST, _SECOND = (side[:, None] != side for side in _SIDES)
_NUCLEOTIDE_MODELS = {"SH94": "F81", "SH94K": "HKY", "SH94GTR": "GTR", "SH94MIXED": "MIXED"}


def doublet_names() -> dict[str, tuple[str, NucleotideModelName]]:
    """Every accepted name in upper case → the name written, and which changes of a side share a rate."""
    known = nucleotide_names()
    own = {name: (name, known[base]) for name, base in _NUCLEOTIDE_MODELS.items()}
    return own | {name.replace("SH94", "DOUBLET"): found for name, found in own.items()}


@dataclass(frozen=True)
class DoubletModel:
    """Q_ij ∝ r_xy π_j between pairs that differ in one side, x there in i and y in j; 0 between others.

    Schöniger and von Haeseler 1994 (Mol. Phylogenet. Evol. 3:240) with r = 1; MrBayes' doublet model with
    nst=1, 2 and 6. π are frequencies of the 16 pairs; one expected change a pair.
    """

    label: str
    name: NucleotideModelName
    frequencies: FrequencyModel

    @property
    def n_states(self) -> int:
        return 16

    @cached_property
    def _sides(self) -> NucleotideModel:
        """The model of changes of one side."""
        return NucleotideModel(self.name, self.frequencies)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self._sides.parameters

    @property
    def terms(self) -> tuple[Term, ...]:
        full = self._sides.terms[0].reference
        return Term(self.label, self.parameters, reference=full), self.frequencies.term

    def exchangeability(self, values: Values) -> np.ndarray:
        """r (..., 16, 16), symmetric, 0 where both sides differ or none does."""
        r, (a, b) = self._sides.exchangeability(values), _SIDES
        first, second = r[..., a[:, None], a], r[..., b[:, None], b]
        return np.where(_FIRST & ~_SECOND, first, 0.0) + np.where(_SECOND & ~_FIRST, second, 0.0)

    def evaluate(self, values: Values) -> Process:
        return reversible_process(self.exchangeability(values), self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        pi = self.frequencies.evaluate(values)
        d_r, d_pi = reversible_adjoint(self.exchangeability(values), pi, d_rate_matrix, d_frequencies)
        by_sides, (a, b) = np.zeros((*d_r.shape[:-2], 4, 4)), _SIDES
        for changed, other, side in ((_FIRST, _SECOND, a), (_SECOND, _FIRST, b)):
            i, j = np.nonzero(changed & ~other)
            for x, y, k, m in zip(side[i], side[j], i, j):
                by_sides[..., x, y] += d_r[..., k, m]
        return self._sides.gradient_of_rates(by_sides) | self.frequencies.backpropagate(values, d_pi)
