"""Named blocks of numbers as one flat vector: what is fitted or sampled, and its unconstrained coordinates.

A block is numbers that move together: branch lengths, a simplex of frequencies, a shape. A space lays blocks
out one after another: natural values are a vector x (n,), or (H, n) for H chains; coordinates are a vector y
(m,) without constraints, m ≤ n (a simplex of k entries has k - 1 coordinates). The transforms, and what is
done with simplexes, are in transform.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phloem.density.transform import Support, Transform, transform_of
from phloem.errors import InputError


@dataclass(frozen=True, eq=False)
class Block:
    """Numbers that move together.

    name: unique in a space. support: positive (> 0), unit (0 < x < 1), interval (lower < x < upper), real,
    simplex (entries > 0 that sum to 1), tied (such entries, some of them equal, and which ones:
    terms/tied_dirichlet.py), or choice (the number of a model, from 0 to upper). start: (k,) natural values
    to begin from. lower, upper: bounds of
    every entry on the natural scale (an interval's ends, else a box that optimisers and samplers stay in).
    elements: (k) names of the entries; the block's own for a block of one. linear_below: positive blocks of a
    fit only, see transform.SoftLogarithm; 0 for the logarithm.
    """

    name: str
    support: Support
    start: np.ndarray
    lower: float
    upper: float
    elements: tuple[str, ...] = ()
    linear_below: float = 0.0
    transform: Transform = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", np.array(self.start, np.float64).reshape(-1))
        if not self.elements:
            names = tuple(f"{self.name}_{i + 1}" for i in range(self.size))
            object.__setattr__(self, "elements", (self.name,) if self.size == 1 else names)
        if len(self.elements) != self.size:
            raise InputError(f"block '{self.name}': {len(self.elements)} names for {self.size} numbers")
        if not self.lower < self.upper:
            raise InputError(f"block '{self.name}': bounds {self.lower} and {self.upper} leave no room")
        if self.support == "positive" and not (self.lower > 0 or self.linear_below > 0):
            raise InputError(f"block '{self.name}': its lower bound must be above 0, not {self.lower}")
        made = transform_of(self.support, self.lower, self.upper, self.linear_below)
        object.__setattr__(self, "transform", made)

    @property
    def size(self) -> int:
        """k, natural values."""
        return len(self.start)

    @property
    def n_coordinates(self) -> int:
        """Dimension: k - 1 for a simplex; 0 of what says which model holds."""
        return 0 if self.support in ("tied", "choice") else self.size - (self.support == "simplex")

    def inside(self, x: np.ndarray) -> np.ndarray:
        """x (…, k) moved within the bounds where it is outside; entries of 0 of a simplex become tiny."""
        return self.transform.inside(x, self.lower, self.upper)

    def coordinate_bounds(self) -> np.ndarray:
        """(m, 2) box of the coordinates for a bounded optimiser."""
        return self.transform.bounds(self.lower, self.upper, self.size)


@dataclass(frozen=True, eq=False)
class Space:
    """Blocks in order, with their places in the vectors of natural values and of coordinates."""

    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        names = [b.name for b in self.blocks]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise InputError(f"two blocks are called '{twice[0]}'")

    @cached_property
    def offsets(self) -> np.ndarray:
        """(len(blocks) + 1,) int64: block i is x[..., offsets[i] : offsets[i + 1]]."""
        return np.cumsum([0, *(b.size for b in self.blocks)], dtype=np.int64)

    @cached_property
    def coordinate_offsets(self) -> np.ndarray:
        """(len(blocks) + 1,) int64, the same for coordinates."""
        return np.cumsum([0, *(b.n_coordinates for b in self.blocks)], dtype=np.int64)

    @property
    def size(self) -> int:
        """n, natural values."""
        return int(self.offsets[-1])

    @property
    def n_coordinates(self) -> int:
        """m, the dimension."""
        return int(self.coordinate_offsets[-1])

    @cached_property
    def _index(self) -> dict[str, int]:
        return {b.name: i for i, b in enumerate(self.blocks)}

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def index(self, name: str) -> int:
        """The number of a block; InputError where there is none of that name."""
        if name not in self._index:
            raise InputError(f"there is no block '{name}'", hint=f"Blocks are: {', '.join(self._index)}.")
        return self._index[name]

    def block(self, name: str) -> Block:
        return self.blocks[self.index(name)]

    def place(self, name: str) -> slice:
        """Where a block lies in the natural values, or one of its elements by its own name."""
        if name not in self._index and name in self.elements:
            at = self.elements.index(name)
            return slice(at, at + 1)
        i = self.index(name)
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    @property
    def elements(self) -> tuple[str, ...]:
        """n names of all numbers."""
        return tuple(e for b in self.blocks for e in b.elements)

    def start(self) -> np.ndarray:
        """(n,) where every block begins."""
        return np.concatenate([np.empty(0), *(b.start for b in self.blocks)])

    def pack(self, values: Mapping[str, np.ndarray | float]) -> np.ndarray:
        """(n,) natural values from those of every block by name; InputError for missing or misshapen ones."""
        x = self.start()
        missing = [b.name for b in self.blocks if b.name not in values]
        if missing:
            raise InputError(f"block '{missing[0]}' has no value")
        for name, value in values.items():
            given = np.asarray(value, np.float64).reshape(-1)
            place = self.place(name)
            if given.size != place.stop - place.start:
                raise InputError(f"block '{name}' has {place.stop - place.start} numbers, not {given.size}")
            x[place] = given
        return x

    def unpack(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Natural values (…, k) by block, views of x (…, n)."""
        return {b.name: x[..., here] for b, here, _ in self._places}

    def inside(self, x: np.ndarray) -> np.ndarray:
        """(…, n) x with values outside their bounds moved in: so begins a fit, from lengths of 0 say."""
        return _joined([b.inside(x[..., here]) for b, here, _ in self._places], x.shape[:-1])

    def to_coordinates(self, x: np.ndarray) -> np.ndarray:
        """(…, n) natural values, every one inside its support → (…, m) coordinates."""
        return _joined([b.transform.forward(x[..., here]) for b, here, _ in self._places], x.shape[:-1])

    def from_coordinates(self, y: np.ndarray) -> np.ndarray:
        """(…, m) coordinates → (…, n) natural values."""
        return _joined([b.transform.inverse(y[..., at]) for b, _, at in self._places], y.shape[:-1])

    def pull_back(self, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """At x (…, n): derivatives by natural values, entries independent (…, n) → by coordinates (…, m)."""
        parts = [b.transform.pull_back(x[..., here], gradient[..., here]) for b, here, _ in self._places]
        return _joined(parts, x.shape[:-1])

    def log_jacobian(self, x: np.ndarray) -> np.ndarray:
        """(…) log |dx/dy| at x (…, n), what a density by x gains as a density by y."""
        return sum((b.transform.log_jacobian(x[..., here]) for b, here, _ in self._places), np.zeros(()))

    def log_jacobian_gradient(self, x: np.ndarray) -> np.ndarray:
        """(…, m) d log_jacobian / dy at x (…, n)."""
        parts = [b.transform.log_jacobian_gradient(x[..., here]) for b, here, _ in self._places]
        return _joined(parts, x.shape[:-1])

    def bounds(self) -> np.ndarray:
        """(n, 2) lower and upper bound of every natural value."""
        rows = [np.tile([b.lower, b.upper], (b.size, 1)) for b in self.blocks]
        return np.concatenate([np.empty((0, 2)), *rows])

    def coordinate_bounds(self) -> np.ndarray:
        """(m, 2) box of the coordinates for a bounded optimiser."""
        return np.concatenate([np.empty((0, 2)), *(b.coordinate_bounds() for b in self.blocks)])

    @cached_property
    def _places(self) -> tuple[tuple[Block, slice, slice], ...]:
        """Every block, and where it lies in the natural values and in the coordinates."""
        ends, offsets = self.offsets.tolist(), self.coordinate_offsets.tolist()
        here = [slice(*ends[i : i + 2]) for i in range(len(self.blocks))]
        return tuple(zip(self.blocks, here, [slice(*offsets[i : i + 2]) for i in range(len(self.blocks))]))


def _joined(parts: list[np.ndarray], batch: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([np.empty((*batch, 0)), *parts], axis=-1)
