"""The gradient by every parameter of every kind of model, through the whole chain, against differences."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood

STEP = 1e-4  # codon likelihoods are rounded at about 1e-9: a smaller step would show that
ROOTED = parse_trees("((a:0.1,b:0.25):0.07,(c:0.3,d:0.02):0.15);")[0]
MODELS = [
    ("dna", "GTR+FO+I+G4"),
    ("dna", "TN93+FO+R3"),
    ("dna", "TVM+F+G4a"),
    ("dna", "UNREST+FROOT+G2"),
    ("dna", "HKY+FO+COV+G2"),
    ("protein", "LG+FO+I"),
    ("codon", "GY94+F3X4+G2"),
    ("codon", "MG94+F1X4"),
    ("binary", "GTR+FO+ASC"),
    ("binary", "MK+FB4+G2+ASC"),
    ("dna", "MIX{HKY+FO,GTR}+I+G2"),
    ("dna", "MIX{K80,HKY+FO}*R2"),
    ("dna", "HKY+FO+H2+I"),
    ("protein", "LG4X+I"),
    ("protein", "WAG+C10Opt+E"),
    ("codon", "M2a+F1X4"),
    ("codon", "M8K3+FQ"),
]


def random_alignment(kind: str) -> Alignment:
    rng = np.random.default_rng(len(kind))
    letters = alphabet(kind)
    n = letters.n_states
    sets = np.vstack([np.eye(n, dtype=bool), np.ones((1, n), bool)])
    codes = rng.integers(0, n, (4, 30))
    related = rng.random((4, 30)) < 0.7
    codes = np.where(related, codes[:1], codes)
    codes[0], codes[1] = codes[2], (codes[2] + rng.integers(0, 2, 30)) % n
    if kind == "binary":
        codes[3] = 1 - codes[0]
    return Alignment(tuple("abcd"), letters, codes.astype(np.uint8), sets)


def start(likelihood: TreeLikelihood) -> dict:
    """Free parameters a little away from where they would start."""
    rng = np.random.default_rng(4)
    values = {}
    for p in likelihood.model.parameters:
        x = np.asarray(p.start if p.value is None else p.value, float) * np.exp(0.2 * rng.normal(size=p.size))
        x = np.maximum(x, 1.1) if p.lower == 1.0 else x
        x = x / x.sum() if p.kind == "simplex" else x
        values[p.name] = x if p.elements else float(x[0])
    return values


def moved(parameter, value, i: int, step: float):
    """The value with entry i of it (of a simplex: of its softmax coordinates) moved by step."""
    x = np.atleast_1d(np.array(value, float))
    if parameter.kind == "simplex":
        x = x * np.exp(step * (np.arange(len(x)) == i))
        return x / x.sum()
    x[i] += step
    return x if parameter.elements else float(x[0])


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("kind, model", MODELS)
def test_parameters(kind, model, engine):
    likelihood = TreeLikelihood(random_alignment(kind), ROOTED, model, engine=engine, threads=1)
    values = start(likelihood)
    likelihood.set(parameters=values)
    found = likelihood.gradient()
    largest = 0.0
    for p in likelihood.model.parameters:
        for i, name in enumerate(p.elements or (p.name,)):
            ends = []
            for step in (STEP, -STEP):
                likelihood.set(parameters={p.name: moved(p, values[p.name], i, step)})
                ends.append(likelihood.log_likelihood())
            likelihood.set(parameters={p.name: values[p.name]})
            numeric = (ends[0] - ends[1]) / (2 * STEP)
            assert found.parameters[name] == pytest.approx(numeric, rel=2e-5, abs=2e-5), name
            largest = max(largest, abs(numeric))
    assert largest > 1e-2  # so that a derivative of zero or of the wrong sign would be seen
