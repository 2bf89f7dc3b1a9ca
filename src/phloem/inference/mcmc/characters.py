"""The characters of an alignment in bits, as moves that parsimony guides read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phloem.clustering.parsimony import bit_planes
from phloem.inference.mcmc.records import ParsimonyRoom
from phloem.pruning.cpu.cell_memory import Part

MOST_CHARACTERS = 8_192  # of a part: of more, every k-th counts k times
SLICE = 4_096  # columns looked at in one go
WARP, TYPICAL_LENGTH = 0.1, 0.05  # MrBayes 3.2.7a's


def price_of_change(n_states: int) -> float:
    """WARP · -log of the probability of a given other state after TYPICAL_LENGTH expected changes a site, all
    states alike, as MrBayes 3.2.7a weighs parts of different numbers of states."""
    decay = math.exp(-n_states / (n_states - 1) * TYPICAL_LENGTH)
    return -WARP * math.log((1.0 - decay) / n_states)


def informative(allowed: np.ndarray) -> np.ndarray:
    """(P,) whether trees can differ in the changes that a pattern needs; allowed: (T, P, S). One in which
    all tips but one allow some state needs as many on any tree."""
    return np.asarray((~allowed).sum(0).min(1) > 1)


def single_changes(allowed: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(T,) how many changes parsimony sees on a tip's branch wherever it is put: columns of which all other
    tips allow a state that it does not."""
    lacking = np.asarray((~allowed).sum(0))  # (P, S)
    alone = (lacking == 1) & (lacking.min(1) == 1)[:, None]
    own = np.asarray((~allowed & alone).any(2), np.float64)
    return np.rint(own @ weights).astype(np.int64)


def of_few_states(allowed: np.ndarray) -> list[np.ndarray]:
    """Characters (T, n, S) in blocks of as many states as they show, 2, 3, 4, 8, 16, …: what is in no set but
    in those of all states saves no change, and of 61 codons most characters show two or three."""
    shown = np.asarray((allowed & ~allowed.all(2, keepdims=True)).any(0))  # (n, S)
    count, found, below = shown.sum(1), [], 1
    while below < allowed.shape[2]:
        k = min(below + 1 if below < 4 else 2 * below, allowed.shape[2])
        here = np.flatnonzero((count > below) & (count <= k))
        if len(here):
            states = np.argsort(~shown[here], axis=1, kind="stable")[:, :k]
            found.append(np.take_along_axis(allowed[:, here], states[None], axis=2))
        below = k
    return found


def whole_parts(cells: Sequence[Part]) -> list[Part]:
    """Parts of which some cells are ranges of their columns, in one piece again."""
    found: list[list[Part]] = []
    for cell in cells:
        if cell.model_of < 0:
            found.append([])
        found[-1].append(cell)
    return [own[0] if len(own) == 1 else _joined(own) for own in found]


def _joined(cells: Sequence[Part]) -> Part:
    return replace(
        cells[0],
        tip_codes=np.concatenate([cell.tip_codes for cell in cells], axis=1),
        weights=np.concatenate([cell.weights for cell in cells]),
        unobservable=np.concatenate([cell.unobservable for cell in cells]),
    )


def parsimony_room(cells: Sequence[Part], wanted: bool = True) -> ParsimonyRoom:
    """Characters of all parts that parsimony can tell trees by; none unless wanted. States that no character
    tells apart (those of a hidden process) are one."""
    n_tips, blocks, price, planes, first = len(cells[0].tip_codes), [], [], [], 0
    singles, copies_of, n_sites = np.zeros(2 * n_tips - 1, np.int64), [], 0.0
    for part in whole_parts(cells) if wanted else ():
        sets = np.unique(np.asarray(part.state_sets, bool), axis=1)
        sets = sets[:, sets.any(0)]
        seen = ~part.unobservable
        n_sites += part.weights[seen].sum()
        tells = np.zeros(len(seen), bool)
        for begin in range(0, len(seen), SLICE):
            here = slice(begin, begin + SLICE)
            allowed = sets[part.tip_codes[:, here]]  # (T, P', S)
            singles[:n_tips] += single_changes(allowed[:, seen[here]], part.weights[here][seen[here]])
            tells[here] = informative(allowed)
        telling = np.flatnonzero(tells & (part.weights > 0) & seen)
        copies = np.repeat(telling, np.rint(part.weights[telling]).astype(np.int64))
        if len(copies) == 0 or sets.shape[1] < 2:
            continue
        step = -(-len(copies) // MOST_CHARACTERS)
        for characters in of_few_states(sets[part.tip_codes[:, copies[::step]]]):
            own = bit_planes(characters)
            blocks.append([first, own.shape[2], own.shape[1]])
            copies_of.append(step)
            price.append(step * price_of_change(sets.shape[1]))
            planes.append(own.reshape(n_tips, -1))
            first += planes[-1].shape[1]
    n = 2 * n_tips - 1
    rows = np.zeros((2 * n, first), np.uint64)
    rows[:n_tips] = np.concatenate([np.zeros((n_tips, 0), np.uint64), *planes], axis=1)
    return ParsimonyRoom(
        blocks=np.array(blocks, np.int64).reshape(-1, 3),
        price=np.array(price, np.float64),
        copies=np.array(copies_of, np.int64),
        singles=singles,
        per_length=np.array([n_sites]),
        sets=rows,
        common=np.zeros(max([words for _, words, _ in blocks], default=0), np.uint64),
        node=np.zeros(n, np.int64),
        above=np.zeros(n, np.int64),
        cost=np.zeros(n),
        price_of=np.zeros(n),
    )
