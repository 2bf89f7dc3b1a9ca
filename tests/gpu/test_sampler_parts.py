"""Several parts of the data on a device, likelihood and chains: any data together, whatever parts share."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import sites_per_character, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.pruning import parts
from phloem.pruning.grid import OnRanks
from phloem.tree.random import uniform_unrooted
from unit.inference.mcmc.ranks_in_threads import led

SETTINGS = ChainSettings(n_chains=2, sample_every=3, tuning_generations=6)
MIXED = (("dna", "GTR+I+G2", 5), ("protein", "LG", 3), ("binary", "MKV", 4))
SAME = (("dna", "HKY+G2", 4), ("dna", "HKY+R2", 5))


def case(given, linkage):
    """(alignments, structure, observations)."""
    data, models = [], []
    for seed, (kind, text, n_sites) in enumerate(given):
        rng, letters = np.random.default_rng(seed), list(alphabet(kind).states[:4])
        rows = rng.choice(letters, (4, n_sites))
        if kind == "binary":
            rows[0], rows[1] = letters[:2]
        data.append(
            alignment_from_sequences({f"t{i}": "".join(row) for i, row in enumerate(rows)}, alphabet(kind))
        )
        model = model_for_alignment(text, data[-1])
        models.append(PartModel(f"p{seed}", model, n_sites, sites_per_character(model)))
    observed = [observations(a, m.model.unseen) for a, m in zip(data, models)]
    return data, structure_of_parts(models, linkage), observed


def run_of(observed, structure, settings=SETTINGS, *more, **options):
    return new_run(0, observed, structure, settings, *more, device="gpu", **options)


def errors(run, data):
    """Of the log-likelihood of every sample, relative to the reference's."""
    plain = plain_likelihood(data, run.structure)
    expected = [plain(*run.samples.tree_and_numbers(i, run.columns.names)) for i in range(run.samples.n)]
    return np.abs(run.samples.numbers[:, 0] / expected - 1)


@pytest.mark.parametrize(
    ("parts", "linkage"),
    [
        (MIXED, Linkage("proportional")),
        pytest.param(MIXED, Linkage("unlinked"), marks=LATER),
        (SAME, Linkage("linked", {"kappa": (("p0", "p1"),)})),
    ],
)
def test_parts_on_a_device(parts, linkage):
    data, structure, observed = case(parts, linkage)
    whole = advanced(run_of(observed, structure), 9)
    assert whole.state.accepted.sum() > 0 and errors(whole, data).max() < 1e-10
    layouts = 3 if parts is MIXED else 1  # parts of one layout share launches
    assert len(whole.on_device.groups[0].forests) == layouts
    on_cpu = advanced(new_run(0, observed, structure, SETTINGS), 9)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-9, atol=1e-9)
    half = advanced(run_of(observed, structure), 6)
    resumed = run_of(observed, structure, SETTINGS, half.state, half.samples, threads=2)
    assert len(resumed.on_device.groups) == 2  # a thread has a chain, with all its parts
    assert np.array_equal(advanced(resumed, 3).samples.numbers, whole.samples.numbers)
    resumed.on_device.dismiss(resumed.shared)


