"""Every move of the sampler: on what it is tested, and moves like it that are wrong.

A move joins the tests by existing: one whose file name has no case here fails them. The planted moves are
plain functions as the real ones are, so that the sampler can compile them too (planted_moves.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import SimpleNamespace

import numpy as np

from phloem.density.terms.tied_dirichlet import TiedDirichlet, all_groupings, code_of
from phloem.inference.mcmc.characters import parsimony_room
from phloem.inference.mcmc.compiled.dispatch import Proposal
from phloem.inference.mcmc.compiled.random import below, multiplied, shifted, uniform
from phloem.inference.mcmc.compiled.tied import read_groups, write_groups
from phloem.inference.mcmc.compiled.unrooted import hang, internal_branch, unroot
from phloem.inference.mcmc.move_table import TOPOLOGY, Move
from phloem.inference.mcmc.moves.joint_normal import FREEDOM, coordinates, joint_normal, whitened
from phloem.inference.mcmc.moves.leapfrog import STEPS, leapfrog
from phloem.inference.mcmc.moves.tied_split_merge import tied_split_merge
from phloem.inference.mcmc.records import (
    OF_INTERVAL,
    OF_MANY,
    OF_POSITIVE,
    OF_SIMPLEX,
    Joint,
    KnownSplits,
    ParsimonyRoom,
)
from phloem.inference.mcmc.split_memory import looked_at, no_splits, note
from phloem.inference.mcmc.start import random_tree, stream
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.column_classes import tip_keys

N_TIPS = 6
N_NODES = 2 * N_TIPS - 1


def characters(columns: Sequence[str]) -> ParsimonyRoom:
    """Binary characters, a state of each tip in every column."""
    codes = np.array([[int(x) for x in column] for column in columns], np.int32).T
    hidden, one = np.zeros(len(columns), bool), np.zeros(1, np.int64)
    return parsimony_room([Part(codes, np.eye(2, dtype=bool), np.ones(len(columns)), hidden, one, one)])


CHARACTERS = characters(["011000"] * 12 + ["000111"] * 4 + ["010100"] * 3)  # tips 1 and 2 belong together


# States from their distribution, and one proposal --------------------------------------------------------


@dataclass
class State:
    """A tree as the chains have it, two sets of lengths (2, N), and the numbers of a block."""

    tree: tuple[np.ndarray, ...]
    lengths: np.ndarray
    numbers: np.ndarray

    @property
    def beside(self) -> int:
        left, right = self.tree[1][-1], self.tree[2][-1]
        return int(left if right == 0 else right)

    @property
    def own(self) -> np.ndarray:
        """Nodes that have a branch of their own."""
        return np.delete(np.arange(N_NODES - 1), self.beside)


@dataclass(frozen=True)
class Numbers:
    """How a block's numbers are distributed, and their bounds."""

    draw: Callable[[np.random.Generator], np.ndarray]
    log_density: Callable[[np.ndarray], float]
    low: float
    high: float


SUPPORTS = {
    "simplex": Numbers(lambda rng: rng.dirichlet(np.ones(4)), lambda x: 0.0, 1e-6, 1.0),
    "positive": Numbers(lambda rng: rng.exponential(size=3) + 1e-3, lambda x: -float(x.sum()), 1e-3, 200.0),
    "unit": Numbers(lambda rng: rng.uniform(0, 0.9999, 2), lambda x: 0.0, 0.0, 0.9999),
    "interval": Numbers(lambda rng: rng.uniform(-1, 3, 2), lambda x: 0.0, -1.0, 3.0),
    "choice": Numbers(lambda rng: rng.integers(0, 10, 1).astype(float), lambda x: 0.0, 0.0, 9.0),
    "real": Numbers(lambda rng: rng.normal(size=2), lambda x: -0.5 * float(x @ x), -50.0, 50.0),
}
RATE = 5.0  # of the exponential distribution of branch lengths
LOW, HIGH = 1e-8, 100.0
TIED = TiedDirichlet(1.5)


def tied(rng: np.random.Generator, k: int = 4) -> np.ndarray:
    """Four shares from their prior, some of which are equal."""
    groups = np.array(all_groupings(k)[rng.integers(15)])
    sizes = np.bincount(groups)[1:]
    sums = rng.dirichlet(TIED.concentration * sizes)
    return np.append((sums / sizes)[groups - 1], code_of(groups.tolist()))


