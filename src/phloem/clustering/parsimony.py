"""Parsimonious trees: where a search begins without distances, and where several searches begin apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phloem.clustering.cpu.parsimony import (
    HEAVY,
    Lists,
    add_stepwise,
    all_sets,
    changes_on_branches,
    regraft_all,
)
from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.tree.half_edges import HalfEdges, half_edges, tree_of
from phloem.tree.random import uniform_unrooted
from phloem.tree.tree import Tree

RADIUS = 20  # nodes that a subtree is moved at most
_SITES_PER_WORD = 64
_LIGHT = (1 << HEAVY) - 1
_LEFT_OUT = 0.25, 0.6  # share of the characters
_LEAST = 0.5  # changes on a branch, of a length to begin from


@dataclass(frozen=True, eq=False)
class ParsimonyTree:
    """tree: unrooted, each branch as long as the changes a site and branch. score: changes in all, without
    those of characters that come first."""

    tree: Tree
    score: int


class Parsimony:
    """The variable characters of an alignment as bits, and trees that need few changes.

    Characters are unordered and of equal weight (Fitch 1971); partly ambiguous ones are sets of states.
    others: further characters of the same taxa, of any data type. first: (T, W, S) uint64, characters as
    `words` has them that come first: a change of one counts more than all changes of the others.
    """

    def __init__(self, alignment: Alignment, *others: Alignment, first: np.ndarray | None = None) -> None:
        if alignment.n_taxa < 3:
            raise InputError("parsimony wants three taxa at least", file=alignment.source, hint="Add taxa.")
        self.alignment, self.alignments = alignment, (alignment, *others)
        parts = self.alignments
        self._n_sites = sum(part.n_sites for part in parts)
        sets = [_tip_sets(part) for part in parts]
        most = max(own.shape[2] for own in sets)  # states that a part does not have are in no set of it
        padded = [np.pad(own, ((0, 0), (0, 0), (0, most - own.shape[2]))) for own in sets]
        self._usual = sum(own.shape[1] for own in padded)  # words
        padded += [] if first is None else [first]
        self._tips = np.ascontiguousarray(np.concatenate(padded, axis=1))
        n = alignment.n_taxa
        self._sets = np.zeros((4 * n - 6, *self._tips.shape[1:]), np.uint64)
        self._sets[:n] = self._tips
        order, waiting, queue = (np.empty(size, np.int64) for size in (2 * n - 3, 2 * n, 4 * n - 6))
        self._lists = Lists(order, waiting, queue, np.zeros(4 * n - 6, np.bool_))

    @property
    def words(self) -> np.ndarray:
        """(T, W, S) uint64: of every tip, a word of 64 characters and a state, which characters allow it."""
        return self._tips

    def random_tree(self, rng: np.random.Generator) -> Tree:
        """Any topology, each as probable."""
        taxa = self.alignment.taxa
        return replace(uniform_unrooted(len(taxa), rng), taxa=taxa)

    def score(self, tree: Tree) -> int:
        """Changes that a binary tree needs; times 2**HEAVY those of the characters that come first."""
        back, n = half_edges(tree, self.alignment.taxa).back, self.alignment.n_taxa
        return int(all_sets(back, 0, n, self._sets, self._usual, self._lists)[1])

    def tree(self, rng: np.random.Generator, radius: int = RADIUS) -> ParsimonyTree:
        """Taxa added in random order, each where it costs least; then subtrees are moved while that saves."""
        n = self.alignment.n_taxa
        back = np.full(4 * n - 6, -1, np.int64)
        tips, ties = rng.permutation(n), rng.random(n)
        room, costs = np.empty_like(self._sets[0]), np.empty(2 * n - 3, np.int64)
        add_stepwise(back, tips, ties, self._sets, self._usual, room, costs, self._lists)
        score = self._improve(back, rng, radius) & _LIGHT
        length = max(score, 1) / (self._n_sites * (2 * n - 3))
        edges = HalfEdges(back, np.full(len(back), length))
        return ParsimonyTree(tree_of(edges, self.alignment.taxa), int(score))

    def improved(self, tree: Tree, rng: np.random.Generator, radius: int = RADIUS) -> ParsimonyTree:
        """A binary tree after moves of subtrees, as long as they save changes. A branch is as long as the
        share of sites that may have a change there, half a site at least."""
        back = half_edges(tree, self.alignment.taxa).back
        self._sets[: self.alignment.n_taxa] = self._tips
        score = self._improve(back, rng, radius) & _LIGHT
        edges = HalfEdges(back, np.maximum(self._changes(back) & _LIGHT, _LEAST) / self._n_sites)
        return ParsimonyTree(tree_of(edges, self.alignment.taxa), int(score))

    def changed(self, back: np.ndarray) -> np.ndarray:
        """(4T-6,) bool, of every branch at both ends: whether some way of putting as few changes as the tree
        needs puts one there."""
        return self._changes(back) > 0

    def ratcheted(self, back: np.ndarray, rng: np.random.Generator, radius: int = RADIUS) -> np.ndarray:
        """Another tree of few changes near this one (half_edges.HalfEdges.back), which stays as it is.

        First to where characters drawn at random need few changes, then to where all do (the ratchet of Nixon
        1999, Cladistics 15:407).
        """
        n, back = self.alignment.n_taxa, back.copy()
        share = rng.uniform(*_LEFT_OUT)
        left_out = np.packbits(rng.random(64 * self._tips.shape[1]) < share).view(np.uint64)
        left_out[self._usual :] = 0
        self._sets[:n] = self._tips | left_out[:, None]
        self._improve(back, rng, radius)
        self._sets[:n] = self._tips
        self._improve(back, rng, radius)
        return back

    def _changes(self, back: np.ndarray) -> np.ndarray:
        """(4T-6,) int64 as changes_on_branches, of the alignment's own characters."""
        n, found = self.alignment.n_taxa, np.zeros(len(back), np.int64)
        self._sets[:n] = self._tips
        changes_on_branches(back, n, self._sets, self._usual, self._lists, found)
        return found

    def _improve(self, back: np.ndarray, rng: np.random.Generator, radius: int) -> int:
        """Move subtrees, in place, until none saves a change of the characters in sets; the score."""
        n, score = self.alignment.n_taxa, -1
        arrival = np.empty((radius + 2, *self._tips.shape[1:]), np.uint64)
        stack = np.empty((2 * radius + 4, 3), np.int64)
        while True:
            before = score
            half = n + rng.permutation(3 * (n - 2))
            sets = self._sets, self._usual
            score = regraft_all(back, half, radius, *sets, arrival, stack, self._lists)
            if score == before:
                return int(score)


def _tip_sets(alignment: Alignment) -> np.ndarray:
    """(T, W, S) uint64; sites that one state explains are left out, and the last word is filled with sites
    that allow every state."""
    patterns = site_patterns(alignment)
    allowed = alignment.state_sets[patterns.codes]  # (T, P, S)
    variable = ~allowed.all(0).any(1)
    copies = np.repeat(np.flatnonzero(variable), patterns.weights[variable].astype(np.int64))
    return np.ascontiguousarray(bit_planes(allowed[:, copies]).transpose(0, 2, 1))


def bit_planes(allowed: np.ndarray) -> np.ndarray:
    """(T, S, W) uint64, 64 sites a word, from the states that each tip allows at each site (T, n, S); what is
    left of the last word allows every state, and there is a word at least."""
    n_tips, n_sites, n_states = allowed.shape
    n_words = max(1, -(-n_sites // _SITES_PER_WORD))
    bits = np.ones((n_tips, n_words * _SITES_PER_WORD, n_states), bool)
    bits[:, :n_sites] = allowed
    packed = np.packbits(bits, axis=1, bitorder="little")  # (T, 8 W, S) bytes
    return np.ascontiguousarray(packed.transpose(0, 2, 1)).view(np.uint64)
