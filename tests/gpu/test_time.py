"""Dated chains on a device: the reference's likelihood at every sample, the CPU's walk, exact resume."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.errors import NumericalError
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.spread import Columns
from phloem.inference.mcmc.structure import sites_per_character, structure_of_parts
from phloem.inference.time.coupled import coupled_advanced, new_coupled_run
from phloem.inference.time.records import CALLER, TAKEN
from phloem.inference.time.run import advanced, new_run
from phloem.inference.time.sampler import plain_time_likelihood
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.inference.time.working_fit import fit_dated_working
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.pruning.cpu import cell_memory
from unit.inference.mcmc.ranks_in_threads import on_ranks

pytestmark = pytest.mark.slow  # the sampler of dated trees compiles for a minute
OFTEN = ("hamilton", "narrow_exchange", "subtree_slide")
SELDOM = (
    "hamilton_dates", "wilson_balding", "node_height", "up_down", "branch_deviation", "pop_size_multiplier",
    "clock_rate_multiplier",
)  # fmt: skip
WEIGHTS = dict.fromkeys(OFTEN, 2.0) | dict.fromkeys(SELDOM, 1.0)  # the usual ones depend on the device
# No tuning: it begins with steps so long that rounding grows.
SETTINGS = TimeSettings(sample_every=4, tuning_generations=0, most_steps=2, move_weights=WEIGHTS)


def case(text: str, datatype: str, folder):
    (alignment,), model, (observed,) = parts_case([(text, datatype)], Linkage(), folder)
    return alignment, model, observed


def parts_case(kinds, linkage: Linkage, folder, clock="ucln", prior="skyline"):
    """(alignments, model, observations) of parts of these (model, data type)."""
    alignments, models = [], []
    for i, (text, datatype) in enumerate(kinds):
        rng, states = np.random.default_rng(4 + i), alphabet(datatype).states
        rows = ["".join(rng.choice(list(states[:5]), 8)) for _ in range(6)]
        file = folder / f"data{i}.fasta"
        file.write_text("".join(f">t{i}\n{row}\n" for i, row in enumerate(rows)))
        alignments.append(read_alignment(file, datatype=datatype))
        model = model_for_alignment(text, alignments[i])
        models.append(PartModel(f"p{i}", model, alignments[i].n_sites, sites_per_character(model)))
    heights = np.repeat(np.array([0.0, 0.1, 0.5, 0.5, 1.0, 1.3])[:, None], 2, axis=1)
    held = {"birth_rate": 0.3, "death_rate": 0.1, "sampling_rate": 3.0} if prior == "fbd" else {}
    tree = TreeModel(clock, prior=prior, pieces=2 if prior == "skyline" else None, priors=held)
    model = time_model(structure_of_parts(models, linkage), tree, alignments[0].taxa, heights, 2000.0)
    observed = [observations(own, part.model.unseen) for own, part in zip(alignments, models)]
    return alignments, model, observed


def largest_error(run, *alignments) -> float:
    """Of the log-likelihoods of all samples, from those of the NumPy reference from scratch."""
    plain, samples = plain_time_likelihood(alignments, run.model), run.samples
    names = ("LnL", "LnPr", *run.columns.names)
    expected = [
        plain(samples.parent[i], samples.sets[i], dict(zip(names, samples.numbers[i])))
        for i in range(samples.n)
    ]
    return float(np.abs(samples.numbers[:, 0] / expected - 1.0).max())


OF_MODELS = {
    "HKY+FO+G4": "frequencies_dirichlet",
    "HKY+R2": "rates_dirichlet",
    "LG+FO": "frequencies_dirichlet",
    "MIXED+FO+G4": "relative_rates_split_merge",
    "AAMIXED+G4": "aamodel_jump",
}
"""A move of the model's numbers."""


