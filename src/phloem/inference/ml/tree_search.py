"""The likeliest tree of an alignment: a climb, the model refitted, tries from elsewhere, an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.hardware.ranks import Ranks
from phloem.inference.ml.branch_tests import SupportSettings, branch_supports
from phloem.inference.ml.elsewhere import FAR as _FAR
from phloem.inference.ml.elsewhere import Elsewhere
from phloem.inference.ml.fusion import fused
from phloem.inference.ml.length_classes import shaken_best
from phloem.inference.ml.search import FAR, Place, climb, fit_lengths, moved_far
from phloem.inference.ml.search_result import SearchResult, SearchSettings, usual_threads
from phloem.inference.ml.search_state import (
    EQUAL,
    Better,
    Checkpoint,
    Doing,
    Kind,
    SearchState,
    Told,
    differ,
    likeliest,
    look_hard,
    together,
)
from phloem.inference.ml.searched import Fit, OneAlignment, Searched, idle_tips_cut
from phloem.inference.ml.starts import Start as Values
from phloem.inference.ml.tree_starts import (
    MANY,
    Start,
    bionj_start,
    further_start,
    own_starts,
    parsimony_start,
    with_lengths,
)
from phloem.model.model import Model
from phloem.model.record import ParameterValue
from phloem.tree.half_edges import HalfEdges, tree_of
from phloem.tree.tree import Tree

_COARSE, _REPLICATE = 15, 8  # steps of a fit between climbs; of a replicate's only one, of known numbers
_FEW = 5  # steps from each of several starts, of many taxa
_SWEEPS = 30  # over lengths, at most
_KINDS: tuple[Kind, ...] = ("exchange", "parsimony", "ratchet", "parsimony")  # of tries, in turn
_LAST: Kind = "apart"  # a climb that owes the best tree nothing
_POOL = 12  # hilltops with which a new best tree is fused
_CLOSE = 1.0  # log units below the best tree, from where one is climbed closely
_GAIN = 0.01  # log units that count as another, better tree
_STREAM, _TOGETHER = 6, 7  # of random numbers: of searches after the first, and after each of these
_SHAKES, _SHAKES_A_TRY = 12, 3  # of classes, before the first climb and after a try


def search_tree(
    alignment: Alignment,
    model: Model,
    start: Start | None = None,
    settings: SearchSettings | None = None,
    told: Told | None = None,
    supports: SupportSettings | None = None,
    checkpoint: Checkpoint | None = None,
) -> SearchResult:
    """Maximum likelihood over unrooted trees, branch lengths and the model's free parameters.

    Searches after the first (settings.starts) begin from tree_starts.further_start and the numbers fitted on
    the first start; in the end the best tree is given what the others' hilltops have better. told: called
    with what is being done. Errors: InputError for fewer than three taxa, ModelError for models that the
    search cannot take (irreversible ones). checkpoint: where a killed
    search goes on, to the same numbers.
    """
    data = OneAlignment(alignment, model)
    return search(data, start or bionj_start(alignment), settings, told, supports, checkpoint)


def search(
    data: Searched,
    start: Start,
    settings: SearchSettings | None = None,
    told: Told | None = None,
    supports: SupportSettings | None = None,
    checkpoint: Checkpoint | None = None,
    here: Ranks | None = None,
) -> SearchResult:
    """search_tree of data of one part or several. here: processes that share the starts: the first calls
    this, the others assist, and what is found does not depend on how many they are."""
    walk = _Search(data, settings or SearchSettings(), told or (lambda *_: None))
    return walk.run(start, supports or SupportSettings(), checkpoint, here or Ranks())


def climbed_once(data: Searched, start: Start, settings: SearchSettings) -> Fit:
    """A tree to compare models on: one climb from a start, all fitted coarsely. Errors as search_tree."""
    return _Search(data, settings, lambda *_: None).climbed_once(start)


def climbed_tree(data: Searched, start: Start, settings: SearchSettings) -> Tree:
    """That of climbed_once; where parts share its lengths they alone are fitted after the climb."""
    return _Search(data, settings, lambda *_: None).climbed_tree(start)


def _searches(
    here: Ranks,
    data: Searched,
    settings: SearchSettings,
    first: Start,
    checkpoint: Checkpoint | None,
    walk: _Search | None = None,
) -> list[SearchState]:
    """The searches from all starts, in their order, on the first rank; each rank has some."""
    walk = walk or _Search(data, settings, lambda *_: None)
    numbers = own_starts(settings.starts, here)
    walk.shares(len(numbers))
    own = [walk.search_from(n, walk.start(n, first), checkpoint) for n in numbers]
    found = {n: state for part in here.gather((numbers, own)) or () for n, state in zip(*part)}
    return [found[number] for number in sorted(found)]


class _Search:
    """The messages of the data, and the numbers of the model as they are at the moment."""

    def __init__(self, data: Searched, settings: SearchSettings, told: Told) -> None:
        self._data, self._settings, self._told = data, settings, told
        self._rng, self._best = np.random.default_rng(settings.seed), -np.inf
        self._patience = settings.patience  # of the search at hand
        self._ahead, self._before = "", 0  # what is told: of which search, tries in vain of those before
        self._left = 1  # searches at least, for what is told
        self._weights, self._many = data.weights, len(data.taxa) >= MANY
        patterns = sum(len(own) for own in self._weights)
        threads = settings.threads or usual_threads(len(data.taxa) * patterns)
        self._messages = data.messages(max(settings.radius, FAR), threads)
        self._parsimony = data.parsimony()
        self._values: dict[str, ParameterValue] = {}
        self._vain: set[int] = set()  # surroundings of subtrees that no move improves, under these numbers
        self._elsewhere = Elsewhere(data, self._messages, self._parsimony, settings.radius)

    def run(
        self, start: Start, wanted: SupportSettings, checkpoint: Checkpoint | None, here: Ranks
    ) -> SearchResult:
        if self._settings.starts > 1:
            self._begun(start)
            start = replace(start, values=self._values)
        states = here.together(_searches, self._data, self._settings, start, checkpoint, walk=self)
        hard = len(self._data.taxa) > 3 and look_hard(states)
        state = self._gone_on(states, checkpoint) if hard and len(states) > 1 else together(states)
        if hard and self._settings.patience:
            state = self._further_searches(states, state, checkpoint)
        self._values = state.values
        if state.found:
            self._refined(state.place)
        edges = idle_tips_cut(state.place.edges, self._data.groups)
        likelihood = self._data.likelihood(edges, self._values, self._settings.threads)
        last = self._data.refined(likelihood)
        self._values = self._data.values_of(last)
        self._data.put(self._messages, self._values)
        difficulty = state.difficulty(self._messages, np.concatenate(self._weights))
        supports = self._supports(last, state, wanted)
        searched = tuple(one.ended for one in states), state.tries, tuple(state.found)
        return SearchResult(last, likelihood, *searched, difficulty, supports)

    def shares(self, searches: int) -> None:
        """How many searches this process has at least, for what is told."""
        self._left = searches

    def start(self, number: int, first: Start) -> Start:
        """Of search `number` of those that were asked for."""
        if number == 1:
            return first
        return further_start(self._parsimony, number, first.values or {}, self._settings.seed)

    def _further_searches(
        self, states: list[SearchState], state: SearchState, checkpoint: Checkpoint | None
    ) -> SearchState:
        """Searches of half the patience from parsimonious trees, each followed by tries of all that is known,
        until one ends where the best tree before it is, or brings nothing better. Adds them to states."""
        self._patience = max(1, self._patience // 2)
        while True:
            before, number, self._left = state, len(states) + 1, 2
            start = parsimony_start(self._parsimony, self._settings.seed, number, states[0].values)
            states.append(self.search_from(number, start, checkpoint))
            if not differ([before, states[-1]]):
                return together([before, states[-1]])
            state = self._gone_on([before, states[-1]], checkpoint, number)
            if state.place.log_likelihood < before.place.log_likelihood + EQUAL:
                return state

    def _gone_on(
        self, states: Sequence[SearchState], checkpoint: Checkpoint | None, number: int = 0
    ) -> SearchState:
        """The best tree with what the other searches' have better, and tries from there. number: of the last
        search before."""
        number = number or len(states)
        own = None if checkpoint is None else checkpoint.after(number)
        self._rng = np.random.default_rng([self._settings.seed, _TOGETHER, number])
        self._ahead = f"after start {number}, "
        state = None if own is None else own.read()
        if state is None:
            state = together(states)
            self._values, self._vain = state.values, state.vain
            self._data.put(self._messages, self._values)
            others = likeliest(one.place for one in states)
            best, kind = self._fused_with(others, state, state.place, "fused")
            if best is not state.place:
                self._take(state, best, kind)
        self._tried(state, own)
        return state

    def search_from(self, number: int, start: Start, checkpoint: Checkpoint | None) -> SearchState:
        """Search `number` of all, from 1, from a start, whatever was searched before."""
        seed = self._settings.seed
        self._rng = np.random.default_rng(seed if number == 1 else [seed, _STREAM, number])
        self._ahead = f"start {number}, " if number > 1 or self._settings.starts > 1 else ""
        own = None if checkpoint is None else checkpoint.of(number)
        state, self._vain = None if own is None else own.read(), set()
        if state is None:
            fit = self._climbed(start)
            self._values = self._data.values_of(fit)
            place = self._fitted(fit)
            state = SearchState(fit.log_likelihood, place, self._values, set(), [], [], start.origin)
            state.vain = self._vain
            state.meet(place, independent=True)
        self._tell("first climb" if not state.tries else f"going on after try {state.tries}", state)
        self._tried(state, own)
        self._best = max(self._best, state.place.log_likelihood)
        return state

    def _tell(self, what: str, state: SearchState) -> None:
        """The best value so far, and tries in vain, which begin anew after a better tree."""
        done, total = self._before + state.in_vain, self._before + self._left * self._patience
        doing = Doing("search", done, total, self._ahead + what, "at least")
        self._told(doing, max(self._best, state.place.log_likelihood))

    def _supports(
        self, last: Fit, state: SearchState, wanted: SupportSettings
    ) -> dict[str, dict[bytes, float]]:
        """Of the branches of the final tree, under the final model."""
        if len(self._data.taxa) == 3 or not wanted.any:
            return {}
        self._told(Doing("supports"), last.log_likelihood)
        best = self._placed(self._data.edges_of(last))
        hilltops = [best.edges, *(place.edges for place in likeliest(state.hilltops))]
        seed, radius = self._settings.seed, self._settings.radius
        return branch_supports(self._messages, self._weights, hilltops, wanted, seed, radius)

    def climbed_once(self, start: Start) -> Fit:
        """Lengths, the model's numbers, moves, and both again."""
        return self._refined(self._climb_from(self._refined(self._begin(start))))

    def climbed_tree(self, start: Start) -> Tree:
        """Lengths, the model's numbers, moves, and lengths."""
        place = self._climb_from(self._refined(self._begin(start), most=_REPLICATE))
        if place.edges.lengths.ndim > 1:
            return self._refined(place).tree
        return tree_of(fit_lengths(self._messages, place.edges, 0.01).edges, self._data.taxa)

    def _climbed(self, start: Start) -> Fit:
        """From a start: lengths, the model's numbers, moves, and all again, unless taxa are many."""
        fit = self._begun(start)
        self._told(Doing("first climb", 1, 3), fit.log_likelihood)
        fit = self._refined(self._climb_from(fit))
        if self._many:
            return fit
        self._told(Doing("first climb", 2, 3), fit.log_likelihood)
        return self._refined(self._climb_from(fit, closely=True))

    def _begun(self, start: Start) -> Fit:
        """Lengths, and the model's numbers from all their starts where none are given."""
        begun, starts = self._begin(start), self._data.starts(start.values)
        if self._many and len(starts) > 1:
            fit = self._refined(begun, starts, most=_FEW)
            begun, starts = Place(self._data.edges_of(fit), fit.log_likelihood), ({},)
        fit = self._refined(begun, starts)
        if self._data.n_classes == 1:
            return fit
        return self._shaken(Place(self._data.edges_of(fit), fit.log_likelihood), None, _SHAKES) or fit

    def _begin(self, start: Start) -> Place:
        """Its tree and numbers, with lengths that need not be the best."""
        self._values = self._data.start_values() | dict(start.values or {})
        edges = self._data.edges(with_lengths(start.tree))
        return Place(edges, -np.inf) if start.near else self._placed(edges)

    def _climb_from(self, fit: Fit, closely: bool = False) -> Place:
        place = self._fitted(fit)
        return climb(self._messages, place, self._settings.radius, closely=closely, vain=self._vain)

    def _tried(self, state: SearchState, checkpoint: Checkpoint | None) -> None:
        """Climb from elsewhere until that was in vain for long enough, in turn by the kinds of tries."""
        if len(self._data.taxa) == 3:
            return
        if state.random:
            self._rng.bit_generator.state = state.random
        self._values, self._vain = state.values, state.vain
        self._data.put(self._messages, self._values)
        while self._goes_on(state):
            state.tries, state.in_vain = state.tries + 1, state.in_vain + 1
            kind: Kind = _LAST if state.in_vain == self._patience else _KINDS[state.tries % len(_KINDS)]
            other, kind = self._elsewhere.tried(kind, state, self._rng)
            best, nothing_left = state.place, other is state.place
            other = self._closely(state, other)
            state.meet(other, independent=kind in ("parsimony", "apart"))
            other, kind = self._fused(state, other, kind)
            if other.log_likelihood > best.log_likelihood + _GAIN:
                other, kind = self._fused_with(likeliest(state.hilltops)[:_POOL], state, other, kind)
                self._take(state, other, kind)
            elif not nothing_left and other.key == best.key:
                state.led_back += 1
            fit = self._shaken(state.place, other, _SHAKES_A_TRY)
            if fit is not None:
                self._take(state, Place(self._data.edges_of(fit), fit.log_likelihood), "classes")
            self._tell(f"try {state.tries}", state)
            if checkpoint is not None:
                state.random = dict(self._rng.bit_generator.state)
                checkpoint.write(state, now=state.in_vain >= self._patience)
        self._before, self._left = self._before + self._patience, max(self._left - 1, 1)

    def _goes_on(self, state: SearchState) -> bool:
        """Whether there is a try left; after half of the patience subtrees are moved far."""
        patience = self._patience
        if patience > 0 and state.in_vain == (patience + 1) // 2:
            better = moved_far(self._messages, state.place, self._settings.radius)
            if better is not None and better.log_likelihood > state.place.log_likelihood + _GAIN:
                self._take(state, better, "far")
        return state.in_vain < patience

    def _take(self, state: SearchState, better: Place, kind: Kind) -> None:
        """A better tree, with its numbers fitted, for the best one."""
        state.place = self._fitted(self._refined(better))
        state.values, state.in_vain, state.led_back = self._values, 0, 0
        state.hilltops.append(state.place)
        state.found.append(Better(state.tries, kind, state.place.log_likelihood))

    def _fused(self, state: SearchState, other: Place, kind: Kind) -> tuple[Place, Kind]:
        """The best of what a climb found, the best tree so far, and both in one, climbed on."""
        both = self._both(state, state.place, other)
        return (both, "fused") if both and both.log_likelihood > other.log_likelihood else (other, kind)

    def _fused_with(
        self, others: Sequence[Place], state: SearchState, best: Place, kind: Kind
    ) -> tuple[Place, Kind]:
        """A tree with what others have better, and how it came about."""
        for other in others:
            both = self._both(state, best, other)
            if both is not None and both.log_likelihood > best.log_likelihood + _GAIN:
                best, kind = both, "fused"
        return best, kind

    def _both(self, state: SearchState, best: Place, other: Place) -> Place | None:
        """Two trees in one, climbed on; None if neither has anything better."""
        if abs(other.log_likelihood - best.log_likelihood) > _FAR:
            return None
        both = fused(self._messages, best, other, self._data.n_sites, state.tested)
        if both is None:
            return None
        both = climb(self._messages, both, self._settings.radius, state.known, vain=self._vain)
        both = self._closely(state, both)
        state.meet(both, independent=False)
        return both

    def _closely(self, state: SearchState, other: Place) -> Place:
        """Where a new hilltop leads that may be better than the best tree."""
        near = other.log_likelihood > state.place.log_likelihood - _CLOSE
        if near and other.key not in state.known:
            radius, known = self._settings.radius, state.known
            return climb(self._messages, other, radius, known, closely=True, vain=self._vain)
        return other

    def _shaken(self, place: Place, other: Place | None, shakes: int) -> Fit | None:
        """length_classes.shaken_best, its numbers at hand; None where there are no such classes."""
        threads = self._settings.threads
        fit = shaken_best(self._data, place, other, self._values, self._rng, shakes, threads)
        if fit is not None:
            self._values = self._data.values_of(fit)
            self._vain.clear()
        return fit

    def _placed(self, edges: HalfEdges, sweeps: int = _SWEEPS) -> Place:
        """A tree among the messages, under the numbers at hand, with its lengths fitted."""
        self._data.put(self._messages, self._values)
        return fit_lengths(self._messages, edges, 0.1, sweeps)

    def _fitted(self, fit: Fit) -> Place:
        """That of a fit. Of many taxa a sweep takes as long as ten gradients of a fit, and gains next to
        nothing after it."""
        return self._placed(self._data.edges_of(fit), 0 if self._many else _SWEEPS)

    def _refined(self, place: Place, starts: Sequence[Values] = ({},), most: int = _COARSE) -> Fit:
        """Lengths and numbers fitted together, coarsely; the numbers are at hand then."""
        likelihood = self._data.likelihood(place.edges, self._values, self._settings.threads)
        fit = self._data.refined(likelihood, starts, 1e-2, most)
        self._values = self._data.values_of(fit)
        self._vain.clear()
        return fit
