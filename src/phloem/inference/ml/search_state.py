"""Where a search stands between two tries, and the file from which a killed one goes on bit for bit."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from phloem.inference.ml.constrained_messages import Messages
from phloem.inference.ml.kept_fits import plain_values, values_of
from phloem.inference.ml.search import Place, fit_lengths
from phloem.inference.ml.tree_starts import LEAST_CLIMBS, Difficulty, difficulty
from phloem.io.journal import Journal, of_another_analysis
from phloem.io.output_file import write_file
from phloem.model.record import ParameterValue
from phloem.tree.half_edges import HalfEdges

EQUAL = 0.05  # log units that are worth no further search
_SURE = 2  # tries that lead back to the best tree: most on easy data, hardly one on hard ones
_FORM = 9
_OF_SEARCH = re.compile(r"\.(after-)?\d+$")  # ends of the names of files beside the first one


class Ended(NamedTuple):
    """A search: where it began, what its first climb reached, and its best tree's log-likelihood."""

    origin: str
    first: float
    log_likelihood: float


class Doing(NamedTuple):
    """What a search, a choice of models or a test of trees is at, for whoever waits. stage: in words, one for
    all its steps. done, total: of these, total None where nobody knows. step: which one, in words. left:
    what steps that take as long as those before say of the end; None where steps are of unlike length."""

    stage: str
    done: int = 0
    total: int | None = None
    step: str = ""
    left: Literal["about", "at most", "at least"] | None = None

    def __str__(self) -> str:
        return self.step or self.stage


Told = Callable[[Doing, float], None]  # and the best log-likelihood


Kind = Literal["parsimony", "apart", "ratchet", "exchange", "shaken", "fused", "far", "classes"]


class Better(NamedTuple):
    """A try that led to a better tree: its number, what it began from (fused: what it found was put into the
    best tree; far: after it, a subtree was moved farther than usual; classes: those of sites with lengths of
    their own were shaken), and the log-likelihood."""

    number: int
    kind: Kind
    log_likelihood: float