SUPPORTS["tied"] = Numbers(tied, lambda x: float(TIED.log_density(x)), 1e-12, 1.0)
NONE = Numbers(lambda rng: np.ones(1), lambda x: 0.0, LOW, HIGH)
D = 10 + N_TIPS  # coordinates of JOINT
JOINT = Joint(
    np.array([0, 4, 6, 7]),
    np.array([4, 2, 1, 3]),
    np.array([OF_SIMPLEX, OF_POSITIVE, OF_INTERVAL, OF_MANY]),
    np.array([[1e-6, 1.0], [1e-3, 200.0], [0.0, 0.9999], [1e-6, 1.0]]),
    0.1 * np.tril(np.random.default_rng(3).normal(size=(D, D))) + 0.6 * np.eye(D),
    np.full(4, 0.4),
    0.2 * np.random.default_rng(4).normal(size=D) - np.repeat([0.0, 1.0, 2.5], [6, 3, 1 + N_TIPS]),
    1.2,
    np.minimum(np.arange(N_NODES), N_TIPS),
)
SUPPORTS["numbers"] = Numbers(
    lambda rng: np.concatenate(
        [
            rng.dirichlet(np.ones(4)),
            rng.exponential(size=2) + 1e-3,
            rng.uniform(0, 0.9999, 1),
            rng.dirichlet(np.ones(3)),
        ]
    ),
    lambda x: -float(x[4:6].sum()),
    LOW,
    HIGH,
)


def drawn(rng: np.random.Generator, numbers: Numbers) -> State:
    """A uniform topology, exponential lengths, numbers."""
    tree = random_tree(N_TIPS, rng)
    state = State(tuple(tree[:4]), np.zeros((2, N_NODES)), numbers.draw(rng))
    state.lengths[:, state.own] = rng.exponential(1 / RATE, (2, len(state.own)))
    return state


def splits_seen() -> KnownSplits:
    """Those of trees in most of which tips 1 and 2 belong together, on long branches then."""
    rng, known = np.random.default_rng(6), no_splits(N_TIPS, 2)
    seen = SimpleNamespace(**known)
    for _ in range(400):
        state = drawn(rng, NONE)
        together = state.tree[0][1] == state.tree[0][2]
        if together or rng.random() < 0.2:
            parent, left, right, order = (array[None, None] for array in state.tree)
            seen.parent, seen.left, seen.right, seen.order = parent, left, right, order
            seen.slot, seen.lengths = (
                np.zeros(1, np.int64),
                state.lengths[None, None] * (3 if together else 1),
            )
            note(seen, N_TIPS, looked_at(SimpleNamespace(n_tips=N_TIPS), seen))
    return known_splits(known, N_TIPS)


def known_splits(known: dict[str, np.ndarray], n_tips: int) -> KnownSplits:
    """With room to work in."""
    n = 2 * n_tips - 1
    below = np.append(tip_keys(n_tips), np.zeros(n_tips - 1, np.uint64))
    room = np.zeros(n, np.int64), np.zeros((n, 2)), np.zeros((n, 2)), np.zeros((n, 3), np.int64)
    return KnownSplits(*known.values(), below, *room, *np.zeros((2, n), np.int64))


SPLITS = splits_seen()


def begun(case: Case, state: State, words: np.ndarray, numbers: Numbers) -> tuple[State, Proposal]:
    """A copy of the state, and a proposal that will change it."""
    parent, left, right, order = (array.copy() for array in state.tree)
    adjacency, edge = np.zeros((N_NODES, 3), np.int64), np.zeros((N_NODES, 3), np.int64)
    new = State((parent, left, right, order), state.lengths.copy(), state.numbers.copy())
    unroot(parent, left, right, N_TIPS, adjacency, edge)
    p = Proposal(
        N_TIPS, words, case.tuning, numbers.low, numbers.high, case.p_extend, new.numbers, new.lengths,
        below(words, 2), left, right, state.beside, adjacency, edge, np.zeros(40), 0,
        np.zeros((2, N_NODES)), np.zeros((2, N_NODES)), CHARACTERS, JOINT,
        order.copy(), SPLITS._replace(left=left, right=right),
    )  # fmt: skip
    return new, p


