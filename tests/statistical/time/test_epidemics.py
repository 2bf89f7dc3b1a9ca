"""Calibration by simulation of the birth–death skyline: epidemics one event after the other, with a
reproductive number that shifts at a date, until the last of some samples; ranks of the truth among draws of
the posterior are uniform (Talts et al. 2018, arXiv:1804.06788).

The origin's time is flat, and the gap between it and the root then weighs epidemics by its prior; that there
are so many samples, some before the shift and some after it, is known from the data, so that epidemics
without may be left out.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors.epochs import ENDS
from phloem.inference.time.settings import TreeModel
from statistical.time.time_runs import sampled

pytestmark = pytest.mark.slow
N_SAMPLES, N_SITES, N_DRAWS, EVERY = 8, 120, 31, 500
OLDEST, MOST = -25.0, 200  # of the origin; of infected
PRIORS = {
    "reproductive_number_1": LogNormal(-0.2, 0.4),
    "reproductive_number_2": LogNormal(0.5, 0.4),
    "becoming_uninfectious_rate": LogNormal(0.0, 0.3),
    "sampling_proportion": Uniform(0.2, 0.8),
    "origin_gap": Exponential(1.0),
    "clock_rate": LogNormal(np.log(0.1), 0.4),
}


def drawn(rng):
    """Numbers of an epidemic by their priors, in the order of PRIORS, the gap not yet known."""
    late, early, ending = rng.lognormal(-0.2, 0.4), rng.lognormal(0.5, 0.4), rng.lognormal(0.0, 0.3)
    return [late, early, ending, rng.uniform(0.2, 0.8), 0.0, rng.lognormal(np.log(0.1), 0.4)]


def epidemic(rng, numbers):
    """Who infected whom until the last sample, the shift at time 0: (parent, time) of nodes, and the sampled;
    None where it ended before."""
    late, early, ending, share = numbers[:4]
    t = origin = rng.uniform(OLDEST, 0.0)
    parent, begun, infected, found = [-1], [origin], [0], []
    while infected and len(infected) < MOST:
        birth = ending * (early if t < 0 else late)
        step = rng.exponential(1 / ((birth + ending) * len(infected)))
        if t < 0 < t + step:
            t = 0.0
            continue
        t += step
        who = infected.pop(int(rng.integers(len(infected))))
        if rng.uniform() < birth / (birth + ending):
            infected += [len(parent), len(parent) + 1]
            parent, begun = [*parent, who, who], [*begun, t, t]
        elif rng.uniform() < share:
            found.append((who, t))
            if len(found) == N_SAMPLES:
                return parent, begun, found
    return None


def genealogy(rng, parent, begun, found):
    """Columns of the sampled by Jukes–Cantor from the root down, the root's time and the tree's length. A
    branch of the epidemic ends where the next begins."""
    above = {}
    for who, t in found:
        x, path = who, [(who, t)]
        while parent[x] >= 0:
            path.append((parent[x], begun[x]))
            x = parent[x]
        above[who] = path
    times = {x: t for path in above.values() for x, t in path}
    lines = [{x for x, _ in path} for path in above.values()]
    below = {x: sum(x in line for line in lines) for x in times}
    root = max((x for x in times if below[x] == len(found)), key=lambda x: times[x])
    inner = sorted((x for x in times if times[x] > times[root]), key=lambda x: times[x])
    length = sum(times[x] - begun[x] for x in inner)
    return times[root], length, inner, below


def columns(rng, parent, times, begun, root_node, inner, rate):
    states = {root_node: rng.integers(4, size=N_SITES)}
    for x in inner:
        lasts = times[x] - begun[x]
        changes = rng.uniform(size=N_SITES) < 0.75 * -np.expm1(-4 / 3 * rate * lasts)
        states[x] = (states[parent[x]] + changes * rng.integers(1, 4, N_SITES)) % 4
    return states


def case(rng):
    """Numbers, root's age and tree's length of an epidemic that has samples before and after the shift, as
    the gap's prior weighs it; its samples' heights, the shift's age, and their sequences."""
    while True:
        numbers = drawn(rng)
        made = epidemic(rng, numbers)
        if made is None or not made[2][0][1] < 0 < made[2][-1][1]:
            continue
        parent, begun, found = made
        root, length, inner, _ = genealogy(rng, parent, begun, found)
        numbers[4] = root - begun[0]
        if rng.uniform() < np.exp(-numbers[4]):
            break
    ends = dict(found) | {p: begun[x] for x, p in enumerate(parent) if p >= 0}
    top = max((x for x in ends if ends[x] == root), default=0)
    states = columns(rng, parent, ends, begun, top, inner, numbers[5])
    last = found[-1][1]
    heights = np.array([last - t for _, t in found])
    rows = {f"t{i}": "".join("ACGT"[s] for s in states[who]) for i, (who, _) in enumerate(found)}
    return [*numbers, last - root, length], heights, last, rows


def ranks(replicates, planted=None):
    """(replicates, quantities): of the truth among draws."""
    rng, found = np.random.default_rng(3), []
    names = [*PRIORS, "root_height", "tree_length"]
    for r in range(replicates):
        truth, heights, shift, rows = case(rng)
        tree = TreeModel(prior="bdsky", options={"shift": {"reproductive_number": (shift,)}}, priors=PRIORS)
        alignment = alignment_from_sequences(rows, alphabet("dna"))
        settings = {"generations": EVERY * (N_DRAWS + 30), "sample_every": EVERY, "seed": r + 1}
        run = sampled(alignment, heights, "JC", tree, planted=planted, **settings)[2]
        columns_ = ("LnL", "LnPr", *run.columns.names)
        draws = run.samples.numbers[-N_DRAWS:, [columns_.index(name) for name in names]]
        found.append((draws < truth).sum(axis=0))
    return dict(zip(names, np.array(found).T))


def p_value(rank):
    return float(stats.chisquare(np.bincount(rank * 8 // (N_DRAWS + 1), minlength=8)).pvalue)


def test_ranks_are_uniform():
    for quantity, rank in ranks(240).items():
        assert p_value(rank) > 1e-3 / 4, (quantity, np.bincount(rank * 8 // (N_DRAWS + 1), minlength=8))


def test_samples_that_infect_on_are_seen():
    """The planted error: lineages live on after a sample."""

    def planted(data):
        settings = data.tree_settings.copy()
        settings[ENDS] = 0.0
        return data._replace(tree_settings=settings)

    assert min(p_value(rank) for rank in ranks(80, planted).values()) < 1e-6
