"""The reference engine against the sum over all internal states and against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.small_problems import (
    brute_force_log_likelihood,
    brute_force_site_likelihoods,
    central_difference,
    named_arrays,
    random_mixture,
    random_model,
    random_problem,
    random_topology,
    with_process,
)
from phloem.pruning.reference.evaluator import ReferenceEvaluator

VARIANTS = {
    "plain": ({}, {}),
    "ambiguous": ({"ambiguous": True}, {}),
    "invariable sites": ({"ambiguous": True}, {"invariant": 0.3}),
    "mixture": ({}, {"rates": (0.2, 0.9, 2.5)}),
    "mixture and invariable": ({"ambiguous": True}, {"rates": (0.2, 2.5), "invariant": 0.2}),
    "ascertained": ({"ascertained": True}, {"rates": (0.3, 1.7)}),
    "irreversible": ({"ambiguous": True}, {"reversible": False, "rates": (0.5, 1.5)}),
    "no repeats": ({"repeats": False}, {"rates": (0.5, 1.5)}),
    "processes": ({"ambiguous": True}, {"n_processes": 2, "invariant": 0.2}),
    "irreversible processes": ({}, {"n_processes": 2, "reversible": False}),
    "lengths per class": ({}, {"n_processes": 1, "n_lengths": 2}),
    "processes, lengths, ascertained": (
        {"ascertained": True, "ambiguous": True},
        {"n_processes": 2, "n_lengths": 3, "invariant": 0.1},
    ),
}
MIXTURES = ["processes", "irreversible processes", "lengths per class", "processes, lengths, ascertained"]


def case(variant: str, n_states: int, n_tips: int = 4):
    rng = np.random.default_rng([n_states, n_tips, len(variant)])
    of_problem, of_model = VARIANTS[variant]
    problem = random_problem(rng, n_tips, n_states, **of_problem)
    make = random_mixture if "n_processes" in of_model else random_model
    model = make(rng, n_states, **of_model)
    n_lengths = model.n_length_classes
    shape = (n_lengths, 2 * n_tips - 1) if n_lengths > 1 else (2 * n_tips - 1,)
    lengths = rng.gamma(2.0, 0.15, shape)
    lengths[..., -1] = 0.0
    return problem, model, lengths


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n_states", [2, 3, 4])
@pytest.mark.parametrize("n_tips", [2, 3, 5])
def test_equals_the_sum_over_all_internal_states(variant, n_states, n_tips):
    problem, model, lengths = case(variant, n_states, n_tips)
    evaluator = ReferenceEvaluator(problem)
    expected = brute_force_log_likelihood(problem, lengths, model)
    assert evaluator.log_likelihood(lengths, model) == pytest.approx(expected, rel=1e-11)
    sites = brute_force_site_likelihoods(problem, lengths, model)
    np.testing.assert_allclose(evaluator.site_log_likelihoods(), np.log(sites), rtol=1e-11, atol=1e-13)


def test_the_oracle_sees_a_missed_weight_a_missed_ambiguity_and_a_moved_branch():
    problem, model, lengths = case("mixture and invariable", 4)
    value = ReferenceEvaluator(problem).log_likelihood(lengths, model)
    other_lengths = lengths.copy()
    other_lengths[[0, -2]] = other_lengths[[-2, 0]]
    wrong = [
        (replace(problem, pattern_weights=np.ones_like(problem.pattern_weights)), model, lengths),
        (problem, replace(model, weights=model.weights[::-1].copy()), lengths),
        (problem, replace(model, invariant=0.0), lengths),
        (replace(problem, tip_codes=np.minimum(problem.tip_codes, 4)), model, lengths),
        (problem, model, other_lengths),
    ]
    for bad in wrong:
        assert abs(brute_force_log_likelihood(bad[0], bad[2], bad[1]) - value) > 1e-3


@pytest.mark.parametrize("field", ["process", "length_class", "invariant_frequencies"])
def test_the_oracle_sees_a_category_of_another_process_or_length(field):
    problem, model, lengths = case("processes, lengths, ascertained", 4)
    value = ReferenceEvaluator(problem).log_likelihood(lengths, model)
    other = replace(model, **{field: np.roll(getattr(model, field), 1)})
    assert abs(brute_force_log_likelihood(problem, lengths, other) - value) > 1e-3


def test_lengths_of_another_shape_are_refused():
    problem, model, lengths = case("lengths per class", 4)
    with pytest.raises(ValueError, match="shape"):
        ReferenceEvaluator(problem).log_likelihood(lengths[0], model)
    with pytest.raises(ValueError, match="shape"):
        ReferenceEvaluator(problem).log_likelihood(lengths[:, :-1], model)


def test_dropping_the_ascertainment_correction_changes_the_value():
    problem, model, lengths = case("ascertained", 3)
    uncorrected = replace(problem, ascertained=np.zeros_like(problem.ascertained))
    corrected = ReferenceEvaluator(problem).log_likelihood(lengths, model)
    assert corrected > ReferenceEvaluator(uncorrected).log_likelihood(lengths, model) + 0.1


@pytest.mark.parametrize("variant", VARIANTS)
def test_branch_gradient_against_differences(variant):
    problem, model, lengths = case(variant, 4)
    gradient = ReferenceEvaluator(problem).gradient(lengths, model).branch_lengths

    def value(b):
        return brute_force_log_likelihood(problem, b, model)

    numeric = central_difference(value, lengths)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)
    assert (gradient[..., -1] == 0.0).all()
    assert np.abs(-gradient - numeric).max() > 1e-2  # a flipped sign is seen


@pytest.mark.parametrize("variant", VARIANTS)
def test_second_derivatives_against_differences_of_the_gradient(variant):
    problem, model, lengths = case(variant, 3)
    evaluator, h = ReferenceEvaluator(problem), 1e-5
    numeric = np.zeros_like(lengths)
    for x in np.ndindex(lengths.shape):
        step = np.zeros_like(lengths)
        step[x] = h
        up, down = (evaluator.gradient(lengths + s, model).branch_lengths[x] for s in (step, -step))
        numeric[x] = (up - down) / (2 * h)
    found = evaluator.second_derivatives(lengths, model)
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-5)
    site = evaluator.site_branch_derivatives(lengths, model)
    observed_information = -(site**2) @ problem.pattern_weights
    assert np.abs(observed_information - numeric).max() > 1e-2  # without L''/L it is wrong


@pytest.mark.parametrize(
    "variant", ["ambiguous", "mixture and invariable", "irreversible", "processes", "lengths per class"]
)
def test_site_branch_derivatives_sum_to_the_gradient(variant):
    problem, model, lengths = case(variant, 4, 5)
    evaluator = ReferenceEvaluator(problem)
    site = evaluator.site_branch_derivatives(lengths, model)
    assert site.shape == (*lengths.shape, problem.tip_codes.shape[1])
    gradient = evaluator.gradient(lengths, model).branch_lengths
    np.testing.assert_allclose(site @ problem.pattern_weights, gradient, rtol=1e-10, atol=1e-10)
    assert np.abs(site.sum(-1) - gradient).max() > 1e-2  # missed weights are seen

    def sites(b):
        return np.log(brute_force_site_likelihoods(problem, b, model))

    step = np.zeros_like(lengths)
    step[..., 3] = 1e-6
    np.testing.assert_allclose(
        site[..., 3, :].reshape(-1, site.shape[-1]).sum(0),
        (sites(lengths + step) - sites(lengths - step)) / 2e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize("variant", ["mixture and invariable", "irreversible", "ascertained", *MIXTURES])
def test_gradient_of_the_model_numbers(variant):
    problem, model, lengths = case(variant, 3)
    found = ReferenceEvaluator(problem).gradient(lengths, model, parameters=True).site_model

    def value(changed):
        return brute_force_log_likelihood(problem, lengths, changed)

    changes = {
        name: (getattr(model, name), lambda v, name=name: replace(model, **{name: v}))
        for name in ("rates", "weights", "invariant_frequencies", "invariant")
    }
    for k, process in enumerate(model.processes):
        for name in ("rate_matrix", "root_frequencies"):
            # invariant_frequencies stay: with_process would move them with those of an only process.
            changes[f"{name} {k}"] = (
                getattr(process, name),
                lambda v, name=name, k=k: replace(
                    with_process(model, k, **{name: v}), invariant_frequencies=model.invariant_frequencies
                ),
            )
    for name, gradient in named_arrays(found).items():
        start, changed = changes[name]
        numeric = central_difference(lambda v: value(changed(v)), np.asarray(start, float), 1e-6)  # noqa: B023
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=2e-6, err_msg=name)
        if model.invariant > 0 or "invariant" not in name:
            assert np.abs(-gradient - numeric).max() > 1e-3, name  # a flipped sign is seen


def test_accept_and_reject():
    rng = np.random.default_rng(5)
    problem, model, lengths = case("mixture", 4, 5)
    evaluator = ReferenceEvaluator(problem)
    start = evaluator.log_likelihood(lengths, model)
    longer = lengths * np.where(np.arange(9) == 2, 3.0, 1.0)
    proposed = evaluator.propose(longer, np.array([2]))
    assert proposed == pytest.approx(brute_force_log_likelihood(problem, longer, model), rel=1e-12)
    with pytest.raises(RuntimeError):
        evaluator.propose(lengths, np.array([2]))
    evaluator.reject()
    assert evaluator.propose(lengths, np.array([], int)) == start
    evaluator.accept()
    left, right = random_topology(rng, 5)
    moved = replace(problem, left=left, right=right)
    value = evaluator.propose(lengths, np.arange(8), None, left, right)
    assert value == pytest.approx(brute_force_log_likelihood(moved, lengths, model), rel=1e-12)
    assert abs(value - start) > 1e-3
    evaluator.accept()
    other = random_model(rng, 4, rates=(0.2, 0.9, 2.5))
    value = evaluator.propose(lengths, np.array([], int), other)
    assert value == pytest.approx(brute_force_log_likelihood(moved, lengths, other), rel=1e-12)


def test_float32_with_a_long_caterpillar_stays_finite():
    n_tips = 400
    rng = np.random.default_rng(3)
    left = np.append([0], np.arange(n_tips, 2 * n_tips - 2)).astype(np.int32)
    right = np.arange(1, n_tips, dtype=np.int32)
    problem = replace(random_problem(rng, n_tips, 4, 5), left=left, right=right)
    model = random_model(rng, 4)
    lengths = np.append(rng.gamma(2.0, 0.2, 2 * n_tips - 2), 0.0)
    double = ReferenceEvaluator(problem).gradient(lengths, model)
    single = ReferenceEvaluator(replace(problem, precision="float32")).gradient(lengths, model)
    assert single.log_likelihood == pytest.approx(double.log_likelihood, rel=1e-5)
    largest = np.abs(double.branch_lengths).max()
    assert np.abs(single.branch_lengths - double.branch_lengths).max() < 1e-4 * largest
