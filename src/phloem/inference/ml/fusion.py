"""Two hilltops into one tree: what the lower one resolves better is put into the higher one.

In the manner of tree fusing (Goloboff 1999, Cladistics 15:415). Far parts of a tree are nearly independent,
and climbs that start apart err in different parts; to put several right at once takes a search many tries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from phloem.inference.ml.constrained_messages import Messages, allowed_by
from phloem.inference.ml.search import Place, climb_near, fit_lengths
from phloem.tree.build import tree_from_parents
from phloem.tree.half_edges import HalfEdges, Length, branch_splits, half_edges, topology_key

Branches = dict[int, Length]  # tips beyond a branch, away from tip 0, as bits → length

_GAIN = 0.01  # log units
_SWEEPS = 2  # over all lengths, before a part's gain is read
_MOST = 40  # parts that are tried
_LOSS = 12.0  # log units that a part costs at most before branches around it are moved
_AT_ONCE = 8  # parts of other hilltops that are moved around, a try


class Exchange(NamedTuple):
    """Branches of the donor that conflict with branches of the receiver, directly or through one another,
    and with no others of either."""

    taken: frozenset[int]
    dropped: frozenset[int]

    def key(self, where: int = 0) -> int:
        """A number that stands for this exchange, in the tree of a topology_key or in any (0)."""
        return hash((where, tuple(sorted(self.taken)), tuple(sorted(self.dropped))))


class Around(NamedTuple):
    """What parts are put into the best tree with. n_sites; radius, known and vain of climbs; tested: keys of
    parts that were tried before, to which others are added."""

    n_sites: int
    radius: int
    known: Collection[int]
    tested: set[int]
    vain: set[int]


def exchanged(messages: Messages, best: Place, others: Sequence[Place], around: Around) -> Place | None:
    """The best place with one part of another in it, whatever that costs at first, climbed from there near
    it: the first that gains, else the likeliest of some on a topology that is not known. None where all parts
    were tried, or lead back."""
    kept = branches(best.edges)
    found, left = None, _AT_ONCE
    for other in others:
        offered = branches(other.edges)
        for part in exchanges(kept, offered, 0.1 / around.n_sites):
            if part.key() in around.tested:
                continue
            around.tested.add(part.key())
            place = _fitted(messages, kept, offered, [part])
            if place is None:
                continue
            left -= 1
            if place.log_likelihood > best.log_likelihood - _LOSS:
                before = marked(place.edges, kept)
                place = climb_near(messages, place, around.radius, before, around.known, around.vain)
            if place.log_likelihood > best.log_likelihood + _GAIN:
                return place
            if found is None or place.log_likelihood > found.log_likelihood:
                new = place.key not in around.known
                found = place if new else found
            if left == 0:
                return found
    return found


def begun_from(
    back: np.ndarray, changed: np.ndarray, best: HalfEdges, begun: set[int], n_sites: int
) -> HalfEdges | None:
    """The best tree with the parts of a parsimonious one in it that no try began with since it is the best;
    None if there is none. changed: as Parsimony.changed; branches without a change say nothing. begun: keys
    of such parts, to which others are added."""
    kept, least = branches(best), 0.1 / n_sites
    new = np.maximum(0.1 * np.mean(np.array(list(kept.values())), axis=0), least)
    lengths = np.multiply.outer(changed, new)
    offered = branches(HalfEdges(back, lengths))
    where = -topology_key(best.back)  # fused keeps keys of the same tree for other parts
    parts = [part for part in exchanges(kept, offered, least) if part.key(where) not in begun]
    begun.update(part.key(where) for part in parts)
    return with_parts(kept, offered, parts) if parts else None


def marked(edges: HalfEdges, known: Branches) -> np.ndarray:
    """back, but -1 at both ends of branches that are not known: what search.fit_lengths calls before."""
    before = edges.back.copy()
    for x, h in _places(edges):
        if x not in known:
            before[h] = before[edges.back[h]] = -1
    return before


def fused(
    messages: Messages, one: Place, other: Place, n_sites: int, tested: set[int] | None = None
) -> Place | None:
    """The better of two places with the parts of the other in it that gain; None if none does.

    Every part is tried alone, then those that gained together. Lengths are fitted by few sweeps. tested: keys
    of parts that did not gain in this very tree, which are left out; this adds some.
    """
    tested = set() if tested is None else tested
    high, low = (one, other) if one.log_likelihood >= other.log_likelihood else (other, one)
    kept, offered = branches(high.edges), branches(low.edges)
    parts, where = exchanges(kept, offered, 0.1 / n_sites), topology_key(high.edges.back)
    if not parts or (len(parts) == 1 and len(parts[0].dropped) > 1):
        return None  # the other tree itself
    found: list[tuple[float, Exchange, Place]] = []
    for part in [part for part in parts[:_MOST] if part.key(where) not in tested]:
        place = _fitted(messages, kept, offered, [part])
        if place is not None and place.log_likelihood > high.log_likelihood + _GAIN:
            found.append((place.log_likelihood, part, place))
        else:
            tested.add(part.key(where))
    if not found:
        return None
    best = max(found, key=lambda one: one[0])[2]
    if len(found) > 1:
        together = _fitted(messages, kept, offered, [part for _, part, _ in found])
        if together is not None and together.log_likelihood > best.log_likelihood:
            best = together
    return best


def branches(edges: HalfEdges) -> Branches:
    """All branches of a tree."""
    return {x: edges.lengths[h].copy() for x, h in _places(edges)}


def lengths_of_other(edges: HalfEdges, known: Branches) -> HalfEdges:
    """The same tree where branches that are known have their lengths, and others a tenth of the mean."""
    new = 0.1 * np.mean(np.array(list(known.values())), axis=0)
    lengths = np.zeros((len(edges.back), *np.shape(new)))
    for x, h in _places(edges):
        lengths[h] = lengths[edges.back[h]] = known.get(x, new)
    return HalfEdges(edges.back, lengths)


def _places(edges: HalfEdges) -> list[tuple[int, int]]:
    """The tips beyond every branch, and its half-edge towards tip 0."""
    order, splits = branch_splits(edges.back)
    rows = (row.tobytes() for row in np.ascontiguousarray(splits).astype("<u8"))
    return [(int.from_bytes(row, "little"), h) for row, h in zip(rows, order.tolist())]


def exchanges(kept: Branches, offered: Branches, least: float) -> list[Exchange]:
    """The independent differences of two trees; branches below the least length say nothing."""
    own = [x for x, length in kept.items() if x not in offered and np.max(length) >= least]
    new = [x for x, length in offered.items() if x not in kept and np.max(length) >= least]
    against = {x: [y for y in own if not compatible(x, y)] for x in new}
    by_own: dict[int, list[int]] = {}
    for x, conflicts in against.items():
        for y in conflicts:
            by_own.setdefault(y, []).append(x)
    found, seen = [], set[int]()
    for first in new:
        if first in seen:
            continue
        taken, dropped, waiting = {first}, set[int](), [first]
        while waiting:
            for y in against[waiting.pop()]:
                dropped.add(y)
                further = [x for x in by_own[y] if x not in taken]
                taken.update(further)
                waiting += further
        seen |= taken
        found.append(Exchange(frozenset(taken), frozenset(dropped)))
    return found


def compatible(x: int, y: int) -> bool:
    """Whether one tree can have both: tip 0 is in neither, so that one holds the other or they are apart."""
    both = x & y
    return both in (0, x, y)


def with_parts(kept: Branches, offered: Branches, parts: list[Exchange]) -> HalfEdges:
    """The receiver without what conflicts with the parts, and with them."""
    new = [x for part in parts for x in part.taken]
    lengths = {x: length for x, length in kept.items() if all(compatible(x, y) for y in new)}
    return tree_of_branches(lengths | {x: offered[x] for x in new})


def _fitted(messages: Messages, kept: Branches, offered: Branches, parts: list[Exchange]) -> Place | None:
    """None where a constraint forbids that tree."""
    edges = with_parts(kept, offered, parts)
    if not allowed_by(messages)(edges.back):
        return None
    return fit_lengths(messages, edges, 0.01, _SWEEPS, marked(edges, kept))


def tree_of_branches(lengths: Branches) -> HalfEdges:
    """The tree that has these branches, those of all tips among them; more than two ways on are resolved by
    branches of length 0."""
    ordered = sorted(lengths, key=int.bit_count)
    everything = ordered[-1]  # beyond the branch of tip 0
    n = everything.bit_length()
    taxa = tuple(map(str, range(n)))
    labels: list[str | None] = [taxa[0]]
    parent, above = [-1], [float(np.mean(lengths[everything]))]
    top = np.full(n, -1)  # of every tip, the largest branch so far that it is beyond
    for x in ordered:
        inside = [i for i, bit in enumerate(reversed(bin(x)[2:])) if bit == "1"]
        node = len(labels)
        labels.append(taxa[inside[0]] if len(inside) == 1 else None)
        parent.append(-1)
        above.append(float(np.mean(lengths[x])))
        for child in set(top[inside].tolist()) - {-1}:
            parent[child] = node
        top[inside] = node
    parent[0], above[-1] = len(labels) - 1, 0.0
    edges = half_edges(tree_from_parents(labels, parent, above, taxa=taxa, rooted=False), taxa)
    if np.ndim(lengths[everything]) == 0:
        return edges
    edges = HalfEdges(edges.back, np.zeros((len(edges.back), len(lengths[everything]))))  # type: ignore[arg-type]
    for x, h in _places(edges):
        edges.lengths[h] = edges.lengths[edges.back[h]] = lengths.get(x, 0.0)
    return edges
