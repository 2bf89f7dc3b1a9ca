"""Every family of prior densities there is: gradient, normalisation, support, compiled form.

The table is made by looking into the folder: a new family joins by existing, and one without a gradient, or
missing from families.py, fails.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

import phloem.density.terms
from phloem.density.space import Block, Space
from phloem.density.terms.beta import Beta
from phloem.density.terms.beta_prime import BetaPrime
from phloem.density.terms.compiled.dispatch import (
    block_table,
    length_table,
    log_density_of_kind,
    log_prior,
)
from phloem.density.terms.compound_dirichlet import GammaDirichlet, InverseGammaDirichlet
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.families import FAMILIES, KIND
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.inverse_gamma import InverseGamma
from phloem.density.terms.laplace import Laplace
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.normal import Normal
from phloem.density.terms.ratios import Ratios
from phloem.density.terms.term import TOPOLOGY, BlockPrior, LengthPrior
from phloem.density.terms.tied_dirichlet import TiedDirichlet, all_groupings, code_of
from phloem.density.terms.two_exponentials import TwoExponentials
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError

FOLDER = Path(phloem.density.terms.__file__).parent
OTHERS = [
    Beta(0.5, 1.0),
    BetaPrime(2.5, 1.5),
    Dirichlet(0.4),
    Dirichlet((0.5, 2.0, 3.0)),
    Exponential(10.0),
    Gamma(0.5, 3.0),
    GammaDirichlet(3.0, 2.0, 1.5, 0.5),
    InverseGamma(3.5, 0.4),
    InverseGammaDirichlet(4.0, 1.5, 0.7, 2.0),
    Laplace(3.0, 0.5),
    LogNormal(-1.0, 0.3),
    LogUniform(1e-4, 30.0),
    Normal(3.0, 0.2),
    Ratios(2.5),
    TwoExponentials(3.0, 0.5),
    TiedDirichlet(1.7),
    Uniform(-2.0, 0.5),
]


def families_in(folder: Path, package: str) -> list[type]:
    """Every class with a domain and a density that a file of the folder defines."""
    found = []
    for path in sorted(folder.glob("*.py")):
        module = import_module(f"{package}.{path.stem}")
        found += [
            c
            for c in vars(module).values()
            if inspect.isclass(c)
            and c.__module__ == module.__name__
            and hasattr(c, "log_density")
            and hasattr(c, "domain")
        ]
    return found


DEFAULTS = [family() for family in families_in(FOLDER, "phloem.density.terms")]
ALL = [*DEFAULTS, *OTHERS]
every = pytest.mark.parametrize("family", ALL, ids=repr)


def points(family, n: int, size: int) -> np.ndarray:
    """(n, size) values inside the support."""
    rng = np.random.default_rng(size)
    if family.domain == "simplex":
        return rng.dirichlet(np.full(size, 2.0), n)
    if family.domain == "tied":
        return np.array([tied(groups, rng) for groups in rng.permutation(all_groupings(size - 1))[:n]])
    if family.domain == "unit":
        return rng.uniform(0.02, 0.98, (n, size))
    if isinstance(family, Uniform):
        return rng.uniform(family.lower, family.upper, (n, size))
    return rng.normal(size=(n, size)) if family.domain == "real" else rng.exponential(0.5, (n, size))


def tied(groups, rng) -> np.ndarray:
    sizes = np.bincount(groups)[1:]
    sums = rng.dirichlet(np.full(len(sizes), 2.0))
    return np.append((sums / sizes)[np.array(groups) - 1], code_of(list(groups)))


def size_of(family) -> int:
    return 3 if family.domain == "simplex" else 5


def gradient_error(family) -> float:
    """Largest difference of the gradient from central differences, by its size."""
    x = points(family, 4, size_of(family))
    found, step = family.gradient(x, 2), 1e-6 * np.eye(x.shape[1])
    numeric = [
        (family.log_density(x * (1 + h), 2) - family.log_density(x * (1 - h), 2)) / 2e-6 / x[:, i]
        for i, h in enumerate(step)
    ]
    return float(np.abs(found - np.array(numeric).T).max() / max(1.0, np.abs(found).max()))


@every
def test_gradient(family):
    assert gradient_error(family) < 1e-6


def test_a_family_without_a_gradient_or_with_a_wrong_one_fails(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(
        "from phloem.density.terms.gamma import Gamma as True_\n"
        "class Bare:\n    domain = 'positive'\n    log_density = True_().log_density\n"
        "class Wrong(True_):\n    def gradient(self, x, n=0):\n        return super().gradient(x) * 1.01\n"
    )
    monkeypatch.syspath_prepend(tmp_path.parent)
    bare, wrong = families_in(tmp_path, tmp_path.name)
    with pytest.raises(AttributeError, match="gradient"):
        gradient_error(bare())
    assert gradient_error(wrong()) > 1e-4
    assert bare not in FAMILIES


def test_every_family_is_compiled():
    assert {type(family) for family in DEFAULTS} == set(FAMILIES) == set(KIND)


def mass_of_tied(density) -> float:
    """Of three shares: one way to have one group, three to have two, one to have three."""
    total = density(1 / 3, 1 / 3, 1 / 3, 111.0)
    for place in range(3):  # of the share that is alone, and its value

        def of_two(share: float, place: int = place) -> float:
            x = np.full(3, (1 - share) / 2)
            x[place] = share
            return density(*x, code_of(x.round(12).tolist()) if share != 1 / 3 else 111.0)

        total += integrate.quad(of_two, 0, 1, epsabs=1e-9)[0]
    return (
        total
        + integrate.dblquad(
            lambda y, x: density(x, y, 1 - x - y, 123.0), 0, 1, 0, lambda x: 1 - x, epsabs=1e-9
        )[0]
    )


def mass(family) -> float:
    """The integral of the density over its support, in one or two dimensions."""

    def density(*x: float) -> float:
        return float(np.exp(family.log_density(np.array(x), 1)))

    if family.domain == "simplex":
        if isinstance(family.concentration, tuple):
            value = integrate.dblquad(
                lambda y, x: density(x, y, 1 - x - y), 0, 1, 0, lambda x: 1 - x, epsabs=1e-9
            )[0]
            return value
        half = integrate.quad(lambda x: density(x, 1 - x), 0, 0.5, epsabs=1e-9)[0]
        return half + integrate.quad(lambda x: density(1 - x, x), 0, 0.5, epsabs=1e-9)[0]
    if family.domain == "tied":
        return mass_of_tied(density)
    if family.domain == "lengths":  # by tree length and share of the one tip's branch
        return integrate.dblquad(
            lambda share, log_t: (
                density(np.exp(log_t) * share, np.exp(log_t) * (1 - share)) * np.exp(2 * log_t)
            ),
            -25,
            12,
            0,
            1,
            epsabs=1e-9,
        )[0]
    if isinstance(family, LogUniform):
        ends = np.log([family.lower, family.upper])
        return integrate.quad(lambda u: density(np.exp(u)) * np.exp(u), *ends)[0]
    if family.domain == "positive":
        by_log = (lambda u: density(np.exp(u)) * np.exp(u)), -60, 18
        return integrate.quad(*by_log, limit=500, points=[-8, 2])[0]
    if family.domain == "unit":
        return integrate.quad(density, 0, 1)[0]
    low, high = (family.lower, family.upper) if isinstance(family, Uniform) else (-12, 12)
    return integrate.quad(density, low, high, points=None if low > -12 else [0, 3])[0]


@every
def test_normalised(family):
    assert mass(family) == pytest.approx(1.0, rel=2e-5)


def test_ratios_of_exponentials_of_three_classes():
    """Normalised over the octant, where x of sum s fill s² / 2; MrBayes' 36 / (1 + Σ)⁴ of ordered ones."""
    family = Ratios(0.7)
    density = lambda s: np.exp(family.log_density(np.full(3, s / 3)))  # noqa: E731
    total = integrate.quad(lambda s: density(s) * s**2 / 2, 0, np.inf)[0]
    assert total == pytest.approx(1.0, rel=1e-6)
    ordered = np.exp(Ratios().log_density(np.array([0.1, 0.4, 2.0]))) * 6
    assert ordered == pytest.approx(36 / 3.5**4)


