"""What the chains see of an alignment: patterns as rows of the codes that occur."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.errors import InputError


@dataclass(frozen=True)
class Observations:
    """taxa: T names. codes: (T, P) rows of code_sets (n_codes, S). weights: (P,). The first n_hidden
    patterns are the constant ones that an ascertained data set cannot show (weight 0)."""

    taxa: tuple[str, ...]
    codes: np.ndarray
    code_sets: np.ndarray
    weights: np.ndarray
    n_hidden: int = 0


def observations(alignment: Alignment, ascertained: bool = False) -> Observations:
    """Site patterns of an alignment with only the codes that occur.

    Raises InputError for fewer than three taxa, and for a constant site where ascertainment says there is
    none.
    """
    if alignment.n_taxa < 3:
        raise InputError(
            f"an unrooted tree needs at least three taxa, and this alignment has {alignment.n_taxa}",
            file=alignment.source,
        )
    patterns = site_patterns(alignment)
    codes, sets, weights = patterns.codes, patterns.state_sets, patterns.weights
    n_states = alignment.alphabet.n_states
    if ascertained:
        _refuse_constant(alignment, patterns)
        hidden = np.tile(np.arange(n_states, dtype=codes.dtype), (alignment.n_taxa, 1))
        codes = np.hstack([hidden, codes])
        weights = np.concatenate([np.zeros(n_states), weights])
    used, compact = np.unique(codes, return_inverse=True)
    return Observations(
        alignment.taxa,
        compact.reshape(codes.shape).astype(np.int32),
        sets[used].astype(np.float64),
        weights,
        n_states if ascertained else 0,
    )


def _refuse_constant(alignment: Alignment, patterns) -> None:
    possible = np.all(patterns.state_sets[patterns.codes], axis=0).any(axis=1)
    sites = np.flatnonzero(possible[patterns.site_pattern])
    if len(sites):
        raise InputError(
            f"{len(sites)} site(s) could be constant, and the model says that such sites are never seen",
            file=alignment.source,
            site=int(sites[0]) + 1,
            hint="Leave out these sites, or use a model without ascertainment correction.",
        )