def proposed(move: Move, case: Case, state: State, words: np.ndarray, numbers: Numbers):
    """What the move makes of the state, and its log Hastings ratio."""
    new, p = begun(case, state, words, numbers)
    parent, left, right, order = new.tree
    ratio = 0.0
    for turn in range(max(move.gradients, 1)):
        p.slope[:] = 1.0 - RATE * new.lengths
        ratio += move.propose(p._replace(turn=turn))
    if move.on == TOPOLOGY:
        branch, stack = np.full(N_NODES, -1), np.zeros(N_NODES, np.int64)
        hang(p.adjacency, p.edge, N_TIPS, parent, left, right, order, branch, stack)
        new.lengths[:] = np.where(branch >= 0, new.lengths[:, branch], 0.0)
    return new, ratio


def features(states: Sequence[State]) -> np.ndarray:
    """(n, F) numbers that a biased move pushes up or down."""
    parent, left, right = (np.stack([state.tree[k] for state in states]) for k in range(3))
    beside, inner = np.array([state.beside for state in states]), slice(N_TIPS, N_NODES - 1)
    one_more = np.minimum(*(side[np.arange(len(states)), beside] for side in (left, right))) < N_TIPS
    cherries = (left[:, inner] < N_TIPS) & (right[:, inner] < N_TIPS)
    found = [cherries.sum(axis=1) + one_more, parent[:, 1] == parent[:, 2]]
    for lengths in np.stack([state.lengths for state in states], axis=1):
        found += [lengths.sum(axis=1), lengths[:, 0], lengths[:, 1], lengths[:, :N_TIPS].sum(axis=1)]
    x = np.stack([state.numbers for state in states])
    if x.shape[1] == 5:  # four shares, and which are equal
        code, x = x[:, -1], x[:, :-1]
        equal = x[:, :, None] == x[:, None]
        sums = (equal * x[:, None]).sum(axis=2)
        found += [(1 / equal.sum(axis=2)).sum(axis=1), code, sums[:, 0], sums.max(axis=1)]
    if x.shape[1] == 10:  # of several blocks
        found += [x[:, 6], x[:, 7], x[:, 8], x[:, 7:].max(axis=1)]
    found += [x[:, 0], x[:, -1], abs(x - x.mean(axis=1)[:, None]).max(axis=1), abs(x - 0.5).max(axis=1)]
    return np.stack(found, axis=1).astype(float).round(12)


@lru_cache(maxsize=4)
def states_of(support: str, n: int, seed: int) -> tuple[list[State], np.ndarray]:
    """Draws of the distribution, the same for all moves of a kind, and their features."""
    rng, numbers = np.random.default_rng(seed), SUPPORTS.get(support, NONE)
    states = [drawn(rng, numbers) for _ in range(n)]
    return states, features(states)


def flux(move: Move, case: Case, on: str = "", n: int = 8_000, seed: int = 1) -> float:
    """The largest z of a net flow: from a draw of the distribution, one step by the move must go up as often
    as down in every feature, as detailed balance has it. Steps are weighted by their acceptance."""
    support = on or move.on[0]
    numbers, words = SUPPORTS.get(support, NONE), stream(seed, 0, 0)
    states, before = states_of(support if support in SUPPORTS else "", n, seed)
    after, accepted = [], np.zeros(n)
    for i, state in enumerate(states):
        new, ratio = proposed(move, case, state, words, numbers)
        change = RATE * (state.lengths.sum() - new.lengths.sum())
        change += numbers.log_density(new.numbers) - numbers.log_density(state.numbers)
        accepted[i] = math.exp(min(0.0, ratio + change)) if ratio > -math.inf else 0.0
        after.append(new)
    flows = accepted[:, None] * np.sign(features(after) - before)
    spread = flows.std(axis=0)
    return float(np.max(np.abs(flows.mean(axis=0))[spread > 0] / spread[spread > 0]) * math.sqrt(n))


# Wrong moves ----------------------------------------------------------------------------------------------


def times(move: Move, factor: float) -> Move:
    """The move, its log Hastings ratio multiplied by a factor."""

    def wrong(p):
        ratio = move.propose(p)
        return ratio * factor if ratio > -math.inf else ratio

    return replace(move, name=f"{move.name}_times_{factor:g}", propose=wrong)


