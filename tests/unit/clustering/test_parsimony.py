"""Parsimony in bits against Fitch's rule set by set, and that against all assignments of states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from phloem.clustering.parsimony import Parsimony
from phloem.clustering.reference.parsimony import parsimony_score
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.tree.half_edges import HalfEdges, half_edges, node_of, preorder, tree_of
from phloem.tree.random import taxon_names, uniform_rooted, uniform_unrooted
from phloem.tree.splits import robinson_foulds


def data(n_taxa: int, n_sites: int, seed: int, kind: str = "dna", symbols: str = "ACGTRYN-"):
    rng = np.random.default_rng(seed)
    weights = np.r_[np.full(4, 4.0), np.ones(len(symbols) - 4)]
    letters = rng.choice(list(symbols), (n_taxa, n_sites), p=weights / weights.sum())
    rows = {name: "".join(row) for name, row in zip(taxon_names(n_taxa), letters)}
    return alignment_from_sequences(rows, alphabet(kind))


def least_changes(tree, patterns) -> int:
    """Over every assignment of states to inner nodes, and to tips among those they allow."""
    inner, total = range(tree.n_tips, tree.n_nodes), 0
    rows = [patterns.taxa.index(name) for name in tree.taxa]
    for p, weight in enumerate(patterns.weights):
        allowed = [np.flatnonzero(patterns.state_sets[patterns.codes[r, p]]) for r in rows]
        below = allowed + [range(patterns.state_sets.shape[1])] * len(inner)
        changes = (
            sum(states[x] != states[tree.parent[x]] for x in range(tree.n_nodes - 1))
            for states in itertools.product(*below)
        )
        total += int(min(changes) * weight)
    return total


@pytest.mark.parametrize("newick", ["((a,b),(c,d));", "(a,b,(c,d));", "(a,b,c,d);"])
def test_the_reference_finds_the_least_of_all_assignments(newick):
    patterns = site_patterns(data(4, 12, 1))
    (tree,) = parse_newick(newick.translate(str.maketrans(dict(zip("abcd", taxon_names(4))))))
    assert parsimony_score(tree, patterns) == least_changes(tree, patterns)


@pytest.mark.parametrize(
    "n_taxa, n_sites, kind", [(3, 1, "dna"), (9, 63, "dna"), (12, 200, "dna"), (8, 70, "protein")]
)
def test_bits_count_what_the_reference_counts(n_taxa, n_sites, kind):
    alignment = data(n_taxa, n_sites, 2, kind, "ACGTRYN-" if kind == "dna" else "ARNDBZX-")
    counting, patterns = Parsimony(alignment), site_patterns(alignment)
    rng = np.random.default_rng(3)
    for tree in (uniform_unrooted(n_taxa, rng), uniform_rooted(n_taxa, rng), counting.tree(rng).tree):
        assert counting.score(tree) == parsimony_score(tree, patterns)


def test_the_search_reports_the_score_of_its_tree_and_finds_the_best_of_all_five_taxon_trees():
    alignment = data(5, 80, 4)
    found, patterns = Parsimony(alignment).tree(np.random.default_rng(1)), site_patterns(alignment)
    rng = np.random.default_rng(5)
    best = min(parsimony_score(uniform_unrooted(5, rng), patterns) for _ in range(150))
    assert found.score == parsimony_score(found.tree, patterns) == best


def test_moved_subtrees_save_changes_that_stepwise_addition_leaves():
    alignment = data(24, 120, 6)
    moved = [Parsimony(alignment).tree(np.random.default_rng(s)).score for s in range(4)]
    added = [Parsimony(alignment).tree(np.random.default_rng(s), radius=0).score for s in range(4)]
    assert max(moved) < min(added)
    assert Parsimony(alignment).tree(np.random.default_rng(2)).score == moved[2]


def test_sets_after_moves_are_those_of_the_tree_that_they_lead_to():
    for n_taxa, kind, symbols in ((40, "dna", "ACGTRYN-"), (25, "protein", "ARNDBZX-")):
        alignment = data(n_taxa, 150, 9, kind, symbols)
        counting, rng = Parsimony(alignment), np.random.default_rng(1)
        back = half_edges(uniform_unrooted(n_taxa, rng), alignment.taxa).back
        counting.changed(back)
        before, first = counting._sets.copy(), back.copy()
        score = counting._improve(back, rng, 6)
        moved = counting._sets.copy()
        counting.changed(back)
        assert np.array_equal(moved, counting._sets) and not np.array_equal(back, first)
        assert not np.array_equal(moved, before)  # control: where nothing follows the moves
        edges = HalfEdges(back, np.full(len(back), 0.1))
        assert score == parsimony_score(tree_of(edges, alignment.taxa), site_patterns(alignment))


def test_a_given_tree_is_moved_to_fewer_changes_and_has_them_as_lengths():
    alignment = data(24, 120, 6)
    counting, patterns = Parsimony(alignment), site_patterns(alignment)
    given = uniform_unrooted(24, np.random.default_rng(4))
    given = tree_of(half_edges(given, given.taxa), alignment.taxa)
    found = counting.improved(given, np.random.default_rng(1))
    assert found.score == parsimony_score(found.tree, patterns) < parsimony_score(given, patterns) - 100
    changes = found.tree.lengths[:-1] * 120
    edges = half_edges(found.tree, alignment.taxa)
    assert np.array_equal(edges.lengths * 120 > 0.75, counting.changed(edges.back))
    assert changes.min() >= 0.5 and changes.sum() >= found.score
    again = counting.improved(found.tree, np.random.default_rng(2))
    assert again.score <= found.score
    same = Parsimony(alignment).improved(given, np.random.default_rng(1))  # no earlier tree leaves a trace
    assert same.score == found.score and np.array_equal(same.tree.lengths, found.tree.lengths)


def test_half_edges_are_the_tree_and_back():
    rng = np.random.default_rng(7)
    for n in (3, 4, 17):
        tree = uniform_rooted(n, rng)
        edges = half_edges(tree, tree.taxa)
        again = tree_of(edges, tree.taxa)
        assert robinson_foulds(again, half_tree(tree)) == 0
        assert again.lengths[:-1].sum() == pytest.approx(tree.lengths[:-1].sum())
        order = preorder(edges.back)
        assert len(set(order) | set(edges.back[order])) == 4 * n - 6


def half_tree(tree):
    return tree_of(half_edges(tree, tree.taxa), tree.taxa)


def test_a_pair_without_a_common_site_leads_to_a_parsimonious_start():
    rows = {
        "a": "ACGTACGT--------",
        "b": "--------ACGTACGA",
        "c": "ACGTACGTACGTACGA",
        "d": "ACGTACGAACGTACGT",
    }
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    found = starting_tree(alignment)
    assert found.origin.startswith("parsimony, 2 changes") and "no site in common" in found.origin
    assert found.tree.taxa == alignment.taxa and (found.tree.lengths[:-1] > 0).all()
    with pytest.raises(InputError, match="no site in common"):
        starting_tree(alignment, "upgma")
    with pytest.raises(InputError, match="three taxa"):
        Parsimony(alignment_from_sequences({"a": "A", "b": "C"}, alphabet("dna")))


def changed_somewhere(back, n, alignment) -> np.ndarray:
    """Of every half-edge, whether one of the assignments with fewest changes has one on its branch."""
    nodes = node_of(np.arange(len(back)), n)
    ends = [(h, int(back[h])) for h in range(len(back)) if h < back[h]]
    found = np.zeros(len(back), bool)
    for codes in np.unique(alignment.codes, axis=1).T:
        allowed = [np.flatnonzero(alignment.state_sets[code]).tolist() for code in codes]
        every = np.array(list(itertools.product(*allowed, *[range(4)] * (n - 2))))
        differ = np.array([every[:, nodes[a]] != every[:, nodes[b]] for a, b in ends])
        fewest = differ.sum(0) == differ.sum(0).min()
        for (a, b), own in zip(ends, differ):
            found[[a, b]] |= bool(own[fewest].any())
    return found


def test_branches_with_a_change_are_those_of_all_assignments_with_fewest_changes():
    rng, seen = np.random.default_rng(2), []
    for seed in range(12):
        alignment = data(5, 3, seed)
        tree = uniform_unrooted(5, rng)
        back = half_edges(tree, alignment.taxa).back
        expected = changed_somewhere(back, 5, alignment)
        assert np.array_equal(Parsimony(alignment).changed(back), expected)
        seen.append(expected.mean())
    assert min(seen) < 0.9 and max(seen) > 0.3
