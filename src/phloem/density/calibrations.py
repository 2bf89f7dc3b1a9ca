"""What is known of clades: densities of their ages, and that they are clades.

The density of the age of a clade's most recent common ancestor multiplies the tree prior's; it is not the
tree prior conditioned on that age (Heled and Drummond 2012, Syst. Biol. 61:138), so the induced marginal
prior of the age is neither of the two: sample the prior to see it. Uniform ages alone are conditioned on
those of clades that must be such (tree_priors/uniform.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.term import Family
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError

IN, OUT = 1, 2
FREE, TOGETHER, APART = range(3)


class Calibrations(NamedTuple):
    """member: (C, T) uint8, which tips are in each set of taxa (IN), and which may not be in a clade of it
    (OUT). size: (C,) int64 how many are in. together: (C,) uint8, whether there must be a clade of all that
    are in and none that is out (TOGETHER), or may be none (APART). fixed: (C,) the age that the common
    ancestor has, nan where it may have others. shift: (C,) what is taken off an age before its density is
    asked for. above: (C,) int64, the place of a number that is added to the age before, -1 of none: the gap
    between the root and the beginning of a process. dated: (C,) uint8, whether it is the age of a node of
    every tree, and has a density or is fixed. stem: (C,) uint8, whether the age is that of the node above the
    common ancestor, where the stem of the clade begins. least, most: (C,) ages between which a density
    allows a node, infinite where there is no end; the fixed one."""

    member: np.ndarray
    size: np.ndarray
    together: np.ndarray
    fixed: np.ndarray
    shift: np.ndarray
    above: np.ndarray
    dated: np.ndarray
    stem: np.ndarray
    least: np.ndarray
    most: np.ndarray


def set_ancestors(left, right, order, calibrations, n_tips, counts, ancestors):
    """ancestors (C,), out: the most recent common ancestor of every set, or of a stem the node above; counts:
    (2, N) to work in. Returns False where a set that must be a clade is none, or one that may not be one."""
    allowed = True
    for c in range(ancestors.shape[0]):
        ancestors[c] = -1
        for i in range(order.shape[0]):
            x = order[i]
            if x < n_tips:
                kind = calibrations.member[c, x]
                counts[0, x], counts[1, x] = kind == IN, kind != 0
            else:
                counts[0, x] = counts[0, left[x]] + counts[0, right[x]]
                counts[1, x] = counts[1, left[x]] + counts[1, right[x]]
            if counts[0, x] == calibrations.size[c]:
                ancestors[c] = x
                clade = counts[1, x] == counts[0, x]
                wanted = calibrations.together[c]
                allowed = allowed and (wanted == FREE or clade == (wanted == TOGETHER))
                for j in range(i + 1, order.shape[0] if calibrations.stem[c] == 1 else 0):
                    if left[order[j]] == x or right[order[j]] == x:
                        ancestors[c] = order[j]
                break
    return allowed


def likely_age(family: Family | float, least: float = 1e-6, most: float = 1e9) -> float:
    """An age that a density does not exclude, between these; the middle of one between limits; a fixed one
    itself."""
    if isinstance(family, float):
        return family
    if isinstance(family, Uniform | LogUniform) and family.upper > 0.0:
        return 0.5 * (max(family.lower, 0.0) + family.upper)
    x = np.geomspace(least, most, 1501)
    value = np.array([float(family.log_density(np.array([age]))) for age in x])
    if not np.isfinite(value).any():
        raise InputError("a density of an age leaves no positive age")
    return float(x[int(np.argmax(value + np.log(x)))])


def age_limits(family: Family | float, least: float = 1e-6, most: float = 1e9) -> tuple[float, float]:
    """Between which ages a density is, roughly: 0 and infinity where it has no end."""
    if isinstance(family, float):
        return family, family
    if isinstance(family, Uniform | LogUniform):
        return max(family.lower, 0.0), family.upper
    x = np.geomspace(least, most, 1501)
    there = np.flatnonzero([np.isfinite(family.log_density(np.array([age]))) for age in x])
    if not len(there):
        return np.inf, -np.inf
    low = x[there[0]] if there[0] > 0 else 0.0
    return float(low), float(x[there[-1]]) if there[-1] < len(x) - 1 else np.inf