@dataclass(eq=False)
class SearchState:
    """first: what the first climb reached, from origin. place: the best tree so far, under values, the
    model's numbers. tries, in_vain: climbs from elsewhere, and how many since the last better tree; led_back:
    of these, to it. known:
    keys of trees that climbs ended on; hilltops: these trees; ends: keys of those that climbs from
    starts and parsimonious trees reached. tested: keys of parts of hilltops that were put into the best tree
    in vain (fusion.Exchange.key). vain: surroundings of subtrees that no move improves (surroundings.py).
    random: the generator's state."""

    first: float
    place: Place
    values: dict[str, ParameterValue]
    known: set[int]
    hilltops: list[Place]
    ends: list[int]
    origin: str
    tries: int = 0
    in_vain: int = 0
    led_back: int = 0
    found: list[Better] = field(default_factory=list)
    tested: set[int] = field(default_factory=set)
    vain: set[int] = field(default_factory=set)
    random: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> Ended:
        return Ended(self.origin, self.first, self.place.log_likelihood)

    def meet(self, place: Place, independent: bool) -> None:
        """A climb ended here; independent: it did not begin near another hilltop."""
        key = place.key
        if key not in self.known:
            self.known.add(key)
            self.hilltops.append(place)
        if independent:
            self.ends.append(key)

    def difficulty(self, messages: Messages, weights: np.ndarray) -> Difficulty | None:
        """Of the trees on which independent climbs ended, under the messages' numbers; None of too few."""
        if len(self.ends) < LEAST_CLIMBS:
            return None
        places = {place.key: place for place in self.hilltops}
        sites: dict[int, np.ndarray] = {}
        for key in dict.fromkeys(self.ends):
            fit_lengths(messages, places[key].edges.copy(), 0.1)
            sites[key] = messages.sites()
        ends = [places[key].edges for key in self.ends]
        return difficulty(ends, np.array([sites[key] for key in self.ends]), weights)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers; doubles are written so that they are read back as they are."""
        return {
            "first": self.first,
            "place": _plain(self.place),
            "values": plain_values(self.values),
            "known": sorted(self.known),
            "hilltops": [_plain(place) for place in self.hilltops],
            "ends": self.ends,
            "origin": self.origin,
            "tries": self.tries,
            "in_vain": self.in_vain,
            "led_back": self.led_back,
            "found": [list(better) for better in self.found],
            "tested": sorted(self.tested),
            "vain": sorted(self.vain),
            "random": self.random,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> SearchState:
        return SearchState(
            record["first"],
            _place(record["place"]),
            values_of(record["values"]),
            set(record["known"]),
            [_place(one) for one in record["hilltops"]],
            record["ends"],
            record["origin"],
            record["tries"],
            record["in_vain"],
            record["led_back"],
            [Better(*one) for one in record["found"]],
            set(record["tested"]),
            set(record["vain"]),
            record["random"],
        )


def together(states: Sequence[SearchState]) -> SearchState:
    """What several searches know, at the best tree of all; their tries are numbered on."""
    best = max(states, key=lambda state: state.place.log_likelihood)  # of equal ones the first
    whole = SearchState(best.first, best.place, best.values, set(), [], [], best.origin)
    for state in states:
        for place in state.hilltops:
            whole.meet(place, independent=False)
        whole.known |= state.known
        whole.ends += state.ends
        whole.found += [better._replace(number=better.number + whole.tries) for better in state.found]
        whole.tries += state.tries
    return whole


def likeliest(places: Iterable[Place]) -> list[Place]:
    """The likeliest first."""
    return sorted(places, key=lambda place: -place.log_likelihood)


def differ(states: Sequence[SearchState]) -> bool:
    """Whether some ended on likelier trees than others; equal ones may differ in points drawn as branches."""
    values = [state.place.log_likelihood for state in states]
    return max(values) - min(values) > EQUAL


def look_hard(states: Sequence[SearchState]) -> bool:
    """Whether searches ended apart; of one, whether few tries led back to its tree, or most
    independent climbs ended each on another one, as parts of these may lead back all the same."""
    if len(states) > 1:
        return differ(states)
    agree = 2 * len(set(states[0].ends)) <= len(states[0].ends)
    return not agree or states[0].led_back < _SURE


def _plain(place: Place) -> dict[str, Any]:
    edges = place.edges
    return {
        "back": edges.back.tolist(),
        "lengths": edges.lengths.tolist(),
        "log_likelihood": place.log_likelihood,
    }


def _place(record: dict[str, Any]) -> Place:
    edges = HalfEdges(np.array(record["back"], np.int64), np.array(record["lengths"], np.float64))
    return Place(edges, record["log_likelihood"])


class Kept(Protocol):
    """What a checkpoint keeps: the state of a search."""

    def to_json(self) -> dict[str, Any]: ...


class Checkpoint:
    """A file with the state of a search. identity: of data and settings: another analysis's file is refused,
    or overwritten where replace says so. from_json: makes the state. seconds: between times of writing."""

    def __init__(
        self,
        path: str,
        identity: str,
        replace: bool = False,
        seconds: float = 10.0,
        from_json: Callable[[dict[str, Any]], Any] = SearchState.from_json,
    ) -> None:
        self.path, self._identity, self._replace, self._seconds = path, identity, replace, seconds
        self._from_json, self._last = from_json, -np.inf

    def of(self, start: int) -> Checkpoint:
        """Of one of several searches, counted from 1: a file beside that of the first."""
        if start == 1:
            return self
        return self._beside(f"{self.path}.{start}")

    def after(self, start: int) -> Checkpoint:
        """Of what follows one of several searches with all that is known then."""
        return self._beside(f"{self.path}.after-{start}")

    def _beside(self, path: str) -> Checkpoint:
        return Checkpoint(path, self._identity, self._replace, self._seconds, self._from_json)

    def replicates(self, values: Mapping[str, ParameterValue]) -> Journal:
        """Of a bootstrap after the search, whose replicates begin from its numbers: files beside this one."""
        own = json.dumps([self._identity, plain_values(values)], sort_keys=True)
        identity = hashlib.sha256(own.encode()).hexdigest()
        return Journal(f"{self.path}.bootstrap", identity, self._replace, seconds=self._seconds)

    def models(self) -> Journal:
        """Of a choice of models before the search, so too."""
        return Journal(f"{self.path}.models", self._identity, self._replace, seconds=self._seconds)

    def read(self) -> Any:
        """None where there is none; InputError for a file of something else."""
        if not os.path.exists(self.path):
            return None
        try:
            with open(self.path, encoding="utf-8") as stream:
                record = json.load(stream)
            same = record["form"] == _FORM and record["identity"] == self._identity
            if same:
                return self._from_json(record["state"])
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            pass
        if self._replace:
            return None
        raise of_another_analysis(self.path)

    def write(self, state: Kept, now: bool = False) -> None:
        """If it is time, or now."""
        if now or time.monotonic() - self._last >= self._seconds:
            record = {"form": _FORM, "identity": self._identity, "state": state.to_json()}
            write_file(self.path, json.dumps(record))
            self._last = time.monotonic()

    def remove(self) -> None:
        """Of all searches, of what was before them, and of the replicates."""
        for journal in (self.models(), self.replicates({})):
            journal.remove()
        others = glob.glob(f"{glob.escape(self.path)}.*")
        for path in (self.path, *(path for path in others if _OF_SEARCH.search(path))):
            with suppress(FileNotFoundError):
                os.unlink(path)
