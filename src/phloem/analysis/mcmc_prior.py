"""The priors of an analysis in words, before it starts."""

from __future__ import annotations

from phloem.density.parameterisation import PARTITION_RATES
from phloem.inference.mcmc.settings import Priors
from phloem.inference.mcmc.structure import ChainModel

_NAMED = {"omega", "frequencies", "alpha", "p_invariable"}


def prior_text(structure: ChainModel, priors: Priors) -> str:
    """Priors of branch lengths, of topologies, and of those parameters that the models leave free."""
    free = {parameter.name for part in structure.parts for parameter in part.model.free}
    unit = " per nucleotide site" if any(part.site_length > 1 for part in structure.parts) else ""
    parts = [f"branch lengths{unit} {priors.branch_lengths}", "uniform topologies"]
    if PARTITION_RATES in structure.space:
        parts.append("flat Dirichlet shares of the rates of parts")
    others = {b.name.split("{")[0] for b in structure.space.blocks if b.support == "positive"} - {"alpha"}
    if others:
        parts.append(f"exponential(1) {', '.join(sorted(others))}")
    if free - _NAMED - others:
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
