"""A working distribution as arrays, in which chains look it up (compiled/working.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from phloem.density.terms.compiled.dispatch import table_of
from phloem.inference.mcmc.compiled.known_splits import beside
from phloem.inference.mcmc.records import WorkingTable
from phloem.inference.mcmc.working import Truncated, WorkingDistribution
from phloem.pruning.cpu.column_classes import tip_keys


def working_table(working: WorkingDistribution | None, n_tips: int, n_sets: int) -> WorkingTable:
    """Of chains of n_tips tips and n_sets sets of branch lengths; without rows of lengths where there is no
    working."""
    if working is None:
        nothing = table_of([])
        return WorkingTable(
            nothing, 0.0, *open_table({}), np.zeros((0, n_sets, 3)), 0, *open_table({}, float)
        )
    key = key_of_clade(n_tips)
    rows = {key(clade): 1 + i for i, clade in enumerate(working.lengths)}
    lengths = np.array([_numbers(own) for own in (working.others, *working.lengths.values())])
    none: tuple[np.ndarray, np.ndarray] = open_table({}, float)
    free = working.splits is not None and working.unseen is not None
    splits = table_of_splits(key, working.splits, working.unseen) if free else none  # type: ignore[arg-type]
    numbers = table_of([(family, first, size, 0) for first, size, family in working.numbers])
    return WorkingTable(numbers, working.constant, *open_table(rows), lengths, int(free), *splits)


def key_of_clade(n_tips: int) -> Callable[[int], int]:
    """Clade, a bit a tip → key, the sum of those of its tips."""
    keys = tip_keys(n_tips).tolist()
    return lambda clade: sum(keys[i] for i in range(n_tips) if clade >> i & 1) % 2**64


def table_of_splits(
    key: Callable[[int], int], splits: Mapping[int, Mapping[int, float]], unseen: Mapping[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """WorkingTable.splits and of_split."""
    found = dict[int, float]()
    for clade, of_halves in splits.items():
        whole = key(clade)
        found[_pair(whole, whole)] = unseen[clade]
        for half, value in of_halves.items():
            a = key(half)
            found[_pair(whole, min(a, (whole - a) % 2**64))] = value
    return open_table(found, float)


def _numbers(densities: tuple[Truncated, ...]) -> list[list[float]]:
    """(G, 3) of gamma densities: shape - 1, rate, the constant."""
    found = [(own.gamma.numbers(1), own.log_mass) for own in densities]
    return [[float(a), float(rate), float(constant) - mass] for (a, rate, constant), mass in found]


def _pair(clade: int, half: int) -> int:
    return int(beside.py_func(np.array([clade], np.uint64), np.array([half], np.uint64))[0])


def open_table(values: Mapping[int, float], kind: type = int) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values, half of their room or more empty: a key stands in the first free place from key modulo
    the size on, 0: free."""
    size = 1 << max(1, (2 * len(values)).bit_length())
    keys, found = np.zeros(size, np.uint64), np.zeros(size, np.float64 if kind is float else np.int64)
    for key, value in values.items():
        at = key % size
        while keys[at] != 0:
            at = (at + 1) % size
        keys[at], found[at] = key, value
    return keys, found
