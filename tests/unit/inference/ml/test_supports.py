"""Supports of branches: their definitions, data where they are known, the same numbers on any threads."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.hardware.ranks import Ranks
from phloem.inference.ml import bootstrap
from phloem.inference.ml.bootstrap import (
    Resampling,
    bootstrap_trees,
    distance_of_halves,
    presence,
    split_shares,
    transfer_expectation,
)
from phloem.inference.ml.branch_tests import (
    ABAYES,
    ALRT,
    UFBOOT,
    SupportSettings,
    a_bayes,
    resampled_weights,
    sh_alrt,
)
from phloem.inference.ml.identical import distinct
from phloem.inference.ml.search import fit_lengths
from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.inference.ml.ultrafast import TIE, Replicates, _Pool, climb_each
from phloem.io.journal import Journal
from phloem.io.trees import newick_text
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import branch_splits, half_edges, preorder, topology_key, tree_of
from phloem.tree.random import uniform_unrooted
from phloem.tree.splits import split_members, tip_bits, tree_splits
from unit.inference.mcmc.ranks_in_threads import led

BOTH = SupportSettings(alrt=200, abayes=True, ufboot=1000)


@pytest.fixture(scope="module")
def truth():
    return uniform_unrooted(12, np.random.default_rng(5), 0.15)


@pytest.fixture(scope="module")
def simulated(truth):
    return simulate_alignment(truth, parse_model("HKY{3}+FQ", datatype="dna"), 300, seed=3)


def searched(data, wanted, threads=1, patience=2):
    settings = SearchSettings(patience=patience, threads=threads)
    return search_tree(data, model_for_alignment("HKY+FQ", data), settings=settings, supports=wanted)


@pytest.fixture(scope="module")
def found(simulated):
    return searched(simulated, BOTH)


def sh_by_hand(values, sites, counts) -> float:
    """The definition, replicate by replicate."""
    ahead, times = values[0] - max(values[1:]), 0
    for draw in counts:
        sums = [float(draw @ one) - value for one, value in zip(sites, values)]
        best, second, _ = sorted(sums, reverse=True)
        times += ahead > best - second + 0.05
    return times / len(counts)


def test_sh_like_supports_are_their_definition():
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 9, 40).astype(float)
    sites = rng.normal(-3.0, 0.4, (5, 3, 40))
    sites[:, 0] += 0.05
    sites[4] = sites[4, 0]  # three resolutions that are one
    values = sites @ weights
    counts = resampled_weights([weights], 300, 7, 1)
    assert (counts.sum(1) == weights.sum()).all()
    shares = sh_alrt(values, sites, counts)
    expected = [sh_by_hand(v, s, counts) for v, s in zip(values, sites)]
    np.testing.assert_array_equal(shares, expected)
    assert shares[4] == 0 and shares.max() > 0
    assert not np.array_equal(sh_alrt(values - 1e-9 + np.array([3.0, 0, 0]), sites, counts), expected)


def test_approximate_bayes_supports_are_their_definition():
    values = np.array([[-100.0, -101.0, -103.0], [-100.0, -100.0, -100.0], [-2e4, -3e4, -2e4 - 800]])
    weights = np.exp(values - values.max(1, keepdims=True))
    np.testing.assert_allclose(a_bayes(values), weights[:, 0] / weights.sum(1), rtol=1e-12)
    assert a_bayes(np.array([[-1e4, -100.0, -100.0]]))[0] == pytest.approx(0, abs=1e-300)
    assert a_bayes(values[:1, [1, 0, 2]])[0] < 0.3 < a_bayes(values[:1])[0]


def test_branches_that_made_the_data_are_supported(truth, found):
    supports = found.supports
    true = {split.tobytes() for split in tree_splits(truth)}
    assert list(supports) == [ALRT, ABAYES, UFBOOT]
    for shares in supports.values():
        mine = [shares[s.tobytes()] for s in tree_splits(found.optimum.tree) if s.tobytes() in true]
        assert np.mean(mine) > 0.85 and max(shares.values()) <= 1 and min(shares.values()) >= 0
    random_data = simulate_alignment(
        uniform_unrooted(12, np.random.default_rng(5), 30.0), parse_model("JC", datatype="dna"), 300, seed=1
    )
    noise = searched(random_data, BOTH, patience=0).supports
    inner = tree_splits(searched(random_data, SupportSettings(), patience=0).optimum.tree)
    assert np.mean([noise[UFBOOT][s.tobytes()] for s in inner]) < 0.6


def test_the_same_supports_on_two_threads(simulated, found):
    again = searched(simulated, BOTH, threads=2)
    assert again.supports == found.supports


def test_every_replicate_climbs_with_its_own_weights(simulated, truth):
    patterns, none = site_patterns(simulated), np.zeros(0, np.int32)
    model = model_for_alignment("HKY{3}+FQ", simulated)
    problem = engine_problem(patterns, model, (none, none))
    messages = DirectedMessages([problem], 5)
    messages.set_models([model.evaluate()], [1.0])
    counts = resampled_weights([patterns.weights], 8, 1, 9)
    edges = half_edges(tree_of(half_edges(truth, truth.taxa), simulated.taxa), simulated.taxa)
    first = Replicates([edges], np.zeros(8, np.int64))
    better = climb_each(messages, first, counts, patterns.weights)
    assert len(better.trees) == 8 and len(better.distinct) > 1

    def value(tree, weights) -> float:
        messages.set_weights(weights)
        return fit_lengths(messages, tree.copy(), 0.01).log_likelihood

    gains = [
        value(better.distinct[k], own) - value(edges, own) for k, own in zip(better.trees.tolist(), counts)
    ]
    assert min(gains) > -0.1 and max(gains) > 0.1
    messages.set_weights(patterns.weights)
    again = climb_each(messages, first, np.tile(patterns.weights, (2, 1)), patterns.weights)
    assert len(again.distinct) == 1  # the data's own weights lead to one tree


def test_scores_of_a_pool_are_those_of_its_trees(simulated, truth, monkeypatch):
    patterns, none = site_patterns(simulated), np.zeros(0, np.int32)
    model = model_for_alignment("HKY{3}+FQ", simulated)
    messages = DirectedMessages([engine_problem(patterns, model, (none, none))], 5)
    messages.set_models([model.evaluate()], [1.0])
    counts = resampled_weights([patterns.weights], 200, 1, 9)
    edges = half_edges(tree_of(half_edges(truth, truth.taxa), simulated.taxa), simulated.taxa)

    def filled() -> _Pool:
        pool = _Pool(messages, counts, np.random.default_rng(1), 5)
        pool.add_hilltop(edges.copy())
        for _ in range(4):
            pool.expand(pool.winner())
        return pool

    def apart(pool: _Pool) -> float:
        """The largest difference between a score and that of the tree, its lengths as they are."""
        errors = []
        for rows, trees, scores in pool._close:
            for k in np.unique(trees):
                tree = pool._tree(k)
                messages.fill(tree.back, tree.lengths, preorder(tree.back))
                mine = trees == k
                errors.append(np.abs(counts[rows[mine]] @ messages.sites() - scores[mine]).max())
        return max(errors)

    pool = filled()
    assert apart(pool) < 0.01 and len(pool._trees) > 20
    keys = [topology_key(pool._tree(k).back) for k in range(len(pool._trees))]
    assert len(set(keys)) == len(keys)
    best, drawn = pool._score, pool.chosen()
    assert len(drawn.trees) == 200 and len(drawn.distinct) > 3
    for r, tree in enumerate(drawn.trees):
        edges_of = drawn.distinct[tree]
        messages.fill(edges_of.back, edges_of.lengths, preorder(edges_of.back))
        assert counts[r] @ messages.sites() > best[r] - TIE - 0.01
    right = DirectedMessages.sites  # planted: sites of the tree before, not of the one that is expanded
    kept = [right(messages)]
    monkeypatch.setattr(DirectedMessages, "sites", lambda self: [kept.append(right(self)), kept[-2]][1])
    late = filled()
    monkeypatch.undo()
    assert apart(late) > 0.5


def test_ultrafast_supports_are_near_those_of_the_standard_bootstrap(simulated, found, monkeypatch):
    drawn = Resampling([("", simulated, "HKY+FQ")], None, distinct(simulated, apart=True))
    trees = bootstrap_trees(drawn, found.optimum.parameters, 20, SearchSettings(threads=1))
    shares = split_shares(trees)
    apart = [
        found.supports[UFBOOT][s.tobytes()] - shares.get(s.tobytes(), 0.0)
        for s in tree_splits(found.optimum.tree)
    ]
    assert abs(np.mean(apart)) < 0.1 and np.abs(apart).max() < 0.4
    alone = bootstrap_trees(drawn, found.optimum.parameters, 2, SearchSettings(threads=2))
    monkeypatch.setattr("phloem.inference.ml.bootstrap._WORTH", 0.0)  # by processes, however little it is
    by_processes = bootstrap_trees(drawn, found.optimum.parameters, 4, SearchSettings(threads=2))
    for one, other in zip(trees, by_processes, strict=False):
        np.testing.assert_array_equal(one.lengths, other.lengths)
    assert [tree_splits(t).tobytes() for t in alone] == [tree_splits(t).tobytes() for t in trees[:2]]

    def drawn_on(size: int, replicates):
        settings, start = SearchSettings(threads=1), found.optimum.parameters
        shared = led(size, lambda here: bootstrap_trees(drawn, start, replicates, settings, None, here))
        return [newick_text([tree]) for tree in shared]

    expected = [newick_text([tree]) for tree in trees]
    assert drawn_on(3, 5) == expected[:5] and drawn_on(4, 3) == expected[:3]
    monkeypatch.setattr(bootstrap, "AT_ONCE", 4)
    monkeypatch.setattr(bootstrap, "distance_of_halves", lambda has, rng: 1.0 if len(has) < 8 else 0.0)
    assert drawn_on(3, "auto") == expected[:8]
    right = bootstrap._replicate  # planted: what a process has done is counted, not what all have
    monkeypatch.setattr(bootstrap, "_replicate", lambda k, *a: right(k // 3, *a))
    assert drawn_on(3, 5) != expected[:5]


@pytest.mark.parametrize("size", [1, 2])
def test_replicates_that_are_done_are_not_done_again(simulated, found, monkeypatch, tmp_path, size):
    drawn = Resampling([("", simulated, "HKY+FQ")], None, distinct(simulated, apart=True))
    settings, start, path = SearchSettings(threads=1), found.optimum.parameters, str(tmp_path / "x.bootstrap")
    right, made = bootstrap._replicate, []

    def replicate(k, *arguments):
        made.append(k)
        if len(made) == 4:
            raise KeyboardInterrupt
        return right(k, *arguments)

    def trees(n: int, here: Ranks, journal: Journal | None) -> list[str]:
        found = bootstrap_trees(drawn, start, n, settings, None, here, journal)
        return [newick_text([tree]) for tree in found]

    expected = trees(6, Ranks(), None)
    monkeypatch.setattr(bootstrap, "_replicate", replicate)
    with pytest.raises(KeyboardInterrupt):
        trees(6, Ranks(), Journal(path, "this"))
    Path(path).write_text(Path(path).read_text() + '\n{"replicate": 5, "tax')  # cut short by a kill
    made[:] = range(9)
    assert led(size, lambda here: trees(6, here, Journal(path, "this"))) == expected
    assert sorted(made[9:]) == [3, 4, 5]
    assert trees(3, Ranks(), Journal(path, "this")) == expected[:3] and len(made) == 12
    with pytest.raises(InputError, match="of another analysis"):
        trees(6, Ranks(), Journal(path, "that"))
    Journal(path, "that").remove()
    assert not list(tmp_path.iterdir())


def transfers(split: frozenset, tree_sides: list[frozenset], taxa: frozenset) -> int:
    """Fewest taxa to be left out so that the split is among the branches, tips among them."""
    for k in range(len(taxa)):
        for out in itertools.combinations(sorted(taxa), k):
            rest = taxa - set(out)
            sides = [side & rest for side in tree_sides]
            if any(s in (split & rest, rest - split) for s in sides):
                return k
    return len(taxa)


def test_transfer_expectation_is_its_definition():
    rng = np.random.default_rng(2)
    reference, others = uniform_unrooted(8, rng), [uniform_unrooted(8, rng) for _ in range(4)]
    everyone, splits = frozenset(range(8)), tree_splits(reference)
    values = transfer_expectation(splits, others)
    for split, value in zip(split_members(splits, 8), values):
        mine = frozenset(np.flatnonzero(split).tolist())
        smaller, total = min(len(mine), 8 - len(mine)), 0
        for tree in others:
            rows = split_members(tree_splits(tree), 8)
            sides = [frozenset(np.flatnonzero(r).tolist()) for r in rows] + [frozenset([i]) for i in range(8)]
            total += transfers(mine, sides, everyone)
        assert value == pytest.approx(1 - total / 4 / (smaller - 1), abs=1e-6)
    assert transfer_expectation(splits, [reference] * 3) == pytest.approx(1.0)
    assert transfer_expectation(splits, others[:1]).min() < 1


def test_halves_that_agree_and_halves_that_do_not():
    rng = np.random.default_rng(3)
    certain = np.ones((100, 9), bool)
    assert distance_of_halves(certain, rng) == 0
    loose = rng.random((100, 9)) < 0.5
    many = rng.random((4000, 9)) < 0.5
    assert distance_of_halves(loose, rng) > 0.05 > 0.03 > distance_of_halves(many, rng) > 0


def test_presence_of_splits():
    rng = np.random.default_rng(4)
    trees = [uniform_unrooted(7, rng) for _ in range(3)]
    keys, has = presence(trees)
    assert has.sum() == 3 * 4 and has.any(0).all()
    for tree, row in zip(trees, has):
        assert {k.tobytes() for k in keys[row]} == {s.tobytes() for s in tree_splits(tree)}


def test_splits_of_half_edges(truth):
    order, splits = branch_splits(half_edges(truth, truth.taxa).back)
    inner = {s.tobytes() for s in splits[order >= 12]} - {s.tobytes() for s in tip_bits(12)}
    everything_but_tip_0 = np.bitwise_or.reduce(tip_bits(12)[1:], axis=0).tobytes()
    assert inner - {everything_but_tip_0} == {s.tobytes() for s in tree_splits(truth)}


def test_numbers_of_replicates_that_mean_little():
    with pytest.raises(InputError, match="99 replicates"):
        SupportSettings(ufboot=99)
    with pytest.raises(InputError, match="5 replicates"):
        SupportSettings(alrt=5)
    with pytest.raises(InputError, match="--bnni"):
        SupportSettings(bnni=True)
