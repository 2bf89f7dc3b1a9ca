"""The posterior probability of every category at every site."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.data.patterns import SitePatterns
from phloem.model.record import SiteModel
from phloem.pruning.along_sites import AlongSites
from phloem.pruning.interface import Evaluator


def site_categories(
    evaluator: Evaluator, lengths: np.ndarray, model: SiteModel, patterns: SitePatterns
) -> np.ndarray:
    """(C + 1, L): of each category, or invariable (last). The evaluator was evaluated there, and is elsewhere
    afterwards.

    A category's likelihood is that of the model in which all sites are of it; where neighbours depend on each
    other, the posterior is given all sites.
    """
    if isinstance(evaluator, AlongSites):
        return np.vstack([evaluator.site_categories(), np.zeros(len(patterns.site_pattern))])
    whole = evaluator.site_log_likelihoods()
    shares = np.zeros((model.n_categories + 1, len(whole)))
    for c, weight in enumerate(model.weights.tolist()):
        if weight > 0:
            only = (np.arange(model.n_categories) == c).astype(np.float64)
            evaluator.log_likelihood(lengths, replace(model, weights=only, invariant=0.0))
            shares[c] = weight * np.exp(evaluator.site_log_likelihoods() - whole)
    shares[-1] = np.maximum(1.0 - shares.sum(0), 0.0) if model.invariant > 0 else 0.0
    return shares[:, patterns.site_pattern]
