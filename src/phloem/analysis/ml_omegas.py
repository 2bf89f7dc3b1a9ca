"""Which codons `phloem ml` finds under positive selection, under models with classes of ω."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phloem.likelihood.partitioned import PartitionedLikelihood

if TYPE_CHECKING:
    from phloem.inference.ml.searched import Likelihood

_SURE, _VERY_SURE = 0.95, 0.99


def sites_of_omegas(likelihood: Likelihood) -> dict[str, np.ndarray]:
    """By part ("" of one alignment), TreeLikelihood.site_omegas; without parts that have no classes of ω."""
    if not isinstance(likelihood, PartitionedLikelihood):
        found = {"": likelihood.site_omegas()}
    else:
        found = {name: likelihood.alone(name).site_omegas() for name in likelihood.part_names}
    return {name: omegas for name, omegas in found.items() if omegas is not None}


def omega_lines(likelihood: Likelihood) -> list[str]:
    """For people: the codons, counted within their part, whose probability of ω > 1 is high, as codeml lists
    them; nothing of models without classes of ω."""
    lines = []
    for name, (positive, omegas) in sites_of_omegas(likelihood).items():
        where = np.flatnonzero(positive > _SURE).tolist()
        of = f" of part '{name}'" if name else ""
        lines.append(f"codons{of} with omega > 1, probability above {_SURE}: {len(where) or 'none'}")
        for k in where:
            mark = "**" if positive[k] > _VERY_SURE else "*"
            lines.append(f"  {k + 1:>6}  {positive[k]:.3f}{mark:<2}  mean omega {omegas[k]:.3f}")
    if lines:
        told = "by empirical Bayes at the fitted numbers, as if these were certain (naive)"
        lines += [f"  ** above {_VERY_SURE}; {told}; all codons in PREFIX.sites", ""]
    return lines
