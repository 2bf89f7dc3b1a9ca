"""What chains learn of their own distribution while moves adapt: how numbers vary together."""

from __future__ import annotations

import numpy as np

from phloem.inference.mcmc.records import (
    OF_OTHERS,
    OF_POSITIVE,
    OF_REAL,
    OF_SIMPLEX,
    ChainData,
    ChainState,
)
from phloem.inference.mcmc.records import PRIOR as HEAT

EVERY = 25  # generations between two looks at the chains
LONGEST = 300  # looks after which older ones are forgotten
OWN = 0.1  # share of every coordinate's own variance beside the covariance


def coordinates(data: ChainData, values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(d,) unbounded coordinates of a chain's numbers (n,), blocks in their order, and the log of the sum of
    all lengths (G, N): what moves/joint_normal.py steps in."""
    joint, found = data.joint, []
    for first, size, support, (low, high) in zip(joint.first, joint.size, joint.support, joint.bounds):
        x = values[first : first + size]
        if support == OF_OTHERS:
            continue
        if support == OF_SIMPLEX:
            found.append(np.log(x[:-1] / x[-1]))
        elif support == OF_POSITIVE:
            found.append(np.log(x))
        elif support == OF_REAL:
            found.append(x)
        else:
            found.append(np.log((x - low) / (high - x)))
    return np.concatenate([*found, [np.log(lengths.sum())]])


def looked_at(data: ChainData, state: ChainState) -> np.ndarray:
    """(H, 1 + d): of every chain in the state its rank of heat and its coordinates."""
    slots = enumerate(state.slot)
    found = [coordinates(data, state.values[h, slot], state.lengths[h, slot]) for h, slot in slots]
    return np.column_stack([state.rank, found])


def learn(data: ChainData, state: ChainState, seen: np.ndarray) -> None:
    """One look at every chain of a run: means by rank, one covariance, and from it the factor that
    joint_normal uses. Deviations of a chain at inverse temperature β count β^½ times, as those of a normal
    distribution heated so are larger. seen: of all chains, as looked_at gives it, those of other processes
    too. state.looks, mean, covariance and factor change in place."""
    n, n_chains = int(state.looks[0]), len(seen)
    gain, spread = max(1.0 / (n + 1), 1.0 / LONGEST), np.zeros_like(state.covariance)
    for row in seen:
        rank = int(row[0])
        away = row[1:] - state.mean[rank]
        state.mean[rank] += gain * away
        spread += data.heat[rank, HEAT] * (1.0 - gain) * np.outer(away, away)
    state.covariance[:] += gain * (spread / n_chains - state.covariance)
    state.looks[0] = n + 1
    if (n + 1) % 10 == 0 and (n + 1) * n_chains > 2 * len(spread):
        own = np.diag(np.diag(state.covariance) * OWN + 1e-10)
        state.factor[:] = np.linalg.cholesky((1.0 - OWN) * state.covariance + own)
