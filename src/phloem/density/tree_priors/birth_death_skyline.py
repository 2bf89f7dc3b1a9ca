"""The birth–death skyline: an epidemic whose reproductive number shifts, and whose sampled infect no more, or
some of them."""

from __future__ import annotations

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.term import Family
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors import epochs
from phloem.density.tree_priors.epochs import OF_EPIDEMIC, add_epochs, laid_out
from phloem.density.tree_priors.serial_birth_death import REMOVAL_PRIOR, removal, samples
from phloem.density.tree_priors.tree_prior import (
    ORIGIN_GAP,
    REMOVAL,
    Genealogy,
    Parameters,
    TreePrior,
    positive,
)
from phloem.errors import InputError

REPRODUCTION = "reproductive_number"


def _parameters(scale, options) -> Parameters:
    """R in as many cells of one width as there are pieces, the oldest open, as of a skygrid; or as the option
    "shift" says, as the other numbers. InputError for both."""
    given = {str(name): ages for name, ages in (options.get("shift") or {}).items()}
    if REPRODUCTION not in given:
        cutoff = float(options.get("cutoff") or scale.time)
        given[REPRODUCTION] = cutoff * np.arange(1, scale.n_pieces) / (scale.n_pieces - 1)
    elif options.get("cutoff"):
        raise InputError("--cutoff is of pieces of one length, and --shift says where they end")
    samples(options)
    own, ends = removal(options)
    ending = 4.0 / scale.time
    blocks = (
        positive(REPRODUCTION, 1.5),
        positive("becoming_uninfectious_rate", ending),
        Block("sampling_proportion", "unit", np.array([0.1]), 0.0, 1.0),
        *own,
        positive(ORIGIN_GAP, 0.1 * scale.time),
    )
    priors: dict[str, Family] = {
        REPRODUCTION: LogNormal(0.0, 1.0),
        "becoming_uninfectious_rate": LogNormal(float(np.log(ending)), 1.5),
        "sampling_proportion": Uniform(0.0, 1.0),
        **REMOVAL_PRIOR,
        ORIGIN_GAP: Exponential(5.0 / scale.time),
    }
    header = (float(options.get("sampled") or 0.0), ends, OF_EPIDEMIC, 0.0, 0.0)
    return laid_out(header, blocks, priors, options | {"shift": given})


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Reproductive numbers R, rates δ of becoming uninfectious, sampling proportions s, each the youngest
    first, maybe the probability r that the sampled infect no more, else 1, and the origin's gap: λ = R δ, ψ =
    s δ / (1 - (1-r) s), μ = δ - r ψ, of epochs.plain_density (Stadler et al. 2013, Proc. Natl. Acad. Sci.
    110:228; Gavryushkina et al. 2014, PLoS Comput. Biol. 10:e1003919). A share ρ of those infected at height
    0 may be sampled besides."""
    return epochs.plain_density(g, x, settings)


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    return add_epochs(g, x, settings, by_height, by_number)


PRIOR = TreePrior(
    "bdsky", _parameters, log_density, density, joining=epochs.joining, samples=samples,
    options=("cutoff", "sampled", "shift", "condition", "fossils", REMOVAL),
)  # fmt: skip
