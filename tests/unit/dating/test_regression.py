import numpy as np
import pytest

from phloem.dating.regression import CRITERIA, best_root, date_clusters, randomise_dates, root_to_tip
from phloem.errors import InputError
from phloem.io.trees import parse_trees
from phloem.tree.random import uniform_rooted, uniform_unrooted
from phloem.tree.reroot import root_at_branch, unroot
from phloem.tree.tree import node_depths

KEYS = {
    "residuals": lambda found: (found.rate > 0, -found.residual_mean_square),
    "correlation": lambda found: (found.rate > 0, found.correlation),
    "r-squared": lambda found: (True, found.r_squared),
}


def serial(tips: int, seed: int, rate: float = 1e-3) -> tuple:
    """A clock-like tree of tips sampled through time, and their years."""
    tree = uniform_rooted(tips, np.random.default_rng(seed), mean_length=3 * rate)
    return tree, 2000 + node_depths(tree)[:tips] / rate


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("tips", [4, 7])
def test_the_best_root_is_better_than_all_on_a_fine_grid(criterion, tips):
    rng = np.random.default_rng(tips)
    tree, years = uniform_unrooted(tips, rng), rng.uniform(2000, 2010, tips)
    years[0] = np.nan
    key = KEYS[criterion]
    found = best_root(tree, years, criterion)
    branches = []
    for node in range(tree.n_nodes - 1):
        grid = [root_to_tip(root_at_branch(tree, node, share), years) for share in np.linspace(0, 1, 101)]
        branches.append(max((key(one) for one in grid), key=lambda pair: pair[1]))
    flag, value = max(branches)
    assert key(found)[0] == flag and value - 1e-12 <= key(found)[1] <= value + 0.02 * abs(value) + 1e-6


def test_a_clock_is_found_exactly():
    tree, years = serial(30, 1)
    for start in (tree, unroot(tree), root_at_branch(unroot(tree), 5, 0.2)):
        found = best_root(start, years[[tree.taxa.index(name) for name in start.taxa]])
        assert found.rate == pytest.approx(1e-3, rel=1e-9) and found.root_year == pytest.approx(
            2000, abs=1e-6
        )
        assert found.r_squared == pytest.approx(1) and found.dated == 30 and not found.outliers.any()
        assert found.residual_mean_square < 1e-20


def test_outliers():
    tree, years = serial(30, 1)
    years = years + np.random.default_rng(2).normal(0, 0.5, 30)
    years[7] += 15
    found = best_root(tree, years)
    assert np.flatnonzero(found.outliers).tolist() == [7]
    assert np.nanargmax(np.abs(found.residuals)) == 7


def test_the_randomisation_test():
    tree, years = serial(12, 3)
    found = randomise_dates(tree, years, 199, np.random.default_rng(1))
    assert found.p_value == 1 / 200 and found.units == 12 and found.observed > found.mean
    again = randomise_dates(tree, years, 199, np.random.default_rng(1))
    assert again == found
    shuffled = np.random.default_rng(9).permutation(years)  # no signal: no small p
    assert randomise_dates(tree, shuffled, 199, np.random.default_rng(1)).p_value > 0.05


def test_p_values_without_signal_are_uniform():
    rng = np.random.default_rng(4)
    tree = uniform_unrooted(8, rng)
    p = [randomise_dates(tree, rng.uniform(0, 1, 8), 39, rng).p_value for _ in range(200)]
    assert 0.4 < np.mean(p) < 0.65 and np.mean(np.array(p) <= 0.1) < 0.2


def test_clusters_are_the_largest_clades_of_one_date():
    tree = parse_trees("((((a:1,b:1):1,x:1):1,(c:1,d:1):1):1,(e:1,(f:1,g:1):1):1);")[0]
    years = dict(zip("abxcdefg", (1.0, 1.0, np.nan, 2.0, 1.0, 3.0, 3.0, 3.0)))
    cluster = dict(
        zip(tree.taxa, date_clusters(tree, np.array([years[name] for name in tree.taxa])).tolist())
    )
    assert (
        cluster["x"] == -1 and cluster["a"] == cluster["b"] and cluster["e"] == cluster["f"] == cluster["g"]
    )
    assert len(set(cluster.values())) == 5
    years = np.array([years[name] for name in tree.taxa])
    found = randomise_dates(tree, years, 19, np.random.default_rng(1), clustered=True)
    assert found.units == 4


@pytest.mark.parametrize("years", [[1, 1, 1, 1], [1, 2, np.nan, np.nan]])
def test_dates_that_say_nothing(years):
    tree = uniform_unrooted(4, np.random.default_rng(1))
    with pytest.raises(InputError):
        best_root(tree, np.array(years, float))
