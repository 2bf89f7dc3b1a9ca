"""Parts in the search: messages against the reference, lengths shared in three ways, trees, supports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.density.parts import Linkage
from phloem.errors import InputError, ModelError
from phloem.inference.ml.bootstrap import Resampling, bootstrap_trees
from phloem.inference.ml.branch_tests import ALRT, UFBOOT, SupportSettings, resampled_weights
from phloem.inference.ml.fusion import branches, tree_of_branches
from phloem.inference.ml.identical import distinct
from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.optimize import optimize
from phloem.inference.ml.place import ON_CPU
from phloem.inference.ml.search_state import Checkpoint
from phloem.inference.ml.searched import SearchedPart, SeveralParts
from phloem.inference.ml.tree_search import SearchSettings, search
from phloem.inference.ml.tree_starts import Start, parsimony_start
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.half_edges import HalfEdges, half_edges, nexts, preorder, topology_key, tree_of
from phloem.tree.random import taxon_names, uniform_unrooted
from phloem.tree.splits import robinson_foulds, tree_splits

LETTERS = {"dna": "ACGTRN-", "protein": "ARNDCQEGBX"}
PARTS = {
    "a": "GTR{1.2,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+G4{0.5}",
    "b": "HKY{3}+FQ+I{0.3}+R2{0.3,0.2,0.7,1.4}",
    "c": "LG+G2{0.8}",
}
RATES = np.array([1.4, 0.5, 0.9])
LINKAGES = {
    "linked": Linkage("linked"),
    "proportional": Linkage("proportional"),
    "unlinked": Linkage("unlinked"),
    "two sets": Linkage("unlinked", together=(("a", "c"),)),
}


def random_part(kind: str, n_taxa: int, n_sites: int, rng) -> object:
    letters = rng.choice(list(LETTERS[kind]), (n_taxa, n_sites))
    letters = np.where(rng.random(letters.shape) < 0.3, letters, letters[0])
    rows = {name: "".join(row) for name, row in zip(taxon_names(n_taxa), letters)}
    return alignment_from_sequences(rows, alphabet(kind))


class Case:
    """Three parts of unlike states and categories on a random tree, every set with lengths of its own."""

    def __init__(self, linkage: str, n_taxa: int = 7) -> None:
        rng = np.random.default_rng(3)
        parts = []
        for name, text in PARTS.items():
            data = random_part("protein" if name == "c" else "dna", n_taxa, 40, rng)
            parts.append(SearchedPart(name, data, model_for_alignment(text, data)))
        self.linkage = LINKAGES[linkage]
        self.data = SeveralParts(parts, self.linkage)
        rates = RATES / RATES.mean() if linkage == "proportional" else np.ones(3)
        self.values = self.data.start_values() | {"partition_rates": rates}
        tree = uniform_unrooted(n_taxa, rng, 0.2)
        edges = self.data.edges(replace(tree, taxa=self.data.taxa))
        spread = rng.uniform(0.5, 2.0, edges.lengths.shape)
        spread = np.where(np.arange(len(edges.back)) < edges.back, spread.T, spread[edges.back].T).T
        self.edges = HalfEdges(edges.back, edges.lengths * spread)
        self.order = preorder(self.edges.back)
        self.messages = self.data.messages(4, 2)
        self.data.put(self.messages, self.values)

    def reference(self, edges) -> PartitionedLikelihood:
        """Built from the parts anew, by the engine that is read and not run."""
        made = self.data.likelihood(edges, self.values, 1)
        named = {p.name: (p.alignment, p.model) for p in self.data.parts}
        found = PartitionedLikelihood(named, made.tree, self.linkage, "reference")
        if made.branch_lengths.ndim == 2:
            found.set(branch_lengths=dict(zip(found.part_names, made.branch_lengths)))
        if self.linkage.lengths == "proportional":
            found.set(partition_rates=self.values["partition_rates"])
        return found


@pytest.mark.parametrize("linkage", LINKAGES)
def test_values_and_sites_are_the_references(linkage):
    case = Case(linkage)
    value = case.messages.fill(*case.edges, case.order)
    reference = case.reference(case.edges)
    assert value == pytest.approx(reference.log_likelihood(), rel=1e-12)
    by_site = reference.site_log_likelihoods()
    weights = np.concatenate(case.data.weights)
    assert case.messages.sites() @ weights == pytest.approx(value, rel=1e-12)
    order = "acb" if linkage == "two sets" else "abc"
    first = site_patterns(case.data.parts["abc".index(order[0])].alignment)
    mine = case.messages.sites()[: len(first.weights)][first.site_pattern]
    np.testing.assert_allclose(mine, by_site[order[0]], rtol=1e-11, atol=1e-11)
    wrong = case.values | {"partition_rates": np.array([0.9, 1.1, 1.0])}
    case.data.put(case.messages, wrong)  # a rate that is not the part's shows
    assert case.messages.fill(*case.edges, case.order) != pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("linkage", LINKAGES)
def test_regrafts_and_second_looks_score_as_the_changed_trees(linkage):
    case = Case(linkage)
    back, lengths = case.edges
    found = case.messages.regrafts(back, lengths, case.order, np.arange(7, len(back)), 4)
    rows = np.arange(0, len(found.scores), 23)
    looks = case.messages.fitted(rows, found, back, lengths)
    for row, value, (_, *three) in zip(rows, looks.values, looks.found):
        s, out = int(found.pruned[row]), int(found.out[row])
        half = lengths[out] / 2
        for moved, score in (((half, half, lengths[s].copy()), found.scores[row]), (three, value)):
            edges = case.edges.copy()
            regraft(edges, Regraft(s, out, tuple(moved), 0.0))
            assert score == pytest.approx(case.reference(edges).log_likelihood(), rel=1e-11)
    assert (looks.values >= found.scores[rows] - 1e-6).all()
    assert (looks.values > found.scores[rows] + 1e-2).any()


@pytest.mark.parametrize("linkage", ["proportional", "unlinked"])
def test_resolutions_of_a_branch_and_their_sites(linkage):
    case = Case(linkage)
    back, lengths = case.edges
    case.messages.fill(back, lengths, case.order)
    inner = case.order[(case.order >= 7) & (back[case.order] >= 7)]
    found = case.messages.resolutions(back, lengths, inner)
    weights = np.concatenate(case.data.weights)
    np.testing.assert_allclose(found.sites @ weights, found.values, rtol=1e-12)
    h, five = int(inner[0]), found.lengths[0, 0]
    edges = case.edges.copy()
    for half, length in zip([*nexts(h, 7), *nexts(int(back[h]), 7), h], five):
        edges.lengths[half] = edges.lengths[back[half]] = length
    assert found.values[0, 0] == pytest.approx(case.reference(edges).log_likelihood(), rel=1e-11)


@pytest.mark.parametrize("linkage", ["linked", "proportional", "unlinked"])
def test_sweeps_find_the_best_lengths(linkage):
    case = Case(linkage)
    case.messages.fill(*case.edges, case.order)
    values = [case.messages.sweep(*case.edges, case.order) for _ in range(30)]
    likelihood = case.reference(case.edges)
    assert values[-1] == pytest.approx(likelihood.log_likelihood(), rel=1e-11)
    slopes = np.atleast_2d(likelihood.gradient(False).branch_lengths)
    long = np.atleast_2d(likelihood.branch_lengths) > 1e-6
    assert np.abs(slopes[long]).max() < 0.05 and (np.diff(values) > -1e-9).all()


def test_categories_that_only_another_part_has_do_not_hide_small_columns():
    rng = np.random.default_rng(3)
    made = [
        SearchedPart(name, data := random_part("dna", 400, 12, rng), model_for_alignment(text, data))
        for name, text in (("one", "JC"), ("more", "JC+G4{0.5}"))
    ]
    data = SeveralParts(made, Linkage("linked"))
    tree = uniform_unrooted(400, rng, 0.5)
    edges = data.edges(replace(tree, taxa=data.taxa))
    messages = data.messages(2, 1)
    data.put(messages, data.start_values())
    value = messages.fill(*edges, preorder(edges.back))
    named = {p.name: (p.alignment, p.model) for p in made}
    whole = PartitionedLikelihood(named, tree_of(edges, data.taxa), engine="reference")
    assert value == pytest.approx(whole.log_likelihood(), rel=1e-11)
    assert messages._messages.powers.min() < -300


def test_several_sets_of_lengths_pass_through_the_branches_of_a_tree():
    edges = Case("unlinked").edges
    again = tree_of_branches(branches(edges))
    assert topology_key(again.back) == topology_key(edges.back)
    found, mine = branches(again), branches(edges)
    assert found.keys() == mine.keys() and all(np.array_equal(found[x], mine[x]) for x in mine)


@pytest.fixture(scope="module")
def truth():
    return uniform_unrooted(10, np.random.default_rng(5), 0.15)


@pytest.fixture(scope="module")
def simulated(truth):
    slow = replace(truth, lengths=truth.lengths * 0.5)
    first = simulate_alignment(truth, parse_model("HKY{3}+FQ", datatype="dna"), 250, seed=3)
    return first, simulate_alignment(slow, parse_model("JC", datatype="dna"), 200, seed=4)


def several(simulated, linkage: str, models=("HKY+FQ", "JC")) -> SeveralParts:
    named = zip(("x", "y"), simulated, models)
    parts = [SearchedPart(name, data, model_for_alignment(text, data)) for name, data, text in named]
    return SeveralParts(parts, Linkage(linkage))


FEW = SearchSettings(patience=2, threads=1)


@pytest.mark.parametrize("linkage", ["linked", "proportional", "unlinked"])
def test_the_tree_that_made_the_data_is_found(truth, simulated, linkage):
    data = several(simulated, linkage)
    wrong = replace(uniform_unrooted(10, np.random.default_rng(8), 0.1), taxa=data.taxa)
    assert robinson_foulds(wrong, truth) > 6
    found = search(data, Start(wrong), FEW)
    assert robinson_foulds(found.optimum.tree, truth) == 0 and found.optimum.converged
    named = {p.name: (p.alignment, p.model) for p in data.parts}
    at_truth = optimize(PartitionedLikelihood(named, truth, data.linkage, "cpu", threads=1))
    assert found.optimum.log_likelihood == pytest.approx(at_truth.log_likelihood, abs=2e-4)
    assert found.optimum.n_free == at_truth.n_free
    if linkage == "proportional":
        fast, slow = found.optimum.partition_rates
        assert 1.3 < fast / slow < 3.0


def test_parts_with_the_same_numbers_are_one_alignment(simulated):
    from phloem.inference.ml.tree_search import search_tree

    whole = simulated[0]
    halves = [replace(whole, codes=np.ascontiguousarray(whole.codes[:, own])) for own in (
        slice(0, 120), slice(120, None),
    )]  # fmt: skip
    data = several(halves, "linked", ("HKY{3}+FQ", "HKY{3}+FQ"))
    start = parsimony_start(data.parsimony(), 1)
    found = search(data, start, FEW)
    alone = search_tree(whole, model_for_alignment("HKY{3}+FQ", whole), start, FEW)
    assert found.optimum.log_likelihood == pytest.approx(alone.optimum.log_likelihood, abs=1e-4)
    assert robinson_foulds(found.optimum.tree, alone.optimum.tree) == 0
    other = several(halves, "linked", ("HKY{3}+FQ", "JC"))
    assert search(other, start, FEW).optimum.log_likelihood < found.optimum.log_likelihood - 1


def test_supports_threads_and_a_search_that_goes_on(simulated, tmp_path):
    data, wanted = several(simulated, "unlinked"), SupportSettings(alrt=100, ufboot=1000)
    start = parsimony_start(data.parsimony(), 1)
    one = search(data, start, FEW, supports=wanted)
    two = search(data, start, replace(FEW, threads=2), supports=wanted)
    assert one.optimum.log_likelihood == two.optimum.log_likelihood and one.supports == two.supports
    inner = [s.tobytes() for s in tree_splits(one.optimum.tree)]
    for name in (ALRT, UFBOOT):
        assert np.mean([one.supports[name][s] for s in inner]) > 0.8

    class Killed(Exception):
        pass

    class Mortal(Checkpoint):
        def write(self, state, now=False):
            super().write(state, now=True)
            if state.tries == 1:
                raise Killed

    path = str(tmp_path / "c")
    with pytest.raises(Killed):
        search(data, start, FEW, checkpoint=Mortal(path, "me"))
    again = search(data, start, FEW, checkpoint=Checkpoint(path, "me"))
    assert again.optimum.log_likelihood == one.optimum.log_likelihood
    assert [tree.lengths.tolist() for tree in again.optimum.part_trees.values()] == [
        tree.lengths.tolist() for tree in one.optimum.part_trees.values()
    ]


def test_columns_are_drawn_within_parts(simulated):
    data = several(simulated, "proportional")
    counts = resampled_weights(data.weights, 50, 1, 1)
    own = len(data.weights[0])
    assert (counts[:, :own].sum(1) == 250).all() and (counts[:, own:].sum(1) == 200).all()
    together = resampled_weights([np.concatenate(data.weights)], 50, 1, 1)
    assert together[:, :own].sum(1).std() > 0
    named = [("x", simulated[0], "HKY+FQ"), ("y", simulated[1], "JC")]
    drawing = Resampling(named, Linkage("proportional"), distinct(*simulated, apart=True))
    drawn = drawing.drawn(np.random.default_rng(1))
    assert [w.sum() for w in drawn.weights] == [250, 200]
    trees = bootstrap_trees(drawing, data.start_values(), 2, FEW)
    assert len(trees) == 2 and trees[0].taxa == simulated[0].taxa


def test_parts_are_drawn_whole_or_with_their_sites(simulated):
    weights = several(simulated, "proportional").weights
    own = len(weights[0])
    for sampling in ("gene", "genesite"):
        counts = resampled_weights(weights, 300, 1, 1, sampling)
        times = np.stack([counts[:, :own].sum(1) / 250, counts[:, own:].sum(1) / 200], 1)
        assert (times.sum(1) == 2).all() and np.isin(times, (0, 1, 2)).all()
        assert times[:, 0].var() == pytest.approx(0.5, abs=0.15)  # binomial, of two draws
        whole = np.repeat(times, [own, counts.shape[1] - own], axis=1) * np.concatenate(weights)
        assert (counts == whole).all() == (sampling == "gene")
    named = [(name, data, "HKY+FQ") for name, data in zip("xyz", (*simulated, simulated[0]))]
    shared = {"kappa": (("x", "y"), ("z",))}
    drawing = Resampling(named, Linkage("proportional", shared), distinct(*simulated, apart=True))
    sizes, whole = {"x": 250, "y": 200, "z": 250}, drawing.whole(ON_CPU)
    for sampling in ("gene", "genesite"):
        own = replace(drawing, sampling=sampling)
        seen = set()
        for k in range(8):
            data = own.drawn(np.random.default_rng(k))
            seen.add(names := tuple(data.part_sites))
            total = sum(w.sum() for w in data.weights)
            times = np.bincount(np.random.default_rng(k).integers(0, 3, 3), minlength=3)
            assert names == tuple(name for name, n in zip("xyz", times) if n)
            assert total == sum(n * sizes[name] for name, n in zip("xyz", times))
            values = own.values_of(
                data, whole.start_values() | {"partition_rates": np.array([0.5, 1.5, 1.1])}
            )
            rates = dict(zip("xyz", (0.5, 1.5, 1.1)))
            expected = np.array([rates[name] for name in names])
            mean = np.dot(expected, [n * sizes[x] for x, n in zip("xyz", times) if n]) / total
            assert np.allclose(values["partition_rates"], expected / mean)
        assert {len(names) for names in seen} >= {1, 2}
        fitted = whole.start_values() | {"partition_rates": np.array([0.6, 1.5, 1.0])}
        trees = bootstrap_trees(own, fitted, 3, FEW)
        assert len(trees) == 3


def test_sequences_are_identical_where_all_parts_are(simulated):
    same = [replace(d, codes=d.codes.copy()) for d in simulated]
    for d in same:
        d.codes[3] = d.codes[2]
    assert distinct(*same).n_copies == 1 and distinct(same[0]).n_copies == 1
    assert distinct(same[0], simulated[1]).n_copies == 0


def test_parts_that_cannot_be_searched_are_named(simulated):
    with pytest.raises(ModelError, match=r"part 'y'.*not reversible"):
        several(simulated, "linked", ("JC", "UNREST"))
    few = [replace(d, taxa=d.taxa[:2], codes=d.codes[:2]) for d in simulated]
    with pytest.raises(InputError, match="three taxa"):
        several(few, "linked")


def test_half_edges_are_numbered_alike_on_all_sets(simulated):
    data = several(simulated, "unlinked")
    found = search(data, parsimony_start(data.parsimony(), 1), FEW)
    edges = data.edges_of(found.optimum)
    again = [half_edges(tree, data.taxa) for tree in found.optimum.part_trees.values()]
    assert all(np.array_equal(one.back, edges.back) for one in again)
    value = data.likelihood(edges, data.values_of(found.optimum), 1).log_likelihood()
    assert value == pytest.approx(found.optimum.log_likelihood, rel=1e-12)
