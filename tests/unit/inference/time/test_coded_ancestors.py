"""Sequences of ancestors of amino acids and codons: what is carried along is the likelihood, draws are
conditional, and topologies are what summing over ancestors makes of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, NumericalError
from phloem.inference.mcmc.recipes import Observations, observations
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time.ancestors.larger.memory import (
    UNKNOWN,
    as_codes,
    as_words,
    codes_of,
    likely_codes,
)
from phloem.inference.time.ancestors.reference import codes_and_sets
from phloem.inference.time.run import advanced, new_run, stretch_after, work
from phloem.inference.time.sampler import check_ancestors
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.transition import transition_matrices
from phloem.tree.dated import random_dated_tree

TIPS = np.array([0.0, 0.3, 1.1, 2.0, 0.7, 2.9, 1.5, 0.1])
KNOWN = {
    "protein": list("ARNDCQEGHILKMFPSTWYV"),
    "codon": [a + b + c for a, b, c in product("ACG", "CG", "AC")],
    "morphology": list("01234"),
}
OTHERS = {"protein": ["B", "X"], "codon": ["GRC", "CGN", "---"], "morphology": ["?"]}
MODELS = {"protein": "WAG+FO+G4", "codon": "GY94+FO+G4", "morphology": "MK+G4"}


def alignment(kind: str, n_tips: int, n_sites: int, seed: int = 1):
    """Rows that are much alike, with what is not known."""
    rng, letters = np.random.default_rng(seed), KNOWN[kind] + OTHERS[kind]
    rows, base = {}, rng.choice(KNOWN[kind], n_sites)
    for k in range(n_tips):
        own = base.copy()
        changed = rng.random(n_sites) < 0.3
        own[changed] = rng.choice(letters, changed.sum())
        rows[f"t{k}"] = "".join(own)
    return alignment_from_sequences(rows, alphabet(kind))


def run_of(kind: str, n_tips: int, n_sites: int, clock="strict", moves=None, stored=None, model=None, **more):
    data = alignment(kind, n_tips, n_sites, **more)
    site_model = model_for_alignment(model or MODELS[kind], data, "mean")
    bounds = np.stack([TIPS[:n_tips]] * 2, axis=1)
    tree = TreeModel(clock=clock, priors={"clock_rate": 0.05} if moves else {})
    whole = time_model(structure_of_model(site_model, n_sites), tree, data.taxa, bounds, float("nan"))
    chains = TimeSettings(n_runs=1, sample_every=100, move_weights=moves, ancestors="sampled")
    return new_run(0, observations(data), whole, chains, stored)


def log_likelihoods(run, every: np.ndarray) -> np.ndarray:
    """(S, n) log joint probabilities of a run's tips with ancestors `every` (n, T-1), without categories."""
    state, s = run.state, int(run.state.slot[0])
    model = run.model.engine.site_model(0, run.model.engine_values(state.values[s]))
    p, pi = transition_matrices(state.lengths[s, 0], model)[:, 0], model.processes[0].root_frequencies
    codes, sets = codes_and_sets(run.ancestral)
    n_tips, parent = len(run.ancestral.known), state.parent[s]
    found = np.tile(np.log(pi[every[:, -1]]), (codes.shape[1], 1))
    for x in range(len(parent) - 1):
        above = every[:, parent[x] - n_tips]
        if x >= n_tips:
            found += np.log(p[x][above, every[:, x - n_tips]])
        else:
            found += np.log(p[x] @ sets[codes[x]].T)[above].T
    return found


EVERY = np.array(list(product(range(20), repeat=3)), np.uint8)
PLACE = 20 ** np.arange(2, -1, -1)  # of three states in EVERY


def test_words_hold_codes():
    codes = np.random.default_rng(1).integers(0, 256, (3, 37)).astype(np.uint8)
    assert (as_codes(as_words(codes), 37) == codes).all()


def test_codes_are_states_sets_and_nothing():
    sets = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], float)
    own = Observations(("a", "b"), np.array([[0, 3], [4, 2]], np.int32), sets, np.array([2.0, 1.0]))
    codes, found = codes_of(own)
    assert codes.tolist() == [[0, 0, 3], [UNKNOWN, UNKNOWN, 2]] and found.tolist() == [[1, 1, 0]]
    many = np.random.default_rng(1).random((400, 64)) < 0.5
    observed = Observations(("a",), np.zeros((1, 1), np.int32), many.astype(float), np.ones(1))
    with pytest.raises(InputError, match="ambiguity missing"):
        codes_of(observed)


def test_the_start_has_the_fewest_changes():
    rng = np.random.default_rng(2)
    tree = random_dated_tree(TIPS[:5], rng, lambda t, pairs: rng.exponential(1 / pairs), [])
    sets, tips = np.array([[1, 1, 0, 0, 0]], np.uint8), rng.choice([0, 1, 2, 3, 4, 5, UNKNOWN], (5, 30))
    own = likely_codes(tips.astype(np.uint8), sets, (tree.left, tree.right, tree.order))
    possible = {code: {code} for code in range(5)} | {5: {0, 1}, UNKNOWN: set(range(5))}

    def changes(column):
        return sum(
            column[tree.parent[x]] not in (possible[c] if x < 5 else {c}) for x, c in enumerate(column[:-1])
        )

    for s in range(30):
        fewest = min(changes([*tips[:, s], *each]) for each in product(range(5), repeat=4))
        assert changes([*tips[:, s], *own[:, s]]) == fewest


