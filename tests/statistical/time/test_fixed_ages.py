"""Fixed ages of the root and of a clade, against quadrature over the one free height of four taxa, and with
data besides."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.tree_priors import constant
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.errors import InputError
from phloem.inference.time.settings import Clade, TreeModel
from phloem.tree.dated import dated_tree
from statistical.time.test_exact import TWO, of_columns
from statistical.time.time_runs import close, nothing_observed, sampled

pytestmark = pytest.mark.slow
TIPS, SIZE, INNER, ROOT = np.array([0.0, 0.2, 0.5, 0.9]), 1.5, 1.3, 3.1
TAXA = ("t0", "t1", "t2", "t3")
X, W = np.polynomial.legendre.leggauss(40)


def expected(inner=INNER, root=ROOT):
    """Means of the free height and of the tree's length, and the probability that t2 and t3 are a clade; t0
    and t1 are one."""
    total, size = np.zeros(4), np.array([SIZE])
    for pair in ((2, 3), (2, 4), (3, 4)):  # tips, or the clade of t0 and t1
        rest = ({2, 3, 4} - set(pair)).pop()
        parent = np.array([4, 4, 0, 0, 0, 6, -1])
        parent[list(pair)], parent[rest] = 5, 6
        least = TIPS[2:].max() if pair == (2, 3) else inner
        for low, high in ((least, max(inner, least)), (max(inner, least), root)):
            for h, weight in zip(low + (high - low) * (X + 1) / 2, (high - low) / 2 * W):
                heights = np.array([*TIPS, inner, h, root])
                order = np.argsort(heights, kind="stable")
                g = Genealogy(heights, order, 4, np.zeros(0, np.int64), parent)
                own = weight * np.exp(constant.log_density(g, size, np.zeros(0)))
                length = (heights[parent[:-1]] - heights[:-1]).sum()
                total += own * np.array([1.0, h, length, pair == (2, 3)])
    return total[1:] / total[0]


def model(clock="strict", inner=INNER, root=ROOT):
    clades = (Clade("pair", ("t0", "t1"), True, age=inner), Clade("root", TAXA, age=root))
    priors = {"pop_size": SIZE, "clock_rate": LogNormal(0.0, 1.0)}
    return TreeModel(clock=clock, prior="constant", priors=priors, clades=clades)


@pytest.mark.parametrize("clock", ["strict", "ucln", "white-noise"])
def test_what_is_left_free_follows_the_tree_prior(clock):
    found, clades, run = sampled(
        nothing_observed(4), TIPS, "JC", model(clock), generations=300_000, use_data=False
    )
    height, length, pair = expected()
    assert (run.samples.numbers[:, 2 + run.columns.names.index("root_height")] == ROOT).all()
    assert found["age(pair)"][0] == INNER
    assert close(found["tree_length"], length) and close(clades[frozenset(("t2", "t3"))], pair)
    for other in (expected(inner=1.6), expected(root=2.8)):  # the controls
        assert not close(found["tree_length"], other[1])
    assert height < length


def posterior(root):
    """Means of the rate and of the tree's length of three taxa whose root is so old, by TWO's columns; the
    rate is exponential."""
    tips, states = np.array([0.0, 0.4, 1.0]), np.array([["ACGT".index(c) for c in row] for row in TWO])
    total = np.zeros(3)
    rates, weights = 0.5 * (X + 1) / 2, 0.25 * W
    for pair in ((0, 1), (0, 2), (1, 2)):
        parent = np.array([4, 4, 4, 4, -1])
        parent[list(pair)] = 3
        low = tips[list(pair)].max()
        for h, of_height in zip(low + (root - low) * (X + 1) / 2, (root - low) / 2 * W):
            tree = dated_tree(parent, np.array([*tips, h, root]))
            g = Genealogy(tree.heights, tree.order, 3, np.zeros(0, np.int64), tree.parent)
            prior = constant.log_density(g, np.array([SIZE]), np.zeros(0))
            length = (tree.heights[tree.parent[:-1]] - tree.heights[:-1]).sum()
            for rate, of_rate in zip(rates, weights):
                log = prior + of_columns(tree, rate, states) - 4.0 * rate
                total += of_height * of_rate * np.exp(log + 230.0) * np.array([1.0, rate, length])
    return total[1:] / total[0]


def test_the_rate_is_known_by_a_fixed_age():
    tips, taxa = np.array([0.0, 0.4, 1.0]), ("t0", "t1", "t2")
    alignment = alignment_from_sequences(dict(zip(taxa, TWO)), alphabet("dna"))
    priors = {"pop_size": SIZE, "clock_rate": Exponential(4.0)}
    tree = TreeModel(priors=priors, clades=(Clade("root", taxa, age=2.5),))
    found, _, _ = sampled(alignment, tips, "JC", tree, generations=200_000)
    rate, length = posterior(2.5)
    assert close(found["clock_rate"], rate) and close(found["tree_length"], length)
    assert not close(found["clock_rate"], posterior(2.8)[0])


def test_a_fixed_age_is_of_a_clade():
    loose = Clade("pair", ("t0", "t1"), age=1.0)
    with pytest.raises(InputError, match="need not be a clade"):
        sampled(nothing_observed(4), TIPS, "JC", TreeModel(clades=(loose,)), generations=100)
