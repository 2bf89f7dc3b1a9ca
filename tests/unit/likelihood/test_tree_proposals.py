"""Proposed trees with other node numbers: on the CPU only what is another subtree is computed again."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.errors import NumericalError
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.pruning.cpu import evaluator as cpu
from phloem.pruning.cpu import regions
from phloem.pruning.topology import Match, Topology
from phloem.tree.build import tree_from_parents
from phloem.tree.random import taxon_names, uniform_unrooted
from phloem.tree.rearrange import nni_neighbours, spr_neighbours
from phloem.tree.tree import Tree

N_TIPS = 14
MODELS = {"ACGT": "HKY{3.5}+F{0.3,0.2,0.2,0.3}+I{0.1}+G4{0.5}", "01234": "MK+FQ+G2{0.5}"}


def alignment(states: str, rng: np.random.Generator) -> Alignment:
    alphabet = Alphabet("dna" if states == "ACGT" else "standard", tuple(states))
    sets = np.vstack([np.eye(len(states), dtype=bool), np.ones(len(states), bool)])
    codes = rng.integers(0, len(sets), (N_TIPS, 120)).astype(np.uint8)
    return Alignment(taxon_names(N_TIPS), alphabet, codes, sets)


def start(states: str, threads: int = 1, seed: int = 1):
    rng = np.random.default_rng([seed, len(states)])
    data = alignment(states, rng)
    tree = uniform_unrooted(N_TIPS, rng)

    def likelihood(tree: Tree) -> TreeLikelihood:
        return TreeLikelihood(data, tree, MODELS[states], engine="cpu", threads=threads)

    return rng, tree, likelihood


def renumbered(tree: Tree, rng: np.random.Generator) -> Tree:
    """The same tree with its internal nodes in another order and its children turned around."""
    order = np.append(rng.permutation(tree.n_nodes - 1), tree.n_nodes - 1)
    number = np.argsort(order)
    parent = np.append(number[tree.parent[:-1]], -1)[order]
    names = [tree.taxa[x] if x < tree.n_tips else None for x in order]
    return tree_from_parents(names, parent, tree.lengths[order], taxa=tree.taxa, rooted=tree.rooted)


def subtrees(likelihood: TreeLikelihood) -> list:
    """Each node of the binary tree but the root, told by its branch's length and what hangs below it."""
    state = likelihood._proposed or likelihood._accepted
    below = [(length, x) for x, length in enumerate(state.effective()[:N_TIPS])]
    for length, pair in zip(state.effective()[N_TIPS:], zip(*state.layout.children)):
        below.append((length, frozenset(below[x] for x in pair)))
    return below[:-1]


@pytest.fixture
def computed(monkeypatch):
    """How many nodes' messages each evaluation computes, root excluded; all of them: None."""
    counts, evaluate = [], cpu.CpuEvaluator._evaluate

    def counted(self, state, changed, dirty, want_up):
        counts.append(None if dirty is None else len(dirty) - 1)
        return evaluate(self, state, changed, dirty, want_up)

    monkeypatch.setattr(cpu.CpuEvaluator, "_evaluate", counted)
    return counts


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("states", MODELS)
def test_a_walk_computes_what_is_another_subtree_and_equals_fresh_evaluations(states, threads, computed):
    rng, tree, make = start(states, threads)
    likelihood = make(tree)
    likelihood.log_likelihood()
    total = 0
    for neighbours in [nni_neighbours, spr_neighbours] * 6:
        near = neighbours(tree)
        proposed = renumbered(near[rng.integers(len(near))], rng)
        before = set(subtrees(likelihood))
        value = likelihood.propose(tree=proposed)
        assert computed[-1] == sum(key not in before for key in subtrees(likelihood))
        total += computed[-1]
        assert value == make(proposed).log_likelihood()
        if rng.random() < 0.6:
            likelihood.accept()
            tree = proposed
        else:
            likelihood.reject()
    assert total < 12 * len(before) / 2
    wanted, found = make(likelihood.tree).gradient(), likelihood.gradient()
    assert found.log_likelihood == wanted.log_likelihood
    np.testing.assert_allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-10, atol=1e-9)


def test_the_same_tree_under_other_numbers_costs_the_root_alone(computed):
    rng, tree, make = start("ACGT")
    likelihood = make(tree)
    value = likelihood.log_likelihood()
    for _ in range(5):
        # Which two branches at the base are joined to make it binary depends on numbers.
        assert likelihood.propose(tree=renumbered(tree, rng)) == pytest.approx(value, rel=1e-13)
        assert computed[-1] <= 1
        likelihood.accept()


def test_compared_by_number_nearly_everything_is_computed(computed, monkeypatch):
    """Negative control: the count tells a comparison of clades from one of numbers; the value is the same."""

    def by_number(old: Topology, left, right) -> Match:
        new = Topology.build(left, right)
        other = (new.left != old.left) | (new.right != old.right)
        return Match(new, np.arange(len(other)), np.flatnonzero(new.with_ancestors(other)))

    rng, tree, make = start("ACGT")
    near = [renumbered(neighbour, rng) for neighbour in nni_neighbours(tree)]
    counts, values = [], []
    for match in (regions.match_clades, by_number):
        monkeypatch.setattr(regions, "match_clades", match)
        likelihood = make(tree)
        likelihood.log_likelihood()
        computed.clear()
        for neighbour in near:
            values.append(likelihood.propose(tree=neighbour))
            likelihood.reject()
        counts.append(np.mean(computed))
    assert values[: len(near)] == values[len(near) :]
    assert counts[0] < 6 and counts[1] > 9


def test_a_match_that_keeps_too_much_is_seen(monkeypatch):
    """Negative control: a changed node taken for an old one gives another value than a fresh evaluation."""
    match_clades = regions.match_clades

    def forgets_one(*arguments) -> Match:
        match = match_clades(*arguments)
        return Match(match.topology, match.old_node, match.moved[1:])

    _, tree, make = start("ACGT")
    likelihood = make(tree)
    likelihood.log_likelihood()
    proposed = nni_neighbours(tree)[3]
    monkeypatch.setattr(regions, "match_clades", forgets_one)
    try:
        found = likelihood.propose(tree=proposed)
    except NumericalError:
        found = -np.inf  # what nobody has computed may be zero, and the likelihood says so
    assert found != make(proposed).log_likelihood()
