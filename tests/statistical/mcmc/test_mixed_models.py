"""Chains that choose among the 203 reversible nucleotide models: their prior, ranks of simulated truths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from phloem.density.terms.tied_dirichlet import all_groupings
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model
from phloem.model.grammar import parse_model
from phloem.model.nucleotide import PAIRS
from phloem.summary.trace import mixing
from statistical.mcmc.prior_sampling import ks_p_value, prior_draws
from statistical.mcmc.test_calibration import (
    EVERY,
    N_DRAWS,
    N_SITES,
    N_TIPS,
    PRIORS,
    add_ranks,
    evolved,
    p_value,
)
from statistical.mcmc.test_calibration import MOVES as OTHER_MOVES

ROOT = Path(__file__).resolve().parents[3]
MODEL = parse_model("MIXED+FO+G4", datatype="dna")
N_MODELS = 203
RATES = {f"relative_rates_{name}": weight for name, weight in (("split_merge", 2), ("dirichlet", 1))}
RATES["relative_rates_slider"] = 1
MOVES = {name: w for name, w in OTHER_MOVES.items() if not name.startswith("kappa")} | {
    name: 6 * weight for name, weight in RATES.items()
}


def visits(names, numbers: np.ndarray) -> tuple[np.ndarray, float]:
    """How often every model was visited, and the p-value of all being as likely: chi-square, deflated to the
    effective sample size."""
    which = numbers[:, 2 + names.index("gtrsubmodel")].astype(int)
    counts = np.bincount(which, minlength=N_MODELS)
    ess, _ = mixing((which[:, None] == np.arange(N_MODELS)).astype(float)[None])
    effective = min(float(np.nanmedian(ess)) / len(which), 1.0)
    return counts, float(stats.chi2.sf(stats.chisquare(counts).statistic * effective, N_MODELS - 1))


def test_all_models_are_visited_as_often_without_data():
    names, samples = prior_draws(
        3, 12_000, structure_of_model(MODEL), move_weights=RATES, sample_every=30, seed=3
    )
    counts, p = visits(names, samples.numbers)
    assert len(counts) == N_MODELS and counts.min() > 0 and p > 1e-4
    rates = samples.numbers[:, [2 + names.index(f"r({a}<->{b})") for a, b in PAIRS]]
    of_names = [len(set(groups)) for groups in all_groupings(6)]
    which = samples.numbers[:, 2 + names.index("gtrsubmodel")].astype(int)
    assert np.array_equal([len(set(row)) for row in rates.round(14)], np.array(of_names)[which])
    assert np.array_equal(samples.numbers[:, 2 + names.index("k_revmat")], np.array(of_names)[which])
    for pair in (0, 5):  # where it is alone in its group; the others' concentrations then add up to 5
        alone = [i for i, groups in enumerate(all_groupings(6)) if groups.count(groups[pair]) == 1]
        assert ks_p_value(rates[np.isin(which, alone), pair], stats.beta(1, 5)) > 1e-4


# ranks of simulated truths -------------------------------------------------------------------------------


def simulate(rng: np.random.Generator):
    """True values of what is ranked, and an alignment (T, P) of state codes."""
    tree = random_tree(N_TIPS, rng)
    lengths = tree.lengths
    own = np.delete(np.arange(2 * N_TIPS - 2), tree.left[-1])
    lengths[own] = rng.exponential(0.2, len(own))
    submodel = int(rng.integers(N_MODELS))
    groups = np.array(all_groupings(6)[submodel]) - 1
    sizes = np.bincount(groups)
    rates = (rng.dirichlet(sizes) / sizes)[groups]
    pi, alpha = rng.dirichlet(np.ones(4)), max(rng.exponential(), 1e-3)
    values = {f"rate_{pair}": rate / rates[5] for pair, rate in zip(PAIRS[:5], rates)}
    site_model = MODEL.evaluate(values | {"frequencies": pi, "alpha": alpha})
    codes = evolved(tree, lengths, site_model, pi, rng)
    _, printed = renumbered(tree.parent, lengths, tree.order)
    truth = {f"r({a}<->{b})": rate for (a, b), rate in zip(PAIRS, rates)}
    truth |= {"gtrsubmodel": float(submodel), "k_revmat": float(len(sizes)), "TL": lengths.sum()}
    return truth | {"pi(A)": pi[0], "alpha": alpha, "tip": printed[1]}, codes


def ranks(n_replicates: int, seed: int, moves=MOVES) -> dict[str, np.ndarray]:
    structure, rng = structure_of_model(MODEL), np.random.default_rng(seed)
    result: dict[str, list[int]] = {}
    for replicate in range(n_replicates):
        truth, codes = simulate(rng)
        observed = Observations(tuple(f"t{i}" for i in range(N_TIPS)), codes, np.eye(4), np.ones(N_SITES))
        chains = ChainSettings(
            seed=replicate, n_runs=1, n_chains=1, sample_every=2 * EVERY, priors=PRIORS,
            tuning_generations=15 * EVERY, move_weights=moves,
        )  # fmt: skip
        run = new_run(0, observed, structure, chains)
        samples = advanced(run, 2 * EVERY * (N_DRAWS + 20)).samples
        names, numbers = run.columns.names, samples.numbers[-N_DRAWS:, 2:]
        draws = {name: numbers[:, names.index(name)] for name in truth if name != "tip"}
        draws["tip"] = samples.lengths[-N_DRAWS:, 1]
        add_ranks(result, truth, draws, rng)
    return {name: np.array(r) for name, r in result.items()}


@pytest.mark.slow
def test_ranks_of_models_and_rates_are_uniform():
    for name, rank in ranks(400, seed=5).items():
        assert p_value(rank) > 1e-3, (name, rank)
