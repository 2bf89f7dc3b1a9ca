"""Dated trees that average over substitution models: which models there are without data, and what is known
given one of them beside the chains of that model alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.tied_dirichlet import all_groupings
from phloem.inference.time.settings import TreeModel
from phloem.model.amino_acid import MIXED_MATRICES
from phloem.summary.trace import mixing, trace_summary
from statistical.time.time_runs import nothing_observed, sampled

pytestmark = pytest.mark.slow
TIPS = np.array([0.0, 0.0, 0.3, 0.6, 1.0, 1.4])
TREE = TreeModel(priors={"clock_rate": Exponential(2.0), "pop_size": 1.0})
RATES = (4.0, 12.0, 0.4, 2.0, 16.0, 1.0)  # of AC, AG, AT, CG, CT and GT


def draws_of(run, first):
    names = ("LnL", "LnPr", *run.columns.names)
    return names, run.samples.numbers[first:]


def as_likely(which, n):
    """The p-value of n models being as likely: chi-square, deflated to the effective sample size."""
    counts = np.bincount(which, minlength=n)
    ess, _ = mixing((which[:, None] == np.arange(n)).astype(float)[None])
    effective = min(float(np.nanmedian(ess)) / len(which), 1.0)
    return float(stats.chi2.sf(stats.chisquare(counts).statistic * effective, n - 1))


@pytest.mark.parametrize(
    ("text", "column", "n"), [("MIXED+FO", "gtrsubmodel", 203), ("AAMIXED", "aamodel", len(MIXED_MATRICES))]
)
def test_all_models_are_as_likely_without_data(text, column, n):
    settings = {"generations": 1_500_000, "sample_every": 100, "use_data": False}
    data = nothing_observed(6)
    if text == "AAMIXED":
        data = alignment_from_sequences({name: "X" for name in data.taxa}, alphabet("protein"))
    run = sampled(data, TIPS, text, TREE, **settings)[2]
    names, numbers = draws_of(run, 3000)
    which = numbers[:, names.index(column)].astype(int)
    assert len(set(which)) == n and as_likely(which, n) > 1e-4
    planted = np.where(np.isin(which, (0, 1, 2)), n - 1, which)
    assert as_likely(planted, n) < 1e-4
    if column == "gtrsubmodel":
        k = np.array([len(set(groups)) for groups in all_groupings(6)])
        assert (numbers[:, names.index("k_revmat")] == k[which]).all()


def evolved(rng, n_sites=400):
    """Columns down a comb of the tips by the rates, all frequencies a quarter."""
    q = np.zeros((4, 4))
    q[np.triu_indices(4, 1)] = RATES
    q = (q + q.T) / 4
    np.fill_diagonal(q, -q.sum(axis=1))
    q /= -np.trace(q) / 4
    values, vectors = np.linalg.eigh(q)
    heights, rows = np.array([0.5, 1.0, 1.5, 2.0, 2.5]), {}
    state = rng.integers(4, size=n_sites)

    def along(state, t):
        p = (vectors * np.exp(values * 0.25 * t)) @ vectors.T
        return (rng.uniform(size=n_sites)[:, None] > p[state].cumsum(axis=1)).sum(axis=1).clip(0, 3)

    for i in range(5, 0, -1):
        rows[f"t{i}"] = along(state, heights[i - 1] - TIPS[i])
        state = along(state, heights[i - 1] - (heights[i - 2] if i > 1 else 0.0))
    rows["t0"] = state
    text = {name: "".join("ACGT"[s] for s in rows[name]) for name in sorted(rows)}
    return alignment_from_sequences(text, alphabet("dna"))


def test_given_the_model_of_all_rates_the_posterior_is_its_own():
    """Of two samplers, one of which has left it and come back; the control is what is known of any model."""
    data = evolved(np.random.default_rng(7))
    settings = {"generations": 900_000, "sample_every": 50}
    alone = sampled(data, TIPS, "GTR+FO", TREE, **settings)[0]
    run = sampled(data, TIPS, "MIXED+FO", TREE, **settings)[2]
    names, numbers = draws_of(run, 4000)
    there = numbers[:, names.index("k_revmat")] == 6
    assert 0.02 < there.mean() < 0.98
    given = trace_summary(names, numbers[there][None])
    whole = trace_summary(names, numbers[None])
    z, of_any = [], []
    for name in ("root_height", "clock_rate", "r(A<->C)", "r(A<->G)", "r(A<->T)", "r(C<->G)", "r(C<->T)"):
        i, (mean, mcse) = names.index(name), alone[name]
        z.append((given.mean[i] - mean) / np.hypot(given.mcse[i], mcse))
        of_any.append((whole.mean[i] - mean) / np.hypot(whole.mcse[i], mcse))
    assert np.abs(z).max() < 4.0 < np.abs(of_any).max(), (z, of_any)
