"""The numbers that a trace prints, in MrBayes' order and under its names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.inference.mcmc.structure import Block, ModelStructure


@dataclass(frozen=True)
class TraceColumns:
    """names: of the columns after Gen, LnL and LnPr. The first is TL, the tree length."""

    names: tuple[str, ...]
    structure: ModelStructure

    def values(self, tree_length: float, parameters: np.ndarray) -> np.ndarray:
        """(k,) from a chain's parameters (all blocks)."""
        numbers = [tree_length]
        at = 0
        for block in self.structure.blocks:
            x = parameters[at : at + block.size]
            at += block.size
            if block.free:
                numbers.extend(_printed(block, x))
        return np.array(numbers)


def trace_columns(structure: ModelStructure) -> TraceColumns:
    """TL and every free number."""
    names = ["TL"]
    for block in structure.blocks:
        if block.free:
            names += [name for name in _order(block.names) if name]
    return TraceColumns(tuple(names), structure)


def _printed(block: Block, x: np.ndarray) -> list[float]:
    """A simplex whose first name is empty prints ratios to its first entry, the reference class."""
    if block.names[0] == "":
        return [float(v / x[0]) for v in x[1:]]
    return [float(x[block.names.index(name)]) for name in _order(block.names)]


def _order(names: tuple[str, ...]) -> list[str]:
    """GTR's reference, r(G<->T), goes last, as MrBayes has it."""
    return sorted(names, key=lambda name: name == "r(G<->T)")