@pytest.mark.parametrize(
    ("text", "datatype"),
    [
        ("HKY+FO+G4", "dna"),
        ("HKY+R2", "dna"),
        ("LG+FO", "protein"),
        ("MIXED+FO+G4", "dna"),
        ("AAMIXED+G4", "protein"),
    ],
)
def test_chains_on_a_device(text, datatype, tmp_path):
    alignment, model, observed = case(text, datatype, tmp_path)
    settings = replace(SETTINGS, move_weights=WEIGHTS | {OF_MODELS[text]: 2.0})
    whole = advanced(new_run(0, observed, model, settings, device="gpu"), 48)
    assert whole.state.accepted.sum() > 5
    assert largest_error(whole, alignment) < 1e-9
    on_cpu = advanced(new_run(0, observed, model, settings), 48)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-7, atol=1e-7)
    settings = replace(settings, tuning_generations=16)
    whole, half = (advanced(new_run(0, observed, model, settings, device="gpu"), n) for n in (32, 12))
    resumed = new_run(0, observed, model, settings, (half.state, half.samples), device="gpu")
    assert np.array_equal(advanced(resumed, 20).samples.numbers, whole.samples.numbers)


@pytest.mark.parametrize("clock", ["white-noise", "autocorrelated"])
def test_clocks_on_a_device(clock, tmp_path):
    """Whose rates depend on how long branches last, or on those of parents."""
    (alignment,), model, (observed,) = parts_case([("HKY+FO", "dna")], Linkage(), tmp_path, clock)
    missing = {"hamilton_dates"} if clock == "autocorrelated" else set()
    weights = {name: w for name, w in WEIGHTS.items() if name not in missing}
    settings = replace(SETTINGS, move_weights=weights | {"clock_variance_multiplier": 1.0})
    whole = advanced(new_run(0, observed, model, settings, device="gpu"), 32)
    assert whole.state.accepted.sum() > 5 and largest_error(whole, alignment) < 1e-9
    on_cpu = advanced(new_run(0, observed, model, settings), 32)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("clock", ["ucln", "white-noise"])
def test_samples_that_are_ancestors_on_a_device(clock, tmp_path):
    """Branches that last no time come and go."""
    (alignment,), model, (observed,) = parts_case([("HKY+FO", "dna")], Linkage(), tmp_path, clock, "fbd")
    weights = {name: w for name, w in WEIGHTS.items() if name != "pop_size_multiplier"}
    settings = replace(SETTINGS, move_weights=weights | {"sampled_ancestor": 16.0}, sample_every=2)
    whole = advanced(new_run(0, observed, model, settings, device="gpu"), 64)
    ancestors = whole.samples.numbers[:, 2 + whole.columns.names.index("sampled_ancestors")]
    assert ancestors.min() == 0 < ancestors.max() and largest_error(whole, alignment) < 1e-9
    on_cpu = advanced(new_run(0, observed, model, settings), 64)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-7, atol=1e-7)
    half = advanced(new_run(0, observed, model, settings, device="gpu"), 24)
    resumed = new_run(0, observed, model, settings, (half.state, half.samples), device="gpu")
    assert np.array_equal(advanced(resumed, 40).samples.numbers, whole.samples.numbers)


def weights_of(model) -> dict[str, float]:
    """Of the moves above, those of every clock, and of single numbers of every part."""
    numbers = [b.name for b in model.engine.space.blocks if b.support != "simplex"]
    found = {name: w for name, w in WEIGHTS.items() if model.n_clocks == 1 or "_deviation" not in name}
    found |= {f"branch_deviation{{p{i}}}": 1.0 for i in range(model.n_clocks) if model.n_clocks > 1}
    if model.n_clocks > 1:
        del found["clock_rate_multiplier"]
    return found | {f"{name}_multiplier": 0.5 for name in numbers}


CHARACTERS = (("MK+G2+ASC", "binary"), ("MK+ASC", "standard"), ("HKY+FO+G2", "dna"))
MIXED = (("HKY+FO+G2", "dna"), ("HKY+R2", "dna"), ("LG", "protein"), ("HKY+FO+G2", "dna"))


