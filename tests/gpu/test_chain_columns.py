"""Columns of a chain in cells, on one GPU, on several, and in several processes: equal bits, and the
reference's likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER
from gpu.test_sampler_parts import case, errors
from phloem.density.parts import Linkage
from phloem.inference.mcmc import device
from phloem.inference.mcmc.device import gpus_a_chain
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.sampler import Where, sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Columns
from phloem.pruning.cpu import cell_memory
from unit.inference.mcmc.ranks_in_threads import on_ranks

torch = pytest.importorskip("torch")
PARTS = (("dna", "GTR+I+G2", 9), ("dna", "HKY+R2", 8), ("protein", "LG", 5))
SETTINGS = ChainSettings(n_runs=1, n_chains=1, sample_every=2, tuning_generations=4, seed=5)


@pytest.fixture
def in_cells(monkeypatch):
    """Parts of more than one cell each, as if they were large."""
    monkeypatch.setattr(cell_memory, "DEVICE_WORK", 1.0)
    monkeypatch.setattr(cell_memory, "MOST_ON_DEVICES", 2)


def started(settings: ChainSettings, parts=PARTS):
    data, structure, observed = case(parts, Linkage("proportional"))
    return data, new_run(0, observed, structure, settings, device="gpu")


def numbers(run) -> tuple[np.ndarray, ...]:
    return run.samples.numbers, run.state.rng.copy(), run.state.values.copy()


def test_cells_on_one_device(in_cells):
    """Chains over cells of three parts, of which Python makes the second's model: the reference, the CPU's
    walk, exact resume."""
    settings = replace(SETTINGS, n_chains=2, sample_every=3)
    data, run = started(settings)
    assert run.data.part_of.tolist() == [0, 0, 1, 1, 2, 2] and len(run.on_device.groups[0].forests) == 2
    whole = advanced(run, 12)
    assert whole.state.accepted.sum() > 0 and errors(whole, data).max() < 1e-10
    _, structure, observed = case(PARTS, Linkage("proportional"))
    on_cpu = advanced(new_run(0, observed, structure, settings), 12)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-9, atol=1e-9)
    half = advanced(started(settings)[1], 6)
    resumed = new_run(0, observed, structure, settings, half.state, half.samples, device="gpu")
    assert np.array_equal(advanced(resumed, 6).samples.numbers, whole.samples.numbers)


def test_a_model_that_one_cell_does_not_get_is_seen(in_cells):
    """The control: of two cells of a part the second keeps the model that it had."""
    settings = replace(SETTINGS, move_weights={"kappa_slider": 1.0}, sample_every=1)
    data, run = started(settings, PARTS[1:2])
    forest = run.on_device.groups[0].forests[0]
    right = forest.set_model
    forest.set_model = lambda chain, model: right(chain, model if chain == 0 else forest.models[2 * chain])
    after = advanced(run, 8)
    assert after.state.accepted.sum() == 0 or errors(after, data).max() > 1e-9


@pytest.mark.parametrize("n_chains", [1, pytest.param(2, marks=LATER)])
def test_gpus_that_share_a_chain_change_nothing(n_chains, in_cells, monkeypatch):
    """One, two, three GPUs, of which one is faster; of two chains the second GPU has one, or each has two."""
    found, settings = [], replace(SETTINGS, n_chains=n_chains)
    for gpus in (1, 2, 3 if n_chains == 1 else 4):
        if torch.cuda.is_available() and gpus > torch.cuda.device_count():
            continue
        monkeypatch.setattr(device, "gpu_speeds", lambda n: (1.0, 3.0, 1.0) if n == 3 else ())
        _, run = started(replace(settings, gpus=gpus))
        each = max(1, gpus // n_chains)
        groups = run.on_device.groups
        assert len(groups) == min(n_chains, gpus) and groups[0].end == n_chains // len(groups)
        devices = [forest.device for forest in groups[0].forests]
        assert devices[0].type == "cpu" or len(set(devices)) == each
        if n_chains == 1:  # of every forest its cells, four of nucleotides and two of amino acids
            shares = [len(forest.data.problems) for forest in groups[0].forests]
            assert shares == {1: [4, 2], 2: [4, 1, 1], 3: [4, 1, 1]}[gpus]
        run = advanced(run, 10)
        run.on_device.dismiss(run.shared)
        found.append(numbers(run))
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


def sampled(size: int, ranks_a_chain: int, settings: ChainSettings, prefix: str | None = None):
    """The runs on so many ranks, which share chains."""
    data, structure, observed = case(PARTS, Linkage("proportional"))

    def work(ranks):
        where = Where("gpu", ranks, 9, ranks_a_chain)
        plain = plain_likelihood(data, structure)
        return sample(observed, structure, settings, prefix, None, None, None, plain, where)

    return on_ranks(size, work)


WALK = replace(SETTINGS, generations=8, check_every=4, burn_in=0.0)


@pytest.mark.parametrize(
    ("size", "ranks_a_chain", "n_chains"),
    [(2, 2, 1), pytest.param(3, 3, 1, marks=LATER), pytest.param(4, 2, 2, marks=LATER)],
)
def test_processes_that_share_a_chain_change_nothing(size, ranks_a_chain, n_chains, in_cells):
    settings = replace(WALK, n_chains=n_chains)
    alone, found = sampled(1, 1, settings), sampled(size, ranks_a_chain, settings)
    for a, b in zip(alone.runs, found.runs):
        assert np.array_equal(a.samples.numbers, b.samples.numbers)
        assert np.array_equal(a.state.rng, b.state.rng) and np.array_equal(a.state.jumps, b.state.jumps)


def test_a_cell_of_another_process_that_is_forgotten_is_seen(in_cells, monkeypatch):
    """The control: what cells elsewhere come to is what they came to at the start."""
    alone, right, told = sampled(1, 1, WALK), Columns.gather, []

    def gather(self, values, drawn):
        right(self, values, drawn)
        if self.own.start == 0:
            told.append(values.copy())
            values[self.own.stop :] = told[0][self.own.stop :]

    monkeypatch.setattr(Columns, "gather", gather)
    try:
        found = sampled(2, 2, WALK)
    except Exception as error:
        assert "log-likelihood" in str(error) or "drew different" in str(error)
        return
    assert not np.array_equal(found.runs[0].samples.numbers, alone.runs[0].samples.numbers)


def test_how_many_gpus_share_a_chain():
    assert [gpus_a_chain(n, 1, 8) for n in (1, 2, 3, 16)] == [1, 2, 3, 8]
    assert [gpus_a_chain(n, 4, 8) for n in (2, 4, 7, 8, 13)] == [1, 1, 1, 2, 3]
    assert gpus_a_chain(4, 1, 1) == 1
