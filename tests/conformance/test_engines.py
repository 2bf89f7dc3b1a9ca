"""One table: every likelihood engine on every problem, value, gradient and proposals, against the reference.

An engine joins by its name in ENGINES; a problem by a line in conformance/problems.py. Bounds: 1e-9 of the
value, 1e-8 of the largest entry of a gradient, for every engine.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from conformance.cells import CellEvaluator, ChainsOnDevice
from conformance.problems import CASES, PATTERNS, SIZES, STATES, TIPS, answer_of, case_of, changes_of
from gpu.conftest import LATER
from oracle.small_problems import named_arrays
from phloem.errors import DeviceError
from phloem.hardware import machine
from phloem.model import transition
from phloem.pruning.interface import Evaluator, Problem
from phloem.pruning.select import select_engine

ENGINES = {"reference": 1, "cpu": 2, "cells": 1, "gpu": None, "gpu chains": None}  # name → threads
COMPARED = ("cpu", "cells", "gpu", "gpu chains")
# cells want real eigensystems: what they cannot have runs on an evaluator of its own (likelihood/parts.py)
TABLE = [
    (e, n) for e, n in product(ENGINES, CASES) if (e, n) != ("cells", "mixture of irreversible processes")
]
# Of which other rows have the like: the interpreter's slow suite has these.
REPEATED = (
    "mixture of processes, 4 states",
    "one column, 4 states",
    "invariable sites, 4 states",
    "lengths 1e-8, 20 states",
    "200 codes, 7 patterns, 20 states",
    "ascertained, 8 states",
)
# Both engines of a GPU have the same kernels: of rows that take the interpreter long, one engine has each,
# and tests/gpu has the like of the other.
BY_THE_OTHER = {
    "gpu": (
        "mixture of processes and lengths, 4 states",
        "without distinct columns",
        "two lengths zero",
        "lengths 1e-8, 4 states",
        "ascertained, 2 states",
    ),
    "gpu chains": (
        "mixture of irreversible processes",
        "zero frequency, GTR",
        "200 codes, 7 patterns, 4 states",
        "5 tips, 1 patterns, 4 states",
        "3 tips, 1 patterns, 61 states",
    ),
}
# What follows a value is made of the same kernels: of these rows the interpreter has values and gradients.
VALUES_ONLY = (
    "mixture of irreversible processes",
    "mixture of processes and lengths, 4 states",
    "5 tips, 1 patterns, 4 states",
    "zero frequency, GTR",
    "without distinct columns",
    "two lengths zero",
    "lengths 1e-8, 4 states",
)
VALUE, GRADIENT = 1e-9, 1e-8
SITE_DERIVATIVES = 1_000_000  # tips × patterns × states
# Tips, and tips × patterns × states, that Triton's interpreter gets through.
INTERPRETED = {"gpu": (10, 4_000), "gpu chains": (10, 1_000)}


def table(engines, later: tuple[str, ...] = ()) -> list:
    """Of these engines, the rows as parameters of a test. later: rows that the interpreter's slow suite has,
    too."""
    later += REPEATED
    return [
        pytest.param(e, n, marks=LATER if e.startswith("gpu") and n in later + BY_THE_OTHER[e] else [])
        for e, n in TABLE
        if e in engines
    ]


def build(engine: str, problem: Problem) -> Evaluator:
    if engine == "cells":
        return CellEvaluator(problem)
    if engine == "gpu chains":
        return ChainsOnDevice(problem)
    return select_engine(engine, problem, ENGINES[engine]).make(problem)


def difference(found, wanted) -> float:
    """The largest difference, relative to the largest entry wanted; infinite where anything is no number."""
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    assert found.shape == wanted.shape
    if not (np.isfinite(found).all() and np.isfinite(wanted).all()):
        return 0.0 if np.array_equal(found, wanted) else np.inf
    return float(np.abs(found - wanted).max(initial=0.0) / max(np.abs(wanted).max(initial=0.0), 1e-300))


def skip_what_is_not_for(engine: str, name: str) -> None:
    """Triton's interpreter would take hours for large problems."""
    problem = case_of(name).problem
    if engine.startswith("gpu") and os.environ.get("TRITON_INTERPRET") == "1":
        size, most = problem.tip_codes.size * problem.state_sets.shape[1], INTERPRETED[engine]
        if len(problem.tip_codes) > most[0] or size > most[1]:
            pytest.skip("for a device")


@pytest.mark.parametrize("engine, name", table(COMPARED))
def test_value_and_gradient(engine, name):
    skip_what_is_not_for(engine, name)
    case, wanted = case_of(name), answer_of(name)
    evaluator = build(engine, case.problem)
    assert difference(evaluator.log_likelihood(case.lengths, case.model), wanted.log_likelihood) < VALUE
    found = evaluator.gradient(case.lengths, case.model, parameters=True)
    assert difference(found.log_likelihood, wanted.log_likelihood) < VALUE
    assert difference(evaluator.site_log_likelihoods(), wanted.site_log_likelihoods) < VALUE
    assert difference(found.branch_lengths, wanted.branch_lengths) < GRADIENT
    assert found.site_model is not None
    for key, array in named_arrays(found.site_model).items():
        largest = max(1.0, np.abs(wanted.site_model[key]).max())
        assert np.abs(array - wanted.site_model[key]).max() < GRADIENT * largest, key


