"""The dataset of Auspice of a tree that stands for a sample, by its annotations (summary/trees.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from phloem.analysis.auspice import NodeAttributes
from phloem.io.auspice import OWN_KEYS, Attributes, dated, of_states, short
from phloem.tree.tree import Tree, node_depths, node_heights

_INTERVAL = re.compile(r"(?P<name>.*)_[\d.e+-]+%_?HPD")
_OF_OTHERS = re.compile(r"(?P<name>.*?)(_median|_mean|\.prob|\.set|\.set\.prob)")
_AN_HOUR = 1e-4  # years
_OF_THE_TREE = ("prob", "prob_stddev", "prob_range", "prob(percent)", "height", "length", "date")


def attributes_of_summary(tree: Tree, latest: float | None) -> NodeAttributes:
    """Of all nodes dates: their own (date_median), or with the HPD intervals of their heights, where the
    latest tip's decimal year is known; else distances from the root, in the unit of the lengths. Posterior
    probabilities of clades, as labels and a colouring; states of traits with their probabilities; numbers of
    branches, such as rates, with HPD intervals. InputError where branches have no length."""
    all_of, notes = NodeAttributes(tree), tree.annotations
    numbers: list[tuple[str, dict[int, Attributes]]] = []
    for name in _names(notes.values()):
        values = {x: own for x in range(tree.n_nodes) if (own := _attribute(name, notes.get(x, {})))}
        if any(isinstance(own["value"], str) for own in values.values()):
            all_of.put(_key(name), values, _title(name), "categorical")
        else:
            numbers.append((name, values))
    if latest is None and not all("date_median" in notes.get(x, {}) for x in range(tree.n_nodes)):
        all_of.divergence(node_depths(tree))
    else:
        all_of.put("num_date", _dates(tree, latest), "Date", "continuous")
    for name, values in numbers:
        all_of.put(_key(name), values, _title(name), "continuous")
    _clades(all_of, notes)
    return all_of


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _dates(tree: Tree, latest: float | None) -> dict[int, Attributes]:
    """The dates that the nodes have themselves, else by their heights below the latest tip's; no node is
    later than its children. Of tips whose date is one in all trees it is known, and has no interval."""
    years, limits = np.empty(tree.n_nodes), np.empty((tree.n_nodes, 2))
    for x, height in enumerate(node_heights(tree).tolist()):
        own = tree.annotations.get(x, {})
        own_date = own.get("date_median")
        if isinstance(own_date, int | float):
            years[x], limits[x] = own_date, _interval("date", own) or (own_date, own_date)
        else:
            assert latest is not None
            low, high = _interval("height", own) or (height, height)
            years[x], limits[x] = latest - height, (latest - high, latest - low)
    for x in range(tree.n_nodes - 1):
        years[tree.parent[x]] = min(years[tree.parent[x]], years[x])
    found = dict[int, Attributes]()
    for x, (year, ends) in enumerate(zip(years.tolist(), limits.tolist())):
        moves = ends[1] - ends[0] > _AN_HOUR
        found[x] = dated(year, ends if moves else None, moves if x < tree.n_tips else None)
    return found


def _clades(all_of: NodeAttributes, notes: Mapping[int, Mapping[str, object]]) -> None:
    shares = {x: own.get("prob") for x, own in notes.items() if x >= all_of.tree.n_tips}
    inner = {x: float(share) for x, share in shares.items() if isinstance(share, int | float)}
    all_of.label("posterior", {x: f"{share:.2f}" for x, share in inner.items()})
    all_of.put("posterior", {x: {"value": short(p)} for x, p in inner.items()}, "Posterior", "continuous")


def _names(notes: Iterable[Mapping[str, object]]) -> list[str]:
    """What the nodes say, but for what says more of it, and what the tree itself says."""
    names = dict.fromkeys(name for own in notes for name in own)

    def of_another(name: str) -> bool:
        match = _INTERVAL.fullmatch(name) or _OF_OTHERS.fullmatch(name)
        return match is not None and (match["name"] in names or match["name"] in _OF_THE_TREE)

    return [name for name in names if name not in _OF_THE_TREE and not of_another(name)]


def _key(name: str) -> str:
    """Of an attribute; none that Auspice has itself, or that stands for clades."""
    return f"{name}_of_nodes" if name in (*OWN_KEYS, "posterior", "accession", "url") else name


def _attribute(name: str, own: Mapping[str, object]) -> Attributes | None:
    """A state with the probabilities of all, or a number with its interval; None where there is neither."""
    value = own.get(name)
    states, shares = own.get(f"{name}.set"), own.get(f"{name}.set.prob")
    if isinstance(states, tuple) and isinstance(shares, tuple):
        return of_states(dict(zip(map(str, states), map(float, shares))))
    if isinstance(value, str):
        return {"value": value}
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    found: Attributes = {"value": short(value)}
    interval = _interval(name, own)
    return found if interval is None else found | {"confidence": [short(end) for end in interval]}


def _interval(name: str, own: Mapping[str, object]) -> tuple[float, float] | None:
    for key, ends in own.items():
        match = _INTERVAL.fullmatch(key)
        if match and match["name"] == name and isinstance(ends, tuple):
            return float(ends[0]), float(ends[1])
    return None