def slide_with_drift(p):
    """The window is not centred."""
    x = p.numbers
    x[0] = abs(x[0] + 0.4 * (uniform(p.rng) - 0.4))
    x[0] = 2 * p.high - x[0] if x[0] > p.high else x[0]
    return 0.0


def slide_without_reflection(p):
    """What leaves the bounds is set to them, and stays near."""
    x, margin = p.numbers, 1e-3
    x[0] = min(max(x[0] + 0.8 * (uniform(p.rng) - 0.5), p.low + margin), p.high - margin)
    return 0.0


def slide_by_shares(p):
    """A window that grows with x is a multiplier, whose ratio is not 0."""
    x = p.numbers
    x[0] *= math.exp(2.0 * (uniform(p.rng) - 0.5))
    return 0.0 if 1e-2 < x[0] < p.high else -math.inf


def trade_and_renormalise(p):
    """One entry slides, all are divided by the new sum: the Jacobian is not 1."""
    x, total = p.numbers, 0.0
    x[below(p.rng, x.shape[0])] += 0.3 * uniform(p.rng)
    for i in range(x.shape[0]):
        total += x[i]
    for i in range(x.shape[0]):
        x[i] /= total
    return 0.0


def trade_shares_of_the_first(p):
    """The window is a part of one entry, and the other one is always the last: the way back has another."""
    x = p.numbers
    i, last = below(p.rng, x.shape[0] - 1), x.shape[0] - 1
    moved = x[i] * 0.8 * (uniform(p.rng) - 0.5)
    x[i], x[last] = x[i] - moved, x[last] + moved
    return 0.0 if x[last] > 1e-6 else -math.inf


def trade_with_drift(p):
    """The first of two groups mostly takes."""
    x, k = p.numbers, p.numbers.shape[0] - 1
    if read_groups(x, p.room) == 1:
        return 0.0
    total = p.room[2 * k] + p.room[2 * k + 1]
    share = shifted(p.room[2 * k] / total, 0.5 * (uniform(p.rng) - 0.4), 1e-9, 1 - 1e-9)
    p.room[2 * k], p.room[2 * k + 1] = share * total, total - share * total
    return 0.0 if write_groups(x, p.room, p.low) else -math.inf


def split_without_jacobian(p):
    """The sum that is divided, and how large it is, are forgotten."""
    before, k = p.numbers.copy(), p.numbers.shape[0] - 1
    ratio = tied_split_merge(p)
    if ratio == -math.inf:
        return ratio
    more = len(set(p.numbers[:k].tolist())) > len(set(before[:k].tolist()))
    larger = before if more else p.numbers
    changed = np.flatnonzero(before[:k] != p.numbers[:k])
    total = larger[:k][changed].sum()
    return ratio - math.log(total) if more else ratio + math.log(total)


def split_uncounted(p):
    """The ways to divide a group are taken for one."""
    before, k = p.numbers.copy(), p.numbers.shape[0] - 1
    ratio = tied_split_merge(p)
    if ratio == -math.inf:
        return ratio
    more = len(set(p.numbers[:k].tolist())) > len(set(before[:k].tolist()))
    ways = 2.0 ** (np.count_nonzero(before[:k] != p.numbers[:k]) - 1) - 1.0
    return ratio - math.log(ways) if more else ratio + math.log(ways)


def tips_beside(p, u):
    """How many neighbours of u are tips."""
    return (p.adjacency[u, 0] < p.n_tips) + (p.adjacency[u, 1] < p.n_tips) + (p.adjacency[u, 2] < p.n_tips)


def exchange_across(p, u, v, i, j):
    """Neighbour i of u and neighbour j of v change places, with their branches."""
    adjacency, edge = p.adjacency, p.edge
    a, b = adjacency[u, i], adjacency[v, j]
    for k in range(3 if a >= p.n_tips else 1):
        if adjacency[a, k] == u:
            adjacency[a, k] = v
            break
    for k in range(3 if b >= p.n_tips else 1):
        if adjacency[b, k] == v:
            adjacency[b, k] = u
            break
    adjacency[u, i], adjacency[v, j] = b, a
    edge[u, i], edge[v, j] = edge[v, j], edge[u, i]