@pytest.mark.parametrize("engine, name", table(ENGINES, VALUES_ONLY))
def test_proposals(engine, name):
    skip_what_is_not_for(engine, name)
    case, wanted = case_of(name), answer_of(name)
    evaluator, lengths = build(engine, case.problem), case.lengths
    evaluator.log_likelihood(lengths, case.model)
    for change, value in zip(changes_of(name), wanted.proposed, strict=True):
        found = evaluator.propose(change.lengths, change.changed, change.model, *change.children)
        assert difference(found, value) < VALUE
        if change.kept:
            evaluator.accept()
            lengths = change.lengths
        else:
            evaluator.reject()
    found = evaluator.gradient(lengths, case.model).branch_lengths
    assert difference(found, wanted.last_gradient) < GRADIENT


@pytest.mark.parametrize("engine, name", table(("cpu", "gpu"), VALUES_ONLY))
def test_derivatives_by_site_and_curvature(engine, name):
    """d log L_p / d length of every branch at every site, and d² log L / d length² of every branch."""
    skip_what_is_not_for(engine, name)
    case = case_of(name)
    if case.problem.tip_codes.size * case.problem.state_sets.shape[1] > SITE_DERIVATIVES:
        pytest.skip("the reference takes long")
    evaluator, reference = build(engine, case.problem), build("reference", case.problem)
    for derivative in ("site_branch_derivatives", "second_derivatives"):
        found = getattr(evaluator, derivative)(case.lengths, case.model)
        assert difference(found, getattr(reference, derivative)(case.lengths, case.model)) < GRADIENT


def test_the_table_has_every_pair_of_sizes():
    for one, other, pairs in (
        (TIPS, PATTERNS, {(t, p) for t, p, _ in SIZES}),
        (TIPS, STATES, {(t, s) for t, _, s in SIZES}),
        (PATTERNS, STATES, {(p, s) for _, p, s in SIZES}),
    ):
        assert pairs == set(product(one, other))


CONTROLS = ["5 tips, 63 patterns, 8 states", "zero frequency, GTR", "lengths 1e-8, 4 states"]


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("engine", ("cpu", "cells"))
def test_planted_errors_are_seen(engine, name):
    """Negative control: a length, a weight, a rate and a code that are a little wrong fail the table."""
    case, wanted = case_of(name), answer_of(name)

    def differs(problem: Problem, lengths, model) -> bool:
        found = build(engine, problem).gradient(lengths, model)
        by_value = difference(found.log_likelihood, wanted.log_likelihood) > VALUE
        return by_value or difference(found.branch_lengths, wanted.branch_lengths) > GRADIENT

    assert not differs(case.problem, case.lengths, case.model)
    lengths = case.lengths.copy()
    lengths[0] *= 1 + 1e-4
    assert differs(case.problem, lengths, case.model)
    weights = case.problem.pattern_weights.copy()
    weights[1] += 1
    assert differs(replace(case.problem, pattern_weights=weights), case.lengths, case.model)
    assert differs(case.problem, case.lengths, replace(case.model, rates=case.model.rates * (1 + 1e-4)))
    codes = case.problem.tip_codes.copy()
    states = np.flatnonzero(case.model.single.root_frequencies > 0)
    codes[0, 1] = states[states != codes[0, 1]][0]
    assert differs(replace(case.problem, tip_codes=codes), case.lengths, case.model)


@pytest.mark.parametrize("n_states", [4, 20, 61])
def test_digits_lost_by_a_plain_exponential_are_seen(n_states, monkeypatch):
    """Negative control of the lengths of 1e-8: exp(Λt) in the place of I and expm1(Λt)."""

    def plain(t, process):
        e = process.eigen
        return np.einsum("ik,xck,kj->xcij", e.right, np.exp(t[..., None] * e.values), e.left)

    name = f"lengths 1e-8, {n_states} states"
    case, wanted = case_of(name), answer_of(name)
    monkeypatch.setattr(transition, "_exponential", plain)
    found = build("reference", case.problem).gradient(case.lengths, case.model)
    assert difference(found.branch_lengths, wanted.branch_lengths) > GRADIENT


def test_codes_mistaken_for_each_other_are_seen():
    """Negative control of many codes: the pair of classes keyed by the number of patterns collides."""
    case, wanted = case_of("200 codes, 7 patterns, 4 states"), answer_of("200 codes, 7 patterns, 4 states")
    n_patterns = case.problem.tip_codes.shape[1]
    mistaken = case.problem.tip_codes % n_patterns
    found = build("cpu", replace(case.problem, tip_codes=mistaken)).log_likelihood(case.lengths, case.model)
    assert difference(found, wanted.log_likelihood) > VALUE


@pytest.mark.parametrize("engine", ["auto", "gpu"])
@pytest.mark.parametrize("driver", [False, True])
def test_an_extra_that_is_not_installed(engine, driver, monkeypatch):
    """Asked for: an error that says what to install. Left open: the CPU, and why."""
    problem = case_of("one column, 4 states").problem
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    monkeypatch.setattr(machine, "_driver_is_here", lambda: driver)
    if engine == "gpu":
        with pytest.raises(DeviceError, match=r"pip install 'phloem\[gpu\]'"):
            select_engine(engine, problem)
        return
    chosen = select_engine(engine, problem)
    assert chosen.engine == "cpu"
    assert ("PyTorch, which is not installed" if driver else "no GPU here") in chosen.reason


def test_a_gpu_that_is_not_there(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(DeviceError):
        select_engine("gpu", case_of("one column, 4 states").problem)
