"""Speeds of this machine's engines: measured once, kept, and used for the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.random_problems import random_case
from phloem.errors import DeviceError
from phloem.hardware import machine
from phloem.pruning import calibration, select
from phloem.pruning.cpu.regions import column_sizes
from phloem.pruning.gpu.cost import ChainPlan, Speeds, gradient_flop, tree_levels

MEASURED = Speeds(1e-4, 1e-5, 1e12, 1e10)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Calls of measure_speeds, in a cache of its own."""
    calls = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "_machine", lambda: "some machine")
    monkeypatch.setattr(calibration, "measure_speeds", lambda *kind: calls.append(kind) or MEASURED)
    return calls


def test_measured_once_for_each_kind(measured):
    announced = []
    calibration.on_calibration(lambda: announced.append(True))
    kinds = [(61, "float64", 2), (61, "float64", 1), (4, "float64", 2), (61, "float32", 2)]
    for kind in (kinds[0], *kinds):
        assert calibration.calibrated_speeds(*kind) == MEASURED
    assert measured == kinds and announced == [True]


def test_another_machine_is_measured_anew(measured, monkeypatch):
    calibration.calibrated_speeds(4, "float64", 2)
    monkeypatch.setattr(calibration, "_machine", lambda: "another machine")
    calibration.calibrated_speeds(4, "float64", 2)
    assert len(measured) == 2


def test_a_damaged_file_is_measured_anew(measured):
    calibration.calibrated_speeds(4, "float64", 2)
    calibration.calibration_file().write_text('{"some machine": ')
    assert calibration.calibrated_speeds(4, "float64", 2) == MEASURED and len(measured) == 2


def test_where_nothing_can_be_kept_nothing_is_measured(measured, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert calibration.calibrated_speeds(4, "float64", 2) is None and measured == []


def test_the_choice_follows_the_measurement(measured, monkeypatch):
    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    monkeypatch.setattr(select, "_gpu", lambda problem, why: why)
    large = random_case(20, 4000, 61, 1).problem
    assert "measured here" in select.select_engine("auto", large)
    monkeypatch.setattr(calibration, "measure_speeds", lambda *kind: Speeds(1.0, 1.0, 1e12, 1e13))
    calibration.calibration_file().unlink()
    chosen = select.select_engine("auto", large)
    assert chosen.engine == "cpu" and "too little" in chosen.reason


def test_small_problems_are_not_worth_measuring(measured, monkeypatch):
    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    assert select.select_engine("auto", random_case(6, 50, 4, 4).problem).engine == "cpu" and measured == []


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    chosen = select.chains_on_cpu("", 1)
    monkeypatch.setattr(select, "chains_on_gpu", lambda why: replace(chosen, engine="gpu", reason=why))


def chains(problem, generations, requested="auto"):
    plan = ChainPlan(n_runs=2, n_chains=4, generations=generations)
    return select.select_chains(requested, lambda: [problem], plan, 1)


def test_chains_follow_the_measurement(measured, gpu, monkeypatch):
    """By speeds, and by what there is to do: a short analysis is not worth loading libraries."""
    large = random_case(20, 4000, 61, 1).problem
    chosen = chains(large, 100_000)
    assert chosen.engine == "gpu" and "measured here" in chosen.reason and len(measured) == 1
    chosen = chains(large, 20)
    assert chosen.engine == "cpu" and "too little in 20 generations" in chosen.reason
    monkeypatch.setattr(calibration, "measure_speeds", lambda *kind: Speeds(1.0, 1.0, 1e12, 1e13))
    calibration.calibration_file().unlink()
    chosen = chains(large, 100_000)
    assert chosen.engine == "cpu" and "measured here" in chosen.reason


def test_small_chains_are_not_worth_measuring(measured, gpu):
    chosen = chains(random_case(6, 50, 4, 4).problem, 1_000_000)
    assert chosen.engine == "cpu" and "assumed speeds" in chosen.reason and measured == []


def test_what_is_asked_for_is_done(measured, gpu):
    small = random_case(6, 50, 4, 4).problem
    assert chains(small, 1, "gpu").engine == "gpu" and chains(small, 1, "cpu").reason.startswith("CPU asked")


def test_chains_where_there_is_no_gpu(measured, monkeypatch):
    monkeypatch.setattr(machine, "_driver_is_here", lambda: False)
    problem = random_case(20, 4000, 61, 1).problem
    assert "no GPU here" in chains(problem, 10**6).reason
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    monkeypatch.setattr(machine, "_driver_is_here", lambda: True)
    assert "pip install" in chains(problem, 10**6).reason
    with pytest.raises(DeviceError, match="pip install"):
        chains(problem, 10**6, "gpu")

    def broken(*kind):
        raise DeviceError("PyTorch finds no GPU here")

    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    monkeypatch.setattr(calibration, "measure_speeds", broken)
    chosen = chains(problem, 10**6)
    assert chosen.engine == "cpu" and "the GPU cannot be used: PyTorch finds no GPU here" in chosen.reason


def test_samples_are_what_they_say():
    flat = calibration.sample_problem(5, "float64", 12, 2)
    assert tree_levels(flat) == 5
    sizes = column_sizes(flat)
    assert set(sizes[32:]) == {12} and gradient_flop(flat) == 6 * 25 * 2 * sizes.sum()
    model = calibration.equal_rates(5, 2)
    process = model.single
    eigen = process.eigen
    np.testing.assert_allclose((eigen.right * eigen.values) @ eigen.left, process.rate_matrix, atol=1e-12)
    np.testing.assert_allclose(-(process.frequencies @ np.diag(process.rate_matrix)), 1)
