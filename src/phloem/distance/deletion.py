"""Complete deletion: a site that some sequence lacks is left out for all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.distance.distance_settings import DistanceSettings
from phloem.errors import InputError
from phloem.kernels.reference.distance import Ambiguity, state_weights


def measured_sites(alignment: Alignment, settings: DistanceSettings) -> Alignment:
    """The alignment without the sites that complete deletion leaves out; InputError where it leaves none."""
    if settings.deletion != "complete":
        return alignment
    keep = complete_sites(alignment, settings.ambiguity)
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, keep]))


def complete_sites(alignment: Alignment, ambiguity: Ambiguity) -> np.ndarray:
    """Numbers of the sites at which no sequence counts as missing; InputError where there are none."""
    known = state_weights(alignment.state_sets, ambiguity).sum(axis=1) > 0
    keep = np.flatnonzero(np.all(known[alignment.codes], axis=0))
    if not len(keep):
        raise no_complete_site(alignment.source)
    return keep


def no_complete_site(source: str | None) -> InputError:
    """The error where complete deletion leaves nothing."""
    return InputError(
        "no site is observed in every sequence",
        file=source,
        hint="Use pairwise deletion, or leave out the most incomplete sequences.",
    )
