"""A working distribution of dated trees as arrays, in which chains look it up (compiled/working.py)."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.compiled.dispatch import table_of
from phloem.inference.mcmc.working_table import key_of_clade, open_table, table_of_splits
from phloem.inference.time.records import DatedTable
from phloem.inference.time.working import DatedWorking, LogGamma, NodeDensity


def dated_table(working: DatedWorking | None, n_tips: int, n_clocks: int) -> DatedTable:
    """Without rows of shares where there is no working distribution."""
    if working is None:
        nothing, none = table_of([]), open_table({})
        shares, deviations = np.zeros((0, 3)), np.zeros((0, n_clocks, 3))
        return DatedTable(nothing, 0.0, np.zeros(3), *none, shares, deviations, *open_table({}, float))
    key = key_of_clade(n_tips)
    rows = {key(clade): 1 + i for i, clade in enumerate(working.nodes)}
    nodes = (working.others, *working.nodes.values())
    return DatedTable(
        table_of([(family, first, size, 0) for first, size, family in working.numbers]),
        working.constant,
        np.asarray(working.root.numbers(1), np.float64),
        *open_table(rows),
        np.array([node.share.numbers(1) for node in nodes]),
        np.array([_deviations(node, n_clocks) for node in nodes]),
        *table_of_splits(key, working.splits, working.unseen),
    )


def _deviations(node: NodeDensity, n_clocks: int) -> np.ndarray:
    """(K, 3): mean, 1 / sd and constant of each, or as LogGamma has them; zeros of a strict clock."""
    found = np.zeros((n_clocks, 3))
    for c, own in enumerate(node.deviations):
        if isinstance(own, LogGamma):
            found[c] = own.numbers()
            continue
        found[c] = own.mean, 1.0 / own.scale, -math.log(own.scale) - 0.5 * math.log(2.0 * math.pi)
    return found
