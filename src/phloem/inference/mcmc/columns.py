"""The numbers that a trace prints, in MrBayes' order and under its names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.inference.mcmc.structure import ChainModel, printed_names, printed_values


@dataclass(frozen=True)
class TraceColumns:
    """names: of the columns after Gen, LnL and LnPr. The first is TL, the tree length."""

    names: tuple[str, ...]
    structure: ChainModel

    def values(self, tree_length: float, numbers: np.ndarray) -> np.ndarray:
        """(k,) from a chain's numbers (n,)."""
        space = self.structure.space
        printed = [printed_values(self.structure, b, numbers[space.place(b.name)]) for b in space.blocks]
        return np.concatenate(
            [[tree_length], *(x[_order(self.structure, b)] for b, x in zip(space.blocks, printed))]
        )


def trace_columns(structure: ChainModel) -> TraceColumns:
    """TL and every free number."""
    names = ["TL"]
    for block in structure.space.blocks:
        own = printed_names(structure, block)
        names += [own[i] for i in _order(structure, block)]
    return TraceColumns(tuple(names), structure)


def _order(structure: ChainModel, block) -> list[int]:
    """GTR's reference, r(G<->T), goes last, as MrBayes has it."""
    names = printed_names(structure, block)
    return sorted(range(len(names)), key=lambda i: names[i].startswith("r(G<->T)"))
