"""Tips off the clock: single mistakes, several, and dates so far off that they hide behind their line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.dated_input import DatedTreeOptions, DateOptions
from phloem.analysis.dating import DateSettings, run_date
from phloem.data.dates import TipDates
from phloem.dating.outliers import clock_outliers
from phloem.dating.regression import best_root
from phloem.errors import InputError
from phloem.io.trees import newick_text
from phloem.tree.dated import random_dated_tree
from phloem.tree.random import uniform_unrooted
from phloem.tree.reroot import unroot

RATE, SITES = 1e-3, 30_000


def outbreak(seed: int, heights=None, n: int = 80) -> tuple:
    """An unrooted tree of 1.5 years of sampling, a clock with spread 0.2 and Poisson lengths; years."""
    rng = np.random.default_rng(seed)
    heights = rng.uniform(0, 1.5, n) if heights is None else heights

    def waiting(_: float, pairs: int) -> float:
        return rng.exponential(0.7 / pairs) if pairs else np.inf

    dated = random_dated_tree(heights, rng, waiting)
    tree = dated.tree([f"t{k}" for k in range(len(heights))])
    factor = np.exp(0.2 * rng.standard_normal(tree.n_nodes) - 0.02)
    lengths = rng.poisson(tree.lengths * RATE * factor * SITES) / SITES
    return unroot(replace(tree, lengths=np.append(lengths[:-1], 0.0))), 2021.0 - heights


def exact(tree, years) -> TipDates:
    return TipDates(tree.taxa, years, years)


@pytest.mark.parametrize(
    "wrong",
    [{7: 2019.0 - 1.4}, {7: 1920.5}, {7: 2120.5}, {7: 2002.5, 21: 2002.7}, {7: 2002.5, 21: 2120.0}],
    ids=["a year", "a century early", "a century late", "two alike", "two apart"],
)
@pytest.mark.parametrize("seed", [3, 5])
def test_planted_dates_are_found(wrong, seed):
    tree, years = outbreak(seed)
    before = set(clock_outliers(tree, exact(tree, years)).names)
    years[list(wrong)] = list(wrong.values())
    found = clock_outliers(tree, exact(tree, years))
    assert {f"t{k}" for k in wrong} <= set(found.names) and len(set(found.names) - before) <= len(wrong) + 1
    assert found.names[0] in {f"t{k}" for k in wrong} and (found.ranges > 3).all()
    assert found.regression.rate == pytest.approx(RATE, rel=0.35)
    assert found.regression.dated == 80 - len(found.names)
    true = dict(zip(tree.taxa, outbreak(seed)[1]))
    assert abs(found.fitting[0] - true[found.names[0]]) < 0.6  # what the date should have been


def test_a_line_through_all_does_not_show_them():
    """What the regression of all tips calls outliers: a far date draws it through itself."""
    tree, years = outbreak(5)
    years[[7, 21]] = 2002.5, 2120.0
    assert not best_root(tree, years).outliers[[7, 21]].any()


def test_an_old_sample_that_keeps_the_clock_stays():
    heights = np.append(np.random.default_rng(2).uniform(0, 4, 59), 12.0)
    tree, years = outbreak(2, heights)
    assert clock_outliers(tree, exact(tree, years)).names == ()
    years[-1] -= 60.0  # of which that much older no clock is
    assert clock_outliers(tree, exact(tree, years)).names == ("t59",)


def test_what_is_kept_has_no_outlier():
    """Of the tips that are left none is off: asked again, the answer is none."""
    for seed in range(6):
        tree, years = outbreak(seed)
        years[[4, 9]] = 2002.5, 2001.0
        first = clock_outliers(tree, exact(tree, years))
        gone = np.isin(tree.taxa, first.names)
        again = TipDates(tree.taxa, np.where(gone, -np.inf, years), np.where(gone, np.inf, years))
        assert clock_outliers(tree, again).names == ()


def test_a_date_within_whose_limits_the_clock_s_is_is_none():
    tree, years = outbreak(5)
    lower, upper = years.copy(), years.copy()
    lower[7], upper[7] = 1900.0, 2022.0
    assert "t7" not in clock_outliers(tree, TipDates(tree.taxa, lower, upper)).names
    upper[7] = 1990.0
    assert "t7" in clock_outliers(tree, TipDates(tree.taxa, lower, upper)).names


def test_a_date_is_as_far_off_as_the_nearest_end_of_its_limits():
    """Not as their middle: of a year that ends a week before the clock's day."""
    tree, years = outbreak(5)
    lower, upper = years.copy(), years.copy()
    plain = clock_outliers(tree, exact(tree, years)).regression
    of_t7 = plain.root_year + plain.distances[7] / plain.rate
    lower[7], upper[7] = of_t7 - 3.0, of_t7 - 0.02
    dates = TipDates(tree.taxa, lower, upper)
    assert best_root(tree, dates.middle).outliers[7] and "t7" not in clock_outliers(tree, dates).names
    lower[7], upper[7] = of_t7 - 3.0, of_t7 - 1.2
    assert "t7" in clock_outliers(tree, TipDates(tree.taxa, lower, upper)).names


def test_dates_that_hide_the_signal_are_named(tmp_path):
    tree, years = outbreak(5)
    years[[7, 21]] = 1902.5, 1920.0
    (tmp_path / "t.nwk").write_text(newick_text([tree]))
    (tmp_path / "d.tsv").write_text("".join(f"{n}\t{y:.4f}\n" for n, y in zip(tree.taxa, years)))
    given = DatedTreeOptions(str(tmp_path / "t.nwk"), dates=DateOptions(str(tmp_path / "d.tsv")), sites=SITES)
    with pytest.raises(InputError, match="no signal") as error:
        run_date(DateSettings(given))
    assert "off the clock: 't7', 't21'. Check" in str(error.value.hint)
    found = run_date(DateSettings(given, without_outliers=str(tmp_path / "out.tsv")))
    assert found.left_out == ("t7", "t21") and found.dating.rate == pytest.approx(RATE, rel=0.35)


def test_dates_that_are_mostly_one_come_to_an_end():
    """Where those that are off are all that differ, no line is left to judge by."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        tree = uniform_unrooted(int(rng.integers(4, 9)), rng)
        years = rng.choice([2000.0, 2000.0, 2000.0, 2001.0, 2005.0], tree.n_tips)
        if np.ptp(years) > 0:
            found = clock_outliers(tree, exact(tree, years), 0.1)
            kept = years[~np.isin(tree.taxa, found.names)]
            assert len(kept) >= 3 and np.ptp(kept) > 0


def test_what_cannot_be_asked():
    tree, years = outbreak(5)
    with pytest.raises(InputError, match="above 0"):
        clock_outliers(tree, exact(tree, years), 0.0)
    with pytest.raises(InputError, match="same date"):
        clock_outliers(tree, exact(tree, np.full(80, 2020.0)))
