"""What sampled trees say of their nodes ([&rate=…,location=…]), as arrays of nodes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from phloem.errors import InputWarning

Along = Mapping[str, np.ndarray]
"""Name → (n, N) float64, NaN where a node has none; or object, texts, None where a node has none."""

OWN = frozenset({"prob", "posterior", "length", "height", "index"})
"""Names that are not kept: summaries have their own, and numbers of nodes mean nothing in another tree."""
MOST_ENTRIES = 8  # of {a,b,…}, which are numbers of their own: location1, location2


class Notes:
    """Collects annotations, tree by tree."""

    def __init__(self, n_trees: int, n_nodes: int) -> None:
        self._shape = n_trees, n_nodes
        self._left_out: set[str] = set()
        self.columns: dict[str, np.ndarray] = {}

    def add(self, number: int, place: np.ndarray, annotations: Mapping[int, Mapping[str, object]]) -> None:
        """Those of a tree: place[x] is the column of its node x."""
        for x in annotations:
            for name, value in annotations[x].items():
                if value is True or name in OWN or name.startswith("!"):  # no value, or a colour of FigTree's
                    continue
                if not isinstance(value, tuple):
                    self._put(name, number, place[x], value)
                elif len(value) <= MOST_ENTRIES and all(isinstance(own, (int, float)) for own in value):
                    for k, own in enumerate(value, 1):
                        self._put(f"{name}{k}", number, place[x], own)
                else:
                    self._left_out.add(name)

    def _put(self, name: str, number: int, column: int, value: object) -> None:
        text = not isinstance(value, (int, float))
        values = self.columns.get(name)
        if values is None:
            values = empty(self._shape, text)
        elif text and values.dtype != object:
            values = as_text(values)
        self.columns[name] = values
        values[number, column] = value if text or values.dtype != object else f"{value:g}"

    def tell(self) -> None:
        """A warning of what has no summary."""
        if self._left_out:
            told = f"annotations of nodes that are lists, {', '.join(sorted(self._left_out))}, are left out"
            warnings.warn(told, InputWarning, stacklevel=2)


def empty(shape: tuple[int, ...], text: bool) -> np.ndarray:
    return np.full(shape, None, object) if text else np.full(shape, np.nan)


def as_text(values: np.ndarray) -> np.ndarray:
    """Numbers as texts, of a name that stands for both."""
    told = np.array([f"{value:g}" for value in values.ravel()], object).reshape(values.shape)
    told[np.isnan(values)] = None
    return told


def joined(parts: Sequence[Along], shapes: Sequence[tuple[int, ...]]) -> Along:
    """Those of several samples, one after the other; (n, N) of each, N alike."""
    found: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        text = any(name in part and part[name].dtype == object for part in parts)
        rows = [part[name] if name in part else empty(shape, text) for part, shape in zip(parts, shapes)]
        found[name] = np.concatenate([as_text(own) if text and own.dtype != object else own for own in rows])
    return found
