"""Codon models: branch lengths, and priors on them, are per nucleotide site, as MrBayes has them: a length
of 1 is three expected substitutions a codon."""

from __future__ import annotations

import pytest
from scipy import stats

from phloem import TreeLikelihood
from phloem.data.alphabet import alphabet
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.newick import parse_newick
from phloem.likelihood.model_for_alignment import model_for_alignment, model_for_alphabet
from phloem.likelihood.simulation import simulate_alignment
from phloem.summary.trace import mixing
from phloem.tree.tree import Tree

PER_CODON = parse_newick("(t1:0.3,t2:0.6,(t3:0.3,t4:0.9):0.3,t5:0.6);")[0]
TEXT = "GY94{2,0.3}+FQ"


@pytest.fixture(scope="module")
def simulated():
    """400 codons along a tree of 3 expected substitutions a codon, 1 a nucleotide site."""
    return simulate_alignment(PER_CODON, model_for_alphabet(TEXT, alphabet("codon")), 400, seed=3)


def sampled(alignment, prefix=None, **settings):
    structure = structure_of_model(model_for_alignment(TEXT, alignment))
    given = {"n_runs": 1, "n_chains": 1, "generations": 3000, "sample_every": 10, "tuning_generations": 500}
    chains = ChainSettings(**(given | settings))
    return sample(observations(alignment), structure, chains, prefix).runs[0].samples


def test_the_posterior_has_lengths_per_nucleotide(simulated):
    samples = sampled(simulated)
    tree_length = samples.numbers[100:, 2]
    assert PER_CODON.lengths.sum() == pytest.approx(3.0)
    assert abs(tree_length.mean() - 1.0) < 4 * tree_length.std() < 0.5


def test_likelihood_and_prior_hold_at_the_lengths_written(simulated):
    """LnL is that of three times the lengths per codon, LnPr the density of the lengths themselves."""
    prior = Priors(branch_lengths=ExponentialPrior(7.0))
    samples = sampled(simulated, priors=prior, generations=400)
    parent, lengths = samples.parent[-1], samples.lengths[-1]
    tree = Tree(simulated.taxa, parent, 3 * lengths, rooted=False)
    expected = TreeLikelihood(simulated, tree, TEXT, engine="reference").log_likelihood()
    assert samples.numbers[-1, 0] == pytest.approx(expected, rel=1e-10)
    density = stats.expon.logpdf(lengths[:-1], scale=1 / 7).sum()
    assert samples.numbers[-1, 1] == pytest.approx(density, rel=1e-10)
    wrong = TreeLikelihood(
        simulated, Tree(simulated.taxa, parent, lengths, rooted=False), TEXT, engine="reference"
    )
    assert abs(wrong.log_likelihood() - expected) > 10


def test_without_data_the_default_prior_is_on_lengths_per_nucleotide(simulated):
    samples = sampled(simulated, use_data=False, generations=400_000, sample_every=200)
    tree_length = samples.numbers[200:, 2]
    ess, _ = mixing(tree_length[None, :, None])
    distance = stats.ks_1samp(tree_length, stats.gamma(1, scale=10).cdf).statistic
    assert stats.kstwo.sf(distance, int(min(ess[0], len(tree_length)))) > 1e-3
    wrong = stats.ks_1samp(tree_length, stats.gamma(1, scale=30).cdf).statistic
    assert stats.kstwo.sf(wrong, int(min(ess[0], len(tree_length)))) < 1e-6


def test_files_say_the_unit(simulated, tmp_path):
    sampled(simulated, str(tmp_path / "x"), generations=100)
    unit = "expected substitutions per nucleotide site]"
    assert (tmp_path / "x.run1.p").read_text().splitlines()[0].endswith(f"[TL: {unit}")
    assert (tmp_path / "x.run1.t").read_text().splitlines()[2] == f"[Branch lengths: {unit}"
