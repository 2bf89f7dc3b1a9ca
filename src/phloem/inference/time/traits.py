"""A discrete trait in the chains of dated trees: its numbers with their priors, the records that compiled
code has of it, and what is drawn of its history."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.data.traits import TipTraits
from phloem.density.space import Block, Space
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.term import Family
from phloem.density.traits import CHANGES, Lineage, Trait, number_weights, trait_memory
from phloem.errors import InputError
from phloem.inference.time.compiled.histories import MOST_EVENTS, draw_history

CLOCK, RATES, ROUTES, ROOT = "trait_clock", "trait_rates", "trait_routes", "trait_root"
TRAIT_LIKELIHOOD = "trait_likelihood"
"""Of the tips' states, in the trace."""
PER_ROUTE = ("trait_rate(", "route(", "changes(")
"""How columns of a trace begin that are of one route each: summed up in a table of routes, not one by one."""
MOST_STATES = 100
STREAM = 0x7472616974  # of histories, apart from what the chain itself draws


@dataclass(frozen=True, eq=False)
class TraitModel:
    """How a trait changes (density/traits.py). tips: of the taxa, in their order. symmetric: both directions
    of a route have one rate. few: routes come and go, and few are expected. free_root: the frequencies at the
    root are sampled, else equal."""

    tips: TipTraits
    symmetric: bool = True
    few: bool = False
    free_root: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.tips.n_states <= MOST_STATES:
            raise InputError(
                f"the trait '{self.tips.name}' has {self.tips.n_states} states",
                hint=f"2 to {MOST_STATES} can change into each other.",
            )

    @cached_property
    def pairs(self) -> np.ndarray:
        """(R, 2) states at the ends of every route."""
        k = range(self.tips.n_states)
        return np.array([(i, j) for i in k for j in k if (i < j if self.symmetric else i != j)], np.int64)

    @property
    def route_names(self) -> tuple[str, ...]:
        """R, as in A->B, or A<->B where it is one in both directions."""
        arrow, states = "<->" if self.symmetric else "->", self.tips.states
        return tuple(f"{states[i]}{arrow}{states[j]}" for i, j in self.pairs)

    @property
    def number(self) -> tuple[int, float]:
        """Offset and mean of the Poisson number of routes: K - 1 and log 2 where rates are symmetric (Lemey
        et al. 2009), 0 and K - 1 where they are not (as BEAUti has it)."""
        fewest = self.tips.n_states - 1
        return (fewest, CHANGES) if self.symmetric else (0, float(fewest))

    def blocks(self, time: float) -> list[Block]:
        """The trait's numbers. time: a span that is typical of the tree's age."""
        names = self.route_names
        n = len(names)
        found = [
            Block(CLOCK, "positive", np.array([1.0 / time]), 1e-300, 1e300),
            Block(RATES, "positive", np.ones(n), 1e-6, 1e6, tuple(f"trait_rate({x})" for x in names)),
        ]
        if self.few:
            found.append(Block(ROUTES, "choice", np.ones(n), 0.0, 1.0, tuple(f"route({x})" for x in names)))
        if self.free_root:
            states = self.tips.states
            own = tuple(f"trait_root({x})" for x in states)
            found.append(Block(ROOT, "simplex", np.full(len(own), 1.0 / len(own)), 1e-9, 1.0, own))
        return found

    def priors(self) -> dict[str, Family]:
        """Of the blocks but the clock's, which has the CTMC reference, and the routes', which compiled code
        knows."""
        return {RATES: Exponential(1.0)} | ({ROOT: Dirichlet(1.0)} if self.free_root else {})

    def record(self, space: Space, reference: bool) -> Trait:
        """As compiled code has it. reference: whether the clock has the CTMC reference prior."""
        offset, mean = self.number
        return Trait(
            tips=self.tips.possible.astype(np.float64),
            source=self.pairs[:, 0].copy(),
            target=self.pairs[:, 1].copy(),
            both=int(self.symmetric),
            clock=space.place(CLOCK).start,
            rates=space.place(RATES).start,
            routes=space.place(ROUTES).start if self.few else -1,
            root=space.place(ROOT).start if self.free_root else -1,
            reference=int(reference),
            offset=offset,
            mean=mean,
            log_total=float(np.log(number_weights(offset, mean, len(self.pairs)).sum())),
        )

    @property
    def columns(self) -> list[str]:
        """Of a trace, besides the numbers: what history gives."""
        names = [TRAIT_LIKELIHOOD, "trait_changes"] + (["n_routes"] if self.few else [])
        k, states = range(self.tips.n_states), self.tips.states
        return [*names, *(f"changes({states[i]}->{states[j]})" for i in k for j in k if i != j)]


NO_TRAIT = Trait(np.ones((1, 1)), *(np.zeros(0, np.int64),) * 2, 0, 0, 0, -1, -1, 0, 0, 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class History:
    """states: (N,) of every node; columns: the values of TraitModel.columns."""

    states: np.ndarray
    columns: np.ndarray


def drawn_history(
    model: TraitModel, record: Trait, tree: Lineage, values: np.ndarray, rng_words: np.ndarray
) -> History:
    """A history given the tips' states, from a stream that the words of the chain's own decide and which
    shares no number with it."""
    k, n = model.tips.n_states, len(tree.parent)
    seed = np.random.SeedSequence([STREAM, *map(int, rng_words)])
    states, jumps = np.zeros(n, np.int64), np.zeros((k, k))
    own, reach = trait_memory(n, k), np.zeros((MOST_EVENTS, k))
    value = draw_history(seed.generate_state(4, np.uint64), record, tree, values, own, states, jumps, reach)
    numbers = [value, jumps.sum()]
    if model.few:
        numbers.append(values[record.routes : record.routes + len(record.source)].sum())
    return History(states, np.array([*numbers, *jumps[~np.eye(k, dtype=bool)]]))
