"""The priors of an analysis in words, before it starts."""

from __future__ import annotations

from phloem.inference.mcmc.settings import Priors
from phloem.inference.mcmc.structure import sites_per_character
from phloem.model.model import Model

_NAMED = {"omega", "frequencies", "alpha", "p_invariable"}


def prior_text(model: Model, priors: Priors) -> str:
    """Priors of branch lengths, of topologies, and of those parameters that the model leaves free."""
    free = {parameter.name for parameter in model.free}
    unit = " per nucleotide site" if sites_per_character(model) > 1 else ""
    parts = [f"branch lengths{unit} {priors.branch_lengths}", "uniform topologies"]
    if free - _NAMED:
        parts.append(f"{_dirichlet(priors.exchangeability)} rates")
    if "omega" in free:
        parts.append(f"{_dirichlet(priors.omega)} rates of synonymous and other changes")
    if "frequencies" in free:
        parts.append(f"{_dirichlet(priors.frequency)} frequencies")
    if "alpha" in free:
        parts.append(f"exponential({priors.alpha_rate:g}) alpha")
    if "p_invariable" in free:
        parts.append("uniform proportion of invariable sites")
    return ", ".join(parts)


def _dirichlet(concentration: float) -> str:
    return "flat Dirichlet" if concentration == 1 else f"Dirichlet({concentration:g})"
