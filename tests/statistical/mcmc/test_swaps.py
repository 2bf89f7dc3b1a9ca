"""Swaps of temperatures leave the cold chain its distribution; planted errors do not.

The sampler's own functions drive a chain in Python towards a known distribution and reach it; the same chain
with a planted error in the proposal does not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.compiled.run import draw_swaps, swap_chains
from phloem.inference.mcmc.start import stream
from statistical.mcmc.prior_sampling import ks_p_value

ACCEPT, REJECT = 1e-4, 1e-6  # smallest p-value of a right one, largest of a planted error


def tempered(swapping, n: int = 40_000, seed: int = 1) -> np.ndarray:
    """(n,) draws of the cold one of four chains, whose target is N(0, 1): a quarter of its logarithm is
    called likelihood, the rest prior. Between swaps every chain takes a step that leaves N(0, 1)**heat as it
    is."""
    rng, words = np.random.default_rng(seed), stream(seed, 0, 0)
    heat, rank, x = 1 / (1 + 1.0 * np.arange(4)), np.arange(4), rng.normal(size=4)
    tried, accepted, drawn = np.zeros((4, 4), np.int64), np.zeros((4, 4), np.int64), np.empty(n)
    kept = 0.7  # of the last value
    steps = rng.normal(size=(n, 4)) * math.sqrt(1 - kept**2)
    for i in range(n):
        x = kept * x + steps[i] / np.sqrt(heat[rank])
        quarter = -(x**2) / 8
        swapping(heat, quarter, 3 * quarter, rank, words, tried, accepted)
        drawn[i] = x[rank == 0][0]
    assert accepted.sum() > 0.2 * n and sorted(rank) == [0, 1, 2, 3]
    return drawn


def swap(heat, likelihood, prior, rank, words, tried, accepted):
    """A generation's swap as the sampler draws it and decides it."""
    chains, log_uniform = np.zeros((1, 2), np.int64), np.zeros(1)
    draw_swaps(words, 4, chains, log_uniform)
    swap_chains(
        np.stack([heat, heat], axis=1), (prior, likelihood), rank, tried, accepted, *chains[0], log_uniform[0]
    )


def exchange(rank, accepted, i: int, j: int) -> None:
    accepted[min(rank[i], rank[j]), max(rank[i], rank[j])] += 1
    rank[i], rank[j] = rank[j], rank[i]


def pair(words) -> tuple[int, int]:
    i = below(words, 4)
    return i, (i + 1 + below(words, 3)) % 4


def without_ratio(heat, likelihood, prior, rank, words, tried, accepted):
    exchange(rank, accepted, *pair(words))


def with_the_wrong_sign(heat, likelihood, prior, rank, words, tried, accepted):
    swap(-heat, likelihood, prior, rank, words, tried, accepted)


def without_the_prior(heat, likelihood, prior, rank, words, tried, accepted):
    swap(heat, likelihood, 0.0 * prior, rank, words, tried, accepted)


def only_towards_the_better(heat, likelihood, prior, rank, words, tried, accepted):
    """The pair is looked at only where the hotter chain is at the better place: a choice the way back does
    not have."""
    i, j = pair(words)
    cold, hot = (i, j) if rank[i] < rank[j] else (j, i)
    if likelihood[hot] + prior[hot] > likelihood[cold] + prior[cold]:
        exchange(rank, accepted, i, j)


def test_swaps_leave_the_cold_chain_its_distribution():
    assert ks_p_value(tempered(swap), stats.norm()) > ACCEPT


@pytest.mark.parametrize(
    "wrong", [without_ratio, with_the_wrong_sign, without_the_prior, only_towards_the_better]
)
def test_a_wrong_swap_is_noticed(wrong):
    assert ks_p_value(tempered(wrong), stats.norm()) < REJECT
