"""The choice between CPU and GPU, from sizes alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.random_problems import random_case
from phloem.errors import DeviceError
from phloem.pruning import select
from phloem.pruning.gpu.cost import (
    ChainPlan,
    advise,
    advise_chains,
    advise_search,
    fits_on_cpu,
    lacking_for_search,
)


def test_small_problems_stay_on_the_cpu():
    advice = advise([random_case(6, 50, 4, 4).problem], cores=2)
    assert not advice.use_gpu and "too little" in advice.reason


def test_large_problems_go_to_the_gpu():
    advice = advise([random_case(20, 4000, 61, 1).problem], cores=2)
    assert advice.use_gpu and advice.gpu_seconds < advice.cpu_seconds


def test_more_cores_and_fewer_columns_favour_the_cpu():
    problem = random_case(20, 4000, 61, 1).problem
    assert advise([problem], 16).cpu_seconds == advise([problem], 2).cpu_seconds / 8
    part = replace(
        problem,
        tip_codes=np.ascontiguousarray(problem.tip_codes[:, :400]),
        pattern_weights=problem.pattern_weights[:400],
        ascertained=problem.ascertained[:400],
    )
    assert advise([part], 2).gpu_seconds < advise([problem], 2).gpu_seconds


def test_parts_of_one_layout_share_launches():
    """Fifty parts cost one latency; of two layouts they cost two (the control)."""
    problem = random_case(12, 50, 4, 4).problem
    other, plan = replace(problem, n_categories=3), ChainPlan(1, 4, 10_000)

    def seconds(*problems):
        return advise_chains(problems, plan, 2, [None] * len(problems)).gpu_seconds

    one, two = seconds(problem), seconds(problem, problem)
    assert two < 1.5 * one and two < seconds(problem, other)
    assert seconds(*[problem] * 50) < 12 * one  # 455 against 41 us on an H100
    many = advise([problem] * 50, 2)
    assert many.gpu_seconds < 2 * advise([problem], 2).gpu_seconds


def test_long_searches_go_to_the_gpu_and_short_ones_stay():
    """1,000 taxa × 988 patterns take 5 to 7.5 s on a core and 1.2 s on an H100: one climb is not worth
    loading its libraries, six are."""
    problem = random_case(40, 1000, 4, 4).problem
    problem = replace(problem, tip_codes=np.repeat(problem.tip_codes, 25, 0))
    once, often = advise_search([problem], 1.0, 1), advise_search([problem], 6.0, 1)
    assert 4.0 < once.cpu_seconds < 8.0 and 1.0 < once.gpu_seconds < 2.0
    assert not once.use_gpu and "too little" in once.reason
    assert often.use_gpu and often.reason.startswith("the search takes about")
    assert advise_search([problem], 6.0, 16).cpu_seconds < often.cpu_seconds
    assert not advise_search([random_case(6, 50, 4, 4).problem], 6.0, 1).use_gpu
    both = advise_search([problem] * 2, 6.0, 1)  # as two parts: all of both, but the calls once
    assert both.cpu_seconds == pytest.approx(2 * often.cpu_seconds)
    assert often.gpu_seconds < both.gpu_seconds < 2 * often.gpu_seconds


def test_fits_of_small_trees_that_come_and_go_are_for_a_cpu():
    small, large = random_case(27, 900, 4, 4).problem, random_case(40, 1000, 4, 4).problem
    assert fits_on_cpu([small]) and not fits_on_cpu([small] * 20)
    assert not fits_on_cpu([replace(large, tip_codes=np.repeat(large.tip_codes, 25, 0))])


def test_where_a_search_runs_and_why(monkeypatch):
    """What a GPU lacks is refused where it is asked for, and the reason for a CPU where phloem chooses."""
    problem = random_case(6, 50, 4, 4).problem
    monkeypatch.setattr(select, "gpu_is_here", lambda: True)
    monkeypatch.setattr(select, "require_torch", lambda: None)
    small = select.select_search("auto", lambda: [[problem]], 1.0)
    assert small.engine == "cpu" and "too little to load" in small.reason
    assert select.select_search("cpu", lambda: [[problem]], 1.0).reason == "CPU asked for"
    many = replace(problem, state_sets=np.eye(65, dtype=bool))
    assert "65 states" in (lacking_for_search(many) or "") and lacking_for_search(problem) is None
    mixed = select.select_search("auto", lambda: [[problem], [problem, many]], 1.0)
    assert mixed.engine == "cpu" and "65 states is not on a GPU yet" in mixed.reason


def test_a_gpu_that_is_asked_for_and_is_not_here(monkeypatch):
    monkeypatch.setattr("phloem.hardware.machine.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="needs PyTorch"):
        select.select_search("gpu", lambda: [[random_case(6, 50, 4, 4).problem]], 1.0)
