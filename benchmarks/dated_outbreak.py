"""Dated trees of many nearly equal genomes: effective samples an hour, on simulated epidemics.

    python benchmarks/dated_outbreak.py [--tips 1000] [--minutes 10] [--clock strict] [--engine ancestors]

Genomes of 30,000 sites, sampled uniformly over 0.58 years from an exponentially growing population (size 6
years, growth 10 a year, coalescent), HKY with kappa 5, 0.001 substitutions a site and year: the size of
Delphy's benchmark. Sampled: HKY+FO, exponential growth, from least-squares dates. Prints moves a second of
processor time, where the truth lies in the posterior, and effective sample sizes of the second half of the
draws, an hour of processor time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.dates import TipDates
from phloem.dating.least_squares import DatingSettings, date_tree
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time.run import advanced, new_run
from phloem.inference.time.sampler import check_ancestors
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.start import Origin
from phloem.inference.time.structure import time_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.trace import trace_summary
from phloem.tree.dated import lifted_tree, random_dated_tree

SIZE, GROWTH, RATE, KAPPA, SITES, SPAN = 6.0, 10.0, 1e-3, 5.0, 30_000, 0.58
FREQUENCIES = np.array([0.3, 0.2, 0.2, 0.3])


def simulated(n: int, rng: np.random.Generator):
    """A dated tree of n tips, and their sequences."""
    heights = rng.uniform(0.0, SPAN, n)
    heights[0] = 0.0

    def wait(t: float, pairs: float) -> float:
        return float(np.log1p(GROWTH * SIZE * rng.exponential() * np.exp(-GROWTH * t) / pairs) / GROWTH)

    tree = random_dated_tree(heights, rng, wait, [])
    states = np.empty((2 * n - 1, SITES), np.int8)
    states[-1] = rng.choice(4, SITES, p=FREQUENCIES)
    weights = FREQUENCIES * np.where(np.add.outer(range(4), range(4)) % 2 == 0, KAPPA, 1.0)
    np.fill_diagonal(weights, 0.0)
    rates = weights / (FREQUENCIES @ weights.sum(1))
    for x in tree.order[::-1][1:]:
        states[x] = states[tree.parent[x]]
        left = float(tree.heights[tree.parent[x]] - tree.heights[x]) * RATE
        leave = rates[states[x]].sum(1)
        for s in np.flatnonzero(rng.random(SITES) < -np.expm1(-leave * left)):
            states[x, s] = rng.choice(4, p=rates[states[x, s]] / leave[s])
    letters = np.array(list("ACGT"))
    return tree, {f"t{i}": "".join(letters[states[i]]) for i in range(n)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tips", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clock", default="strict")
    parser.add_argument("--engine", choices=("ancestors", "patterns"), default="ancestors")
    parser.add_argument("--warm-up", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    true, rows = simulated(given.tips, np.random.default_rng(given.seed))
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    tips = true.heights[: given.tips]
    site_model = model_for_alignment("HKY+FO", alignment, "mean")
    structure = structure_of_model(site_model, alignment.n_sites)
    tree = TreeModel(clock=given.clock, prior="exponential")
    model = time_model(structure, tree, alignment.taxa, np.stack([tips, tips], 1), 2020.0)
    dates = TipDates(alignment.taxa, 2020.0 - tips, 2020.0 - tips)
    found = date_tree(starting_tree(alignment, "nj").tree, dates, DatingSettings(sites=SITES))
    start = 2020.0 - found.years
    start[: given.tips] = tips
    origin = Origin(lifted_tree(found.tree.parent, start, 1e-3 / given.tips), found.rate)
    chains = TimeSettings(
        n_runs=1, seed=given.seed, tuning_generations=given.warm_up, sample_every=2_000,
        ancestors="sampled" if given.engine == "ancestors" else "summed",
    )  # fmt: skip
    begun = time.perf_counter()
    run = new_run(0, observations(alignment), model, chains, origin=origin)
    print(f"start: {time.perf_counter() - begun:.1f} s, log-likelihood {run.samples.numbers[0, 0]:.1f}")
    run = advanced(run, 200)
    cpu = begin = time.process_time()
    while (cpu := time.process_time()) - begin < 60 * given.minutes:
        run = advanced(run, 4_000)
        told = f"{run.generation:,} moves, {run.generation / (cpu - begin):,.0f} a second"
        print(f"{told}, LnL {run.samples.numbers[-1, 0]:.1f}", end="\r", flush=True)
    check_ancestors(run)
    report(run, true, cpu - begin)


def report(run, true, seconds: float) -> None:
    """Acceptance, summaries of the second half."""
    print(f"\n{run.generation:,} moves in {seconds:.0f} CPU s, {run.generation / seconds:,.0f} a second")
    for move, tried, accepted in zip(run.moves, run.state.tried, run.state.accepted):
        print(f"  {move.name:24s} {tried:10,d} {100 * accepted / max(tried, 1):6.1f}%")
    first = max(run.samples.n // 2, 1 + run.settings.tuning // run.settings.sample_every)
    names = ("LnL", "LnPr", *run.columns.names)
    summary = trace_summary(names, run.samples.numbers[first:][None])
    truth = {
        "root_height": true.heights[-1], "clock_rate": RATE, "pop_size": SIZE, "growth_rate": GROWTH,
        "kappa": KAPPA, "tree_length": (true.heights[true.parent[:-1]] - true.heights[:-1]).sum(),
    }  # fmt: skip
    hours = seconds / 3600 * (run.samples.n - first) / run.samples.n
    for i, name in enumerate(summary.names):
        known = f"{truth[name]:.5g}" if name in truth else ""
        print(
            f"  {name:14s} {summary.mean[i]:12.6g} ({summary.hpd_low[i]:.5g} to {summary.hpd_high[i]:.5g}) "
            f"{known:>9s}  ESS {summary.ess[i]:8.0f}, {summary.ess[i] / hours:10,.0f} an hour"
        )


if __name__ == "__main__":
    main()
