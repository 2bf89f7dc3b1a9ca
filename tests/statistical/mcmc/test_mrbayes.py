"""The primates under GTR+G4: phloem's posterior against that of MrBayes 3.2.7a
(golden/mrbayes_primates_gtr_g4.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.inference.mcmc.convergence import kept
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import new_run
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.splits import split_table
from phloem.summary.trace import trace_summary
from phloem.tree.splits import split_members

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = json.loads((ROOT / "tests/golden/mrbayes_primates_gtr_g4.json").read_text())
LARGEST_Z = 4.0  # of 14 means and 9 clades: a right sampler passes this in about 999 of 1000 seeds


def primates():
    alignment = read_alignment(ROOT / "examples/primates.nex")
    structure = structure_of_model(model_for_alignment("GTR+G4", alignment))
    return observations(alignment), structure


def posterior(generations: int, **settings):
    """(trace summary, clade → probability, draws a run, runs)."""
    observed, structure = primates()
    chains = ChainSettings(
        seed=11, generations=generations, sample_every=200, check_every=generations, **settings
    )
    runs = sample(observed, structure, chains).runs
    first = kept(runs[0].samples, chains.burn_in, chains.tuning)
    draws = np.stack([run.samples.numbers[first:] for run in runs])
    summary = trace_summary(("LnL", "LnPr", *runs[0].columns.names), draws)
    table = split_table([run.samples.tree_sample(observed.taxa, first) for run in runs])
    members = split_members(table.splits, len(observed.taxa))
    clades = {
        clade_key([observed.taxa[t] for t in np.flatnonzero(members[s])], observed.taxa): (
            float(table.probability[s]),
            float(np.ptp(table.frequency[:, s])),
        )
        for s in np.flatnonzero(~table.trivial)
    }
    return summary, clades, draws.shape[1] * len(runs)


def clade_key(names, taxa) -> frozenset:
    """The side of a split without the first taxon."""
    return frozenset(names) if taxa[0] not in names else frozenset(taxa) - frozenset(names)


def z_scores(summary) -> dict[str, float]:
    """Difference of means over its Monte Carlo standard error. LnPr differs by a constant: see its own
    test."""
    result = {}
    for i, name in enumerate(summary.names):
        if name != "LnPr":
            other = GOLDEN["parameters"][name]
            result[name] = (summary.mean[i] - other["mean"]) / np.hypot(summary.mcse[i], other["mcse"])
    return result


def check_clades(clades, n_draws: int) -> None:
    taxa = primates()[0].taxa
    for clade in GOLDEN["clades"]:
        p, spread = clades.get(clade_key(clade["members"], taxa), (0.0, 0.0))
        q = clade["probability"]
        # rare changes of topology come in clumps, hence the runs' own spread and a tenth of the draws
        error = np.sqrt((q * (1 - q) + 1e-4) / (0.1 * n_draws)) + spread / 2 + clade["stddev"]
        assert abs(p - q) < LARGEST_Z * error, (clade, p)
    for names, (p, _) in clades.items():
        known = [clade_key(c["members"], taxa) for c in GOLDEN["clades"]]
        assert names in known or p < 0.02


def test_the_posterior_of_the_primates_is_mrbayes():
    """With so many generations a prior of other rates, or of other lengths, has a z of 20 and more."""
    summary, clades, n_draws = posterior(60_000)
    z = z_scores(summary)
    assert max(abs(v) for v in z.values()) < LARGEST_Z, z
    check_clades(clades, n_draws)


@pytest.mark.slow
def test_a_long_run_agrees_too():
    summary, clades, n_draws = posterior(4_000_000)
    z = z_scores(summary)
    assert max(abs(v) for v in z.values()) < LARGEST_Z, z
    check_clades(clades, n_draws)


def test_log_prior_is_mrbayes_less_a_constant():
    """MrBayes' first sample prints LnPr = 42.62056 at 21 branches of 0.02, equal rates and frequencies, alpha
    1.

    It counts the uniform prior on the (2·12 - 5)!! topologies, which phloem leaves out.
    """
    observed, structure = primates()
    run = new_run(0, observed, structure, ChainSettings(n_chains=1))
    state = run.state
    state.lengths[state.lengths > 0] = 0.02
    assert (state.lengths == 0.02).sum() == 2 * 21
    place = structure.space.place
    state.values[:, :, place("relative_rates")] = 1 / 6
    state.values[:, :, place("frequencies")] = 0.25
    state.values[:, :, place("alpha")] = 1.0
    again = new_run(0, observed, structure, run.settings, begin=state, samples=run.samples)
    log_topologies = float(np.log(np.arange(3, 20, 2)).sum())
    assert again.state.log_prior[0] - log_topologies == pytest.approx(42.62056, abs=2e-5)
