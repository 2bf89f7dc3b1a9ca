"""Dates of tips that trajectories move: priors against quadrature and simulation, posteriors against those of
chains without these trajectories."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.tree_priors.tree_prior import Genealogy, Scale, registered
from phloem.inference.time.sampler import first_kept
from phloem.inference.time.settings import TreeModel
from phloem.model.grammar import parse_model
from phloem.summary.trace import trace_summary
from phloem.tree.dated import random_dated_tree
from statistical.time.test_calibration import TAXA, evolved
from statistical.time.test_exact import BY_RATES, SHIFTING, SHIFTS, histories
from statistical.time.time_runs import close, nothing_observed, sampled

pytestmark = pytest.mark.slow
BY_TRAJECTORIES = {"hamilton": 4.0, "narrow_exchange": 1.0, "wide_exchange": 1.0}
"""No other move of heights, so that dates move by these alone."""


def heights_of(run, tips):
    """Means, their errors, and of squares likewise: (2 k,) each."""
    kept = run.samples.sets[first_kept(run) :, 0][:, tips]
    found = trace_summary([f"x{k}" for k in range(2 * len(tips))], np.concatenate([kept, kept**2], 1)[None])
    return found.mean, found.mcse


def by_quadrature(log_density, begins, ends):
    """Means of the third tip's height, of its square and of the root's height, the tip being between these;
    the first two are 0 and 0.7 old."""
    x, w = np.polynomial.legendre.leggauss(8)
    total = np.zeros(4)
    for low, high in zip(begins, ends):
        for t, weight in zip(low + (high - low) * (x + 1) / 2, (high - low) * w / 2):
            for tree, other in histories(np.array([0.0, 0.7, t])):
                g = Genealogy(tree.heights, tree.order, 3, np.array([1, 1]), tree.parent)
                value = weight * other * np.exp(log_density(g))
                total += value * np.array([1.0, t, t * t, tree.heights[-1]])
    return total[1:] / total[0]


@pytest.mark.parametrize(
    ("name", "fixed", "options"),
    [
        ("bdss", BY_RATES, {}),
        ("fbd", BY_RATES, {"fossils": "tips", "sampled": 0.3, "condition": "survival"}),
        ("bdsky", SHIFTING, SHIFTS),
    ],
)
def test_priors_of_three_taxa_one_of_uncertain_date_against_quadrature(name, fixed, options):
    """Numbers are held; the tip may be the second or the oldest."""
    prior = registered()[name]
    x, settings = np.array([*fixed.values()]), prior.parameters(Scale(1.0, 3, 1), options).settings
    edges = [0.2, 0.7, 2.6] if name != "bdsky" else [0.2, 0.4, 0.7, 1.9, 2.6]

    def expected(numbers):
        return by_quadrature(lambda g: prior.log_density(g, numbers, settings), edges[:-1], edges[1:])

    tree = TreeModel(prior=name, options=options, priors=fixed | {"clock_rate": Exponential(1.0)})
    bounds = np.array([[0.0, 0.0], [0.7, 0.7], [0.2, 2.6]])
    found, _, run = sampled(
        nothing_observed(3), bounds, "JC", tree, generations=200_000, use_data=False,
        move_weights=BY_TRAJECTORIES,
    )  # fmt: skip
    mean, mcse = heights_of(run, [2])
    own = expected(x)
    assert (np.abs(mean - own[:2]) < 4 * mcse).all() and close(found["root_height"], own[2])
    assert (np.abs(mean - expected(x * 1.15)[:2]) > 4 * mcse).any()  # the control: other rates


RANGES = np.array([[0.0, 0.0], [0.0, 2.0], [0.5, 0.5], [0.3, 4.0], [1.0, 1.2], [2.0, 6.0], [0.0, 1.0]])


def test_a_coalescent_of_uncertain_dates_against_simulation():
    """It is a distribution given any dates, so that without data these are uniform, and no two depend on each
    other."""
    rng, simulated = np.random.default_rng(1), []
    for _ in range(6000):
        tree = random_dated_tree(rng.uniform(*RANGES.T), rng, lambda t, pairs: rng.exponential(3.0 / pairs))
        simulated.append(tree.heights[-1])
    tree = TreeModel(priors={"pop_size": 3.0, "clock_rate": Exponential(1.0)}, clock="ucln")
    found, _, run = sampled(
        nothing_observed(7), RANGES, "JC", tree, generations=300_000, use_data=False,
        move_weights=BY_TRAJECTORIES | {"hamilton_dates": 4.0},
    )  # fmt: skip
    tips = np.flatnonzero(RANGES[:, 0] < RANGES[:, 1])
    low, high = RANGES[tips].T
    expected = np.concatenate([(low + high) / 2, (low * low + low * high + high * high) / 3])
    mean, mcse = heights_of(run, tips)
    assert (np.abs(mean - expected) < 4 * mcse).all()
    assert (np.abs(mean - 1.05 * expected) > 4 * mcse).any()
    assert close(found["root_height"], np.mean(simulated), np.std(simulated) / np.sqrt(6000))


def test_trajectories_of_dates_leave_the_posterior_as_it_is():
    """Dates moved by them alone, and by walks alone."""
    rng = np.random.default_rng(8)
    low = np.linspace(0.0, 5.0, len(TAXA))
    truth = random_dated_tree(rng.uniform(low, low + 2.0), rng, lambda t, pairs: rng.exponential(4.0 / pairs))
    lasts = np.append(truth.heights[truth.parent[:-1]] - truth.heights[:-1], 0.0)
    own = evolved(truth, 0.05 * lasts, rng, 300, parse_model("JC", datatype="dna").evaluate({}))
    columns = np.repeat(own.codes, own.weights.astype(int), axis=1)
    rows = {name: "".join("ACGT"[c] for c in row) for name, row in zip(TAXA, columns)}
    tree = TreeModel(priors={"pop_size": LogNormal(1.0, 1.0), "clock_rate": LogNormal(-3.0, 1.0)})
    data = alignment_from_sequences(rows, alphabet("dna")), np.stack([low, low + 2.0], axis=1), "JC", tree
    walks = {"tip_date": 4.0, "node_height": 4.0, "root_height": 1.0, "narrow_exchange": 4.0}
    walks |= {"wide_exchange": 2.0, "wilson_balding": 2.0, "tree_scaler": 1.0, "up_down": 1.0}
    walks |= {"clock_rate_multiplier": 1.0, "pop_size_multiplier": 1.0}
    found = []
    for more, n in (({"hamilton": 0.0}, 1_500_000), ({"hamilton": 4.0, "tip_date": 0.0}, 300_000)):
        numbers, _, run = sampled(*data, generations=n, move_weights=walks | more)
        mean, mcse = heights_of(run, np.arange(len(TAXA)))
        own = [numbers[name] for name in ("root_height", "clock_rate", "pop_size", "LnL")]
        found.append(np.concatenate([np.array(own), np.stack([mean, mcse], axis=1)]))
    (a, b), (error, other) = np.array(found)[:, :, 0], np.array(found)[:, :, 1]
    assert (np.abs(a - b) < 4 * np.hypot(error, other)).all()
    assert np.hypot(error, other)[4:14].max() < 0.1  # walks mix slowly; a range's own deviation is 0.58
