"""Nucleotide models: GTR and its special cases (Tavaré 1986; Posada 2003), and UNREST (Yang 1994)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from phloem.model.frequencies import FrequencyModel
from phloem.model.record import Parameter, Values, as_number
from phloem.model.substitution import Gradient, Process, Term, reversible_adjoint, reversible_process

NUCLEOTIDES = ("A", "C", "G", "T")
PAIRS = ("AC", "AG", "AT", "CG", "CT", "GT")
_FROM, _TO = np.triu_indices(4, 1)


@dataclass(frozen=True)
class NucleotideModelName:
    """canonical: the name written. code: class of AC AG AT CG CT GT; equal digits share a rate; GT has 1.
    equal: frequencies are equal by default. names: of the parameters, where they have names of their own.
    tied: free rates are averaged over the 203 ways in which some of them can be equal.
    """

    canonical: str
    code: str
    equal: bool
    names: tuple[str, ...] = ()
    tied: bool = False


_NAMED = (
    NucleotideModelName("JC", "000000", True),
    NucleotideModelName("F81", "000000", False),
    NucleotideModelName("K80", "010010", True, ("kappa",)),
    NucleotideModelName("HKY", "010010", False, ("kappa",)),
    NucleotideModelName("TNe", "010020", True, ("kappa_R", "kappa_Y")),
    NucleotideModelName("TN93", "010020", False, ("kappa_R", "kappa_Y")),
    NucleotideModelName("K3P", "012210", True),
    NucleotideModelName("K3Pu", "012210", False),
    NucleotideModelName("TPM2", "010212", True),
    NucleotideModelName("TPM2u", "010212", False),
    NucleotideModelName("TPM3", "012012", True),
    NucleotideModelName("TPM3u", "012012", False),
    NucleotideModelName("TIM1e", "012230", True),
    NucleotideModelName("TIM1", "012230", False),
    NucleotideModelName("TIM2e", "010232", True),
    NucleotideModelName("TIM2", "010232", False),
    NucleotideModelName("TIM3e", "012032", True),
    NucleotideModelName("TIM3", "012032", False),
    NucleotideModelName("TVMe", "412310", True),
    NucleotideModelName("TVM", "412310", False),
    NucleotideModelName("SYM", "123450", True),
    NucleotideModelName("GTR", "123450", False),
    NucleotideModelName("MIXED", "123450", False, tied=True),
)
_ALIASES = {
    "JC69": "JC",
    "K2P": "K80",
    "HKY85": "HKY",
    "TN": "TN93",
    "TNEF": "TNe",
    "TRN": "TN93",
    "TRNEF": "TNe",
    "TN93EF": "TNe",
    "TN93E": "TNe",
    "K3": "K3P",
    "K81": "K3P",
    "TPM1": "K3P",
    "K81U": "K3Pu",
    "K81UF": "K3Pu",
    "K3PUF": "K3Pu",
    "TPM1U": "K3Pu",
    "TPM1UF": "K3Pu",
    "TPM2UF": "TPM2u",
    "TPM3UF": "TPM3u",
    "TIM": "TIM1",
    "TIME": "TIM1e",
    "TIMEF": "TIM1e",
    "TIM1EF": "TIM1e",
    "TIM2EF": "TIM2e",
    "TIM3EF": "TIM3e",
    "TIM1UF": "TIM1",
    "TIM2UF": "TIM2",
    "TIM3UF": "TIM3",
    "TIM1U": "TIM1",
    "TIM2U": "TIM2",
    "TIM3U": "TIM3",
    "TVMEF": "TVMe",
}


def nucleotide_names() -> dict[str, NucleotideModelName]:
    """Every accepted name, in upper case → the model it stands for."""
    named = {n.canonical.upper(): n for n in _NAMED}
    return named | {alias: named[canonical.upper()] for alias, canonical in _ALIASES.items()}


def code_name(code: str) -> NucleotideModelName:
    """A six-digit code such as 010020 (IQ-TREE): which of AC AG AT CG CT GT share a rate."""
    return NucleotideModelName(code, code, False)


@dataclass(frozen=True)
class NucleotideModel:
    """A special case of GTR: Q_ij ∝ r_ij π_j, r constant within the classes of a code."""

    name: NucleotideModelName
    frequencies: FrequencyModel

    @property
    def n_states(self) -> int:
        return 4

    @cached_property
    def _classes(self) -> list[list[int]]:
        """Pairs of every free class, in order of first appearance; the class of GT has rate 1."""
        code = self.name.code
        free = [c for c in dict.fromkeys(code) if c != code[-1]]
        return [[k for k, c in enumerate(code) if c == digit] for digit in free]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        result = []
        for i, pairs in enumerate(self._classes):
            rates = tuple(f"rate_{PAIRS[k]}" for k in pairs)
            name = self.name.names[i] if self.name.names else rates[0]
            start = 2.0 if set(rates) & {"rate_AG", "rate_CT"} else 1.0
            known = Parameter(name, "positive", start=start, aliases=rates, reference="rate_GT")
            result.append(replace(known, tied=self.name.tied))
        return tuple(result)

    @property
    def terms(self) -> tuple[Term, ...]:
        full = self.name.code in ("123450",)
        return Term(self.name.canonical, self.parameters, reference=full), self.frequencies.term

    def exchangeability(self, values: Values) -> np.ndarray:
        """r (..., 4, 4), symmetric, diagonal 0, r_GT = 1."""
        sets = np.shape(values[self.parameters[0].name]) if self.parameters else ()
        rates, r = np.ones((*sets, 6)), np.zeros((*sets, 4, 4))
        for parameter, pairs in zip(self.parameters, self._classes):
            rates[..., pairs] = np.asarray(values[parameter.name])[..., None]
        r[..., _FROM, _TO] = r[..., _TO, _FROM] = rates
        return r

    def evaluate(self, values: Values) -> Process:
        return reversible_process(self.exchangeability(values), self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        pi = self.frequencies.evaluate(values)
        d_r, d_pi = reversible_adjoint(self.exchangeability(values), pi, d_rate_matrix, d_frequencies)
        return self.gradient_of_rates(d_r) | self.frequencies.backpropagate(values, d_pi)

    def gradient_of_rates(self, d_r: np.ndarray) -> Gradient:
        """Derivatives of the parameters from those of r (..., 4, 4), entries independent."""
        by_pair = d_r[..., _FROM, _TO] + d_r[..., _TO, _FROM]
        return {
            parameter.name: as_number(by_pair[..., pairs].sum(-1))
            for parameter, pairs in zip(self.parameters, self._classes)
        }
