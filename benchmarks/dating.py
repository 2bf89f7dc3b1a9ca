"""Seconds of least-squares dating, of the best root and of the randomisation test on simulated samples.

Coalescent trees over 30 years, tips sampled through time, lengths Poisson counts of 10,000 sites at 1e-3
substitutions per site and year with a log-normal spread of 0.2. Every dating is checked: no branch is
negative, and the cost is at most that of the true dates.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from phloem.data.dates import TipDates
from phloem.dating.least_squares import DatingSettings, date_tree
from phloem.dating.regression import best_root, randomise_dates
from phloem.tree.random import coalescent
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree, node_depths

SITES, RATE, SPREAD, YEARS = 10_000, 1e-3, 0.2, 30.0


def simulated(tips: int) -> tuple[Tree, np.ndarray, float]:
    """A tree of counted substitutions without its root, the years of its tips, the cost of the true dates."""
    rng = np.random.default_rng(tips)
    tree = coalescent(tips, rng)
    durations = tree.lengths * YEARS / node_depths(tree).max()
    durations[:tips] = np.minimum(durations[:tips], rng.exponential(1.0, tips))
    durations[tips:] += rng.exponential(0.05, tips - 1)
    durations[-1] = 0.0
    years = 2000 + node_depths(replace(tree, lengths=durations))[:tips]
    factor = np.exp(SPREAD * rng.standard_normal(len(durations)) - 0.5 * SPREAD**2)
    lengths = rng.poisson(durations * factor * RATE * SITES) / SITES
    misfit = (lengths - RATE * durations)[:-1]
    cost = float((SITES / (lengths[:-1] + 10 / SITES) * misfit**2).sum())
    return unroot(replace(tree, lengths=lengths)), years, cost


def seconds(call, times: int = 3) -> tuple[float, object]:
    """The shortest of some calls, and what it gave."""
    best, found = np.inf, None
    for _ in range(times):
        start = time.perf_counter()
        found = call()
        best = min(best, time.perf_counter() - start)
    return best, found


def measured(tips: int) -> str:
    """One line of the table."""
    tree, years, true_cost = simulated(tips)
    dates, settings = TipDates(tree.taxa, years, years), DatingSettings(sites=SITES)
    repeats = 3 if tips <= 10_000 else 1
    spent, found = seconds(lambda: date_tree(tree, dates, settings), repeats)
    assert found.tree.lengths.min() >= 0 and found.cost <= true_cost * (1 + 1e-9)
    root, _ = seconds(lambda: best_root(tree, years), repeats)
    test = intervals = np.nan
    if tips <= 10_000:
        test, _ = seconds(lambda: randomise_dates(tree, years, 100, np.random.default_rng(1)), 1)
        together, _ = seconds(lambda: date_tree(tree, dates, replace(settings, replicates=100)), 1)
        intervals = together - spent
    return (
        f"{tips},{spent:.3f},{found.tried},{found.proven},{found.rate:.3e},{found.years[-1]:.2f},"
        f"{root:.4f},{test:.2f},{intervals:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tips", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    wanted = parser.parse_args().tips
    tree, years, _ = simulated(50)
    date_tree(tree, TipDates(tree.taxa, years, years))  # compiled before anything is timed
    print("tips,dating,branches_tried,proven,rate,root,best_root,permutations_100,intervals_100")
    for tips in wanted:
        print(measured(tips), flush=True)


if __name__ == "__main__":
    main()
