"""Chains that choose among ten amino-acid matrices: prior, exact posterior of three taxa, ranks of truths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from phloem.inference.mcmc import start
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model
from phloem.model.amino_acid import AMINO_ACIDS, MIXED_MATRICES
from phloem.model.grammar import parse_model
from phloem.model.transition import transition_matrices
from phloem.summary.trace import mixing
from statistical.mcmc.prior_sampling import prior_draws
from statistical.mcmc.test_calibration import N_DRAWS, N_SITES, N_TIPS, PRIORS, add_ranks, evolved, p_value

MODEL = parse_model("AAMIXED+G4", datatype="protein")
PLAIN = parse_model("AAMIXED", datatype="protein")
ROWS = ("WV", "WI", "WA")
RATE = 10.0


def test_all_matrices_are_visited_as_often_without_data():
    """Draws of other chains than the one before are independent enough: a jump leaves a matrix for sure."""
    names, samples = prior_draws(
        3, 12_000, structure_of_model(PLAIN), move_weights={"aamodel_jump": 1}, sample_every=7, seed=3
    )
    counts = np.bincount(samples.numbers[:, 2 + names.index("aamodel")].astype(int), minlength=10)
    assert len(counts) == 10 and stats.chisquare(counts).pvalue > 1e-4


# the posterior of three taxa, by quadrature ---------------------------------------------------------------


def exact(rows=ROWS) -> np.ndarray:
    """(10,) posterior probabilities of the matrices: expected likelihoods over three exponential lengths, by
    Gauss and Laguerre."""
    nodes, weights = np.polynomial.laguerre.laggauss(40)
    codes = np.array([[AMINO_ACIDS.index(x) for x in row] for row in rows])
    found = []
    for k in range(len(MIXED_MATRICES)):
        model = PLAIN.evaluate({"aamodel": k})
        p = transition_matrices(nodes / RATE, model)[:, 0]  # (nodes, from, to)
        likelihood = np.ones((len(nodes),) * 3)
        for a, b, c in codes.T:
            pi = model.root_frequencies[0]
            likelihood *= np.einsum("s,is,js,ks->ijk", pi, p[:, :, a], p[:, :, b], p[:, :, c], optimize=True)
        found.append(np.einsum("ijk,i,j,k->", likelihood, weights, weights, weights))
    return np.array(found) / np.sum(found)


def visited(seed: int, n: int = 8_000) -> tuple[np.ndarray, np.ndarray]:
    """(10,) shares of draws at each matrix, and their standard errors."""
    codes = np.array([[AMINO_ACIDS.index(x) for x in row] for row in ROWS], np.int32)
    used, compact = np.unique(codes, return_inverse=True)
    observed = Observations(
        ("a", "b", "c"), compact.reshape(codes.shape).astype(np.int32), np.eye(20)[used], np.ones(2)
    )
    chains = ChainSettings(
        seed=seed, n_runs=1, n_chains=1, sample_every=10, tuning_generations=2000,
        priors=Priors(ExponentialPrior(RATE)),
        move_weights={"branch_multiplier": 3, "tree_multiplier": 1, "aamodel_jump": 4},
    )  # fmt: skip
    run = advanced(new_run(0, observed, structure_of_model(PLAIN), chains), 10 * n)
    which = run.samples.numbers[n // 10 :, 2 + run.columns.names.index("aamodel")]
    present = (which[:, None] == np.arange(10)).astype(float)
    ess, _ = mixing(present[None])
    share = present.mean(0)
    return share, np.sqrt(share * (1 - share) / ess)


def test_matrices_are_as_probable_as_quadrature_has_them():
    truth = exact()
    assert truth.max() < 0.5 and truth.min() < 0.05  # the data tell them apart, and rule none out
    share, error = visited(1)
    assert np.abs((share - truth) / error).max() < 4


@pytest.mark.slow
def test_frequencies_of_another_matrix_are_seen(monkeypatch):
    """The control: exchangeabilities of the one that is chosen, frequencies of the one beside it."""
    right = start.recipes_of

    def wrong(structure):
        found = right(structure)
        return found._replace(frequencies=np.roll(found.frequencies, 1, axis=0))

    monkeypatch.setattr(start, "recipes_of", wrong)
    share, error = visited(1)
    assert np.abs((share - exact()) / error).max() > 6


# ranks of simulated truths --------------------------------------------------------------------------------

MOVES = {"branch_multiplier": 6, "node_slider": 3, "tree_multiplier": 2, "nni": 3, "spr": 2, "tbr": 2}
MOVES |= {"alpha_multiplier": 8, "aamodel_jump": 12}
EVERY = 300


def ranks(n_replicates: int, seed: int) -> dict[str, np.ndarray]:
    structure, rng = structure_of_model(MODEL), np.random.default_rng(seed)
    result: dict[str, list[int]] = {}
    for replicate in range(n_replicates):
        tree, number = random_tree(N_TIPS, rng), int(rng.integers(10))
        lengths, alpha = tree.lengths, max(rng.exponential(), 1e-3)
        own = np.delete(np.arange(2 * N_TIPS - 2), tree.left[-1])
        lengths[own] = rng.exponential(0.2, len(own))
        model = MODEL.evaluate({"aamodel": number, "alpha": alpha})
        codes = evolved(tree, lengths, model, model.root_frequencies[0], rng)
        _, printed = renumbered(tree.parent, lengths, tree.order)
        truth = {"aamodel": float(number), "alpha": alpha, "TL": lengths.sum(), "tip": printed[1]}
        observed = Observations(tuple(f"t{i}" for i in range(N_TIPS)), codes, np.eye(20), np.ones(N_SITES))
        chains = ChainSettings(
            seed=replicate, n_runs=1, n_chains=1, sample_every=EVERY, priors=PRIORS,
            tuning_generations=15 * EVERY, move_weights=MOVES,
        )  # fmt: skip
        run = new_run(0, observed, structure, chains)
        samples = advanced(run, EVERY * (N_DRAWS + 20)).samples
        names, numbers = run.columns.names, samples.numbers[-N_DRAWS:, 2:]
        draws = {name: numbers[:, names.index(name)] for name in ("aamodel", "alpha", "TL")}
        draws["tip"] = samples.lengths[-N_DRAWS:, 1]
        add_ranks(result, truth, draws, rng)
    return {name: np.array(r) for name, r in result.items()}


@pytest.mark.slow
def test_ranks_of_matrices_are_uniform():
    for name, rank in ranks(300, seed=5).items():
        assert p_value(rank) > 1e-3, (name, rank)
