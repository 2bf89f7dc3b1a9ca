"""Which codons are under positive selection, where a model has classes of ω: the posterior probability that
ω > 1, averaged over what chains have drawn (MrBayes' report possel and siteomega)."""

from __future__ import annotations

import numpy as np

from phloem.analysis.mcmc_draws import ChainData, Draw, Drawn, Told, likelihood_of
from phloem.inference.mcmc.structure import ChainModel
from phloem.io.output_file import write_file
from phloem.model.codon_sites import CodonSites

ENDING = "possel"


def has_classes(structure: ChainModel) -> bool:
    """Whether some part's sites differ in ω."""
    return any(isinstance(part.model.mixture, CodonSites) for part in structure.parts)


def write_selection(prefix: str, data: ChainData, drawn: Drawn, told: Told, kept: str) -> None:
    """PREFIX.possel: of every codon of every part with classes of ω, the posterior probability of ω > 1 and
    the mean ω."""
    lines = ["part\tcodon\tprobability_of_positive_selection\tmean_omega"]
    for number, part in enumerate(data.structure.parts):
        if isinstance(part.model.mixture, CodonSites):
            draws = [draw for run in drawn.evenly() for draw in run]
            total = np.zeros(())
            for k, draw in enumerate(draws, 1):
                total = total + of_draw(data, number, draw)
                told("positive selection", k, len(draws))
            for codon, (positive, omega) in enumerate((total / len(draws)).T.tolist(), 1):
                lines.append(f"{part.name}\t{codon}\t{positive:.6g}\t{omega:.6g}")
    write_file(f"{prefix}.{ENDING}", "\n".join(lines) + "\n", kept)


def of_draw(data: ChainData, part: int, draw: Draw) -> np.ndarray:
    """(2, L) at one draw: the probability that ω > 1, and the mean ω, of every codon."""
    found = likelihood_of(data, part, draw).site_omegas()
    assert found is not None
    return found