@pytest.mark.parametrize("kind, clock", [("protein", "ucln"), ("codon", "strict"), ("morphology", "strict")])
def test_what_is_carried_along_is_the_likelihood_of_the_sequences(kind, clock):
    run = advanced(run_of(kind, 8, 60, clock), 2_000)
    check_ancestors(run)
    tried = dict(zip([m.name for m in run.moves], run.state.accepted))
    topology = ("wilson_balding", "narrow_exchange", "subtree_slide", "subtree_leap", "fixed_height_spr")
    assert min(tried[name] for name in (*topology, "ancestral_states", "site_rates", "hamilton")) > 0
    codes = as_codes(run.state.sequences, 60)
    assert (codes < run.ancestral.sets.shape[1]).all()
    codes[0, 0] = 1 if codes[0, 0] == 0 else 0  # planted: another state
    with pytest.raises(NumericalError, match="not that of the reference"):
        check_ancestors(run)


def test_changes_too_rare_for_rounding_stop_nothing():
    """Three changes of a codon where nothing has time to change."""
    rows = {f"t{k}": "AAACGG" + ("GCC" if k == 2 else "AAA") for k in range(5)}
    data = alignment_from_sequences(rows, alphabet("codon"))
    site_model = model_for_alignment("GY94+FQ", data, "mean")
    tree = TreeModel(priors={"clock_rate": 1e-9})
    bounds = np.stack([TIPS[:5]] * 2, axis=1)
    whole = time_model(structure_of_model(site_model, 3), tree, data.taxa, bounds, float("nan"))
    chains = TimeSettings(n_runs=1, sample_every=100, ancestors="sampled")
    run = advanced(new_run(0, observations(data), whole, chains), 500)
    check_ancestors(run)
    assert -150.0 < run.state.log_likelihood[0] < -40.0 and run.state.accepted.sum() > 100


@pytest.mark.parametrize("power", [1.0, 0.4])
def test_ancestors_are_drawn_from_their_conditional_distribution(power):
    """All ancestors of a fixed tree at every site, counted, beside their probabilities, or powers of these in
    a heated chain."""
    run = run_of("protein", 4, 8, moves={"ancestral_states": 1.0}, seed=4, model="WAG")
    expected = np.exp(power * log_likelihoods(run, EVERY))
    expected /= expected.sum(axis=1, keepdims=True)
    found, n, here = np.zeros((8, len(EVERY))), 3_000, stretch_after(run.settings, run.data.n_tips, 0)
    work(run, 200, here, power)
    for _ in range(n):
        work(run, 24, here, power)
        found[np.arange(8), PLACE @ as_codes(run.state.sequences, 8).astype(int)] += 1
    assert worst_share(found, expected) < 6
    assert worst_share(found, np.roll(expected, 1, axis=1)) > 20  # the control


def worst_share(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference of the share of a state at a node and site from what is expected, in standard
    errors of independent draws."""
    n, worst = found[0].sum(), 0.0
    for node, code in product(range(3), range(20)):
        there = EVERY[:, node] == code
        p = expected[:, there].sum(axis=1)
        error = np.sqrt(np.maximum(p * (1 - p), 1e-3) / n)
        worst = max(worst, (np.abs(found[:, there].sum(axis=1) / n - p) / error).max())
    return worst


@pytest.mark.parametrize("power", [1.0, 0.6])
def test_topologies_and_ancestors_have_their_joint_distribution(power):
    """Of one tree whose heights stay: exchanges and what they draw, beside single ancestors; in a heated
    chain, too."""
    moves = {"narrow_exchange": 1.0, "fixed_height_spr": 1.0, "ancestral_states": 1.0}
    run = run_of("protein", 4, 5, moves=moves, seed=7, model="WAG")
    n, here, counted = 6_000, stretch_after(run.settings, run.data.n_tips, 0), {}
    for _ in range(n):
        work(run, 12, here, power)
        tree = tuple(run.state.parent[int(run.state.slot[0])])
        if tree not in counted:
            logs = power * log_likelihoods(run, EVERY)
            whole = np.logaddexp.reduce(logs, axis=1)
            value = whole.sum() + power * float(run.state.log_prior[0])
            counted[tree] = value, np.exp(logs - whole[:, None]), np.zeros(logs.shape)
        counted[tree][2][np.arange(5), PLACE @ as_codes(run.state.sequences, 5).astype(int)] += 1
    logs = np.array([value for value, _, _ in counted.values()])
    share = np.array([found[0].sum() / n for _, _, found in counted.values()])
    expected = np.exp(logs - np.logaddexp.reduce(logs))
    assert len(counted) > 3 and np.abs(share - expected).max() < 0.03
    assert np.abs(share - np.roll(expected, 1)).max() > 0.1  # the control
    for _, of_tree, found in counted.values():
        if found[0].sum() > 500:
            assert worst_share(found, of_tree) < 8  # a tree's draws are not quite independent
            assert worst_share(found, np.roll(of_tree, 1, axis=1)) > 20


def test_a_stored_run_goes_on_alike():
    whole = advanced(run_of("protein", 6, 40, "ucln"), 600)
    half = advanced(run_of("protein", 6, 40, "ucln"), 300)
    stored = half.state._replace(**{f: np.array(getattr(half.state, f)) for f in half.state._fields})
    on = advanced(run_of("protein", 6, 40, "ucln", stored=(stored, half.samples)), 300)
    assert (on.samples.numbers == whole.samples.numbers).all()
    assert (on.state.sequences == whole.state.sequences).all()