@pytest.mark.parametrize(
    ("kinds", "linkage"),
    [
        pytest.param(MIXED, Linkage("unlinked"), id="a clock a part"),
        pytest.param(MIXED[2:], Linkage("proportional"), id="a rate a part"),
        pytest.param(MIXED[::3], Linkage("linked", {"kappa": (("p0", "p1"),)}), id="linked"),
        pytest.param(CHARACTERS, Linkage("proportional", {}, (("p0", "p1"),)), id="characters"),
    ],
)
def test_parts_on_a_device(kinds, linkage, tmp_path):
    """Layouts of their own and shared, models that only Python makes beside others: the reference, the CPU's
    walk, exact resume."""
    alignments, model, observed = parts_case(kinds, linkage, tmp_path)
    settings = replace(SETTINGS, move_weights=weights_of(model))
    start = new_run(0, observed, model, settings, device="gpu")
    whole = advanced(start, 48)
    assert len(start.on_device.forests) == len({datatype for _, datatype in kinds})
    assert whole.state.accepted.sum() > 5 and largest_error(whole, *alignments) < 1e-9
    on_cpu = advanced(new_run(0, observed, model, settings), 48)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-7, atol=1e-7)
    half = advanced(new_run(0, observed, model, settings, device="gpu"), 20)
    resumed = new_run(0, observed, model, settings, (half.state, half.samples), device="gpu")
    assert np.array_equal(advanced(resumed, 28).samples.numbers, whole.samples.numbers)


def test_columns_of_a_chain_in_cells_and_processes(tmp_path, monkeypatch):
    """Parts of several cells, of one process and of two: the reference, and equal bits; the control forgets
    what cells elsewhere have come to."""
    monkeypatch.setattr(cell_memory, "DEVICE_WORK", 1.0)
    monkeypatch.setattr(cell_memory, "MOST_ON_DEVICES", 2)
    alignments, model, observed = parts_case(MIXED[:3], Linkage("proportional"), tmp_path)
    settings = replace(SETTINGS, move_weights=weights_of(model))

    def walk(beside):
        return advanced(new_run(0, observed, model, settings, device="gpu", beside=beside), 24)

    whole = walk(Ranks())
    assert whole.data.part_of.tolist() == [0, 0, 1, 1, 2, 2] and whole.state.accepted.sum() > 2
    assert largest_error(whole, *alignments) < 1e-9
    shared = on_ranks(2, walk)
    assert np.array_equal(shared.samples.numbers, whole.samples.numbers)
    right = Columns.gather

    def gather(self, values, drawn):
        right(self, values, drawn)
        values[self.own.stop :, 0] -= 1e-3 * (self.own.start == 0)

    monkeypatch.setattr(Columns, "gather", gather)
    with pytest.raises(NumericalError, match="drew different"):  # as soon as the two decide otherwise
        on_ranks(2, lambda beside: walk(beside) and walk(beside))


def test_a_part_whose_model_is_not_settled_is_seen(tmp_path):
    """The control: what an accepted proposal did to the second part is forgotten."""
    alignments, model, observed = parts_case(MIXED[::3], Linkage("unlinked"), tmp_path)
    settings = replace(SETTINGS, move_weights={"kappa{p1}_multiplier": 1.0, "hamilton": 1.0})
    run = by_caller(new_run(0, observed, model, settings, device="gpu"))
    answer = run.on_device.answer

    def forgets(data, state, scratch):
        scratch.others[1] = 0
        answer(data, state, scratch)

    assert largest_error(advanced(run, 24), *alignments) < 1e-9
    run = by_caller(new_run(0, observed, model, settings, device="gpu"))
    run.on_device.answer, answer = forgets, run.on_device.answer
    assert largest_error(advanced(run, 24), *alignments) > 1e-6


