"""Chains under +AG: the prior of what they add, and ranks of simulated truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model
from phloem.model.grammar import parse_model
from phloem.model.transition import transition_matrices
from phloem.pruning.site_order import SiteOrder
from statistical.mcmc.prior_sampling import ks_p_value, prior_draws
from statistical.mcmc.test_calibration import EVERY, N_DRAWS, N_TIPS, PRIORS, add_ranks, p_value

MODEL = parse_model("JC+AG3", datatype="dna")
N_SITES = 200
TOGETHER = {"alpha_multiplier": 1, "rho_slider": 1, "joint_normal": 2, "branch_multiplier": 1}
MOVES = {
    "branch_multiplier": 6, "node_slider": 3, "tree_multiplier": 2, "nni": 3, "spr": 2, "tbr": 2,
    "alpha_multiplier": 6, "rho_slider": 6, "joint_normal": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    "moves", [{"alpha_multiplier": 1, "rho_slider": 1}, TOGETHER], ids=["alone", "together"]
)
def test_without_data_the_correlation_is_uniform(moves):
    names, samples = prior_draws(4, 4000, structure_of_model(MODEL), move_weights=moves, sample_every=40)
    rho, alpha = (samples.numbers[:, 2 + names.index(name)] for name in ("rho", "alpha"))
    assert ks_p_value(rho, stats.uniform(-1, 2)) > 1e-4
    assert ks_p_value(alpha, stats.expon()) > 1e-4
    assert ks_p_value(rho, stats.uniform(-1, 1.8)) < 1e-6  # the check sees another prior


def simulated(rng: np.random.Generator) -> tuple[dict[str, float], Observations]:
    """True values of what is ranked, and the data: some columns are left out."""
    tree = random_tree(N_TIPS, rng)
    own = np.delete(np.arange(2 * N_TIPS - 2), tree.left[-1])
    tree.lengths[own] = rng.exponential(0.2, len(own))
    alpha, rho = max(rng.exponential(), 1e-3), rng.uniform(-1, 1)
    model = MODEL.evaluate({"alpha": alpha, "rho": rho})
    kept = np.sort(rng.choice(N_SITES + 40, N_SITES, replace=False))
    category = np.zeros(N_SITES + 40, np.int64)
    for i in range(len(category)):
        shares = model.weights if i == 0 else model.neighbours[category[i - 1]]
        category[i] = rng.choice(len(shares), p=shares)
    p, category = transition_matrices(tree.lengths, model), category[kept]
    states = np.empty((len(tree.parent), N_SITES), np.int64)
    states[-1] = rng.integers(0, 4, N_SITES)
    for x in tree.order[-2::-1]:
        cumulative = p[x, category, states[tree.parent[x]]].cumsum(axis=1)
        states[x] = np.minimum((rng.random(N_SITES)[:, None] > cumulative).sum(axis=1), 3)
    codes = states[:N_TIPS].astype(np.int32)
    order = SiteOrder(np.arange(N_SITES), np.diff(kept, prepend=kept[0] - 1))
    taxa = tuple(f"t{i}" for i in range(N_TIPS))
    _, lengths = renumbered(tree.parent, tree.lengths, tree.order)
    truth = {"TL": tree.lengths.sum(), "alpha": alpha, "rho": rho, "tip": lengths[1]}
    return truth, Observations(taxa, codes, np.eye(4), np.ones(N_SITES), order=order)


def ranks(n_replicates: int, seed: int, shuffled: bool = False) -> dict[str, np.ndarray]:
    structure, rng = structure_of_model(MODEL), np.random.default_rng(seed)
    result: dict[str, list[int]] = {}
    for replicate in range(n_replicates):
        truth, data = simulated(rng)
        if shuffled:
            other = SiteOrder(rng.permutation(N_SITES), data.order.distance)
            data = replace(data, order=other)
        chains = ChainSettings(
            seed=replicate, n_runs=1, n_chains=1, sample_every=EVERY, priors=PRIORS, tuning_generations=4500,
            move_weights=MOVES,
        )  # fmt: skip
        run = new_run(0, data, structure, chains)
        samples = advanced(run, EVERY * (N_DRAWS + 20)).samples
        names, numbers = run.columns.names, samples.numbers[-N_DRAWS:, 2:]
        draws = {name: numbers[:, names.index(name)] for name in ("TL", "alpha", "rho")}
        draws["tip"] = samples.lengths[-N_DRAWS:, 1]
        add_ranks(result, truth, draws, rng)
    return {name: np.array(r) for name, r in result.items()}


@pytest.mark.slow
def test_ranks_are_uniform():
    for name, rank in ranks(160, seed=5).items():
        assert p_value(rank) > 1e-3, (name, rank)


@pytest.mark.slow
def test_sites_in_another_order_are_seen():
    """The control: of shuffled sites next to nothing tells of a correlation."""
    assert p_value(ranks(60, seed=5, shuffled=True)["rho"]) < 1e-6
