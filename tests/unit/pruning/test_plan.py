"""Forecasts against what the CPU engine then holds and does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.errors import DeviceError, InputError
from phloem.model.grammar import parse_model
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.cpu.regions import column_sizes, forecast_bytes
from phloem.pruning.interface import Problem
from phloem.pruning.plan import count_work, forecast
from phloem.pruning.reference.recursion import column_classes
from phloem.pruning.select import select_engine
from phloem.tree.layout import binary_children
from phloem.tree.random import uniform_rooted


def problem(n_tips: int, n_patterns: int, n_states: int, n_categories: int) -> Problem:
    rng = np.random.default_rng(7)
    left, right = binary_children(uniform_rooted(n_tips, rng))
    codes = rng.integers(0, n_states, (n_tips, n_patterns)).astype(np.uint8)
    sets = np.vstack([np.eye(n_states, dtype=bool), np.ones((1, n_states), bool)])
    ones = np.ones(n_patterns)
    return Problem(codes, sets, ones, np.zeros(n_patterns, bool), left, right, n_categories)


def held_bytes(record, seen=None) -> int:
    """Bytes of every array that a record reaches, each buffer once."""
    seen = set() if seen is None else seen
    if isinstance(record, np.ndarray):
        owner = record if record.base is None else record.base
        new = id(owner) not in seen
        seen.add(id(owner))
        return getattr(owner, "nbytes", 0) if new else 0
    if id(record) in seen:
        return 0
    seen.add(id(record))
    parts = vars(record).values() if hasattr(record, "__dict__") else ()
    if isinstance(record, dict):
        parts = record.values()
    elif isinstance(record, list | tuple):
        parts = record
    return sum(held_bytes(part, seen) for part in parts)


@pytest.mark.parametrize(("states", "model"), [(4, "JC+G4{0.5}"), (20, "LG+G4{0.5}")])
def test_memory_is_forecast(states, model):
    p = problem(40, 500, states, 4)
    evaluator = CpuEvaluator(p, 1)
    site_model = parse_model(model, datatype="dna" if states == 4 else "protein").evaluate()
    evaluator.gradient(np.full(79, 0.1), site_model, parameters=True)
    held = held_bytes(evaluator) - held_bytes(p)
    assert held == pytest.approx(forecast_bytes(p, column_sizes(p)), rel=0.15)


@pytest.mark.parametrize("repeats", [True, False])
def test_sizes_are_those_of_the_reference(repeats):
    p = replace(problem(17, 300, 4, 1), repeats=repeats)
    reference = np.diff(column_classes(p.left, p.right, p.tip_codes, repeats).offset)
    first = 0 if repeats else 17  # without repeats the CPU engine still looks a tip's columns up by character
    assert np.array_equal(column_sizes(p)[first:], reference[first:])


def test_operations_grow_with_states_and_columns():
    few = count_work(np.array([4, 4, 4, 10, 20]), 20, 4, 1)
    many = count_work(np.array([4, 4, 4, 20, 20]), 20, 4, 1)
    assert many.gradient_flop - few.gradient_flop == 10 * (2 * 16 * 3 + 4 * 5)
    assert few.share == 42 / 100


def test_forecast_times_a_sample():
    p = problem(30, 400, 4, 1)
    model = parse_model("JC", datatype="dna").evaluate()
    result = forecast(p, select_engine("cpu", p, 1), model, np.full(59, 0.1))
    assert 0 < result.likelihood_seconds < 1
    assert 0 < result.gradient_seconds < 1
    assert result.sampled_patterns == 400


def test_selection_says_why():
    p = problem(5, 20, 4, 1)
    assert "small" in select_engine("auto", p).reason
    assert select_engine("cpu", p, 3).threads == 3
    with pytest.raises(InputError):
        select_engine("tpu", p)
    with pytest.raises(InputError):
        select_engine("cpu", p, 0)
    with pytest.raises((DeviceError, InputError)):
        select_engine("gpu", replace(p, precision="float16"))


def test_threads_are_taken_where_distinct_columns_are_many(monkeypatch):
    monkeypatch.setattr("phloem.pruning.select.usable_cores", lambda: (4, "4 cores"))
    many = problem(12, 3000, 4, 4)
    codes = np.zeros_like(many.tip_codes)
    codes[:2] = many.tip_codes[:2]  # the same size at the tips, and few columns
    alike = replace(many, tip_codes=codes)
    assert select_engine("cpu", many).threads == 4
    assert select_engine("cpu", alike).threads == 1
    assert "entries of messages" in select_engine("cpu", alike).reason
    assert select_engine("cpu", alike, beside=10**6).threads == 4  # other parts share them
    assert select_engine("cpu", replace(alike, repeats=False)).threads == 4


@pytest.mark.parametrize("engine", ["auto", "cpu"])
def test_float32_is_offered_on_cpus_where_it_pays(engine, monkeypatch):
    monkeypatch.setattr("phloem.pruning.select.gpu_is_here", lambda: False)
    few, many = (replace(problem(5, 40, s, 1), precision="float32") for s in (31, 32))
    with pytest.raises(InputError, match="not offered on a CPU for 31 states"):
        select_engine(engine, few)
    with pytest.raises(InputError, match="not offered on a CPU for 31 states"):
        CpuEvaluator(few)
    assert select_engine(engine, many).make(many).name == "cpu"
    assert select_engine("reference", few).engine == "reference"


def test_a_gpu_takes_float32_that_no_cpu_offers(monkeypatch):
    monkeypatch.setattr("phloem.pruning.select.gpu_is_here", lambda: True)
    monkeypatch.setattr("phloem.pruning.select._gpu", lambda problem, why: why)
    assert "not offered on CPUs" in select_engine("auto", replace(problem(5, 40, 4, 1), precision="float32"))
