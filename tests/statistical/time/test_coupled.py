"""Coupled chains over dated trees: every one samples the power of the density that is its own, and the cold
chain the posterior, also where single chains stay at one of several peaks. Planted errors fail.

A coalescent of constant size N to the power β is one of size N / β, a log-normal(0, 1) rate has log rates of
mean (1 - β) / β, a standard normal the variance 1 / β, an exponential the mean 1 / β times its own.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.tree_priors.tree_prior import LEVEL
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time import coupled
from phloem.inference.time.ancestors.sequences import masks_of
from phloem.inference.time.coupled import heats, new_coupled_run
from phloem.inference.time.draws import draw
from phloem.inference.time.run import new_run
from phloem.inference.time.sampler import any_advanced, swaps_of
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.transition import transition_matrices
from phloem.summary.trace import trace_summary
from phloem.tree.dated import random_dated_tree
from statistical.time.test_exact import TIPS
from statistical.time.time_runs import clades, close, nothing_observed

pytestmark = pytest.mark.slow
EVERY = 50


def begun(alignment, heights, model, tree, **settings):
    """A run at its start, of several chains or of one."""
    bounds = np.stack([heights, heights], axis=1)
    structure = structure_of_model(model_for_alignment(model, alignment, "median"), alignment.n_sites)
    whole = time_model(structure, tree, alignment.taxa, bounds, float("nan"))
    chains = TimeSettings(n_runs=1, sample_every=EVERY, **{"seed": 1} | settings)
    made = new_run if chains.n_chains == 1 else new_coupled_run
    return made(0, observations(alignment), whole, chains)


def drawn_by_rank(run, n: int, kept: int, take=any_advanced):
    """Numbers (mean, mcse) by name, of every rank of heat, over n draws EVERY generations apart."""
    run = take(run, kept)
    found = [[] for _ in run.chains]
    for _ in range(n):
        run = take(run, EVERY)
        for rank, chain in enumerate(run.by_rank):
            found[rank].append(draw(chain.state, run.columns).numbers[0])
    names = ("LnL", "LnPr", *run.columns.names)
    of_ranks = []
    for rows in found:
        values = np.array(rows)
        for i, name in enumerate(names):
            if name.startswith("clock_rate"):
                values[:, i] = np.log(values[:, i])
        summary = trace_summary(names, values[None])
        of_ranks.append({name: (summary.mean[i], summary.mcse[i]) for i, name in enumerate(names)})
    return of_ranks, run


def of_coalescent(size: float, n: int = 6000):
    """Mean root height and tree length of a coalescent of a size, and their errors."""
    rng, found = np.random.default_rng(1), []
    for _ in range(n):
        h = random_dated_tree(TIPS, rng, lambda t, pairs: size * rng.exponential() / pairs)
        found.append([h.heights[-1], (h.heights[h.parent[:-1]] - h.heights[:-1]).sum()])
    return np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(n)


def prior_run(clock: str, **settings):
    priors = {"pop_size": 3.0, "clock_rate": LogNormal(0.0, 1.0)}
    tree = TreeModel(clock=clock, prior="constant", priors=priors)
    own = {"n_chains": 3, "heating": 1.0, "use_data": False, "tuning_generations": 40_000}
    return begun(nothing_observed(8), TIPS, "JC", tree, **own | settings)


def errors_of_ranks(of_ranks, powers, clock: str) -> list[str]:
    """What is not as the powers of the prior have it."""
    wrong = []
    for rank, (found, power) in enumerate(zip(of_ranks, powers)):
        (root, length), errors = of_coalescent(3.0 / power)
        expected = {"root_height": (root, errors[0]), "tree_length": (length, errors[1])}
        expected["clock_rate"] = ((1 - power) / power, 0.0)
        if clock == "ucln":
            expected["clock_cv"] = (1 / (3 * power), 0.0)
        wrong += [f"{name} of rank {rank}" for name, own in expected.items() if not close(found[name], *own)]
    return wrong


@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_every_chain_samples_its_power_of_the_prior(clock):
    run = prior_run(clock)
    of_ranks, run = drawn_by_rank(run, 12_000, 40_000)
    powers = heats(run.settings)
    assert not errors_of_ranks(of_ranks, powers, clock)
    assert errors_of_ranks(of_ranks, powers[[1, 0, 2]], clock)  # the control
    assert min(swaps_of([run])) > 0.02


def test_a_move_that_forgets_the_power_is_noticed(monkeypatch):
    right = coupled.work

    def forgetful(run, n, here, heat=1.0):  # now and then one move at power 1
        right(run, n - 1, here, heat)
        right(run, 1, here)

    monkeypatch.setattr(coupled, "work", forgetful)
    of_ranks, run = drawn_by_rank(prior_run("strict"), 12_000, 40_000)
    assert errors_of_ranks(of_ranks[1:], heats(run.settings)[1:], "strict")


def test_swaps_with_the_wrong_sign_are_noticed(monkeypatch):
    from phloem.inference.mcmc.compiled import run as compiled_run

    right = compiled_run.swap_chains

    def wrong(heat, logs, *rest):
        right(heat, tuple(-x for x in logs), *rest)

    monkeypatch.setattr(compiled_run, "swap_chains", wrong)
    of_ranks, run = drawn_by_rank(prior_run("strict"), 6_000, 40_000)
    assert "root_height of rank 0" in errors_of_ranks(of_ranks, heats(run.settings), "strict")


SMALL_MOVES = {
    "node_height": 6.0, "root_height": 3.0, "tree_scaler": 1.0, "narrow_exchange": 6.0, "wide_exchange": 2.0,
    "group_size": 6.0, "pop_size_multiplier": 6.0,
}  # fmt: skip


def test_moves_of_a_skyline_at_a_power():
    """All moves, gibbs-like draws of groups and boundaries among them, and those alone that ask for nothing
    but the ratio of the density, find the same heated distribution."""
    tree = TreeModel(prior="skyline", pieces=3, priors={"clock_rate": 1.0, LEVEL: Exponential(0.5)})
    own = {"n_chains": 2, "heating": 0.5, "use_data": False, "tuning_generations": 40_000}
    found = []
    for more in ({}, {"move_weights": SMALL_MOVES, "seed": 2}):
        run = begun(nothing_observed(8), TIPS, "JC", tree, **own | more)
        names = [m.name for m in run.moves]
        assert ("skyline_boundary" in names) == (not more)
        found.append(drawn_by_rank(run, 12_000, 40_000)[0])
    for every, few in zip(*found):
        for name in ("root_height", "tree_length", "group_size_1", "group_size_2"):
            assert close(every[name], few[name][0], few[name][1]), name
    assert not close(found[0][1]["root_height"], *found[1][0]["root_height"])  # the cold one's: the control


def rows_of(n_tips: int, n_sites: int, seed: int):
    rng = np.random.default_rng(seed)
    base, rows = rng.choice(list("ACGT"), n_sites), {}
    for x in range(n_tips):
        row, at = base.copy(), rng.random(n_sites) < 0.2
        row[at] = rng.choice(list("ACGT"), at.sum())
        rows[f"t{x}"] = "".join(row)
    return alignment_from_sequences(rows, alphabet("dna"))


@pytest.mark.parametrize("ancestors", ["summed", "sampled"])
@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_the_cold_chain_samples_the_posterior(clock, ancestors):
    """That of a plain run, of numbers and clades."""
    alignment, heights = rows_of(6, 80, 3), TIPS[:6]
    priors = {"pop_size": LogNormal(1.0, 0.5), "clock_rate": LogNormal(-2.5, 0.7)}
    if clock == "ucln":
        priors["clock_cv"] = Exponential(3.0)
    tree, found = TreeModel(clock=clock, priors=priors), []
    for n_chains, which in ((1, "summed"), (3, ancestors)):
        heating = {"heating": 0.2} if n_chains > 1 else {}
        own = {"n_chains": n_chains, "tuning_generations": 40_000, "ancestors": which, "seed": n_chains}
        run = any_advanced(begun(alignment, heights, "HKY+FO+G4", tree, **own | heating), 400_000)
        kept = run.samples.numbers[800:]
        names = ("LnL", "LnPr", *run.columns.names)
        summary = trace_summary(names, kept[None])
        numbers = {name: (summary.mean[i], summary.mcse[i]) for i, name in enumerate(names)}
        found.append((numbers, clades(run, 800)))
    assert min(swaps_of([run])) > 0.05
    (one, of_one), (several, of_several) = found
    wrong = [name for name in one if one[name][1] > 0 and not close(one[name], *several[name])]
    assert not wrong
    for clade, (share, error) in of_one.items():
        assert abs(share - of_several.get(clade, (0.0, 0.0))[0]) < 5 * np.hypot(error, 0.01)


THREE = {"t0": "ACGTRNA", "t1": "ACCTAAA", "t2": "CCGTGTA"}
RATE = 0.4


def columns_log(masks, parent, lengths, model, power: float) -> float:
    """Σ over sites of log Σ over categories and ancestors of P(site, category, ancestors)**power."""
    p = transition_matrices(lengths[:-1], model)
    tips = ((masks[:, :, None] >> np.arange(4)) & 1).astype(float)  # (3, S, 4)
    total = 0.0
    for s in range(masks.shape[1]):
        value = 0.0
        for c, (inner, root) in product(range(len(model.rates)), product(range(4), repeat=2)):
            state = {3: inner, 4: root}
            own = model.weights[c] * model.processes[0].root_frequencies[root] * p[3, c, root, inner]
            for x in range(3):
                own *= p[x, c, state[int(parent[x])]] @ tips[x, s]
            value += own**power
        total += np.log(value)
    return total


def exact_at(power: float, masks, model) -> tuple[np.ndarray, float]:
    """Probabilities of the three topologies (by the tip that is not in the cherry) and the mean root height,
    of the posterior**power with sequences of ancestors, by quadrature over both waiting times."""
    x, w = np.polynomial.laguerre.laggauss(24)
    total, height = np.zeros(3), 0.0
    for alone in range(3):
        parent = np.where(np.arange(5) == alone, 4, 3)
        parent[3:] = 4, -1
        for (a, wa), (b, wb) in product(zip(x, w), repeat=2):
            h = np.array([0, 0, 0, a / (3 * power), a / (3 * power) + b / power])
            lengths = RATE * np.append(h[parent[:-1]] - h[:-1], 0.0)
            weight = wa * wb * np.exp(columns_log(masks, parent, lengths, model, power))
            total[alone] += weight
            height += weight * h[4]
    return total / total.sum(), height / total.sum()


def of_three(run, n: int, powers):
    """Errors, in standard errors, of topologies' shares and the root's height of every rank."""
    run = any_advanced(run, 20_000)
    masks = masks_of(observations(alignment_from_sequences(THREE, alphabet("dna"))))
    own, found = run.model.engine_values(run.cold.state.values[0]), [[] for _ in powers]
    model = run.model.engine.site_model(0, own)
    for _ in range(n):
        run = any_advanced(run, 20)
        for rank, chain in enumerate(run.by_rank):
            s = int(chain.state.slot[0])
            parent = chain.state.parent[s]
            alone = next(x for x in range(3) if (parent[:3] == parent[x]).sum() == 1)
            found[rank].append([alone == 0, alone == 1, alone == 2, chain.state.heights[s, -1]])
    errors = []
    for rows, power in zip(found, powers):
        shares, height = exact_at(power, masks, model)
        summary = trace_summary(("0", "1", "2", "root"), np.array(rows, float)[None])
        errors.append(np.abs(summary.mean - [*shares, height]) / summary.mcse)
    return np.array(errors)


def run_of_three(**more):
    priors = {"pop_size": 1.0, "clock_rate": RATE, "kappa": 3.0, "alpha": 0.5}
    alignment, own = alignment_from_sequences(THREE, alphabet("dna")), {"n_chains": 2, "heating": 1.0}
    own |= {"ancestors": "sampled", "tuning_generations": 10_000, "swap_every": 5} | more
    return begun(alignment, np.zeros(3), "K80+G4", TreeModel(priors=priors), **own)


def test_with_ancestors_the_density_of_everything_is_heated():
    """Three tips, some of whose states are not known: topologies and heights of both ranks beside sums over
    all ancestors and quadrature over heights; not if draws of ancestors forget the power."""
    powers = (1.0, 0.5)
    run = run_of_three()
    assert of_three(run, 20_000, powers).max() < 4
    assert swaps_of([run])[0] > 0.02
    forgetful = run_of_three()
    for h, chain in enumerate(forgetful.chains):  # what draws read is no longer what the loop reads
        own = replace(chain, scratch=chain.scratch._replace(power=np.array([1.0, 1.0, 0.0])))
        forgetful.chains[h] = own
    assert of_three(forgetful, 6_000, powers)[1].max() > 6


# Two peaks. Eight taxa in a ring: of every two neighbours some columns say that they belong together. So the
# cherries (12)(34)(56)(78) and (23)(45)(67)(81) fit alike, and whoever goes from one to the other must part
# with a cherry on the way. Renumbering the taxa by one exchanges the peaks: each has half of the posterior.

RING, COLUMNS = 8, 6


def in_a_ring():
    columns = []
    for i in range(RING):
        for _ in range(COLUMNS):
            columns.append(["C" if x in (i, (i + 1) % RING) else "A" for x in range(RING)])
    columns += [["A"] * RING] * 60
    rows = {f"t{x}": "".join(column[x] for column in columns) for x in range(RING)}
    return alignment_from_sequences(rows, alphabet("dna"))


def peaks(run, first: int) -> np.ndarray:
    """Of every draw: the share of the cherries of the first peak among those of both."""
    shares = []
    for parent in run.samples.parent[first:]:
        pairs = np.array([parent[i] == parent[(i + 1) % RING] for i in range(RING)])
        shares.append(pairs[::2].sum() / max(pairs.sum(), 1))
    return np.array(shares)


def crossings(shares: np.ndarray) -> int:
    """How often the draws went from one peak to the other."""
    at = np.where(shares > 0.6, 1, np.where(shares < 0.4, -1, 0))
    at = at[at != 0]
    return int((at[1:] != at[:-1]).sum())


def between_peaks(n_chains: int, seed: int, generations: int, **more):
    tree = TreeModel(priors={"pop_size": 1.0, "clock_rate": 0.1})
    own = {"n_chains": n_chains, "seed": seed, "tuning_generations": 20_000} | more
    run = any_advanced(begun(in_a_ring(), np.zeros(RING), "JC", tree, **own), generations)
    shares = peaks(run, 400)
    first = (shares[shares != 0.5] > 0.5).astype(float)
    summary = trace_summary(("first",), first[None, :, None])
    return crossings(shares), (summary.mean[0], summary.mcse[0], summary.ess[0]), run


def test_coupled_chains_cross_where_single_ones_stay():
    single = [between_peaks(1, seed, 400_000)[0] for seed in (1, 2, 3)]
    assert max(single) <= 2
    for seed in (1, 2, 3):
        n, (share, mcse, ess), _ = between_peaks(6, seed, 400_000, heating=0.4)
        print(n, "crossings, not", single, "share of the first peak", share, mcse, ess)
        assert n >= 50 and ess > 50
        assert close((share, mcse), 0.5)
