"""The choice of a model: what is tried, what is skipped and why that is safe, and that the fits are fits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alphabet import alphabet
from phloem.errors import InputError, ModelError
from phloem.inference.ml import model_choice
from phloem.inference.ml.model_choice import ChoiceSettings, choose_model
from phloem.inference.ml.model_sets import Base, bases, rate_names
from phloem.inference.ml.optimize import optimize
from phloem.inference.ml.starts import one_class_more
from phloem.inference.ml.tree_search import Start, bionj_start
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted

DNA, PROTEIN = alphabet("dna"), alphabet("protein")


@pytest.fixture(scope="module")
def simulated():
    truth = uniform_unrooted(10, np.random.default_rng(4), 0.15)
    model = parse_model("HKY{5}+F{0.4,0.1,0.2,0.3}+G4{0.4}", datatype="dna")
    return simulate_alignment(truth, model, 1500, seed=3)


@pytest.fixture(scope="module")
def choice(simulated):
    return choose_model(simulated, bionj_start(simulated))


def test_the_family_that_made_the_data_wins(choice):
    assert choice.winner.text == "HKY+F+G4"
    tried = {c.text for c in choice.candidates} | {s.text for s in choice.skipped}
    assert {b.text + "+G4" for b in bases(DNA)} <= tried
    assert {"GTR+F", "GTR+F+I", "GTR+F+I+G4", "GTR+F+R2", "HKY+F+R2", "HKY+F+I"} <= tried
    values = [c.fit.bic for c in choice.candidates]
    assert values == sorted(values) and choice.weights("bic").sum() == pytest.approx(1)
    assert choice.weights("bic")[0] == choice.weights("bic").max()


def wrong_fits(candidates, data) -> list[str]:
    """Names of those whose log-likelihood is not that of a fit from scratch on the same tree: of rivals of
    the best to 0.02, of the others to half a unit."""
    wrong, best = [], candidates[0].fit.bic
    for c in candidates:
        full = optimize(TreeLikelihood(data, c.fit.tree, c.text, "cpu", threads=1)).log_likelihood
        if not full - (0.02 if c.fit.bic < best + 3 else 0.5) < c.fit.log_likelihood < full + 0.02:
            wrong.append(c.text)
    return wrong


def test_every_fit_is_what_a_fit_from_scratch_reaches(choice, simulated, monkeypatch):
    some = [c for c in choice.candidates if c.base.text in ("HKY+F", "GTR+F")]
    assert len(some) > 8 and wrong_fits(some, simulated) == []
    true = model_choice.refine
    monkeypatch.setattr(model_choice, "refine", lambda l, s=({},), t=1e-4, *_, **k: true(l, s, t, 1))
    stopped = choose_model(simulated, bionj_start(simulated), ChoiceSettings(families=("HKY", "GTR")))
    assert wrong_fits(stopped.candidates, simulated)


def broken_bounds(skipped, data, tree, best: float) -> list[str]:
    """Of models that were not fitted, those that beat their bound or come near the best."""
    broken = []
    for s in skipped:
        fit = optimize(TreeLikelihood(data, tree, s.text, "cpu", threads=1))
        if fit.bic < s.least.bic - 0.1 or fit.bic < best + 10:
            broken.append(s.text)
    return broken


def test_what_is_not_fitted_cannot_win(choice, simulated):
    tree, best = choice.winner.fit.tree, choice.winner.fit.bic
    assert len(choice.skipped) > 3
    assert broken_bounds(choice.skipped, simulated, tree, best) == []
    planted = choice.skipped[0]._replace(text="HKY+F+G4")  # one that should not have been left out
    assert broken_bounds([planted], simulated, tree, best) == ["HKY+F+G4"]


def test_one_family_contains_another_where_its_classes_are_unions():
    nucleotides = [b for b in bases(DNA) if b.frequencies == "FQ"]
    assert nucleotides[0].text == "SYM" and nucleotides[-1].text == "JC"
    for a, b in itertools.permutations(nucleotides, 2):
        together = all(b.code[i] == b.code[j] for i in range(6) for j in range(6) if a.code[i] == a.code[j])
        assert a.contains(b) == together, (a.text, b.text)
    gtr, k80 = Base("GTR+F", "123450", "F"), Base("K80", "010010", "FQ")
    assert not gtr.contains(k80)  # frequencies that were counted are not free to become equal


def test_sets_of_names():
    assert [b.text for b in bases(DNA, ("hky", "GTR"), ("F", "FO"))] == [
        "GTR+F", "GTR+FO", "HKY+F", "HKY+FO",
    ]  # fmt: skip
    proteins = [b.text for b in bases(PROTEIN)]
    assert proteins[:2] == ["LG", "LG+F"] and {"Q.plant", "Q.yeast+F", "mtREV"} <= set(proteins)
    assert {"mtVer", "mtMet+F", "mtInv", "FLAVI"} <= set(proteins)
    assert not any(name.startswith("LG4") for name in proteins)
    mixed = bases(PROTEIN, ("LG4X", "LG"), None)
    assert [(b.text, b.whole) for b in mixed] == [("LG", False), ("LG+F", False), ("LG4X", True)]
    assert [b.text for b in bases(alphabet("binary"))] == ["MK", "MK+FO"]
    assert rate_names(("g", "I+G", "+R", "")) == ("G4", "I+G4", "R", "E")


def test_names_that_there_are_not(simulated):
    with pytest.raises(ModelError, match="no family"):
        bases(DNA, ("LG",))
    with pytest.raises(InputError, match="no member"):
        rate_names(("H4",))
    with pytest.raises(InputError, match="no criterion"):
        ChoiceSettings(criterion="best")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="not reversible"):
        choose_model(simulated, bionj_start(simulated), ChoiceSettings(families=("UNREST+G4",)))


def test_a_class_cut_in_two_is_the_same_model_to_first_order():
    start = {"rates": np.array([0.2, 2.0]), "weights": np.array([0.6, 0.4])}
    for more in one_class_more(start):
        assert more["weights"].sum() == pytest.approx(1) and len(more["rates"]) == 3
        assert (np.diff(more["rates"]) >= 0).all()


def test_a_tree_given_is_where_the_climb_begins(simulated):
    tree = uniform_unrooted(10, np.random.default_rng(1), 0.1)
    settings = ChoiceSettings(families=("JC",), rates=("E",))
    found = choose_model(simulated, Start(tree), settings)
    assert found.origin == "the tree given" and [c.text for c in found.candidates] == ["JC"]


def test_a_criterion_that_is_infinite_for_all_models_chooses_none(monkeypatch):
    truth = uniform_unrooted(6, np.random.default_rng(1), 0.1)
    aicc = ChoiceSettings(families=("JC", "K80"), rates=("E", "G4"), criterion="aicc")
    for n_sites, told in ((9, "9 free numbers at least"), (10, "9 free"), (12, None)):
        data = simulate_alignment(truth, parse_model("JC", datatype="dna"), n_sites, seed=2)
        if told is None:
            assert np.isfinite(choose_model(data, bionj_start(data), aicc).winner.fit.aicc)
            continue
        with pytest.raises(InputError, match=f"{n_sites} sites, and {told}"):
            choose_model(data, bionj_start(data), aicc)
    few = ChoiceSettings(families=("GTR",), frequencies=("FO",), rates=("E",), criterion="aicc")
    data = simulate_alignment(truth, parse_model("JC", datatype="dna"), 18, seed=2)
    with pytest.raises(InputError, match="17 free numbers at least"):  # known when it was fitted
        choose_model(data, bionj_start(data), few)
    monkeypatch.setattr(model_choice._Choice, "_require_defined", lambda *_: None)
    assert choose_model(data, bionj_start(data), few).winner.fit.aicc == np.inf


def test_all_models_of_a_choice_know_that_only_variable_characters_are_there():
    truth, general = uniform_unrooted(8, np.random.default_rng(3), 0.15), "MK+F{0.7,0.3}+G4{0.5}"
    data = simulate_alignment(truth, parse_model(general, datatype="binary", n_states=2), 600, seed=4)
    with pytest.raises(InputError, match="281 of 600 characters are constant"):
        choose_model(data, bionj_start(data), ChoiceSettings(ascertained=True))
    varies = data.codes.min(0) < data.codes.max(0)
    variable = replace(data, codes=np.ascontiguousarray(data.codes[:, varies]))
    found = choose_model(variable, bionj_start(variable), ChoiceSettings(ascertained=True))
    texts = [c.text for c in found.candidates]
    assert all("+ASC" in text for text in texts) and {"MK+ASC", "MK+FO+ASC+G4", "MK+FO+ASC+R2"} <= set(texts)
    assert not any("+I" in text for text in texts) and found.winner.text.startswith("MK+FO+ASC+")
    full = optimize(TreeLikelihood(variable, found.winner.fit.tree, "MK+FO+G4+ASC", "cpu", threads=1))
    there = next(c.fit for c in found.candidates if c.text == "MK+FO+ASC+G4")
    assert there.log_likelihood == pytest.approx(full.log_likelihood, abs=0.05)
    plain = choose_model(variable, bionj_start(variable))  # control: what it comes to where nothing knows
    assert plain.winner.fit.tree.lengths.sum() > 1.5 * found.winner.fit.tree.lengths.sum()
