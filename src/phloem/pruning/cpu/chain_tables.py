"""Records of chains on a device as a row of addresses: compiled code finds any number of forests, of sizes of
their own, in one table, and is compiled once for all of them.

An array is five words, its address and its sizes, a number one of the five. They stand in the order of the
fields of Chains, Change and Device, records in records included.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from phloem.hardware.numba_compile import merged
from phloem.pruning.cpu.chain_state import (
    Chains,
    Change,
    Device,
    ListShape,
    Numbering,
    Places,
    Scratch,
    Trees,
)
from phloem.pruning.cpu.storage import address_of, float64_at, int32_at, int64_at

WORDS = 5
ROW = 47 * WORDS  # of a table: fields of the records


def table_row(chains: Chains, change: Change, device: Device) -> np.ndarray:
    """(ROW,) int64. Good as long as the records' arrays are alive, and theirs."""
    leaves = [*_leaves(chains), *_leaves(change), *_leaves(device)]
    row = np.zeros((len(leaves), WORDS), np.int64)
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, np.ndarray):
            row[k, 0], row[k, 1 : 1 + leaf.ndim] = address_of(leaf), leaf.shape
        else:
            row[k, 0] = leaf
    return row.reshape(-1)


def _leaves(record: Any) -> list[Any]:
    if not isinstance(record, tuple):
        return [record]
    return [leaf for field in record for leaf in _leaves(field)]


@merged
def _one(row, k):
    return int64_at(row[WORDS * k], (row[WORDS * k + 1],))


@merged
def _two(row, k):
    return int64_at(row[WORDS * k], (row[WORDS * k + 1], row[WORDS * k + 2]))


@merged
def _three(row, k):
    return int64_at(row[WORDS * k], (row[WORDS * k + 1], row[WORDS * k + 2], row[WORDS * k + 3]))


@merged
def _four(row, k):
    at = WORDS * k
    return int64_at(row[at], (row[at + 1], row[at + 2], row[at + 3], row[at + 4]))


@merged
def _real_two(row, k):
    return float64_at(row[WORDS * k], (row[WORDS * k + 1], row[WORDS * k + 2]))


@merged
def _real_three(row, k):
    return float64_at(row[WORDS * k], (row[WORDS * k + 1], row[WORDS * k + 2], row[WORDS * k + 3]))


@merged
def _real_four(row, k):
    at = WORDS * k
    return float64_at(row[at], (row[at + 1], row[at + 2], row[at + 3], row[at + 4]))


@merged
def trees_at(row):
    return Trees(
        _one(row, 0), _one(row, 1), _four(row, 2), _real_four(row, 3), _two(row, 4), _real_three(row, 5),
        _three(row, 6), _real_two(row, 7), _two(row, 8),
    )  # fmt: skip


@merged
def chains_at(row):
    places = Places(_four(row, 9), _one(row, 10), _one(row, 11))
    scratch = Scratch(
        _two(row, 12), _one(row, 13), _two(row, 14), _two(row, 15), _two(row, 16), _two(row, 17),
        _two(row, 18), _two(row, 19), _two(row, 20), _two(row, 21),
    )  # fmt: skip
    shape = ListShape(
        row[WORDS * 22], row[WORDS * 23], row[WORDS * 24], row[WORDS * 25] != 0, row[WORDS * 26] != 0
    )
    cells = int32_at(row[WORDS * 29], (row[WORDS * 29 + 1], row[WORDS * 29 + 2]))
    numbering = Numbering(_one(row, 28), cells, _one(row, 30), _one(row, 31), _one(row, 32))
    return Chains(trees_at(row), places, scratch, shape, _two(row, 27), numbering)


@merged
def change_at(row):
    return Change(
        _two(row, 33), _two(row, 34), _real_three(row, 35), _three(row, 36), _real_two(row, 37),
        _two(row, 38), _real_two(row, 39),
    )  # fmt: skip


@merged
def device_at(row):
    return Device(
        _one(row, 40), _one(row, 41), _one(row, 42), _one(row, 43), _three(row, 44), _one(row, 45),
        _one(row, 46),
    )  # fmt: skip