def test_a_density_without_its_constant_is_seen():
    class Half(Gamma):
        def log_density(self, x, n_external=0):
            return super().log_density(x) - 0.01

    assert mass(Half()) != pytest.approx(1.0, rel=2e-5)


@every
def test_compiled_form_is_the_same(family):
    size = size_of(family)
    numbers = family.numbers(size, 2)
    scalar = FAMILIES[type(family)]
    for x in points(family, 20, size):
        expected = float(family.log_density(x, 2))
        assert scalar(x, numbers) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert log_density_of_kind(KIND[type(family)], x, numbers) == pytest.approx(
            expected, rel=1e-12, abs=1e-12
        )
        assert scalar(x, numbers + 0.01) != pytest.approx(expected, rel=1e-12, abs=1e-12)


OUTSIDE = {"positive": -0.1, "unit": 1.0, "lengths": -0.1}


@every
def test_outside_the_support_the_density_is_zero(family):
    outside = OUTSIDE.get(family.domain, 1e3 if isinstance(family, Uniform) else None)
    if outside is not None:
        x = points(family, 1, 4)[0]
        x[2] = outside
        assert family.log_density(x, 2) == -np.inf
        assert FAMILIES[type(family)](x, family.numbers(4, 2)) == -np.inf


def test_an_unknown_kind_is_an_error():
    """A number that is no number would be a proposal that is never accepted."""
    with pytest.raises(RuntimeError, match="no prior has this number"):
        log_density_of_kind(len(KIND), np.ones(1), np.ones(3))


