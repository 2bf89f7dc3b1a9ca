"""AAMIXED: which of ten amino-acid matrices holds is a number of the chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mcmc_data import prior_text
from phloem.analysis.partitioned_likelihood import read_linkage
from phloem.density.parameterisation import parameterise
from phloem.density.parts import PartModel
from phloem.density.space import Block
from phloem.errors import InputError, ModelError
from phloem.inference.mcmc import start
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.priors import number_priors
from phloem.inference.mcmc.recipes import observations, recipes_of
from phloem.inference.mcmc.records import CHOICE, COMPILED, KIND, MATRIX
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.samples import choices_of, model_shares
from phloem.inference.mcmc.settings import ChainSettings, Priors
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.amino_acid import MIXED_MATRICES, empirical_matrices
from phloem.model.grammar import parse_model
from phloem.tree.tree import Tree

ROOT = Path(__file__).resolve().parents[4]


def model(text: str):
    return parse_model(text, datatype="protein")


@pytest.mark.parametrize("number", range(10))
def test_a_number_stands_for_the_matrix_that_mrbayes_prints_so(number):
    name = MIXED_MATRICES[number]
    one, other = model(f"AAMIXED{{{number}}}+G4{{0.7}}").evaluate(), model(f"{name}+G4{{0.7}}").evaluate()
    assert np.array_equal(one.processes[0].rate_matrix, other.processes[0].rate_matrix)
    assert np.array_equal(one.processes[0].frequencies, empirical_matrices()[name].frequencies)
    free = model("AAMIXED+FQ").evaluate({"aamodel": number}).processes[0]
    assert np.array_equal(free.rate_matrix, model(f"{name}+FQ").evaluate().processes[0].rate_matrix)
    assert choices_of("aamodel{a}")[number] == name


def test_numbers_that_are_no_model_are_refused():
    for text in ("AAMIXED{10}", "AAMIXED{2.5}", "AAMIXED{-1}"):
        with pytest.raises(ModelError):
            model(text)
    made = structure_of_model(model("AAMIXED"))
    with pytest.raises(InputError, match="all as probable"):
        number_priors(made, Priors(others=("aamodel=uniform(0,1)",)))
    [prior] = number_priors(made, Priors())
    assert prior.family.log_density(np.array([9.0])) == pytest.approx(-np.log(10), rel=1e-15)


def test_only_the_sampler_takes_such_a_model():
    for text in ("AAMIXED+G4", "MIXED"):  # the latter too, of proteins
        with pytest.raises(ModelError, match="only phloem mcmc and time average"):
            model(text).evaluate()
    lengths = Block("lengths", "positive", np.ones(3), 1e-8, 10.0)
    with pytest.raises(ModelError, match="only phloem mcmc and time average"):
        parameterise([PartModel("a", model("AAMIXED"), 10)], lengths)
    for text, column in (("MIX{LG,AAMIXED}", 8), ("AAMIXED*H2", 1)):
        with pytest.raises(ModelError, match="cannot be one of several") as told:
            model(text)
        assert told.value.column == column
    assert prior_text(structure_of_model(model("AAMIXED+G4")), Priors()).endswith(
        "each of 10 matrices as probable, exponential(1) alpha"
    )


def test_parts_choose_together_or_each_for_itself():
    models = {name: model(text) for name, text in (("a", "AAMIXED"), ("b", "LG"), ("c", "AAMIXED+FO"))}
    parts = [PartModel(name, models[name], 10) for name in "abc"]
    apart, shared = (
        structure_of_parts(parts, read_linkage("linked", links, models)) for links in ([], ["aamodel:a,c"])
    )
    assert {"aamodel{a}", "aamodel{c}"} <= {b.name for b in apart.space.blocks}
    assert "aamodel" in shared.space
    recipes = recipes_of(apart)
    assert recipes.base.shape == (21, 20, 20) and recipes.rows[:, MATRIX].tolist() == [0, 10, 11]
    assert recipes.rows[1, CHOICE] == -1 and (recipes.rows[[0, 2], KIND] == COMPILED).all()
    both = recipes_of(shared)
    assert both.rows[0, CHOICE] == both.rows[2, CHOICE] == shared.space.place("aamodel").start


# chains -------------------------------------------------------------------------------------------------


def evolved(n_sites: int, seed: int, matrix: str):
    """Proteins of six taxa under a known matrix."""
    tree = Tree(
        tuple(f"t{i}" for i in range(6)),
        np.array([6, 6, 7, 8, 8, 9, 7, 9, 9, -1], np.int32),
        np.array([0.3, 0.4, 0.2, 0.3, 0.5, 0.2, 0.3, 0.2, 0.2, 0.0]),
        rooted=False,
    )
    return simulate_alignment(tree, model(matrix), n_sites, seed)


def run(alignment, text: str, prefix: str | None, generations: int, **given):
    made = structure_of_model(model_for_alignment(text, alignment))
    settings = ChainSettings(
        seed=2, generations=generations, sample_every=25, check_every=500, n_runs=2, n_chains=2,
        tuning_generations=200, **given,
    )  # fmt: skip
    plain = plain_likelihood([alignment], made)
    return sample(observations(alignment), made, settings, prefix, {"seed": 2}, None, None, plain)


@pytest.mark.parametrize("truth", ["mtREV", "Blosum62"])
def test_the_matrix_of_simulated_data_is_found_and_a_killed_run_goes_on(tmp_path, truth):
    alignment = evolved(300, 4, truth)
    whole = run(alignment, "AAMIXED+G4", str(tmp_path / "whole"), 1500)
    assert whole.runs[0].data.recipes.rows[0, KIND] == COMPILED
    run(alignment, "AAMIXED+G4", str(tmp_path / "parts"), 500)
    assert run(alignment, "AAMIXED+G4", str(tmp_path / "parts"), 1500).resumed_at == 500
    texts = [(tmp_path / f"{name}.run2.p").read_text() for name in ("whole", "parts")]
    assert texts[0] == texts[1]
    names = ("LnL", "LnPr", *whole.runs[0].columns.names)
    assert names[-2:] == ("alpha", "aamodel")  # as MrBayes has them
    draws = np.stack([own.samples.numbers[30:] for own in whole.runs])
    best, *_ = model_shares(names, draws)
    assert (best.name, best.column) == (truth, "aamodel") and best.probability > 0.9
    assert {row.split("\t")[-1] for row in texts[0].splitlines()[2:]} <= {str(k) for k in range(10)}


def test_a_wrong_matrix_is_seen(monkeypatch):
    """The control: the compiled loop takes the matrix beside the one that is chosen."""
    right = start.recipes_of

    def wrong(structure):
        found = right(structure)
        return found._replace(base=np.roll(found.base, 1, axis=0))

    monkeypatch.setattr(start, "recipes_of", wrong)
    with pytest.raises(Exception, match="log-likelihood"):
        run(evolved(60, 4, "mtREV"), "AAMIXED+G4", None, 200)
