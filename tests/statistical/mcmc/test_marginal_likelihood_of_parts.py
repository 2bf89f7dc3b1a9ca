"""Marginal likelihoods of codons beside nucleotides, on branches shared or not, against quadrature.

Three taxa have one topology, and exponential branch lengths are a weight of Gauss-Jacobi nodes in e^-b; the
matrix of codons is written down here, not taken from phloem.
"""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import logsumexp, roots_jacobi, roots_legendre

from phloem.analysis.mcmc import run_mcmc
from phloem.analysis.mcmc_options import mcmc_settings

pytestmark = pytest.mark.slow
RATE, OMEGA, KAPPA = 10.0, 0.3, 2.0
CODONS = {"a": "ATGAAACTGGTTGCT", "b": "ATGAAGCTGGTTTCT", "c": "ATGCGTATTGTCGCT"}
OTHERS = {"a": "ACGTTACGA", "b": "ACGTTCCGA", "c": "ATGTAACGC"}
N_SITES = 15, 9
AMINO = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
STANDS_FOR = {"".join(c): a for c, a in zip(product("TCAG", repeat=3), AMINO) if a != "*"}
SENSE = list(STANDS_FOR)


def scaled(rates: np.ndarray) -> np.ndarray:
    """Of symmetric rates and equal frequencies: one change a unit of time."""
    q = rates - np.diag(rates.sum(axis=1))
    return q / -np.diag(q).mean()


def of_codons() -> np.ndarray:
    rates = np.zeros((61, 61))
    for (i, one), (j, other) in combinations(enumerate(SENSE), 2):
        differ = [x + y for x, y in zip(one, other) if x != y]
        if len(differ) == 1:
            transition = set(differ[0]) in ({"A", "G"}, {"C", "T"})
            synonymous = STANDS_FOR[one] == STANDS_FOR[other]
            rates[i, j] = rates[j, i] = (KAPPA if transition else 1.0) * (1.0 if synonymous else OMEGA)
    return scaled(rates)


NODES, WEIGHTS = roots_jacobi(9, 0.0, RATE - 1.0)
LENGTHS, WEIGHTS = -np.log((NODES + 1) / 2), np.log(WEIGHTS / WEIGHTS.sum())
Q_CODONS, Q_OTHERS = of_codons(), scaled(1.0 - np.eye(4))


def log_likelihoods(q: np.ndarray, states, rows, factor: float) -> np.ndarray:
    """(9, 9, 9) for the nodes of three branches, whose lengths are multiplied by factor."""
    p = np.array([expm(q * length * factor) for length in LENGTHS])  # (9, S, S)
    codes = [[states.index(x) for x in row] for row in rows]
    sites = [np.einsum("is,js,ks->ijk", p[..., a], p[..., b], p[..., c]) / len(q) for a, b, c in zip(*codes)]
    return np.log(sites).sum(axis=0)


def both(per_codon: float, rate: float = 1.0, other: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    triplets = [[row[k : k + 3] for k in range(0, 15, 3)] for row in CODONS.values()]
    first = log_likelihoods(Q_CODONS, SENSE, triplets, per_codon * rate)
    return first, log_likelihoods(Q_OTHERS, "ACGT", OTHERS.values(), other)


def expected(log_values: np.ndarray) -> float:
    of_branches = WEIGHTS[:, None, None] + WEIGHTS[:, None] + WEIGHTS
    return float(logsumexp(log_values + of_branches))


def exact(linkage: str, per_codon: float = 3.0) -> float:
    """per_codon: how often a codon changes on a branch of one change a nucleotide."""
    if linkage == "unlinked":
        return sum(map(expected, both(per_codon)))
    if linkage == "linked":
        return expected(sum(both(per_codon)))
    nodes, weights = roots_legendre(9)  # the first part's share of all change is uniform
    shares, of_codons, others = (nodes + 1) / 2, *(sum(N_SITES) / np.array(N_SITES))
    values = [expected(sum(both(per_codon, x * of_codons, (1 - x) * others))) for x in shares]
    return float(logsumexp(np.log(weights / 2) + values))


@pytest.mark.parametrize("linkage", ["linked", "proportional", "unlinked"])
def test_parts_of_codons_and_nucleotides(linkage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.fasta").write_text("".join(f">{t}\n{CODONS[t]}{OTHERS[t]}\n" for t in CODONS))
    Path("x.nex").write_text(
        "#nexus\nbegin sets; charset c = CODON, 1-15; charset n = DNA, 16-24;\n"
        f"charpartition p = GY94{{{OMEGA},{KAPPA}}}+FQ:c, JC:n; end;\n"
    )
    settings = mcmc_settings(
        {
            "alignment": "x.fasta", "partitions": "x.nex", "linkage": linkage, "stepping_stone": 16,
            "branch_prior": f"exponential({RATE})", "generations": 60_000, "sample_every": 10, "chains": 1,
        }
    )  # fmt: skip
    found = run_mcmc(settings).marginal
    assert 0.0 < found.error < 0.12 and abs(found.log - exact(linkage)) < 4 * found.error
    assert abs(found.log - exact(linkage, per_codon=1.0)) > 8 * found.error  # the control: lengths of codons
