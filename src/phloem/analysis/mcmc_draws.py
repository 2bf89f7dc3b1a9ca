"""Single draws of chains: which of them are looked at, and the likelihood of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from phloem.data.alignment import Alignment
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.structure import ChainModel
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.summary.spread import evenly_spread
from phloem.tree.tree import Tree

MOST_DRAWS = 100  # of a run, evenly over what is left after the burn-in

Told = Callable[[str, int, int], None]
"""Of what is made of draws: what it is, how many draws are done, of how many."""


class Draw(NamedTuple):
    """parent (2T-2,) of an unrooted tree of the taxa; lengths (2T-2,), or (G, 2T-2) of several sets, as they
    are sampled; numbers by their names in a trace. Of a tree with a root both have 2T-1 nodes."""

    parent: np.ndarray
    lengths: np.ndarray
    numbers: Mapping[str, float]


class ChainData(Protocol):
    """What chains are about. alignments: of every part by name; structure: their models and numbers; sites:
    of every part the numbers of its sites in the file, None where they are not known."""

    @property
    def taxa(self) -> tuple[str, ...]: ...

    @property
    def alignments(self) -> dict[str, Alignment]: ...

    @property
    def structure(self) -> ChainModel: ...

    @property
    def sites(self) -> tuple[np.ndarray | None, ...]: ...


@dataclass(frozen=True)
class Drawn:
    """What all runs have drawn. names: of a trace's columns after LnL and LnPr. first: the first draw after
    the burn-in. made: a draw of what samples of dated trees hold, which are not lengths."""

    runs: Sequence[Samples]
    names: tuple[str, ...]
    first: int
    made: Callable[[Draw], Draw] = lambda draw: draw

    def evenly(self, most: int | None = None) -> list[list[Draw]]:
        """Of every run as many draws, at most so many, MOST_DRAWS by default."""
        end, most = min(run.n for run in self.runs), most or MOST_DRAWS
        chosen = evenly_spread(self.first, end, most)
        return [
            [self.made(Draw(*run.tree_and_numbers(i, self.names))) for i in chosen.tolist()]
            for run in self.runs
        ]


def tree_of(data: ChainData, draw: Draw) -> Tree:
    """The drawn tree; of several sets of lengths with those of the first."""
    return _tree(data, draw, np.atleast_2d(draw.lengths)[0])


def _tree(data: ChainData, draw: Draw, lengths: np.ndarray) -> Tree:
    return Tree(data.taxa, draw.parent, lengths, rooted=len(draw.parent) == 2 * len(data.taxa) - 1)


def likelihood_of(data: ChainData, part: int, draw: Draw) -> TreeLikelihood:
    """Of a part of the data at a draw; branch lengths are the part's, in expected changes of a character."""
    structure = data.structure
    own, values = structure.parts[part], structure.values_of(draw.numbers)
    factor, sets = structure.rate_factor(part, values), structure.sets[part]
    lengths = np.atleast_2d(draw.lengths)[sets.start : sets.stop] * factor
    tree = _tree(data, draw, lengths[0])
    model = own.model.with_values(structure.model_values(part, values))
    found = TreeLikelihood(data.alignments[own.name], tree, model, engine="cpu")
    if not np.array_equal(found.tree.parent, draw.parent):
        raise RuntimeError("the nodes of a drawn tree are numbered otherwise: please report this")
    if len(lengths) > 1:
        found.set(branch_lengths=lengths[:, :-1])
    return found


def part_rate(data: ChainData, part: int, draw: Draw) -> float:
    """How fast a part's characters change, beside all parts."""
    structure = data.structure
    return structure.parameterisation.rate(structure.block_values(structure.values_of(draw.numbers)), part)
