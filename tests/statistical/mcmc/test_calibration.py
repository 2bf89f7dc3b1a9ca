"""Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018, arXiv:1804.06788).

Parameters and a tree are drawn from the prior, data from them; among thinned posterior draws the true value's
rank is then uniform, for every quantity. Data are simulated with the NumPy reference, so the likelihood is
tested along.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from phloem.density.parts import Linkage, PartModel
from phloem.inference.mcmc import start
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.model.grammar import parse_model
from phloem.model.transition import transition_matrices
from phloem.pruning.cpu.cell_records import CellNumbers

N_TIPS, N_SITES, N_DRAWS = 5, 80, 63
EVERY = 300  # generations between draws: ranks are uniform only if draws are nearly independent
MODEL = parse_model("HKY+FO+G4", datatype="dna")
MOVES = {  # all of them, those on parameters more often than by default, for the same reason
    "branch_multiplier": 6,
    "node_slider": 3,
    "tree_multiplier": 2,
    "nni": 3,
    "spr": 2,
    "tbr": 2,
    "kappa_dirichlet": 3,
    "kappa_slider": 5,
    "frequencies_dirichlet": 3,
    "frequencies_slider": 5,
    "alpha_multiplier": 8,
}
PRIORS = Priors(branch_lengths=ExponentialPrior(5.0))


def simulate(rng: np.random.Generator):
    """True values of what is ranked, and an alignment (T, P) of state codes."""
    tree = random_tree(N_TIPS, rng)
    parent, lengths = tree.parent, tree.lengths
    own = np.delete(np.arange(2 * N_TIPS - 2), tree.left[-1])
    lengths[own] = rng.exponential(0.2, len(own))
    shares, pi, alpha = rng.dirichlet([1, 1]), rng.dirichlet([1, 1, 1, 1]), max(rng.exponential(), 1e-3)
    kappa = shares[1] / shares[0]
    site_model = MODEL.evaluate({"kappa": kappa, "frequencies": pi, "alpha": alpha})
    codes = evolved(tree, lengths, site_model, pi, rng)
    tree_parent, tree_lengths = renumbered(parent, lengths, tree.order)
    truth = {
        "TL": lengths.sum(),
        "kappa": kappa,
        "pi(A)": pi[0],
        "alpha": alpha,
        "tip": tree_lengths[1],
        "together": float(together(tree_parent)),
    }
    return truth, codes


def evolved(tree, lengths: np.ndarray, site_model, pi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """State codes (T, P) at the tips, from the root down."""
    p = transition_matrices(lengths, site_model)
    category = rng.choice(len(site_model.rates), size=N_SITES, p=site_model.weights)
    states = np.empty((len(tree.parent), N_SITES), np.int64)
    states[-1] = rng.choice(len(pi), size=N_SITES, p=pi)
    for x in tree.order[-2::-1]:
        cumulative = p[x, category, states[tree.parent[x]]].cumsum(axis=1)
        states[x] = np.minimum((rng.random(N_SITES)[:, None] > cumulative).sum(axis=1), len(pi) - 1)
    return states[:N_TIPS].astype(np.int32)


def together(parent: np.ndarray) -> bool:
    """Whether tips 1 and 2 are neighbours (tip 0 is next to the basal node, so neighbours never meet
    there)."""
    return bool(parent[1] == parent[2])


def ranks(n_replicates: int, seed: int, moves: dict[str, float] | None = MOVES) -> dict[str, np.ndarray]:
    """Rank (0 … N_DRAWS, ties broken at random) of every true value among its posterior draws."""
    structure, rng = structure_of_model(MODEL), np.random.default_rng(seed)
    result: dict[str, list[int]] = {}
    for replicate in range(n_replicates):
        truth, codes = simulate(rng)
        observed = Observations(tuple(f"t{i}" for i in range(N_TIPS)), codes, np.eye(4), np.ones(N_SITES))
        chains = ChainSettings(
            seed=replicate,
            n_runs=1,
            n_chains=1,
            sample_every=EVERY,
            priors=PRIORS,
            tuning_generations=4500,
            move_weights=moves,
        )
        run = new_run(0, observed, structure, chains)
        samples = advanced(run, EVERY * (N_DRAWS + 20)).samples
        names, numbers = run.columns.names, samples.numbers[-N_DRAWS:, 2:]
        draws = {name: numbers[:, names.index(name)] for name in ("TL", "kappa", "pi(A)", "alpha")}
        draws["tip"] = samples.lengths[-N_DRAWS:, 1]
        draws["together"] = np.array([together(p) for p in samples.parent[-N_DRAWS:]], float)
        add_ranks(result, truth, draws, rng)
    return {name: np.array(r) for name, r in result.items()}


def add_ranks(result: dict[str, list[int]], truth, draws, rng: np.random.Generator) -> None:
    for name, values in draws.items():
        low, equal = (values < truth[name]).sum(), (values == truth[name]).sum()
        result.setdefault(name, []).append(int(low + rng.integers(equal + 1)))


def p_value(rank: np.ndarray) -> float:
    """Chi-square of the ranks in eight bins."""
    return float(stats.chisquare(np.bincount(rank * 8 // (N_DRAWS + 1), minlength=8)).pvalue)


@pytest.mark.slow
def test_ranks_are_uniform():
    for name, rank in ranks(100, seed=5).items():
        assert p_value(rank) > 1e-3, (name, rank)


@pytest.mark.slow
def test_ranks_are_uniform_where_the_weights_of_moves_are_learnt():
    """In the first 4,500 generations of every replicate, which are not among the draws."""
    for name, rank in ranks(300, seed=11, moves=None).items():
        assert p_value(rank) > 1e-3, name


@pytest.mark.slow
def test_ranks_are_uniform_over_many_replicates():
    for name, rank in ranks(1500, seed=7).items():
        assert p_value(rank) > 1e-3, name


# parts with branch lengths of their own on one topology --------------------------------------------------

UNLINKED = structure_of_parts(
    [
        PartModel(name, parse_model(text, datatype="dna"), N_SITES)
        for name, text in (("a", "JC"), ("b", "K80"))
    ],
    Linkage("unlinked"),
)
MOVES_OF_SETS = {
    "branch_multiplier": 12,
    "node_slider": 6,
    "tree_multiplier": 4,
    "nni": 3,
    "spr": 2,
    "tbr": 2,
    "kappa_dirichlet": 3,
    "kappa_slider": 3,
}
EVERY_OF_SETS = 500


def ranks_of_sets(n_replicates: int, seed: int) -> dict[str, np.ndarray]:
    """Of both tree lengths, of one branch in both sets, of kappa and of the topology."""
    rng, result = np.random.default_rng(seed), {}
    pi, taxa = np.full(4, 0.25), tuple(f"t{i}" for i in range(N_TIPS))
    for replicate in range(n_replicates):
        tree, shares = random_tree(N_TIPS, rng), rng.dirichlet([1, 1])
        own, lengths = np.delete(np.arange(2 * N_TIPS - 2), tree.left[-1]), np.zeros((2, 2 * N_TIPS - 1))
        lengths[:, own] = rng.exponential(0.2, (2, len(own)))
        kappa = shares[1] / shares[0]
        models = [
            part.model.evaluate({"kappa": kappa} if part.name == "b" else {}) for part in UNLINKED.parts
        ]
        observed = [
            Observations(taxa, evolved(tree, x, m, pi, rng), np.eye(4), np.ones(N_SITES))
            for x, m in zip(lengths, models)
        ]
        parent, printed = renumbered(tree.parent, lengths, tree.order)
        truth = {"TL{a}": lengths[0].sum(), "TL{b}": lengths[1].sum(), "kappa": kappa}
        truth |= {"tip{a}": printed[0, 1], "tip{b}": printed[1, 1], "together": float(together(parent))}
        settings = ChainSettings(
            seed=replicate, n_runs=1, n_chains=1, sample_every=EVERY_OF_SETS, priors=PRIORS,
            tuning_generations=9 * EVERY_OF_SETS, move_weights=MOVES_OF_SETS,
        )  # fmt: skip
        run = new_run(0, observed, UNLINKED, settings)
        samples = advanced(run, EVERY_OF_SETS * (N_DRAWS + 20)).samples
        numbers = samples.numbers[-N_DRAWS:, 2:]
        draws = {name: numbers[:, run.columns.names.index(name)] for name in ("TL{a}", "TL{b}", "kappa")}
        draws |= {f"tip{{{name}}}": samples.sets[-N_DRAWS:, k, 1] for k, name in enumerate("ab")}
        draws["together"] = np.array([together(p) for p in samples.parent[-N_DRAWS:]], float)
        add_ranks(result, truth, draws, rng)
    return {name: np.array(r) for name, r in result.items()}


@pytest.mark.slow
def test_ranks_of_parts_with_lengths_of_their_own_are_uniform():
    for name, rank in ranks_of_sets(200, seed=11).items():
        assert p_value(rank) > 1e-3, (name, rank)


@pytest.mark.slow
def test_a_part_that_reads_the_lengths_of_the_other_is_seen(monkeypatch):
    """The control: the sampler evaluates both parts at the first one's lengths."""
    right, column = start.chain_forest, CellNumbers._fields.index("first_lengths")

    def wrong(*arguments, **options):
        forest = right(*arguments, **options)
        assert forest.numbers[0, :, column].tolist() == [0, 1]
        forest.numbers[:, 1, column] = 0
        return forest

    monkeypatch.setattr(start, "chain_forest", wrong)
    assert min(p_value(rank) for rank in ranks_of_sets(60, seed=11).values()) < 1e-6
