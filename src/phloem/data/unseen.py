"""Characters that nobody recorded: those constant in some states (Lewis 2001), or all that are uninformative.

Parsimony tells trees apart by a character only if two states or more occur in two taxa or more each
(informative). Where only such were recorded, every pattern in which at most one state does went unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from math import comb, perm
from typing import Literal

import numpy as np

from phloem.errors import InputError

Unseen = tuple[int, ...] | Literal["uninformative"]  # states of constant characters, or as it says
MOST_PATTERNS = 20_000  # of uninformative characters of more than two states; of two there are 2 + 2 T


def unseen_patterns(n_taxa: int, n_states: int, unseen: Unseen) -> np.ndarray:
    """(T, U) states of every pattern that nobody recorded, each once.

    Errors: InputError where that is every pattern, and where there are too many to list.
    """
    if unseen != "uninformative":
        return np.repeat(np.array(unseen, np.int64)[None], n_taxa, axis=0)
    if n_taxa < 4:
        raise InputError(
            f"no character of {n_taxa} taxa is informative, and under +ASC{{informative}} no other is seen",
            hint="Give four taxa or more, or write +ASC, which leaves constant characters alone unseen.",
        )
    n_patterns = n_uninformative(n_taxa, n_states)
    if n_states > 2 and n_patterns > MOST_PATTERNS:
        raise InputError(
            f"under +ASC{{informative}} {n_patterns:,} uninformative patterns of {n_states} states in "
            f"{n_taxa} taxa would have to be summed over, and {MOST_PATTERNS:,} are the most",
            hint="Write +ASC and keep the variable characters; characters of two states have no such bound, "
            "and --asc mrbayes of phloem mcmc corrects all by two states, as MrBayes does.",
        )
    return np.array(list(_uninformative(n_taxa, n_states))).T


def n_uninformative(n_taxa: int, n_states: int) -> int:
    """How many patterns of known states have at most one state in two taxa or more."""
    others = min(n_states - 1, n_taxa - 2)
    of_one = sum(comb(n_taxa, j) * perm(n_states - 1, j) for j in range(others + 1))
    return n_states * of_one + perm(n_states, n_taxa)


def _uninformative(n_taxa: int, n_states: int) -> Iterator[np.ndarray]:
    """One state in two taxa or more and every other in one at most; then those of all states different."""
    for j in range(min(n_states - 1, n_taxa - 2) + 1):
        for common in range(n_states):
            beside = [s for s in range(n_states) if s != common]
            for taxa in combinations(range(n_taxa), j):
                for states in permutations(beside, j):
                    row = np.full(n_taxa, common)
                    row[list(taxa)] = states
                    yield row
    yield from (np.array(states) for states in permutations(range(n_states), n_taxa))


def could_be_unseen(codes: np.ndarray, state_sets: np.ndarray, unseen: Unseen) -> np.ndarray:
    """(P,) whether what is known of a pattern leaves open that it is one that nobody records.

    codes: (T, P) rows of state_sets (n_codes, S).
    """
    shape = codes.shape[1], state_sets.shape[1]
    if unseen != "uninformative":
        possible = np.ones(shape, bool)
        for row in codes:
            possible &= state_sets[row]
        return np.asarray(possible[:, list(unseen)].any(1))
    known = state_sets & (state_sets.sum(1) == 1)[:, None]
    taxa = np.zeros(shape, np.int64)
    for row in codes:
        taxa += known[row]
    found = np.asarray((taxa >= 2).sum(1) <= 1)
    for p in np.flatnonzero(found & partly_known(codes, state_sets)):
        found[p] = _could_be_uninformative(state_sets[codes[:, p]])
    return found


def partly_known(codes: np.ndarray, state_sets: np.ndarray) -> np.ndarray:
    """(P,) whether a taxon may have several states of a pattern, and not all."""
    several = (state_sets.sum(1) > 1) & ~state_sets.all(1)
    found = np.zeros(codes.shape[1], bool)
    for row in codes:
        found |= several[row]
    return found


def _could_be_uninformative(allowed: np.ndarray) -> bool:
    """Whether the taxa that cannot have some state can all have different ones. allowed: (T, S)."""
    from scipy.optimize import linear_sum_assignment

    for state in range(allowed.shape[1]):
        others = allowed[~allowed[:, state]]
        if len(others) < allowed.shape[1] and others[linear_sum_assignment(others, maximize=True)].all():
            return True
    return False
