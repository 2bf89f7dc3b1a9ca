"""Complete deletion: a site that some sequence lacks is left out for all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.clustering.distance_settings import DistanceSettings
from phloem.clustering.reference.distance import state_weights
from phloem.data.alignment import Alignment
from phloem.errors import InputError


def measured_sites(alignment: Alignment, settings: DistanceSettings) -> Alignment:
    """The alignment without the sites that complete deletion leaves out; InputError where it leaves none."""
    if settings.deletion != "complete":
        return alignment
    known = state_weights(alignment.state_sets, settings.ambiguity).sum(axis=1) > 0
    keep = np.flatnonzero(np.all(known[alignment.codes], axis=0))
    if not len(keep):
        raise InputError(
            "no site is observed in every sequence",
            file=alignment.source,
            hint="Use pairwise deletion, or leave out the most incomplete sequences.",
        )
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, keep]))
