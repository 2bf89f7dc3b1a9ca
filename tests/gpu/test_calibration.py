"""Engines measured by the samples of pruning/calibration.py, made small for the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.pruning import calibration


@pytest.mark.parametrize("n_states", [4, 7])
def test_both_engines_are_measured(n_states, monkeypatch):
    monkeypatch.setattr(calibration, "SAMPLE_TIPS", 4)
    monkeypatch.setattr(calibration, "CALLS", 1)
    monkeypatch.setattr(calibration, "sample_problem", _smaller(calibration.sample_problem))
    speeds = calibration.measure_speeds(n_states, "float64", 2)
    assert np.isfinite([speeds.cpu_flop, speeds.gpu_flop]).all() and speeds.cpu_flop > 0 < speeds.gpu_flop
    assert speeds.call_seconds > 0 and speeds.level_seconds >= 0


def _smaller(sample):
    return lambda n_states, precision, n_patterns, categories: sample(n_states, precision, 32, categories)
