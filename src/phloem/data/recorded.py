"""Keeping the characters that +ASC takes as all that were recorded: variable, or informative ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast, get_args

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.data.unseen import Unseen, could_be_unseen
from phloem.errors import InputError

Kind = Literal["variable", "informative"]


def kept_kind(sites: str | None) -> Kind | None:
    """The kind that a choice of sites names, in any case; None where it names columns."""
    word = (sites or "").strip().lower()
    return cast(Kind, word) if word in get_args(Kind) else None


def only_of_kind(alignment: Alignment, kind: Kind) -> tuple[Alignment, np.ndarray]:
    """The characters that are so whatever is missing or ambiguous in them, and (L,) bool which these are.

    Errors: InputError where none is.
    """
    states = tuple(range(alignment.state_sets.shape[1]))
    unseen: Unseen = states if kind == "variable" else "uninformative"
    patterns = site_patterns(alignment)
    kept = ~could_be_unseen(patterns.codes, patterns.state_sets, unseen)[patterns.site_pattern]
    if not kept.any():
        raise InputError(f"no character is {kind}", file=alignment.source, hint="Leave --sites out.")
    places = np.arange(alignment.n_sites) if alignment.places is None else alignment.places
    return replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, kept]), places=places[kept]), kept
