"""Sequences of ancestors that are sampled: what is carried along is the likelihood, draws are conditional."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, NumericalError
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time.ancestors.branches import sites_of
from phloem.inference.time.ancestors.redraw import BESIDE, DIFFER, LACK, find_sites
from phloem.inference.time.ancestors.reference import log_joint
from phloem.inference.time.ancestors.sequences import (
    LACKING,
    masks_of,
    memory_of,
    packed,
    parsimonious,
    unpacked,
)
from phloem.inference.time.ancestors.start import telling
from phloem.inference.time.run import advanced, new_run, stretch_after, work
from phloem.inference.time.sampler import check_ancestors
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.tree.dated import random_dated_tree

SETS = (np.arange(16)[:, None] >> np.arange(4)) & 1 == 1
TIPS = np.array([0.0, 0.3, 1.1, 2.0, 0.7, 2.9, 1.5, 0.1])


def alignment(n_tips: int, n_sites: int, seed: int = 1, letters: str = "ACGTNR-"):
    """Rows that are much alike, with what is not known."""
    rng = np.random.default_rng(seed)
    rows, base = {}, rng.choice(list("ACGT"), n_sites)
    for k in range(n_tips):
        own = base.copy()
        changed = rng.random(n_sites) < 0.2
        own[changed] = rng.choice(list(letters), changed.sum())
        rows[f"t{k}"] = "".join(own)
    return alignment_from_sequences(rows, alphabet("dna"))


def run_of(n_tips: int, n_sites: int, model: str, clock: str = "strict", moves=None, stored=None, **more):
    data = alignment(n_tips, n_sites, **more)
    site_model = model_for_alignment(model, data, "mean")
    bounds = np.stack([TIPS[:n_tips]] * 2, axis=1)
    priors = {"clock_rate": 0.05} if moves else {}
    tree = TreeModel(clock=clock, priors=priors)
    whole = time_model(structure_of_model(site_model, n_sites), tree, data.taxa, bounds, float("nan"))
    chains = TimeSettings(n_runs=1, sample_every=100, move_weights=moves, ancestors="sampled")
    return new_run(0, observations(data), whole, chains, stored)


def test_words_hold_masks():
    masks = np.random.default_rng(1).integers(1, 16, (3, 37)).astype(np.uint8)
    assert (unpacked(packed(masks), 37) == masks).all()


def test_the_start_has_the_fewest_changes():
    rng = np.random.default_rng(2)
    tree = random_dated_tree(TIPS[:5], rng, lambda t, pairs: rng.exponential(1 / pairs), [])
    masks = np.array([1, 2, 4, 8, 3, 15], np.uint8)[rng.integers(0, 6, (5, 40))]
    found = np.vstack([masks, parsimonious(masks, tree.left, tree.right, tree.order)])
    assert (np.bitwise_count(found[5:]) == 1).all()

    def changes(states):
        above = states[tree.parent[:-1]]
        return (above & states[:-1] == 0).sum(axis=0)

    every = np.array(list(product((1, 2, 4, 8), repeat=4)), np.uint8)
    for s in range(40):
        both = np.vstack([np.tile(masks[:, s : s + 1], len(every)), every.T])
        assert changes(found[:, s : s + 1])[0] == changes(both).min()


LETTERS, MISSING = "ACGTNR-", "NN-NNAR"  # of characters that are not their column's usual one


@pytest.mark.parametrize("clock, letters", [("strict", LETTERS), ("ucln", LETTERS), ("strict", MISSING)])
def test_what_is_carried_along_is_the_likelihood_of_the_sequences(clock, letters):
    run = advanced(run_of(8, 90, "HKY+FO+G4", clock, letters=letters), 3_000)
    check_ancestors(run)
    tried = dict(zip([m.name for m in run.moves], run.state.accepted))
    topology = ("wilson_balding", "narrow_exchange", "subtree_slide", "subtree_leap", "parsimony_spr")
    assert min(tried[name] for name in (*topology, "ancestral_states", "site_rates", "hamilton")) > 0
    again = unpacked(run.state.sequences, 90)
    assert (np.bitwise_count(again) == 1).all()
    run.state.sequences[0, 0] ^= np.uint64(3 if again[0, 0] in (1, 2) else 12)  # planted: another state
    with pytest.raises(NumericalError, match="not that of the reference"):
        check_ancestors(run)


def test_the_trace_has_the_likelihood_summed_over_ancestors():
    run = advanced(run_of(5, 6, "HKY+FO"), 400)
    state, s = run.state, int(run.state.slot[0])
    model = run.model.engine.site_model(0, run.model.engine_values(state.values[s]))
    tips, total = unpacked(run.ancestral.words, 6)[:5], 0.0
    every = np.array(list(product((1, 2, 4, 8), repeat=4)), np.uint8)
    for site in range(6):
        logs = [
            log_joint(
                np.append(tips[:, site], own)[:, None], SETS, np.zeros(1, np.uint8),
                (state.parent[s], state.lengths[s, 0]), model,
            )[0]
            for own in every
        ]  # fmt: skip
        total += np.logaddexp.reduce(logs)
    assert run.samples.numbers[-1, 0] == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("power, letters", [(1.0, LETTERS), (0.4, LETTERS), (1.0, MISSING)])
def test_ancestors_are_drawn_from_their_conditional_distribution(power, letters):
    """All ancestors of a fixed tree at every site, counted, beside their probabilities, or powers of these in
    a heated chain."""
    run = run_of(5, 6, "HKY+FO", moves={"ancestral_states": 1.0}, seed=4, letters=letters)
    state, s = run.state, int(run.state.slot[0])
    model = run.model.engine.site_model(0, run.model.engine_values(state.values[s]))
    every = np.array(list(product((1, 2, 4, 8), repeat=4)), np.uint8)
    tips, expected = unpacked(run.ancestral.words, 6)[:5], np.zeros((6, len(every)))
    for site in range(6):
        for k, own in enumerate(every):
            column = np.append(tips[:, site], own)[:, None]
            tree = state.parent[s], state.lengths[s, 0]
            value = log_joint(column, SETS, np.zeros(1, np.uint8), tree, model)[0]
            expected[site, k] = np.exp(power * value)
    expected /= expected.sum(axis=1, keepdims=True)
    place = {tuple(own): k for k, own in enumerate(every)}
    found, n = np.zeros((6, len(every))), 1_500
    here = stretch_after(run.settings, run.data.n_tips, 0)
    work(run, 200, here, power)
    for _ in range(n):
        work(run, 12, here, power)
        for site, own in enumerate(unpacked(state.sequences, 6).T):
            found[site, place[tuple(own)]] += 1
    assert (run.state.accepted == run.state.tried).all()
    for site in range(6):
        # four standard errors of the share of every node's states, of draws that are nearly independent
        for node, mask in product(range(4), (1, 2, 4, 8)):
            there = every[:, node] == mask
            p = expected[site, there].sum()
            assert abs(found[site, there].sum() / n - p) < 6 * np.sqrt(max(p * (1 - p), 1e-4) / n), (
                site,
                node,
            )
    wrong = np.roll(expected, 1, axis=1)  # the control
    assert np.abs(found / n - wrong).max() > 0.1


@pytest.mark.parametrize("n_categories", [1, 4])
def test_sites_at_which_only_missing_tips_differ_are_counted_by_kind(n_categories):
    """Every site is either looked at by itself, or one of a kind: category, state, and who is missing."""
    rng = np.random.default_rng(n_categories)
    n_tips, n_sites, many = 10, 203, LACKING + 2
    base = (1 << rng.integers(0, 4, n_sites)).astype(np.uint8)
    masks = np.where(rng.random((n_tips, n_sites)) < 0.25, 15, base).astype(np.uint8)
    masks[:, 32:64] = base[32:64]  # two words of which all is known, and one of which nothing is
    masks[1, 64:80] = 15
    masks[rng.random(masks.shape) < 0.01] = 2
    masks[2, :5] = 3
    ancestors = np.where(rng.random((n_tips - 1, n_sites)) < 0.02, 4, base).astype(np.uint8)
    category = rng.integers(0, n_categories, n_sites).astype(np.uint8)
    memory = memory_of(masks, packed(ancestors), category, n_categories)
    near, words = memory.near, memory.words
    beside = [n_tips + 1, *range(many), n_tips + 3]
    near.beside[: len(beside)], near.notes[BESIDE] = beside, len(beside)
    sites_of(words[beside[0]], category, memory.shares[beside[0]])
    room = memory.differs, memory.missing
    find_sites(words, category, memory.shares[beside[0]], near, room, memory.sites, memory.agree)
    lacking = list(near.lacking[: near.notes[LACK]])
    assert lacking == list(range(LACKING))  # the others of which something is missing differ there
    every = np.vstack([masks, ancestors])
    expected, apart = np.zeros_like(memory.agree), []
    for s in range(n_sites):
        state = every[beside[0], s]
        missing = [b for b, x in enumerate(lacking) if every[x, s] == 15]
        known = [x for x in beside if not (x in lacking and every[x, s] == 15)]
        if all(every[x, s] == state for x in known):
            expected[category[s], int(state).bit_length() - 1, sum(1 << b for b in missing)] += 1
        else:
            apart.append(s)
    assert sorted(memory.sites[: near.notes[DIFFER]]) == apart
    np.testing.assert_array_equal(memory.agree, expected)
    assert (expected[..., 1:].sum(axis=(0, 1)) > 0).sum() > 10 and expected[..., 0].sum() > 20


def test_a_stored_run_goes_on_alike():
    whole = advanced(run_of(6, 60, "HKY+FO+G4", "ucln"), 1_000)
    half = advanced(run_of(6, 60, "HKY+FO+G4", "ucln"), 500)
    stored = half.state._replace(**{f: np.array(getattr(half.state, f)) for f in half.state._fields})
    on = advanced(run_of(6, 60, "HKY+FO+G4", "ucln", stored=(stored, half.samples)), 500)
    assert (on.samples.numbers == whole.samples.numbers).all()
    assert (on.state.sequences == whole.state.sequences).all()


def test_what_has_no_ancestors_to_sample_is_refused():
    with pytest.raises(InputError, match=r"without \+I(.|\n)*--engine patterns"):
        run_of(5, 12, "HKY+I")
    with pytest.raises(InputError, match="powers of the likelihood"):
        TimeSettings(stones=5, ancestors="sampled")


def test_sites_are_columns_of_the_alignment():
    data = observations(alignment(5, 30))
    masks = (np.asarray(data.code_sets, np.int64) @ (1 << np.arange(4)))[data.codes]
    assert masks_of(data).shape == (5, 30)
    for pattern, weight in zip(masks.T, data.weights):
        assert (pattern == masks_of(data).T).all(axis=1).sum() == weight


def test_columns_of_which_nothing_is_known_have_no_ancestors():
    """They would stay in the state that they began with, and tell the frequencies of it."""
    rows = {"a": "AC-GN", "b": "ACNGN", "c": "AT-RN"}
    data = observations(alignment_from_sequences(rows, alphabet("dna")))
    told = telling(data)
    assert masks_of(told).shape == (3, 3) and masks_of(data).shape == (3, 5)
    assert (told.weights == 1).all() and told.taxa == data.taxa
    unknown = observations(alignment_from_sequences(dict.fromkeys("abc", "NN-"), alphabet("dna")))
    with pytest.raises(InputError, match="every character is unknown"):
        telling(unknown)
