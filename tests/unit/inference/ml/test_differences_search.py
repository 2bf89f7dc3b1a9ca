"""Trees of simulated outbreaks: found again, the same on any number of threads, and after a kill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.differences.outbreaks import SITES, outbreak, with_mutations

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.differences.cpu.placement import Reach
from phloem.differences.engine import Engine
from phloem.errors import InputError
from phloem.inference.ml import differences_search as module
from phloem.inference.ml.differences_search import (
    DifferencesSettings,
    counted_frequencies,
    next_rates,
    order_of,
    search_differences,
)
from phloem.inference.ml.differences_state import DifferencesState
from phloem.inference.ml.search_state import Checkpoint
from phloem.io.genomes import genomes_of
from phloem.io.trees import newick_text
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model


def problem(tips=60, seed=1, text="HKY+F", gaps=True, mutations=1.0):
    alignment, true = outbreak(tips, seed, mutations, gaps)
    genomes = genomes_of(alignment)
    model = parse_model(text, datatype="dna", empirical_frequencies=counted_frequencies(genomes))
    return genomes, model, true


def numbers(result):
    return newick_text([result.tree]), result.log_likelihood, result.values["kappa"]


def test_the_true_tree_is_found():
    genomes, model, true = problem(gaps=False)
    result = search_differences(genomes, model)
    wanted, found = with_mutations(true), with_mutations(result.tree)
    assert len(wanted ^ found) <= 2
    assert len(wanted) > 20
    assert result.converged
    assert sorted(result.tree.taxa) == sorted(true.taxa)


def test_equal_genomes_are_put_back_without_a_length():
    some = "ACGT" * 198
    texts = {name: "ACGT" + some + "ACGT" for name in "ab"}
    texts |= {"c": "ACGA" + some + "ACGT", "d": "ACGA" + some + "ACGA"}
    texts |= {"e": texts["d"], "f": texts["d"]}
    genomes = genomes_of(alignment_from_sequences(texts, alphabet("dna")))
    assert genomes.n_distinct == 3
    tree = search_differences(genomes, parse_model("JC", datatype="dna")).tree
    parents = {name: int(tree.parent[x]) for x, name in enumerate(tree.taxa)}
    assert parents["d"] == parents["e"] == parents["f"]
    assert [float(tree.lengths[x]) for x in range(6) if tree.taxa[x] in "abdef"] == [0.0] * 5
    with pytest.raises(InputError, match="only 2 are distinct"):
        few = {k: texts[k] for k in "abd"}
        search_differences(
            genomes_of(alignment_from_sequences(few, alphabet("dna"))), parse_model("JC", datatype="dna")
        )


def test_threads_change_no_number_and_seeds_may():
    genomes, model, _ = problem()
    one = search_differences(genomes, model, DifferencesSettings(supports=True))
    two = search_differences(genomes, model, DifferencesSettings(threads=3, supports=True))
    assert numbers(one) == numbers(two)
    assert one.supports is not None and np.array_equal(one.supports, two.supports)
    assert ((one.supports > 0) & (one.supports <= 1)).all()
    assert not np.array_equal(order_of(genomes, 1), order_of(genomes, 2))


class Kill(Exception):
    """Planted."""


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_search_ends_the_same(tmp_path, monkeypatch, after):
    monkeypatch.setattr(module, "_FIRST_FIT", 20)
    monkeypatch.setattr(module, "_BATCH", 25)
    genomes, model, _ = problem()
    whole = numbers(search_differences(genomes, model))
    path = str(tmp_path / "x.checkpoint")

    class Killing(Checkpoint):
        writes = 0

        def write(self, state, now=False):
            super().write(state, now)
            self.writes += 1
            if self.writes == after:
                raise Kill

    with pytest.raises(Kill):
        kept = Killing(path, "same", seconds=0.0, from_json=DifferencesState.from_json)
        search_differences(genomes, model, checkpoint=kept)
    again = Checkpoint(path, "same", seconds=0.0, from_json=DifferencesState.from_json)
    assert numbers(search_differences(genomes, model, checkpoint=again)) == whole
    state = again.read()
    state.length = state.length * 1.5  # a state that was changed leads elsewhere
    again.write(state, now=True)
    assert numbers(search_differences(genomes, model, checkpoint=again)) != whole


def test_moves_gain_what_they_promise():
    genomes, model, _ = problem(tips=40, seed=5)
    rng = np.random.default_rng(0)
    engine = Engine(genomes, rng.permutation(genomes.n_distinct))
    process = model.evaluate(model.start_values()).processes[0]
    engine.set_rates(process.rate_matrix, process.frequencies)
    narrow, wide = Reach(0.1, 1 / SITES, 1, 1), Reach(40.0, 1 / SITES, 10_000, 1000)
    engine.add(engine.tips, narrow)  # on the first branch that comes: a bad tree
    engine.fit_lengths(3)
    before = engine.log_likelihood()
    for _ in range(6):
        movable = np.flatnonzero((engine.tree.parent > 0) & (engine.tree.length > 0))
        moved, promised, _ = engine.improve(movable, wide)
        engine.make_lists()
        after = engine.log_likelihood()
        assert after >= before - 0.05
        assert moved == 0 or promised > 0
        before = after
    engine.fit_lengths(3)
    good = search_differences(genomes, model)
    engine_rates = model.evaluate(good.values).processes[0]
    engine.set_rates(engine_rates.rate_matrix, engine_rates.frequencies)
    engine.fit_lengths(10)
    assert engine.log_likelihood() == pytest.approx(good.log_likelihood, abs=3.0)


@pytest.mark.parametrize("text", ["GTR+F+G4", "GTR+FO", "UNREST", "JC+I", "MIX{JC,HKY}", "GTR+F+R2"])
def test_models_that_it_does_not_have_are_refused(text):
    genomes, _, _ = problem(tips=5)
    model = parse_model(text, datatype="dna", empirical_frequencies=counted_frequencies(genomes))
    with pytest.raises(InputError) as caught:
        search_differences(genomes, model)
    assert caught.value.hint is not None


def test_given_rates_are_kept_and_share_the_scale():
    genomes, _, _ = problem(tips=5)
    model = parse_model("TN93{kappa_R=3}+F{0.25,0.25,0.25,0.25}", datatype="dna")
    counts = np.full((4, 4), 10.0)
    counts[0, 2] = counts[2, 0] = 30.0  # as 3 has it
    counts[1, 3] = counts[3, 1] = 50.0
    found = next_rates(model, np.full(4, 0.25), counts, np.ones(4))
    assert found == {"kappa_Y": pytest.approx(5.0)}
    assert not genomes.n_distinct < 3
    assert next_rates(model, np.full(4, 0.25), np.zeros((4, 4)), np.zeros(4)) == {}  # no length anywhere


def test_a_tree_begins_as_it_is_given():
    """The engine's tree, written and taken in again, has the same likelihood; another one has not."""
    genomes, model, true = problem(tips=40, seed=3)
    found = search_differences(genomes, model)
    again = module._Search(genomes, model, DifferencesSettings(), lambda *_: None, found.tree)
    again._values |= found.values
    again._set_rates()
    again._begin()
    assert again.engine.placed == genomes.n_distinct
    assert again._value == pytest.approx(found.log_likelihood, abs=0.05)
    shuffled = replace(found.tree, taxa=found.tree.taxa[3:] + found.tree.taxa[:3])
    other = module._Search(genomes, model, DifferencesSettings(), lambda *_: None, shuffled)
    other._set_rates()
    other._begin()
    assert other._value < found.log_likelihood - 20
    assert true.n_tips == 40


def test_genomes_with_hardly_any_data_are_possible():
    """One that shares only a column with the others, where it differs, and one of missing data alone."""
    alignment, _ = outbreak(20, 6)
    texts = {name: "".join("ACGT-"[c] if c < 5 else "N" for c in row) for name, row in
             zip(alignment.taxa, alignment.codes)}  # fmt: skip
    texts["few"] = "N" * 300 + "ACGT"["ACGT".index(texts["t0"][300]) - 1] + "N" * (SITES - 301)
    texts["none"] = "N" * SITES
    data = alignment_from_sequences(texts, alphabet("dna"))
    genomes = genomes_of(data)
    model = parse_model("HKY+F", datatype="dna", empirical_frequencies=counted_frequencies(genomes))
    found = search_differences(genomes, model)
    exact = TreeLikelihood(data, found.tree, found.model_text, engine="reference", multifurcations=True)
    assert found.log_likelihood == pytest.approx(exact.log_likelihood(), abs=0.5)


def test_sequences_that_are_too_different_are_refused():
    genomes, model, _ = problem(tips=20, mutations=12.0)
    with pytest.raises(InputError, match="is for nearly equal ones"):
        search_differences(genomes, model)
