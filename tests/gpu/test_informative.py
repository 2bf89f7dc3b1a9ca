"""+ASC{informative} on a device: likelihood, gradient and chains against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.unseen import unseen_patterns
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood import problem
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.random import uniform_unrooted

ROWS = {"t0": "0011010", "t1": "0101101", "t2": "1100110", "t3": "1010001", "t4": "1?10110"}
DATA = alignment_from_sequences(ROWS, alphabet("binary"))


def test_value_and_gradient_are_the_references(monkeypatch):
    tree = replace(uniform_unrooted(5, np.random.default_rng(3)), taxa=DATA.taxa)
    text = "MK+F{0.4,0.6}+G2{0.5}+ASC{informative}"
    found, wanted = (TreeLikelihood(DATA, tree, text, engine).gradient() for engine in ("gpu", "reference"))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-8, atol=1e-8)
    monkeypatch.setattr(problem, "unseen_patterns", lambda *of: unseen_patterns(*of)[:, :-1])
    other = TreeLikelihood(DATA, tree, text, "gpu").log_likelihood()  # the control: a singleton left out
    assert abs(other - wanted.log_likelihood) > 1e-3


def test_chains_on_a_device():
    structure = structure_of_model(model_for_alignment("MK+FO+G2+ASC{informative}", DATA))
    settings = ChainSettings(n_chains=2, sample_every=3, tuning_generations=6)
    observed = [observations(DATA, structure.parts[0].model.unseen)]
    run = advanced(new_run(0, observed, structure, settings, device="gpu"), 9)
    plain = plain_likelihood([DATA], structure)
    expected = [plain(*run.samples.tree_and_numbers(i, run.columns.names)) for i in range(run.samples.n)]
    assert run.state.accepted.sum() > 0
    np.testing.assert_allclose(run.samples.numbers[:, 0], expected, rtol=1e-10)
    on_cpu = advanced(new_run(0, observed, structure, settings), 9)
    np.testing.assert_allclose(run.samples.numbers, on_cpu.samples.numbers, rtol=1e-9, atol=1e-9)
