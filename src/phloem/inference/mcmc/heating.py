"""How hot the chains of a run are: told, or learnt while moves adapt, and frozen with their tuning.

Where nobody says, chains melt and set again, five times in the first half of the tuning, so that they come to
other modes than that into which they first fell, and moves that know splits learn of these. Then they are as
MrBayes' are, unless neighbours would swap too seldom: the more numbers a posterior has, the closer two
temperatures must be. Their gaps, differences of log inverse temperatures, follow from a stochastic
approximation (Robbins and Monro 1951; after Miasojedow, Moulines and Vihola 2013, J. Comput. Graph. Stat.
22:649).
"""

from __future__ import annotations

import numpy as np

from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.settings import ChainSettings

EVERY = 25  # generations between two looks at the chains
LOOKS = 100  # what looks are that all who look have in common, in generations
USUAL, MELTING = 0.1, 2.0  # heating
CYCLES, MELTED, SET = 5, 0.4, 0.7  # of exploring, and shares of each when chains are hot no more, and settled
LEAST_SWAPS = 0.4  # of those between neighbours, accepted


def ladder(heating: float, n_chains: int) -> np.ndarray:
    """(H,) inverse temperatures of ranks, 1 / (1 + heating · rank)."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + heating * np.arange(n_chains))


def first_powers(settings: ChainSettings) -> np.ndarray:
    """(H,) inverse temperatures that chains begin with."""
    if settings.learns_heating:
        return ladder(MELTING, settings.n_chains)
    return ladder(USUAL if settings.heating is None else settings.heating, settings.n_chains)


def exploring(settings: ChainSettings) -> int:
    """Generations in which chains melt and set, to see what there is; 0 where temperatures are told."""
    return settings.tuning // 2 // LOOKS * LOOKS if settings.learns_heating else 0


def in_cycle(settings: ChainSettings, at: int) -> float:
    """The share of a cycle that is over at a generation; 1 after all of them."""
    explored = exploring(settings)
    return at * CYCLES % explored / explored if at < explored else 1.0


def frozen_from(settings: ChainSettings) -> int:
    """The generation at which temperatures, and what is learnt at them, are settled."""
    return settings.tuning * 3 // 4 if settings.learns_heating else settings.tuning // 2


def looked_at(state: ChainState) -> np.ndarray:
    """(H, 2) of every chain in the state its rank, and the log of its density but for constants."""
    return np.column_stack([state.rank, state.log_likelihood + state.log_prior])


def learn_powers(state: ChainState, settings: ChainSettings, rows: np.ndarray) -> None:
    """One look at every chain of a run, at the generation that it has come to: state.powers changes in place
    until three quarters of the tuning are over. rows: of all chains, as looked_at gives them."""
    at, usual, explored = int(state.generation[0]), ladder(USUAL, settings.n_chains), exploring(settings)
    if at <= explored:
        state.powers[:] = ladder(MELTING, len(usual)) if in_cycle(settings, at) < MELTED else usual
    elif explored < at <= frozen_from(settings):
        looks = (at - explored) // EVERY
        log_density = rows[np.argsort(rows[:, 0]), 1]
        state.powers[:] = moved(state.powers, usual, log_density, 4.0 / (looks + 20.0))


def moved(powers: np.ndarray, usual: np.ndarray, log_density: np.ndarray, gain: float) -> np.ndarray:
    """(H,) inverse temperatures with wider gaps where neighbours would swap oftener than wanted, and narrower
    ones where they would not; none wider than that of the usual ones. log_density: (H,) of the chains by
    rank."""
    swaps = np.exp(np.minimum(0.0, (powers[:-1] - powers[1:]) * np.diff(log_density)))
    gaps = np.log(powers[:-1] / powers[1:]) * np.exp(gain * (swaps - LEAST_SWAPS))
    gaps = np.minimum(gaps, np.log(usual[:-1] / usual[1:]))
    return np.exp(-np.concatenate([[0.0], np.cumsum(gaps)]))