def test_coupled_chains_on_a_device(tmp_path):
    """Those of the CPU, swaps among them; in threads, and resumed, bit for bit."""
    alignment, model, observed = case("HKY+FO+G4", "dna", tmp_path)
    settings = replace(SETTINGS, n_runs=1, n_chains=3, swap_every=2)
    whole, threads, on_cpu = (
        coupled_advanced(new_coupled_run(0, observed, model, settings, device=d, threads=n), 32)
        for d, n in (("gpu", 1), ("gpu", 3), ("cpu", 1))
    )
    assert whole.coupling.swaps_accepted.sum() > 2 and largest_error(whole, alignment) < 1e-9
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-7, atol=1e-7)
    assert np.array_equal(whole.coupling.rank, on_cpu.coupling.rank)
    assert np.array_equal(threads.samples.numbers, whole.samples.numbers)
    half = coupled_advanced(new_coupled_run(0, observed, model, settings, device="gpu"), 12)
    resumed = new_coupled_run(0, observed, model, settings, (half.state, half.samples), device="gpu")
    assert np.array_equal(coupled_advanced(resumed, 20).samples.numbers, whole.samples.numbers)


def test_stones_from_a_working_distribution_on_a_device(tmp_path):
    """The CPU's walk through all stones, trajectories among its moves; resumed, bit for bit."""
    _, model, observed = parts_case([("HKY+FO+G4", "dna")], Linkage(), tmp_path, "strict", "constant")
    moves = {name: 1.0 for name in ("hamilton", "narrow_exchange", "wilson_balding", "pop_size_multiplier")}
    usual = replace(SETTINGS, move_weights=moves)
    drawn = advanced(new_run(0, observed, model, replace(usual, sample_every=2)), 400).samples
    working = fit_dated_working(model, [drawn], [20])
    settings = replace(usual, sample_every=2, generations=96, stones=3, stone_shape=1.0, working=working)
    whole, on_cpu = (advanced(new_run(0, observed, model, settings, device=d), 96) for d in ("gpu", "cpu"))
    assert whole.state.accepted.sum() > 5 and len(np.unique(whole.samples.numbers[:, -1])) > 5
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-7, atol=1e-7)
    half = advanced(new_run(0, observed, model, settings, device="gpu"), 60)
    resumed = new_run(0, observed, model, settings, (half.state, half.samples), device="gpu")
    assert np.array_equal(advanced(resumed, 36).samples.numbers, whole.samples.numbers)


def test_trajectories_of_the_model_alone(tmp_path, monkeypatch):
    """Amino acids with free frequencies have Hamiltonian moves of their own: the CPU's, to rounding."""
    _, model, observed = case("LG+FO", "protein", tmp_path)
    settings = TimeSettings(
        sample_every=2, tuning_generations=0, most_steps=3, move_weights={"hamilton_model": 1.0}
    )
    found = [advanced(new_run(0, observed, model, settings, device=d), 6) for d in ("gpu", "cpu")]
    assert found[0].state.accepted.sum() > 0
    np.testing.assert_allclose(found[0].samples.numbers, found[1].samples.numbers, rtol=1e-9, atol=1e-9)


def by_caller(run):
    """All questions are Python's to answer."""
    return replace(run, data=run.data._replace(on_device=CALLER))


def test_a_wrong_value_is_seen(tmp_path):
    """The control: answers that are one in a million off."""
    alignment, model, observed = case("HKY+FO+G4", "dna", tmp_path)
    run = by_caller(new_run(0, observed, model, SETTINGS, device="gpu"))
    answer = run.on_device.answer

    def errs(data, state, scratch):
        answer(data, state, scratch)
        scratch.of_cells[:, 0] *= 1.0 + 1e-6

    run.on_device.answer = errs
    assert largest_error(advanced(run, 48), alignment) > 1e-7


def test_a_proposal_that_is_not_settled_is_seen(tmp_path):
    """The control of what the loop decided: where accepted lengths are forgotten, values are of others."""
    alignment, model, observed = case("HKY+FO+G4", "dna", tmp_path)
    lengths_only = replace(SETTINGS, move_weights={"branch_deviation": 1.0})
    run = by_caller(new_run(0, observed, model, lengths_only, device="gpu"))
    answer = run.on_device.answer

    def forgets(data, state, scratch):
        scratch.asked[TAKEN] = 0
        answer(data, state, scratch)

    run.on_device.answer = forgets
    assert largest_error(advanced(run, 48), alignment) > 1e-6