def test_a_table_of_priors_is_their_sum():
    space = Space(
        (
            Block("frequencies", "simplex", np.full(4, 0.25), 1e-6, 1.0),
            Block("alpha", "positive", np.ones(1), 1e-3, 200.0),
            Block("p_invariable", "unit", np.array([0.1]), 0.0, 0.9999),
        )
    )
    priors = [
        BlockPrior("p_invariable", Beta(2.0, 5.0)),
        BlockPrior("frequencies", Dirichlet((1.0, 2.0, 3.0, 4.0))),
        BlockPrior("alpha", Exponential(2.0)),
    ]
    x = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.3])
    expected = stats.beta.logpdf(0.3, 2, 5) + stats.expon.logpdf(0.6, scale=0.5)
    expected += stats.dirichlet.logpdf(x[:4], [1, 2, 3, 4])
    values = space.unpack(x)
    assert sum(p.log_density(values) for p in priors) == pytest.approx(expected, rel=1e-12)
    assert log_prior(block_table(space, priors), x) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError, match="no block 'kappa'"):
        block_table(space, [BlockPrior("kappa", Exponential())])


def test_lengths_of_tips_branches_are_told_by_the_topology():
    parent = np.array([4, 4, 5, 5, 6, 6, -1])  # ((0, 1), (2, 3))
    lengths = np.array([0.1, 0.2, 0.3, 0.4, 0.05, 0.07])
    family = GammaDirichlet(3.0, 2.0, 1.5, 0.5)
    prior = LengthPrior("lengths", family)
    weights = [1.5] * 4 + [0.75] * 2
    total = lengths.sum()
    expected = stats.gamma.logpdf(total, 3.0, scale=0.5) - 5 * np.log(total)
    expected += stats.dirichlet.logpdf(lengths / total, weights)
    values = {"lengths": lengths, TOPOLOGY: parent}
    assert prior.log_density(values) == pytest.approx(expected, rel=1e-12)
    assert log_prior(length_table(family, 6, 4), lengths) == pytest.approx(expected, rel=1e-12)
    assert log_prior(length_table(family, 6, 3), lengths) != pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(prior.gradient(values)[1]["lengths"], family.gradient(lengths, 4))
    assert prior.reads == ("lengths", TOPOLOGY)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: Gamma(-1.0, 1.0), "gamma needs positive numbers"),
        (lambda: Dirichlet((1.0, float("nan"))), "dirichlet needs positive numbers"),
        (lambda: Dirichlet((1.0, 2.0)).log_density(np.full(3, 1 / 3)), "2 concentrations for 3 entries"),
        (lambda: Uniform(1.0, 1.0), "uniform needs two finite numbers"),
        (lambda: LogUniform(2.0, 1.0), "smaller number first"),
    ],
)
def test_wrong_numbers_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def test_the_inverse_gamma_is_scipys():
    x = np.array([0.2, 0.5, 0.1])
    family = InverseGammaDirichlet(3.0, 0.4)
    expected = stats.invgamma.logpdf(x.sum(), 3.0, scale=0.4) + np.log(2.0) - 2 * np.log(x.sum())
    assert family.log_density(x, 3) == pytest.approx(expected, rel=1e-12)


def test_single_numbers_families_are_scipys():
    x = np.array([0.2, 1.5])
    invgamma = stats.invgamma.logpdf(x, 3.0, scale=0.4).sum()
    assert InverseGamma(3.0, 0.4).log_density(x) == pytest.approx(invgamma, rel=1e-12)
    laplace = stats.laplace.logpdf(x, 0.001, 30.7).sum()
    assert Laplace(0.001, 30.7).log_density(x) == pytest.approx(laplace, rel=1e-12)