def test_the_likelihood_of_parts_and_its_gradient():
    data, _, _ = case(MIXED, Linkage("proportional"))
    texts = ("GTR{1,2,1,1,2}+F+I{0.1}+G2{0.5}", "LG", "MKV")
    named = {name: (alignment, text) for name, alignment, text in zip("abc", data, texts)}
    tree = replace(uniform_unrooted(4, np.random.default_rng(3)), taxa=data[0].taxa)
    found, wanted = (
        PartitionedLikelihood(named, tree, Linkage("proportional"), engine).gradient(parameters=True)
        for engine in ("gpu", "cpu")
    )
    np.testing.assert_allclose(found.part_log_likelihoods, wanted.part_log_likelihoods, rtol=1e-9)
    for name in ("branch_lengths", "partition_rates"):
        a, b = getattr(found, name), getattr(wanted, name)
        assert np.abs(a - b).max() < 1e-8 * np.abs(b).max()
    largest = max(map(abs, wanted.parameters.values()))
    assert found.parameters.keys() == wanted.parameters.keys()
    assert all(abs(found.parameters[k] - wanted.parameters[k]) < 1e-8 * largest for k in found.parameters)
    codes = data[1].codes.copy()
    codes[0, 0] = (codes[0, 0] + 1) % 4  # the control: another character in one part is seen
    named["b"] = (replace(data[1], codes=codes), "LG")
    other = PartitionedLikelihood(named, tree, Linkage("proportional"), "gpu").log_likelihood()
    assert abs(other / wanted.log_likelihood - 1) > 1e-6


def test_processes_with_a_gpu_each_share_parts(monkeypatch):
    """The same bits on one and two, of parts that share launches and one with an evaluator of its own; the
    control: processes are sent other lengths."""
    data, _, _ = case((*MIXED, *SAME), Linkage("proportional"))
    texts = ("GTR{1,2,1,1,2}+F+I{0.1}+G2{0.5}", "LG", "MKV", "HKY{2}+F+G2{1}", "HKY{3}+F+G2{2}")
    named = {name: (alignment, text) for name, alignment, text in zip("abcde", data, texts)}
    tree = replace(uniform_unrooted(4, np.random.default_rng(3)), taxa=data[0].taxa)
    monkeypatch.setattr(parts.PartsAmongRanks, "_measured", lambda *_: (1.0, 0.0))
    right, turns = parts.PartsEvaluator.gradients, threading.RLock()  # Triton's interpreter has one thread

    def in_turn(self, *given):
        with turns:
            return right(self, *given)

    def with_others(self, lengths, *given):
        return in_turn(self, [1.000001 * own for own in lengths], *given)

    monkeypatch.setattr(parts.PartsEvaluator, "gradients", in_turn)

    def numbers(size):
        def work(ranks):
            on, linkage = OnRanks("gpu", ranks), Linkage("proportional")
            likelihood = PartitionedLikelihood(named, tree, linkage, on)
            found = likelihood.gradient(parameters=True)
            slopes = np.array([found.parameters[k] for k in sorted(found.parameters)])
            told = likelihood.selections["a"].reason
            assert size == 1 or "2 share the parts" in told, told
            return found.part_log_likelihoods, found.branch_lengths, slopes

        return led(size, work)

    alone = numbers(1)
    assert all(map(np.array_equal, alone, numbers(2)))
    monkeypatch.setattr(parts.PartsEvaluator, "gradients", with_others)
    assert not all(map(np.array_equal, alone, numbers(2)))


def test_parts_that_change_places_are_seen():
    """The control: models of one part written for the other are not the reference's."""
    data, structure, observed = case(SAME, Linkage("unlinked"))
    moves = ChainSettings(n_chains=1, sample_every=1, move_weights={"kappa{p0}_slider": 1.0})
    run = run_of(observed, structure, moves)
    run.shared.fields[:, 11] = run.shared.fields[::-1, 11]
    after = advanced(run, 12)
    assert after.state.accepted.sum() == 0 or errors(after, data).max() > 1e-6


def test_a_part_that_is_forgotten_is_seen():
    """The control: what one part adds while only another one proposes is off by 1."""
    data, structure, observed = case(SAME, Linkage("unlinked"))
    settings = ChainSettings(n_chains=1, sample_every=1, tuning_generations=0)
    settings = replace(settings, move_weights={"kappa{p0}_slider": 1.0})
    run = run_of(observed, structure, settings)
    assert errors(run, data).max() < 1e-10
    value = run.on_device.groups[0].forests[0].chains.trees.value
    value[:, 1] += 1.0
    assert errors(advanced(run, 12), data).max() > 1e-3
