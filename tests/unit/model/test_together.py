"""Models of one form evaluated together are what each is alone."""

import numpy as np
import pytest

from phloem.data.alphabet import alphabet
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.state import ModelPoint, PointGroups
from phloem.model.record import ProcessGradient, SiteModelGradient
from phloem.model.together import adjoint_together, evaluate_together, form_of

MODELS = (
    ("dna", "GTR+FO+I+G4"),
    ("dna", "HKY+FO+R3"),
    ("dna", "JC"),
    ("dna", "K80+G4a"),
    ("dna", "K80+LN3"),
    ("protein", "LG+G4"),
    ("protein", "LG+FO+I"),
    ("protein", "GTR20+FO+G4"),
)
SETS = 5


def points(kind, text):
    """The model at several sets of values."""
    rng, model = np.random.default_rng(1), model_for_alphabet(text, alphabet(kind))
    found = []
    for _ in range(SETS):
        values = model.start_values()
        for p in model.parameters:
            x = np.asarray(values[p.name]) * np.exp(0.3 * rng.normal(size=np.shape(values[p.name])))
            values[p.name] = model.parameter(p.name).checked(x / x.sum() if p.kind == "simplex" else x)
        found.append(ModelPoint(model, values))
    return found


def gradient(model, rng):
    s, c = model.n_states, model.n_categories
    process = ProcessGradient(rng.normal(size=(s, s)), rng.normal(size=s))
    return SiteModelGradient(
        (process,), rng.normal(size=c), rng.normal(size=c), float(rng.normal()), rng.normal(size=s)
    )


def arguments(own):
    return [p.model for p in own], [p.values for p in own]


def difference(a, b):
    """The largest between two site models, relative to the second's entries."""
    one, two = a.processes[0], b.processes[0]
    pairs = [(getattr(one, f), getattr(two, f)) for f in ("rate_matrix", "root_frequencies", "frequencies")]
    pairs += [
        (getattr(a, f), getattr(b, f)) for f in ("rates", "weights", "invariant_frequencies", "invariant")
    ]
    pairs.append((one.eigen.right * one.eigen.values @ one.eigen.left, two.rate_matrix))
    assert all(np.shape(x) == np.shape(y) for x, y in pairs)
    return max(np.abs(np.subtract(x, y)).max() for x, y in pairs)


@pytest.mark.parametrize(("kind", "text"), MODELS)
def test_together_is_each_alone(kind, text):
    own, rng = points(kind, text), np.random.default_rng(2)
    found = evaluate_together(*arguments(own))
    for i, (model, reversible) in enumerate(found):
        assert difference(model, own[i].site_model) < 1e-12
        assert reversible is own[i].reversible
    gradients = [gradient(own[0].model, rng) for _ in own]
    for slopes, point, g in zip(adjoint_together(*arguments(own), gradients), own, gradients):
        alone = point.backpropagate(g)
        assert set(slopes) == set(alone)
        for name, slope in alone.items():
            assert isinstance(slopes[name], type(slope))
            np.testing.assert_allclose(slopes[name], slope, rtol=1e-9, atol=1e-11)
    if own[0].model.parameters:  # the control: a neighbour's numbers differ
        assert difference(found[0][0], own[1].site_model) > 1e-3


def test_only_models_of_one_form_are_put_together():
    made = [
        model_for_alphabet(t, alphabet("dna"))
        for t in ("HKY+FO+G4", "HKY+F{0.1,0.2,0.3,0.4}+G4", "HKY+FO+G5")
    ]
    first, fixed, more = map(form_of, made)
    assert first == fixed and first != more
    for text in ("MIX{HKY+FO,JC}", "UNREST", "GTR+FO*H2"):
        assert form_of(model_for_alphabet(text, alphabet("dna"))) is None
    assert form_of(model_for_alphabet("GY94+FQ", alphabet("codon"))) is None


def test_a_value_that_is_not_allowed_is_left_to_its_own_model():
    own = points("dna", "HKY+FO+G4")
    for bad in ({"alpha": -1.0}, {"alpha": np.nan}, {"frequencies": np.full(4, 0.3)}, {"alpha": 1e9}):
        values = [own[0].values, {**own[1].values, **bad}]
        assert evaluate_together([p.model for p in own[:2]], values) is None
    missing = {k: v for k, v in own[1].values.items() if k != "kappa"}
    assert evaluate_together([p.model for p in own[:2]], [own[0].values, missing]) is None
    zero = {**own[1].values, "frequencies": np.array([0.5, 0.5, 0.0, 0.0])}
    assert evaluate_together([p.model for p in own[:2]], [own[0].values, zero]) is None


def test_only_what_changed_is_worked_out_again():
    own = points("dna", "HKY+FO+G4")
    groups = PointGroups([p.model for p in own])
    groups.evaluate(own)
    first = own[0].site_model
    moved = [own[0], *(ModelPoint(p.model, {**p.values, "alpha": 0.7}) for p in own[1:])]
    groups.evaluate(moved)
    assert moved[0].site_model is first
    assert all("site_model" in vars(p) for p in moved)
