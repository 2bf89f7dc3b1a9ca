"""The choice between CPU and GPU, from sizes alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu.random_problems import random_case
from phloem.pruning.gpu.cost import ChainPlan, advise, advise_chains


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
