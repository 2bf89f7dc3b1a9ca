"""How long the steps of trajectories become in the warm-up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.uniform import Uniform
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time.records import JOINT, LOG_MEAN
from phloem.inference.time.run import advanced, new_run
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.model.grammar import parse_model

TAXA = tuple("abcdef")


@pytest.mark.parametrize("seed", [1, 2])
def test_ages_with_sharp_limits_do_not_make_them_short(seed):
    """A trajectory that leaves the limits fails whatever its steps are: they became 1,000 times too short."""
    structure = structure_of_model(parse_model("JC", datatype="dna"), 1)
    root = Clade("root", TAXA, age=Exponential(0.25), offset=12.0)
    inner = Clade("inner", TAXA[:2], together=True, age=Uniform(1.0, 3.0))
    tree = TreeModel(prior="yule", clades=(root, inner))
    model = time_model(structure, tree, TAXA, np.zeros((6, 2)), math.nan)
    settings = TimeSettings(n_runs=1, generations=20_000, sample_every=100, use_data=False, seed=seed)
    nothing = alignment_from_sequences(dict.fromkeys(TAXA, "N"), alphabet("dna"))
    run = advanced(new_run(0, [observations(nothing)], model, settings), settings.generations)
    assert run.state.steps[JOINT, LOG_MEAN] > math.log(0.01)
