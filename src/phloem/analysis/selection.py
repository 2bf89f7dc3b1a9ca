"""Which codons are under positive selection, where a model has classes of ω: the posterior probability that
ω > 1, averaged over what chains have drawn (MrBayes' report possel and siteomega)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.analysis.mcmc_data import ChainInput
from phloem.inference.mcmc.samples import Samples
from phloem.io.output_file import write_file
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.codon_sites import CodonSites
from phloem.tree.tree import Tree

ENDING = "possel"
MOST_DRAWS = 100  # of a run, evenly over what is left after the burn-in


def has_classes(data: ChainInput) -> bool:
    """Whether some part's sites differ in ω."""
    return any(isinstance(part.model.mixture, CodonSites) for part in data.structure.parts)


def write_selection(
    prefix: str, data: ChainInput, runs: Sequence[Samples], names: tuple[str, ...], first: int, kept: str
) -> None:
    """PREFIX.possel: of every codon of every part with classes of ω, the posterior probability of ω > 1 and
    the mean ω. runs: what each has drawn; names: of a trace's columns after LnL and LnPr; first: the first
    draw after the burn-in."""
    lines = ["part\tcodon\tprobability_of_positive_selection\tmean_omega"]
    for number, part in enumerate(data.structure.parts):
        if isinstance(part.model.mixture, CodonSites):
            found = np.mean([_of_run(data, number, run, names, first) for run in runs], axis=0)
            for codon, (positive, omega) in enumerate(found.T.tolist(), 1):
                lines.append(f"{part.name}\t{codon}\t{positive:.6g}\t{omega:.6g}")
    write_file(f"{prefix}.{ENDING}", "\n".join(lines) + "\n", kept)


def _of_run(data: ChainInput, part: int, run: Samples, names: tuple[str, ...], first: int) -> np.ndarray:
    """(2, L) means over up to MOST_DRAWS draws of a run."""
    chosen = np.unique(np.linspace(first, run.n - 1, MOST_DRAWS).round().astype(int))
    return np.mean([of_draw(data, part, *run.tree_and_numbers(i, names)) for i in chosen], axis=0)


def of_draw(data: ChainInput, part: int, parent: np.ndarray, lengths: np.ndarray, numbers) -> np.ndarray:
    """(2, L) at one tree and its numbers: the probability that ω > 1, and the mean ω, of every codon."""
    structure = data.structure
    own, values = structure.parts[part], structure.values_of(numbers)
    (number,) = structure.sets[part]
    effective = np.atleast_2d(lengths)[number] * structure.rate_factor(part, values)
    tree = Tree(data.taxa, parent, effective, rooted=False)
    at = structure.model_values(part, values)
    found = TreeLikelihood(
        data.alignments[own.name], tree, own.model.with_values(at), threads=1
    ).site_omegas()
    assert found is not None
    return found
