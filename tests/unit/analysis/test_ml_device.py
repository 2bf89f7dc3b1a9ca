"""Where `phloem ml` searches: what is asked for is obeyed or refused, and the rest is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from phloem.analysis.ml_data import read_ml_data
from phloem.analysis.ml_device import device_identity, on_device
from phloem.analysis.ml_settings import MlSettings
from phloem.errors import DeviceError
from phloem.pruning import select

ROWS = {"a": "ACGTACGTAC", "b": "ACGTACGTAA", "c": "ACGTTCGAAC", "d": "ACGATCGAAC"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("two.txt").write_text("DNA, one = 1-5\nDNA, two = 6-10\n")


def asked(**given):
    return on_device(read_ml_data(MlSettings("small.fasta", **given)))


def test_a_cpu_that_is_asked_for_or_chosen(folder, monkeypatch):
    monkeypatch.setattr(select, "gpu_is_here", lambda: False)
    data, selection = asked(device="cpu")
    assert (data.device, selection.reason) == ("cpu", "CPU asked for") and not device_identity(data)
    assert asked()[1].reason.startswith("CPU chosen: ")
    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    assert "too little to load the GPU's libraries" in asked()[1].reason
    assert asked(threads=2)[1].engine == "cpu"
    assert "too little to load the GPU's libraries" in asked(partitions="two.txt")[1].reason


def test_a_gpu_that_is_asked_for(folder, monkeypatch):
    monkeypatch.setattr("phloem.hardware.machine.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="needs PyTorch, which is not installed"):
        asked(device="gpu")


def test_effort_is_forecast(folder, monkeypatch):
    """Starts and tries are part of the forecast, and a device that is asked for needs none."""
    forecast = []

    def compare(problem, climbs):
        forecast.append(climbs)
        return climbs > 50, "chosen: forecast"

    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    monkeypatch.setattr(select, "_compare_search", compare)
    assert asked(fast=True)[1].engine == "cpu"
    assert forecast == [1.0]
    asked()
    assert forecast[-1] == 6.0
    asked(thorough=True, device="cpu")
    assert len(forecast) == 2
