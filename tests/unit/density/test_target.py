"""A target is the sum of its terms, by natural values and by coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from phloem.density.space import Block, Space
from phloem.density.target import Target
from phloem.density.terms.compound_dirichlet import GammaDirichlet
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.term import TOPOLOGY, BlockPrior, LengthPrior
from phloem.errors import InputError

SPACE = Space(
    (
        Block("lengths", "positive", np.array([0.1, 0.2, 0.3, 0.1]), 1e-8, 100.0),
        Block("frequencies", "simplex", np.array([0.2, 0.3, 0.5]), 1e-6, 1.0),
        Block("alpha", "positive", np.ones(1), 1e-3, 200.0),
    )
)
PARENT = np.array([3, 3, 4, 4, -1])
TERMS = (
    BlockPrior("alpha", Exponential(2.0)),
    BlockPrior("frequencies", Dirichlet((2.0, 3.0, 1.5))),
    LengthPrior("lengths", GammaDirichlet(2.0, 1.0, 1.5, 0.7)),
)
TARGET = Target(SPACE, TERMS, {TOPOLOGY: PARENT})


@pytest.mark.parametrize("jacobian", [True, False])
def test_gradient_by_coordinates(jacobian):
    y = SPACE.to_coordinates(SPACE.start()) + 0.1
    value, found = TARGET.at(y, jacobian)
    step = 1e-6 * np.eye(len(y))
    numeric = [(TARGET.at(y + h, jacobian)[0] - TARGET.at(y - h, jacobian)[0]) / 2e-6 for h in step]
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-7)
    x = SPACE.from_coordinates(y)
    assert value == pytest.approx(TARGET.log_density(x) + jacobian * SPACE.log_jacobian(x), rel=1e-13)
    assert not np.allclose(found, TARGET.at(y, not jacobian)[1])


def test_value_and_gradient_by_natural_values():
    x = SPACE.start()
    value, found = TARGET.gradient(x)
    assert value == pytest.approx(TARGET.log_density(x), rel=1e-14)
    alpha = TERMS[0].family
    np.testing.assert_allclose(found[-1:], alpha.gradient(x[-1:]))
    np.testing.assert_allclose(found[4:7], TERMS[1].family.gradient(x[4:7]))


def mass(jacobian: bool) -> float:
    space = Space((SPACE.block("alpha"),))
    target = Target(space, (BlockPrior("alpha", Gamma(2.0, 3.0)),))
    return integrate.quad(lambda y: np.exp(target.at(np.array([y]), jacobian)[0]), -20, 5)[0]


def test_the_density_of_coordinates_is_one_only_with_the_jacobian():
    assert mass(True) == pytest.approx(1.0, rel=1e-8)
    assert mass(False) != pytest.approx(1.0, rel=1e-3)


def test_nothing_is_evaluated_after_a_density_of_zero():
    class Never:
        reads = ("alpha",)

        def log_density(self, values):
            raise AssertionError("evaluated")

        gradient = log_density

    target = Target(SPACE, (*TERMS, Never()), {TOPOLOGY: PARENT})
    x = SPACE.start()
    x[-1] = -1.0
    assert target.log_density(x) == -np.inf
    with pytest.raises(AssertionError, match="evaluated"):
        target.log_density(SPACE.start())


@pytest.mark.parametrize(
    "terms, message",
    [
        ((BlockPrior("beta", Exponential()),), "needs a block 'beta'"),
        ((LengthPrior("lengths", GammaDirichlet()),), "needs a topology"),
        ((BlockPrior("frequencies", Exponential()),), "is simplex, and Exponential is a density on positive"),
        ((BlockPrior("lengths", GammaDirichlet()),), "GammaDirichlet is a density on lengths"),
        ((BlockPrior("alpha", Dirichlet()),), "is positive, and Dirichlet is a density on simplex"),
    ],
)
def test_terms_that_do_not_fit_are_refused(terms, message):
    with pytest.raises(InputError, match=message):
        Target(SPACE, terms)
