"""Marginal likelihoods by stepping stones against exact ones of three and four taxa, with planted errors.

Under JC and exponential branch lengths a likelihood is a polynomial in e_b = exp(-4/3 b), of degree n_sites
in each, so Gauss-Jacobi quadrature in e_b with half as many nodes is exact.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import roots_jacobi

from phloem.inference.mcmc import run as run_module
from phloem.inference.mcmc import stones
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.stones import marginal_likelihood
from phloem.inference.mcmc.structure import structure_of_model
from phloem.model.grammar import parse_model

RATE = 10.0
THREE = ["AACGTTACGA", "AACGTTCCGA", "AATGTAACGC"]
FOUR = ["AACGTA", "AACGTC", "ATCGCC", "ATCGCA"]
SETTINGS = {"seed": 5, "n_chains": 2, "stones": 20, "generations": 84_000, "sample_every": 10}


def exact(rows: list[str]) -> float:
    """Log of the mean over uniform topologies of the expected likelihood."""
    codes = np.array([["ACGT".index(x) for x in row] for row in rows])
    n_tips, n_sites = codes.shape
    splits = [()] if n_tips == 3 else [(1,), (2,), (3,)]  # tip 0's sister
    power = RATE * 3 / 4  # e has density power · e^(power - 1) on (0, 1)
    nodes, weights = roots_jacobi(n_sites // 2 + 1, 0.0, power - 1.0)
    e, w = (nodes + 1) / 2, weights / weights.sum()
    return math.log(np.mean([_expected(codes, split, e, w) for split in splits]))


def _expected(codes, split, e, w) -> float:
    """Over the product of the nodes of all branches: tips', and the one between two pairs."""
    n_tips, n_branches = len(codes), 2 * len(codes) - 3
    same, other = 0.25 + 0.75 * e, 0.25 - 0.25 * e
    p = np.where(np.eye(4, dtype=bool)[..., None], same, other)  # (4, 4, nodes)
    total = 0.0
    for grid in product(range(len(e)), repeat=n_branches - 2):  # all but the last two branches
        site = np.ones((codes.shape[1], len(e), len(e)))
        for k, column in enumerate(codes.T):
            if n_tips == 3:
                site[k] = 0.25 * np.einsum(
                    "s,si,sj->ij", p[:, column[0], grid[0]], p[:, column[1]], p[:, column[2]]
                )
            else:
                sister = split[0]
                c, d = (x for x in (1, 2, 3) if x != sister)
                above = p[:, column[0], grid[0]] * p[:, column[sister], grid[1]]
                through = above @ p[:, :, grid[2]]
                site[k] = 0.25 * np.einsum("s,si,sj->ij", through, p[:, column[c]], p[:, column[d]])
        value = site.prod(axis=0)
        total += np.prod(w[list(grid)]) * (w @ value @ w)
    return float(total)


def estimate(rows: list[str], **changes):
    taxa = tuple(f"t{i}" for i in range(len(rows)))
    codes = np.array([["ACGT".index(x) for x in row] for row in rows], np.int32)
    observed = Observations(taxa, codes, np.eye(4), np.ones(codes.shape[1]))
    structure = structure_of_model(parse_model("JC", datatype="dna"))
    settings = ChainSettings(**SETTINGS | changes, priors=Priors(ExponentialPrior(RATE)))
    runs = sample(observed, structure, settings).runs
    return marginal_likelihood([run.samples for run in runs], stones.ladder(settings))


@pytest.mark.parametrize(
    ("rows", "how"),
    [
        (THREE, {}),
        pytest.param(FOUR, {}, marks=pytest.mark.slow),
        (FOUR, {"stones_from_prior": True}),
        pytest.param(THREE, {"stone_burn_in": 500}, marks=pytest.mark.slow),
    ],
)
def test_the_estimate_is_the_exact_value(rows, how):
    found, value = estimate(rows, **how), exact(rows)
    assert 0.0 < found.error < 0.08
    assert abs(found.log - value) < 4 * found.error
    assert max(abs(one - value) for one in found.per_run) < 6 * found.error
    assert found.log == pytest.approx(sum(s.log_ratio for s in found.stones))


def test_chains_at_the_wrong_power_are_noticed(monkeypatch):
    """They sample one stone too high, as an estimator would that takes the other end of each."""
    right = stones.Ladder.of

    def one_too_high(ladder, generation):
        power, adapts, until = right(ladder, generation)
        k = int(np.argmin(abs(ladder.powers - power)))
        return float(ladder.powers[max(k - 1, 0)]), adapts, until

    monkeypatch.setattr(stones.Ladder, "of", one_too_high)
    found = estimate(FOUR)
    assert abs(found.log - exact(FOUR)) > 8 * found.error


@pytest.mark.slow
def test_chains_that_forget_the_power_are_noticed(monkeypatch):
    monkeypatch.setattr(run_module, "stretches", lambda settings, generation, n: [(n, False, 1.0)])
    found = estimate(FOUR)
    assert abs(found.log - exact(FOUR)) > 8 * found.error


def test_without_sites_that_tell_the_quadrature_agrees_with_the_closed_form():
    """One site, three taxa all alike: E Σ_s ¼ Π p_ss' by independence."""
    mean = RATE / (RATE + 4 / 3)  # E e_b
    same, other = 0.25 + 0.75 * mean, 0.25 - 0.25 * mean
    assert exact(["A", "A", "A"]) == pytest.approx(math.log(0.25 * (same**3 + 3 * other**3)), abs=1e-12)
