"""The partly ambiguous characters of an alignment, and what a site with one counts for a pair."""

from __future__ import annotations

from typing import Literal

import numpy as np

from phloem.clustering.reference.distance import state_weights
from phloem.data.alignment import Alignment, Ambiguity
from phloem.errors import InputError

PairCounts = Literal["nucleotide", "difference", "joint"]


def partial_characters(
    alignment: Alignment, ambiguity: Ambiguity, counts: PairCounts
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """(rows, columns, starts, places, shares, states) as distance_partial.add_partial wants them.

    counts: which K counts a kernel keeps: nucleotide (compared, A↔G, C↔T, transversions), difference
    (compared, differing), joint (all S²). Empty where ambiguous characters count as missing.
    """
    codes, states = alignment.codes, alignment.alphabet.n_states
    partial = codes > states
    if ambiguity == "missing":
        partial = np.zeros((alignment.n_taxa, 0), bool)
    sites = np.flatnonzero(partial.any(axis=0))
    sequence, place = np.nonzero(partial[:, sites])
    starts = np.searchsorted(sequence, np.arange(alignment.n_taxa + 1))
    weights = state_weights(alignment.state_sets, ambiguity)
    shares = np.moveaxis(_shares(weights, counts), -1, 0).copy()
    shares[:, : states + 1, : states + 1] = 0.0  # counted from the bit planes
    rows = np.ascontiguousarray(codes[:, sites])
    return rows, np.ascontiguousarray(rows.T), starts, place.astype(np.int32), shares, states


def whole_weights(alignment: Alignment, ambiguity: Ambiguity) -> np.ndarray | None:
    """(codes, S) state_weights times the least number that makes them whole; None where that is too large.

    Products of two such weights, summed over the sites, fit an int32, and a weight an int8.
    """
    weights = state_weights(alignment.state_sets, ambiguity)
    sizes = np.unique((weights > 0).sum(axis=1))
    unit = int(np.lcm.reduce(sizes[sizes > 0])) if len(sizes) < 20 else 1 << 30
    if unit > 127 or unit * unit * alignment.n_sites >= 2**31:
        return None
    return np.rint(weights * unit).astype(np.int64)


def device_weights(alignment: Alignment, ambiguity: Ambiguity) -> np.ndarray:
    """whole_weights for the GPU kernels; InputError where these lack such averages."""
    weights = whole_weights(alignment, ambiguity)
    if weights is None:
        raise InputError("the GPU kernels have no such averages", hint="Choose the CPU.")
    return weights


def _shares(weights: np.ndarray, counts: PairCounts) -> np.ndarray:
    """(codes, codes, K) float64: what a site adds to each count."""
    if counts == "difference":
        compared = np.outer(weights.sum(axis=1), weights.sum(axis=1))
        return np.stack([compared, compared - weights @ weights.T], axis=-1)
    joint = np.einsum("xa,yb->xyab", weights, weights)
    if counts == "joint":
        return joint.reshape(len(weights), len(weights), -1)
    ag = joint[..., 0, 2] + joint[..., 2, 0]
    ct = joint[..., 1, 3] + joint[..., 3, 1]
    compared = joint.sum(axis=(2, 3))
    same = np.trace(joint, axis1=2, axis2=3)
    return np.stack([compared, ag, ct, compared - same - ag - ct], axis=-1)
