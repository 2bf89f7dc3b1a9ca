"""Chains that ignore the data, and what their draws must look like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel, structure_of_model
from phloem.model.grammar import parse_model
from phloem.pruning.site_order import SiteOrder
from phloem.summary.splits import topology_table
from phloem.summary.trace import mixing


def gtr(n_categories: int = 4, p_invariable: bool = False) -> ChainModel:
    """GTR+G4, with +I on request, everything free."""
    text = f"GTR+FO{'+I' if p_invariable else ''}+G{n_categories}"
    return structure_of_model(parse_model(text, datatype="dna"))


def no_data(n_tips: int, n_states: int = 4) -> Observations:
    """A pattern that says nothing, and some by which parsimony likes few trees, which the sampler may not."""
    codes = np.zeros((n_tips, 3), np.int32)
    codes[1:3, 1] = codes[3:5, 2] = 1
    sets = np.vstack([np.eye(n_states)[:2], np.ones((1, n_states))])
    codes[:, 0] = 2
    return Observations(tuple(f"t{i}" for i in range(n_tips)), codes, sets, np.array([1.0, 12.0, 6.0]))


def prior_draws(n_tips: int, n: int, structure: ChainModel | None = None, **settings):
    """n draws from the prior by the sampler itself: (column names after LnL and LnPr, samples without the
    first 10%)."""
    every = settings.setdefault("sample_every", 100)
    settings.setdefault("n_chains", 1)
    settings.setdefault("tuning_generations", n * every // 10)
    chains = ChainSettings(use_data=False, n_runs=1, generations=n * every, **settings)
    structure = structure or gtr()
    data = [no_data(n_tips, part.model.n_states) for part in structure.parts]
    if structure.along_sites:
        one = np.zeros(1, np.int64)
        data = [replace(own, order=SiteOrder(one, one + 1)) for own in data]
    run = new_run(0, data, structure, chains)
    samples = advanced(run, n * every).samples
    first = n // 10 + 1
    kept = Samples(*(x[first:] for x in vars(samples).values()))
    return run.columns.names, kept


def topology_p_value(samples: Samples, n_topologies: int) -> float:
    """Of the hypothesis that all topologies are equally frequent: chi-square, deflated to the effective
    sample size (the median over the topologies' indicators), since draws of a chain are correlated."""
    taxa = tuple(f"t{i}" for i in range((samples.parent.shape[1] + 2) // 2))
    which = topology_table(samples.tree_sample(taxa)).of_tree
    counts = np.bincount(which, minlength=n_topologies)
    assert len(counts) == n_topologies
    ess, _ = mixing((which[:, None] == np.arange(n_topologies)).astype(float)[None])
    effective = min(float(np.nanmedian(ess)) / len(which), 1.0)
    return float(stats.chi2.sf(stats.chisquare(counts).statistic * effective, n_topologies - 1))


def ks_p_value(draws: np.ndarray, distribution) -> float:
    """Of the hypothesis that draws follow a scipy distribution: Kolmogorov and Smirnov's statistic, its
    sample size replaced by the effective one, since draws of a chain are correlated."""
    ess, _ = mixing(draws[None, :, None])
    n = max(int(min(ess[0], len(draws))), 5)
    return float(stats.kstwo.sf(stats.ks_1samp(draws, distribution.cdf).statistic, n))


def tip_lengths(samples: Samples) -> np.ndarray:
    """(n, T) lengths of the tips' branches."""
    n_tips = (samples.parent.shape[1] + 2) // 2
    return samples.lengths[:, :n_tips]
