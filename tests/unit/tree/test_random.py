"""Random trees have the distributions their names promise."""

import numpy as np
import pytest
from scipy.stats import chisquare

from phloem.errors import InputError
from phloem.tree.random import balanced, caterpillar, coalescent, uniform_rooted, uniform_unrooted, yule
from phloem.tree.rearrange import topology_key
from phloem.tree.tree import is_ultrametric, lengths_of_heights, node_heights, tip_heights


@pytest.mark.parametrize(("make", "n", "count"), [(uniform_unrooted, 5, 15), (uniform_rooted, 4, 15)])
def test_every_topology_is_equally_likely(make, n, count):
    rng = np.random.default_rng(7)
    keys = [topology_key(make(n, rng)) for _ in range(3000)]
    counts = np.unique(np.array(keys, dtype=object), return_counts=True)[1]
    assert len(counts) == count
    assert chisquare(counts).pvalue > 1e-3


def test_yule_topologies_are_not_uniform():
    rng = np.random.default_rng(7)
    keys = [topology_key(yule(4, rng)) for _ in range(3000)]
    counts = np.unique(np.array(keys, dtype=object), return_counts=True)[1]
    assert chisquare(counts).pvalue < 1e-6
    assert counts.max() / 3000 == pytest.approx(1 / 9, abs=0.02)


def test_heights_have_their_means():
    rng = np.random.default_rng(8)
    n = 10
    heights = [node_heights(coalescent(n, rng, 2.0))[-1] for _ in range(2000)]
    assert np.mean(heights) == pytest.approx(2.0 * 2 * (1 - 1 / n), rel=0.06)
    heights = [node_heights(yule(n, rng, 0.5))[-1] for _ in range(2000)]
    assert np.mean(heights) == pytest.approx(2.0 * sum(1 / k for k in range(2, n + 1)), rel=0.06)


def test_seed_decides():
    first, second = (uniform_unrooted(20, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first.parent, second.parent) and np.array_equal(first.lengths, second.lengths)


@pytest.mark.parametrize("n", [2, 3, 7, 64])
def test_shapes(n):
    assert np.max(node_heights(caterpillar(n, 1.0))) == n - 1
    assert np.max(node_heights(balanced(n, 1.0))) == np.ceil(np.log2(n))
    for tree in (caterpillar(n), balanced(n)):
        assert tree.is_binary and np.all(tree.parent[:-1] > np.arange(2 * n - 2))


def test_heights_and_lengths_are_inverse():
    tree = yule(12, np.random.default_rng(3))
    assert is_ultrametric(tree) and not is_ultrametric(caterpillar(4))
    np.testing.assert_allclose(lengths_of_heights(tree.parent, node_heights(tree)), tree.lengths, atol=1e-12)


def test_dates():
    assert tip_heights(("a", "b"), {"a": 2000.5, "b": 1999.0}).tolist() == [0, 1.5]
    with pytest.raises(InputError, match="no date"):
        tip_heights(("a", "b"), {"a": 2000.5})
    with pytest.raises(InputError):
        uniform_unrooted(2, np.random.default_rng(1))


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("draw", [uniform_unrooted, uniform_rooted, yule, coalescent])
def test_rates_and_lengths_are_numbers(draw, value):
    with pytest.raises(InputError, match=r"must be a positive number|mean branch length must be"):
        draw(5, np.random.default_rng(1), value)
    with pytest.raises(InputError, match="the number of tips must be a whole number"):
        draw(5.5, np.random.default_rng(1))
