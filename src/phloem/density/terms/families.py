"""Every family of prior densities and its plain form; a new family's file adds its lines here."""

from __future__ import annotations

from collections.abc import Callable

from phloem.density.terms import (
    beta,
    beta_prime,
    compound_dirichlet,
    dirichlet,
    exponential,
    gamma,
    inverse_gamma,
    laplace,
    log_normal,
    log_uniform,
    normal,
    ratios,
    tied_dirichlet,
    two_exponentials,
    uniform,
)
from phloem.density.terms.term import Family

FAMILIES: dict[type[Family], Callable] = {
    beta.Beta: beta.scalar,
    beta_prime.BetaPrime: beta_prime.scalar,
    compound_dirichlet.GammaDirichlet: compound_dirichlet.scalar,
    compound_dirichlet.InverseGammaDirichlet: compound_dirichlet.scalar,
    dirichlet.Dirichlet: dirichlet.scalar,
    exponential.Exponential: exponential.scalar,
    gamma.Gamma: gamma.scalar,
    inverse_gamma.InverseGamma: inverse_gamma.scalar,
    laplace.Laplace: laplace.scalar,
    log_normal.LogNormal: log_normal.scalar,
    log_uniform.LogUniform: log_uniform.scalar,
    normal.Normal: normal.scalar,
    ratios.Ratios: ratios.scalar,
    tied_dirichlet.TiedDirichlet: tied_dirichlet.scalar,
    two_exponentials.TwoExponentials: two_exponentials.scalar,
    uniform.Uniform: uniform.scalar,
}
"""Family → plain form f(x, numbers) → log density, which compiled/dispatch.py compiles."""

SCALARS = tuple(dict.fromkeys(FAMILIES.values()))
KIND = {family: SCALARS.index(scalar) for family, scalar in FAMILIES.items()}
"""Family → its number in the compiled dispatch."""
