"""Streams of random words for every chain of every run, from one seed."""

from __future__ import annotations

import numpy as np

SWAPS = 1_000_000  # chain number of a run's swap stream
START = 1_000_001  # of its starting trees


def stream(seed: int, run: int, chain: int) -> np.ndarray:
    """(4,) uint64 state of xoshiro256++ for one chain: numpy's SeedSequence mixes (seed, run, chain) so
    that no two streams are alike (O'Neill's seed_seq, as numpy documents it)."""
    words = np.random.SeedSequence(entropy=seed, spawn_key=(run, chain)).generate_state(4, np.uint64)
    words[0] |= np.uint64(1)  # never all zero
    return words
