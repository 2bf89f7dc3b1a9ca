"""Metropolis-coupled chains on a device: the reference's likelihood, the CPU's walk, exact resume."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import INTERPRETED, LATER, steps
from phloem.data.alphabet import alphabet
from phloem.errors import DeviceError
from phloem.inference.mcmc import device, weights
from phloem.inference.mcmc.device import gpu_speeds, gpus_of_run
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment

torch = pytest.importorskip("torch")
SETTINGS = ChainSettings(n_chains=2, sample_every=3, tuning_generations=6)


def case(text: str, datatype: str, folder):
    rng, states = np.random.default_rng(3), alphabet(datatype).states
    rows = ["".join(rng.choice(list(states[:4]), 9)) for _ in range(5)]
    file = folder / "data.fasta"
    file.write_text("".join(f">t{i}\n{row}\n" for i, row in enumerate(rows)))
    alignment = read_alignment(file, datatype=datatype)
    structure = structure_of_model(model_for_alignment(text, alignment), alignment.n_sites)
    return alignment, structure, observations(alignment)


@pytest.mark.parametrize(
    ("text", "datatype"),
    [
        ("GTR+I+G4", "dna"),
        pytest.param("HKY+R2", "dna", marks=LATER),
        ("LG+FO", "protein"),
        ("HKY+H2", "dna"),
    ],
)
def test_chains_on_a_device(text, datatype, tmp_path):
    alignment, structure, observed = case(text, datatype, tmp_path)
    whole = advanced(new_run(0, observed, structure, SETTINGS, device="gpu"), 12)
    assert whole.state.accepted.sum() > 0
    plain = plain_likelihood([alignment], structure)
    for i in range(whole.samples.n):
        expected = plain(*whole.samples.tree_and_numbers(i, whole.columns.names))
        assert whole.samples.numbers[i, 0] == pytest.approx(expected, rel=1e-10)
    on_cpu = advanced(new_run(0, observed, structure, SETTINGS), 12)
    np.testing.assert_allclose(whole.samples.numbers, on_cpu.samples.numbers, rtol=1e-9, atol=1e-9)
    half = advanced(new_run(0, observed, structure, SETTINGS, device="gpu"), 6)
    resumed = new_run(0, observed, structure, SETTINGS, half.state, half.samples, device="gpu")
    assert np.array_equal(advanced(resumed, 6).samples.numbers, whole.samples.numbers)


@pytest.mark.parametrize("text", [pytest.param("HKY+G4", marks=LATER)])
def test_threads_change_nothing(text, tmp_path):
    """Three chains by one thread, and by three of which one helper comes late."""
    _, structure, observed = case(text, "dna", tmp_path)
    settings = ChainSettings(n_chains=3, sample_every=2, tuning_generations=4, seed=5)
    found = []
    for threads in (1, 3):
        run = new_run(0, observed, structure, settings, threads=threads, device="gpu")
        if threads == 3:
            run.on_device.pool.submit(time.sleep, 1.0)
        run = advanced(run, steps(10, 4))
        run.on_device.dismiss(run.shared)
        found.append((run.samples.numbers, run.state.accepted.copy(), run.state.rng.copy()))
    assert all(np.array_equal(a, b) for a, b in zip(*found))
    run = new_run(0, observed, structure, settings, threads=2, device="gpu")
    run.state.rng[2] += 1  # the control: other random numbers of one chain are seen
    assert not np.array_equal(advanced(run, steps(10, 4)).samples.numbers, found[0][0])


@pytest.mark.parametrize("text", ["HKY+G4", pytest.param("LG+FO", marks=LATER)])
def test_gpus_change_nothing(text, tmp_path, monkeypatch):
    """A run's chains on one GPU, and in groups on each of two or three, of which one is faster (Triton's
    interpreter, or a host with one, stands for those that are not there)."""
    _, structure, observed = case(text, "protein" if text == "LG+FO" else "dna", tmp_path)
    usual = ChainSettings(n_runs=1, n_chains=5, sample_every=2, tuning_generations=4, seed=5)
    found = []
    for gpus in (1, 3) if INTERPRETED else (1, 2, 3):
        settings = replace(usual, gpus=gpus)
        uneven = (1.0, 3.0, 1.0) if gpus == 3 else ()
        monkeypatch.setattr(device, "gpu_speeds", lambda n, uneven=uneven: uneven)
        if torch.cuda.is_available() and gpus > torch.cuda.device_count():
            with pytest.raises(DeviceError, match=f"{gpus} GPUs are asked for"):
                new_run(0, observed, structure, settings, device="gpu")
            continue
        run = new_run(0, observed, structure, settings, device="gpu")
        devices = [group.forests[0].device for group in run.on_device.groups]
        assert len(devices) == gpus and (devices[0].type == "cpu" or len(set(devices)) == gpus)
        run = advanced(run, steps(10, 4))
        run.on_device.dismiss(run.shared)
        found.append((run.samples.numbers, run.state.swaps_accepted.copy(), run.state.rng.copy()))
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


def test_which_gpus_have_a_run():
    assert [list(gpus_of_run(r, 2, 1)) for r in range(2)] == [[0], [0]]
    assert [list(gpus_of_run(r, 2, 2)) for r in range(2)] == [[0], [1]]
    assert [list(gpus_of_run(r, 3, 2)) for r in range(3)] == [[0], [0], [1]]
    assert [list(gpus_of_run(r, 2, 5)) for r in range(2)] == [[0, 1], [2, 3, 4]]
    assert list(gpus_of_run(0, 1, 4)) == [0, 1, 2, 3]
    slow_first = [list(gpus_of_run(r, 4, 2, (1.0, 3.0))) for r in range(4)]
    assert slow_first == [[0], [1], [1], [1]] and gpu_speeds(1) == ()


@pytest.mark.parametrize("text", [pytest.param("JC", marks=LATER)])
def test_weights_of_moves_are_learnt_where_proposals_cost_alike(text, tmp_path, monkeypatch):
    """In the second quarter and the second half of the tuning; and gone on with they are the same."""
    monkeypatch.setattr(weights, "EVERY", 4)
    monkeypatch.setattr(weights, "LEAST_LOOKS", 1)
    _, structure, observed = case(text, "dna", tmp_path)
    settings = ChainSettings(n_chains=1, sample_every=8, tuning_generations=64)
    run, found = new_run(0, observed, structure, settings, device="gpu"), []
    for _ in range(9):
        found.append((run.state.cumulative.copy(), run.state.jumps[:, :2].sum(0).tolist()))
        run = advanced(run, 8)
    assert found[1][1] == [8, 8] and found[2][1] == [0, 0] == found[8][1]
    changed = [i for i in range(1, 9) if not np.array_equal(found[i][0], found[i - 1][0])]
    assert changed == [4, 8] and np.array_equal(run.state.cumulative, found[8][0])
    half = advanced(new_run(0, observed, structure, settings, device="gpu"), 40)
    resumed = advanced(new_run(0, observed, structure, settings, half.state, half.samples, device="gpu"), 32)
    assert np.array_equal(resumed.state.cumulative, run.state.cumulative)


def test_a_wrong_model_on_the_device_is_seen(tmp_path):
    """The control: eigenvectors that are swapped must not give the reference's likelihood."""
    alignment, structure, observed = case("GTR+I+G4", "dna", tmp_path)
    moves = ChainSettings(n_chains=1, sample_every=1, move_weights={"frequencies_slider": 1.0})
    run = new_run(0, observed, structure, moves, device="gpu")
    run.shared.fields[:, [6, 7]] = run.shared.fields[:, [7, 6]]
    after = advanced(run, 6)
    found = after.on_device.groups[0].forests[0].values()[0]
    if after.state.accepted.sum() > 0:
        plain = plain_likelihood([alignment], structure)
        found = after.samples.numbers[-1, 0]
        right = plain(*after.samples.tree_and_numbers(after.samples.n - 1, after.columns.names))
        assert abs(found - right) > 1e-6
    else:  # refused, since its likelihood is far off, where the right one is taken
        expected = advanced(new_run(0, observed, structure, moves), 6)
        assert expected.state.accepted.sum() > 0


def test_a_thread_that_fails_ends_the_run(tmp_path, monkeypatch):
    _, structure, observed = case("HKY+R2", "dna", tmp_path)
    settings = ChainSettings(n_chains=2, sample_every=3, tuning_generations=0)
    run = new_run(0, observed, structure, settings, threads=2, device="gpu")

    def planted(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr(type(structure), "site_model", planted)
    with pytest.raises(RuntimeError, match="planted"):
        advanced(run, 600)
