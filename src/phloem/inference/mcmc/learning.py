"""What chains learn of their own distribution while moves adapt: how numbers and lengths vary together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phloem.density.space import Block, Space
from phloem.inference.mcmc.records import (
    OF_INTERVAL,
    OF_MANY,
    OF_OTHERS,
    OF_POSITIVE,
    OF_REAL,
    OF_SIMPLEX,
    PRIOR,
    WORKING,
    ChainData,
    ChainState,
    Joint,
)

EVERY = 25  # generations between two looks at the chains
ALIKE = 32  # looks at a chain that are worth one independent of the others: some 800 generations
LARGEST_JOINT = 250  # taxa of which every branch has a coordinate of its own
LARGEST_SIMPLEX = 10  # entries of one whose coordinates are ratios to the last; of larger ones each has one
FIRST_STEP = 0.1
STEPS = 50  # to a fixed point that each comes nearer to
Coordinates = Callable[[np.ndarray], np.ndarray]
SUPPORTS = {"simplex": OF_SIMPLEX, "positive": OF_POSITIVE, "real": OF_REAL}


def joint_blocks(space: Space, n_tips: int) -> Joint:
    """Of all blocks, and of the branches: every tip's for itself, inner ones together, of very many taxa all
    together. Steps of a tenth until something is learnt."""
    on = [_support(b) for b in space.blocks]
    n_coordinates = sum(b.size if s == OF_MANY else b.n_coordinates for b, s in zip(space.blocks, on))
    bounds = np.array([[b.lower, b.upper] for b in space.blocks]).reshape(-1, 2)
    group = np.minimum(np.arange(2 * n_tips - 1), n_tips if 3 < n_tips <= LARGEST_JOINT else 0)
    factor, wander = FIRST_STEP * np.eye(n_coordinates + group[-1] + 1), np.full(len(on), FIRST_STEP)
    sizes, mean, support = np.diff(space.offsets), np.zeros(len(factor)), np.array(on, np.int64)
    return Joint(space.offsets[:-1].copy(), sizes, support, bounds, factor, wander, mean, 1.0, group)


def _support(block: Block) -> int:
    if not block.n_coordinates:
        return OF_OTHERS
    return OF_MANY if block.size > LARGEST_SIMPLEX else SUPPORTS.get(block.support, OF_INTERVAL)


def coordinates(data: ChainData, values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(d,) unbounded coordinates of a chain's numbers (n,) and lengths (G, N), those of the numbers first,
    then the log of every group's sum: what moves/joint_normal.py steps in, τ left out."""
    sums = np.bincount(data.joint.group, lengths.sum(0))
    return np.concatenate([of_numbers(data, values, many=np.log), np.log(sums)])


def _over_last(x: np.ndarray) -> np.ndarray:
    return np.log(x[:-1] / x[-1])


def of_numbers(data: ChainData, values: np.ndarray, many: Coordinates = _over_last) -> np.ndarray:
    """Unbounded coordinates of a chain's numbers (n,), blocks in their order but those whose dimension
    changes. many: those of large simplexes."""
    joint, found = data.joint, [np.empty(0)]
    for first, size, support, (low, high) in zip(joint.first, joint.size, joint.support, joint.bounds):
        x = values[first : first + size]
        if support == OF_OTHERS:
            continue
        if support == OF_MANY:
            found.append(many(x))
        elif support == OF_SIMPLEX:
            found.append(_over_last(x))
        elif support == OF_POSITIVE:
            found.append(np.log(x))
        elif support == OF_REAL:
            found.append(x)
        else:
            found.append(np.log((x - low) / (high - x)))
    return np.concatenate(found)


def looked_at(data: ChainData, state: ChainState) -> np.ndarray:
    """(H, 1 + d): of every chain in the state its rank of heat and its coordinates."""
    slots = enumerate(state.slot)
    found = [coordinates(data, state.values[h, slot], state.lengths[h, slot]) for h, slot in slots]
    return np.column_stack([state.rank, found])


def learn(data: ChainData, state: ChainState, seen: np.ndarray) -> None:
    """One look at every chain of a run: means by rank, one covariance, and from it the factor that
    joint_normal uses. Deviations of a chain at inverse temperature β count β^½ times, as those of a normal
    distribution heated so are larger. The k-th look counts k times, so that the way from the start is
    forgotten. So many coordinates vary together by chance where looks are few that their covariances count
    for 1 - share. seen: of all chains, as looked_at gives it, those of other processes too. state.looks,
    mean, covariance, factor and wander change in place."""
    n, n_chains = int(state.looks[0]), len(seen)
    gain, spread = 2.0 / (n + 2), np.zeros_like(state.covariance)
    for row in seen:
        rank = int(row[0])
        away = row[1:] - state.mean[rank]
        state.mean[rank] += gain * away
        heat = data.heat[rank, PRIOR] + data.heat[rank, WORKING]
        spread += heat * (1.0 - gain) * np.outer(away, away)
    state.covariance[:] += gain * (spread / n_chains - state.covariance)
    state.looks[0] = n + 1
    if (n + 1) % 10 == 0 and (n + 1) * n_chains > 2 * len(spread):
        independent = (n + 1) * n_chains / ALIKE
        share, freed = len(spread) / (len(spread) + independent), _freed(data.joint, state)
        own = np.diag(np.diag(freed) * share + 1e-10)
        state.factor[:] = np.linalg.cholesky((1.0 - share) * freed + own)


def _freed(joint: Joint, state: ChainState) -> np.ndarray:
    """(d, d) the covariance with what τ of large simplexes adds. Its variance w² is set, to that of the log
    of a sum of gamma variables whose shares vary as these do: w² = 1 / Σ 1 / (v + w²), v of log shares."""
    found, at = state.covariance.copy(), 0
    for b, (size, support) in enumerate(zip(joint.size, joint.support)):
        if support == OF_MANY:
            own = slice(at, at + size)
            variance, squared = np.maximum(np.diag(found)[own], 1e-10), 0.0
            for _ in range(STEPS):
                squared = 1.0 / np.sum(1.0 / (variance + squared))
            state.wander[b] = np.sqrt(squared)
            found[own, own] += squared
        at += 0 if support == OF_OTHERS else size - (support == OF_SIMPLEX)
    return found
