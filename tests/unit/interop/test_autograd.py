"""PyTorch and JAX differentiate through the likelihood; skipped where they are not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, NumericalError
from phloem.interop.derivatives import value, value_and_derivatives
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "fixed_trees"
SEQUENCES = {"a": "ACGTACGTAAGG", "b": "ACGTACGAAAGG", "c": "ACTTACGAAAGC", "d": "GCTTACCAAAGC"}
KAPPA, FREQUENCIES = 2.5, np.array([0.3, 0.2, 0.1, 0.4])


def likelihood() -> TreeLikelihood:
    tree = parse_trees("(a:0.1,b:0.2,(c:0.15,d:0.3):0.05);")[0]
    alignment = alignment_from_sequences(SEQUENCES, alphabet("dna"))
    return TreeLikelihood(alignment, tree, "HKY+FO", engine="reference")


def numeric(z_step) -> float:
    """d log L / d z along a step of the frequencies' softmax coordinates."""
    values = []
    for sign in (1e-6, -1e-6):
        x = np.exp(np.log(FREQUENCIES) + sign * z_step)
        l = likelihood()
        l.set(parameters={"kappa": KAPPA, "frequencies": x / x.sum()})
        values.append(l.log_likelihood())
    return (values[0] - values[1]) / 2e-6


def test_simplex_derivative_lies_along_the_simplex():
    l = likelihood()
    given = {"kappa": np.array(KAPPA), "frequencies": FREQUENCIES}
    _, by_branch, by_name = value_and_derivatives(l, l.branch_lengths, given)
    assert by_branch.shape == (5,) and by_name["kappa"].shape == ()
    assert by_name["frequencies"] @ FREQUENCIES == pytest.approx(0, abs=1e-10)
    step = np.array([0.5, -1.0, 0.2, 0.3])
    dx = FREQUENCIES * (step - FREQUENCIES @ step)
    assert by_name["frequencies"] @ dx == pytest.approx(numeric(step), rel=1e-6)


def test_samplers_get_minus_infinity_where_the_likelihood_is_zero():
    l = likelihood()
    lengths, given = l.branch_lengths, {"kappa": np.array(KAPPA), "frequencies": FREQUENCIES}
    before = value(l, lengths, given)
    for bad_lengths, bad in (
        (np.zeros(5), given),
        (np.full(5, np.inf), given),
        (lengths, given | {"kappa": np.array(np.inf)}),
        (lengths, given | {"kappa": np.array(np.nan)}),
    ):
        found, by_branch, by_name = value_and_derivatives(l, bad_lengths, bad, "-inf")
        assert found == -np.inf == value(l, bad_lengths, bad, "-inf")
        assert not by_branch.any() and by_branch.shape == (5,)
        assert {name: x.shape for name, x in by_name.items()} == {"kappa": (), "frequencies": (4,)}
        for function in (value, value_and_derivatives):
            with pytest.raises(NumericalError):
                function(l, bad_lengths, bad)
        assert value(l, lengths, given) == before
    with pytest.raises(InputError):  # a mistake of the caller's, not of a trajectory
        value(l, -lengths, given, "-inf")


def test_torch():
    torch = pytest.importorskip("torch")
    from phloem.interop.torch_function import torch_log_likelihood

    function = torch_log_likelihood(likelihood())
    lengths = torch.tensor([0.1, 0.2, 0.15, 0.3, 0.05], dtype=torch.float64, requires_grad=True)
    log_kappa = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    z = torch.tensor([0.1, -0.2, 0.3, 0.0], dtype=torch.float64, requires_grad=True)

    def value(lengths, log_kappa, z):
        return function(lengths, {"kappa": log_kappa.exp(), "frequencies": z.softmax(0)})

    assert torch.autograd.gradcheck(value, (lengths, log_kappa, z), eps=1e-6, atol=1e-5, rtol=1e-6)


def test_jax():
    jax = pytest.importorskip("jax")
    from phloem.interop.jax_function import jax_log_likelihood

    jax.config.update("jax_enable_x64", True)
    function = jax_log_likelihood(likelihood())
    start = np.array([0.1, 0.2, 0.15, 0.3, 0.05]), np.array(0.3), np.array([0.1, -0.2, 0.3, 0.0])

    def value(point):
        lengths, log_kappa, z = point
        return function(lengths, {"kappa": jax.numpy.exp(log_kappa), "frequencies": jax.nn.softmax(z)})

    slope = jax.jit(jax.grad(value))(start)
    for i, found in enumerate(slope):
        for k in np.ndindex(np.shape(start[i])):
            ends = []
            for sign in (1e-6, -1e-6):
                point = [x.copy() for x in start]
                point[i][k] += sign
                ends.append(float(value(tuple(point))))
            assert found[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)
    batch = jax.vmap(lambda lengths: function(lengths, {"kappa": 2.0, "frequencies": np.full(4, 0.25)}))
    assert batch(np.stack([start[0], 2 * start[0]])).shape == (2,)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_examples(library):
    pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location(
        library + "_gradient", ROOT / "examples" / f"{library}_gradient.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    value = example.fit(str(GOLDEN / "primates.fasta"), str(GOLDEN / "primates.nwk"), steps=100)
    assert value > -5820