def next_to_cherries(p):
    """A branch that ends at no cherry is mostly drawn anew: trees of many cherries are left more often than
    they are reached."""
    u, v = internal_branch(p.adjacency, p.rng, p.n_tips)
    if tips_beside(p, u) < 2 and tips_beside(p, v) < 2:
        u, v = internal_branch(p.adjacency, p.rng, p.n_tips)
    i, j = 0, 0
    while p.adjacency[u, i] == v:
        i += 1
    while p.adjacency[v, j] == u:
        j += 1
    exchange_across(p, u, v, i, j)
    return 0.0


def with_a_stretch(p):
    """A branch is stretched on the way, and the ratio says nothing of it."""
    u, _ = internal_branch(p.adjacency, p.rng, p.n_tips)
    branch = p.edge[u, 0]
    p.lengths[0, branch] = multiplied(p.lengths[0, branch], 3.0 * (uniform(p.rng) - 0.5), p.low, p.high)
    return 0.0


def mostly_up(p):
    """The next number, but at the end one of all: low ones are left more often than they are reached."""
    x, n = p.numbers, int(p.high) + 1
    x[0] = x[0] + 1 if x[0] < n - 1 else n - 1 - below(p.rng, n)
    return 0.0


def with_one_kick_too_many(p):
    """The last step kicks in full: no path leads back."""
    if p.turn == STEPS:
        for x in range(p.lengths.shape[1] - 1):
            p.momentum[0, x] += p.tuning * p.slope[0, x]
    return leapfrog(p)


def without_the_pull(p):
    """The step goes towards the mean, and the ratio is that of a symmetric one."""
    d, distance = len(p.joint.mean), []
    for turn in range(2):
        y = np.zeros(d)
        coordinates(p, y)
        distance.append(FREEDOM + whitened(p.joint, y, p.joint.spread))
        if turn == 0:
            ratio = joint_normal(p)
            if ratio == -math.inf:
                return ratio
    return ratio - 0.5 * (FREEDOM + d) * math.log(distance[1] / distance[0])


def with_many_turned(p):
    """The ratio has the Jacobian of the large simplex upside down."""
    before = np.log(p.numbers[7:]).sum()
    return joint_normal(p) + 2.0 * (before - np.log(p.numbers[7:]).sum())


# The table -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """tuning, p_extend: with which steps are large enough to see errors. wrong: label → planted move."""

    tuning: float
    wrong: dict[str, Callable[[Move], Move]]
    p_extend: float = 0.8


SCALED = {"ratio forgotten": partial(times, factor=0.0), "ratio inverted": partial(times, factor=-1.0)}


def instead(*functions) -> dict[str, Callable[[Move], Move]]:
    """Other proposals under the move's name."""
    return {
        f.__name__: lambda move, f=f: replace(move, name=f"{move.name}_{f.__name__}", propose=f)
        for f in functions
    }


CASES = {
    "branch_multiplier": Case(1.386, SCALED),
    "tree_multiplier": Case(0.5, SCALED),
    "node_slider": Case(0.8, SCALED),
    "leapfrog": Case(0.25, instead(with_one_kick_too_many) | SCALED),
    "nni": Case(1.0, instead(next_to_cherries, with_a_stretch)),
    "learnt_nni": Case(1.0, SCALED),
    "learnt_tbr": Case(1.0, SCALED),
    "spr": Case(1.0, SCALED),
    "tbr": Case(1.0, SCALED),
    "parsimony_spr": Case(1.0, SCALED),
    "joint_normal": Case(0.4, instead(without_the_pull, with_many_turned) | SCALED),
    "simplex_dirichlet": Case(10.0, SCALED),
    "simplex_slider": Case(0.5, instead(trade_and_renormalise, trade_shares_of_the_first)),
    "tied_dirichlet": Case(4.0, SCALED),
    "tied_slider": Case(0.5, instead(trade_with_drift)),
    "tied_split_merge": Case(3.0, instead(split_uncounted, split_without_jacobian) | SCALED),
    "multiplier": Case(1.5, SCALED),
    "choice_jump": Case(1.0, instead(mostly_up)),
    "slider": Case(0.4, instead(slide_with_drift, slide_without_reflection, slide_by_shares)),
}
