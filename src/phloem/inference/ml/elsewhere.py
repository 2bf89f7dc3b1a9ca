"""Tries: a climb from elsewhere, which differs from the best tree only in what no try began with before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.clustering.parsimony import Parsimony
from phloem.inference.ml.constrained_messages import Messages, allowed_by
from phloem.inference.ml.fusion import (
    Around,
    Branches,
    begun_from,
    branches,
    exchanged,
    lengths_of_other,
    marked,
)
from phloem.inference.ml.search import Hilltop, Place, climb, climb_near, fit_lengths, hilltop
from phloem.inference.ml.search_state import Kind, SearchState
from phloem.inference.ml.searched import Searched
from phloem.tree.half_edges import HalfEdges

FAR = 50.0  # log units below the best tree, where a hilltop is worth no second thought
_SHAKEN = 3, 9  # moves of a shake: at least, less than
_SWEEPS, _ENOUGH = 3, 0.5  # over lengths before a climb, and the gain of one that is the last


class Elsewhere:
    """Tries of one search at a time. The messages have the model's numbers."""

    def __init__(self, data: Searched, messages: Messages, parsimony: Parsimony, radius: int) -> None:
        self._data, self._messages, self._parsimony = data, messages, parsimony
        self._radius = radius
        self._top: Hilltop | None = None

    def tried(self, kind: Kind, state: SearchState, rng: np.random.Generator) -> tuple[Place, Kind]:
        """Where a try ends, and of what kind it was: from a parsimonious tree apart from the best one; else
        from the best one with what is new of such a tree, ratcheted, with parts of other hilltops exchanged,
        or shaken where nothing is left to exchange."""
        best = state.place
        if kind == "apart":
            apart = self._data.edges(self._parsimony.tree(rng).tree)
            if self._data.n_classes > 1:  # which sites are fast where is what the best tree says of classes
                apart = lengths_of_other(HalfEdges(apart.back, best.edges.lengths), branches(best.edges))
            begun = fit_lengths(self._messages, apart, 0.1)
            return climb(self._messages, begun, self._radius, state.known, vain=state.vain), kind
        kept = branches(best.edges)
        if kind == "exchange":
            found = self._exchanged(state)
            if found is not None:
                return found, kind
            top = self._hilltop(best)
            return self._climbed(top.shaken(rng, int(rng.integers(*_SHAKEN))), state, kept), "shaken"
        if kind == "ratchet":
            back = self._parsimony.ratcheted(best.edges.back, rng)
        else:
            back = self._data.edges(self._parsimony.tree(rng).tree).back
        edges = begun_from(back, self._parsimony.changed(back), best.edges, state.tested, self._data.n_sites)
        if edges is None:
            return best, kind
        if not allowed_by(self._messages)(edges.back):
            edges = lengths_of_other(HalfEdges(back, best.edges.lengths), kept)
        return self._climbed(edges, state, kept), kind

    def _climbed(self, edges: HalfEdges, state: SearchState, kept: Branches) -> Place:
        before = marked(edges, kept)
        begun = fit_lengths(self._messages, edges, _ENOUGH, _SWEEPS, before)
        return climb_near(self._messages, begun, self._radius, before, state.known, state.vain)

    def _exchanged(self, state: SearchState) -> Place | None:
        around = Around(self._data.n_sites, self._radius, state.known, state.tested, state.vain)
        found = exchanged(self._messages, state.place, _others(state), around)
        return found and climb(self._messages, found, self._radius, state.known, vain=state.vain)

    def _hilltop(self, place: Place) -> Hilltop:
        if self._top is None or self._top.place is not place:
            self._top = hilltop(self._messages, place, self._radius)
        return self._top


def _others(state: SearchState) -> Sequence[Place]:
    """Hilltops with parts that may be worth something, the likeliest first."""
    others = [h for h in state.hilltops if h.log_likelihood > state.place.log_likelihood - FAR]
    return sorted(others, key=lambda place: -place.log_likelihood)
