"""Classes of sites with branch lengths of their own (+H, GHOST), shaken and fitted again.

The likelihood has many peaks: which sites go together, and on which branches they are fast. A fit climbs the
nearest one, so that a search begins some from elsewhere and keeps the best.
"""

from __future__ import annotations

import numpy as np

from phloem.inference.ml.search import Place
from phloem.inference.ml.searched import Fit, Searched
from phloem.inference.ml.starts import Start as Values
from phloem.tree.half_edges import HalfEdges, preorder

_NEAR = 15.0  # log units below the best tree, from where another gets lengths of classes of its own
_STEPS = 45  # of a fit
_GAIN = 0.01  # log units
_LEAST, _MOST = 1e-6, 5.0  # substitutions a site, of a length that is shaken: none is stuck at a bound
_SHARE = 0.2  # of the branches that change places, or are drawn anew


def shaken_best(
    data: Searched,
    best: Place,
    other: Place | None,
    values: Values,
    rng: np.random.Generator,
    shakes: int,
    threads: int | None,
) -> Fit | None:
    """The best of coarse fits from another tree, if that is near, and from the best one shaken so many times;
    None if none is better than that, or there are no such classes. values: the model's numbers at first."""
    if data.n_classes == 1:
        return None
    edges, value, found = best.edges, best.log_likelihood, None
    for k in range(shakes + 1):
        if k == 0 and (other is None or other is best or other.log_likelihood < value - _NEAR):
            continue
        begun = other.edges if k == 0 and other is not None else shaken(edges, rng)
        fit = data.refined(data.likelihood(begun, values, threads), ({},), 1e-2, _STEPS)
        if fit.log_likelihood > value + _GAIN:
            found, value = fit, fit.log_likelihood
            edges, values = data.edges_of(fit), data.values_of(fit)
    return found


def shaken(edges: HalfEdges, rng: np.random.Generator) -> HalfEdges:
    """A copy with other lengths: all times random numbers; or those of some branches exchanged between two
    classes; or those of some branches drawn anew around their mean."""
    order = preorder(edges.back)
    lengths = edges.lengths[order]  # (branch, class)
    n_branches, n_classes = lengths.shape
    kind, some = rng.integers(3), rng.random(n_branches) < _SHARE
    some[rng.integers(n_branches)] = True
    if kind == 0:
        lengths *= np.exp(rng.normal(size=lengths.shape))
    elif kind == 1:
        a, b = rng.choice(n_classes, 2, replace=False)
        lengths[np.ix_(some, [a, b])] = lengths[np.ix_(some, [b, a])]
    else:
        drawn = np.exp(rng.normal(size=(int(some.sum()), n_classes)))
        lengths[some] = lengths[some].mean(1, keepdims=True) * drawn
    found = edges.copy()
    found.lengths[order] = found.lengths[edges.back[order]] = np.clip(lengths, _LEAST, _MOST)
    return found
