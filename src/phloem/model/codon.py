"""Codon models: GY94 (M0) and MG94, with rates of nucleotides and a ratio of nonsynonymous changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.model.frequencies import CodonTable, EqualPositions, FrequencyModel, PositionFrequencies
from phloem.model.nucleotide import NucleotideModel, nucleotide_names
from phloem.model.record import Parameter, Values
from phloem.model.substitution import (
    Gradient,
    Process,
    Term,
    normalised,
    normalised_adjoint,
    reversible_adjoint,
    reversible_process,
)

_TRANSITION = np.zeros((4, 4), bool)
_TRANSITION[[0, 2, 1, 3], [2, 0, 3, 1]] = True


@dataclass(frozen=True, eq=False)
class CodonChanges:
    """Which codons differ at one nucleotide, and how.

    neighbour, transition, nonsynonymous: (S, S) bool. position: (S, S) codon position that differs. source,
    target: (S, S) index in ACGT of the nucleotide left and arrived at. 0 where codons are not neighbours.
    """

    neighbour: np.ndarray
    transition: np.ndarray
    nonsynonymous: np.ndarray
    position: np.ndarray
    source: np.ndarray
    target: np.ndarray

    @staticmethod
    def of(table: CodonTable) -> CodonChanges:
        n = table.nucleotides
        differs = n[:, None, :] != n[None, :, :]
        neighbour = differs.sum(2) == 1
        position = np.where(neighbour, differs.argmax(2), 0)
        rows = np.arange(len(n))
        target = np.where(neighbour, n[rows[None, :], position], 0)
        source = np.where(neighbour, n[rows[:, None], position], 0)
        acids = np.array(list(table.amino_acids))
        return CodonChanges(
            neighbour,
            neighbour & _TRANSITION[source, target],
            neighbour & (acids[:, None] != acids),
            position,
            source,
            target,
        )

    def rates(self, kappa: float, omega: float) -> np.ndarray:
        """κ for transitions times ω for nonsynonymous changes, 0 for more than one nucleotide (S, S)."""
        return (
            self.neighbour * np.where(self.transition, kappa, 1.0) * np.where(self.nonsynonymous, omega, 1.0)
        )

    def gradient(self, kappa: float, omega: float, d_rates: np.ndarray) -> Gradient:
        """Derivatives of kappa and omega from those of rates (S, S), entries independent."""
        by_omega = np.where(self.nonsynonymous, omega, 1.0) * self.transition
        by_kappa = np.where(self.transition, kappa, 1.0) * self.nonsynonymous
        return {"kappa": float(np.sum(d_rates * by_omega)), "omega": float(np.sum(d_rates * by_kappa))}


class OfCodons:
    """What models of the sense codons of a table have."""

    table: CodonTable

    @property
    def n_states(self) -> int:
        return len(self.table.codons)

    @cached_property
    def changes(self) -> CodonChanges:
        return CodonChanges.of(self.table)


@dataclass(frozen=True, eq=False)
class GY94(OfCodons):
    """Q_ij ∝ κ^[transition] ω^[nonsynonymous] π_j between codons that differ at one nucleotide.

    Goldman and Yang 1994 as simplified by Nielsen and Yang 1998 (M0 of codeml); one expected
    substitution a codon.
    """

    table: CodonTable
    frequencies: FrequencyModel

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return Term("GY94", (_omega(), kappa_parameter())), self.frequencies.term

    def evaluate(self, values: Values) -> Process:
        r = self.changes.rates(float(values["kappa"]), float(values["omega"]))
        return reversible_process(r, self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        kappa, omega, pi = float(values["kappa"]), float(values["omega"]), self.frequencies.evaluate(values)
        r = self.changes.rates(kappa, omega)
        d_r, d_pi = reversible_adjoint(r, pi, d_rate_matrix, d_frequencies)
        return self.changes.gradient(kappa, omega, d_r) | self.frequencies.backpropagate(values, d_pi)


@dataclass(frozen=True, eq=False)
class GY94GTR(OfCodons):
    """GY94 with a rate for every pair of nucleotides in place of κ: Q_ij ∝ r_xy ω^[nonsynonymous] π_j, x the
    nucleotide of i that becomes y. MrBayes' codon model with nst=6."""

    table: CodonTable
    frequencies: FrequencyModel

    @cached_property
    def _nucleotides(self) -> NucleotideModel:
        return NucleotideModel(nucleotide_names()["GTR"], self.frequencies)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return Term("GY94GTR", (_omega(), *self._nucleotides.parameters)), self.frequencies.term

    def _factors(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """(S, S) rates of the nucleotides, 0 between codons that are no neighbours; and of ω."""
        r, changes = self._nucleotides.exchangeability(values), self.changes
        of_omega = np.where(changes.nonsynonymous, float(values["omega"]), 1.0)
        return changes.neighbour * r[changes.source, changes.target], of_omega

    def evaluate(self, values: Values) -> Process:
        rates, of_omega = self._factors(values)
        return reversible_process(rates * of_omega, self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        (rates, of_omega), pi = self._factors(values), self.frequencies.evaluate(values)
        d_r, d_pi = reversible_adjoint(rates * of_omega, pi, d_rate_matrix, d_frequencies)
        changes, by_pair = self.changes, np.zeros((4, 4))
        np.add.at(by_pair, (changes.source, changes.target), d_r * of_omega * changes.neighbour)
        result = {"omega": float(np.sum(d_r * rates * changes.nonsynonymous))}
        of_rates = self._nucleotides.gradient_of_rates(by_pair)
        return result | of_rates | self.frequencies.backpropagate(values, d_pi)


@dataclass(frozen=True, eq=False)
class MG94(OfCodons):
    """Q_ij ∝ κ^[transition] ω^[nonsynonymous] φ_k[n], n the nucleotide arrived at, k its codon position.

    Muse and Gaut 1994 (κ = 1), and with κ free MG94×HKY85 (Kosakovsky Pond and Muse 2005). π_c ∝ Π_k
    φ_k[c_k].
    """

    table: CodonTable
    frequencies: PositionFrequencies | EqualPositions
    with_kappa: bool

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        head = Term("MG94K", (_omega(), kappa_parameter())) if self.with_kappa else Term("MG94", (_omega(),))
        return head, self.frequencies.term

    def _ratios(self, values: Values) -> tuple[float, float]:
        return float(values["kappa"]) if self.with_kappa else 1.0, float(values["omega"])

    def _target_frequency(self, values: Values) -> np.ndarray:
        return self.frequencies.by_position(values)[self.changes.position, self.changes.target]

    def evaluate(self, values: Values) -> Process:
        off = self.changes.rates(*self._ratios(values)) * self._target_frequency(values)
        pi = self.frequencies.evaluate(values)
        return Process(normalised(off, pi), pi, True)

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        ratios, phi = self._ratios(values), self._target_frequency(values)
        rates, pi = self.changes.rates(*ratios), self.frequencies.evaluate(values)
        d_off, d_pi = normalised_adjoint(rates * phi, pi, d_rate_matrix)
        result = self.changes.gradient(*ratios, d_off * phi)
        if not self.with_kappa:
            del result["kappa"]
        d_phi = np.zeros((3, 4))
        np.add.at(d_phi, (self.changes.position, self.changes.target), d_off * rates)
        through_rates = self.frequencies.gradient_by_name(values, d_phi)
        through_pi = self.frequencies.backpropagate(values, d_pi + d_frequencies)
        return result | {name: through_rates[name] + through_pi[name] for name in through_pi}


def kappa_parameter() -> Parameter:
    return Parameter("kappa", "positive", start=2.0, reference="transversions")


def _omega() -> Parameter:
    return Parameter("omega", "positive", start=0.3, reference="synonymous")
