"""Empirical amino-acid models and profiles; amino_acid_matrices.txt and _profiles.txt cite the papers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from phloem.model.frequencies import FrequencyModel
from phloem.model.record import Parameter, Values
from phloem.model.substitution import Gradient, Process, Term, reversible_adjoint, reversible_process

AMINO_ACIDS = tuple("ARNDCQEGHILKMFPSTWYV")

# The matrices of MrBayes' aamodelpr=mixed, in its order: the numbers that a trace prints.
CHOICE, MIXED_MATRICES = "aamodel", (
    "Poisson", "JTT", "Dayhoff", "mtREV", "mtMAM", "WAG", "rtREV", "cpREV", "VT", "Blosum62"
)  # fmt: skip

# Mixtures of matrices, one a category of the site rates, and those rates where none are given (Le, Dang and
# Gascuel 2012).
FUSED_MATRICES = {
    "LG4M": (("LG4M1", "LG4M2", "LG4M3", "LG4M4"), "G4"),
    "LG4X": (("LG4X1", "LG4X2", "LG4X3", "LG4X4"), "R4"),
}


@dataclass(frozen=True, eq=False)
class EmpiricalMatrix:
    """name, citation; exchangeability (20, 20) symmetric with diagonal 0; frequencies (20,) that sum to 1."""

    name: str
    citation: str
    exchangeability: np.ndarray
    frequencies: np.ndarray


@cache
def empirical_matrices() -> dict[str, EmpiricalMatrix]:
    """Every published matrix by name, read once."""
    lines = _lines("amino_acid_matrices.txt")
    matrices = [_matrix(lines[i : i + 21]) for i in range(0, len(lines), 21)]
    return {"Poisson": _poisson()} | {m.name: m for m in matrices}


def _lines(file: str) -> list[str]:
    text = files("phloem.model").joinpath(file).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@dataclass(frozen=True, eq=False)
class Profiles:
    """name, citation; weights (K,) and frequencies (K, 20), each row and the weights summing to 1."""

    name: str
    citation: str
    weights: np.ndarray
    frequencies: np.ndarray


@cache
def profile_mixtures() -> dict[str, Profiles]:
    """C10 to C60 by name, read once (Le, Gascuel and Lartillot 2008)."""
    result: dict[str, Profiles] = {}
    lines = _lines("amino_acid_profiles.txt")
    heads = [i for i, line in enumerate(lines) if "|" in line]
    for i, end in zip(heads, [*heads[1:], len(lines)]):
        name, citation, _ = (part.strip() for part in lines[i].split("|"))
        table = np.array([line.split() for line in lines[i + 1 : end]], np.float64)
        weights, frequencies = table[:, 0], table[:, 1:]
        shares = frequencies / frequencies.sum(1, keepdims=True)
        result[name] = Profiles(name, citation, weights / weights.sum(), shares)
    return result


def _matrix(record: list[str]) -> EmpiricalMatrix:
    name, citation, _ = (part.strip() for part in record[0].split("|"))
    lower = np.array(" ".join(record[1:20]).split(), np.float64)
    r = np.zeros((20, 20))
    r[np.tril_indices(20, -1)] = lower
    frequencies = np.array(record[20].split(), np.float64)
    return EmpiricalMatrix(name, citation, r + r.T, frequencies / frequencies.sum())


def _poisson() -> EmpiricalMatrix:
    citation = "Felsenstein 1981, J Mol Evol 17:368, for 20 states"
    return EmpiricalMatrix("Poisson", citation, np.ones((20, 20)) - np.eye(20), np.full(20, 0.05))


@dataclass(frozen=True, eq=False)
class EmpiricalModel:
    """Q_ij ∝ r_ij π_j with published r, and published or other π (the +F of Cao et al. 1994)."""

    matrix: EmpiricalMatrix
    frequencies: FrequencyModel

    @property
    def n_states(self) -> int:
        return 20

    @property
    def terms(self) -> tuple[Term, ...]:
        return Term(self.matrix.name), self.frequencies.term

    def evaluate(self, values: Values) -> Process:
        return reversible_process(self.matrix.exchangeability, self.frequencies.evaluate(values))

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        pi = self.frequencies.evaluate(values)
        _, d_pi = reversible_adjoint(self.matrix.exchangeability, pi, d_rate_matrix, d_frequencies)
        return self.frequencies.backpropagate(values, d_pi)


# One matrix of several, a sampler says which.


@dataclass(frozen=True)
class FrequenciesOfChoice:
    """The frequencies published with the matrix that is chosen."""

    @property
    def term(self) -> Term:
        return Term("")

    def evaluate(self, values: Values) -> np.ndarray:
        return _chosen(values).frequencies

    def backpropagate(self, values: Values, gradient: np.ndarray) -> Gradient:
        return {}


@dataclass(frozen=True, eq=False)
class ChosenMatrix:
    """AAMIXED: EmpiricalModel with the matrix whose number among MIXED_MATRICES is the parameter CHOICE."""

    frequencies: FrequencyModel

    @property
    def n_states(self) -> int:
        return 20

    @property
    def terms(self) -> tuple[Term, ...]:
        last = len(MIXED_MATRICES) - 1.0
        number = Parameter(CHOICE, "choice", start=0.0, lower=0.0, upper=last)
        return Term("AAMIXED", (number,)), self.frequencies.term

    def evaluate(self, values: Values) -> Process:
        return self._of(values).evaluate(values)

    def backpropagate(self, values: Values, d_rate_matrix: np.ndarray, d_frequencies: np.ndarray) -> Gradient:
        """Of a number without an order the derivative is 0."""
        return {CHOICE: 0.0} | self._of(values).backpropagate(values, d_rate_matrix, d_frequencies)

    def _of(self, values: Values) -> EmpiricalModel:
        return EmpiricalModel(_chosen(values), self.frequencies)


def _chosen(values: Values) -> EmpiricalMatrix:
    return empirical_matrices()[MIXED_MATRICES[int(values[CHOICE])]]
