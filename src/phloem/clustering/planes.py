"""Sequences as bit planes, 64 sites a word, for counting by popcount."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from phloem.clustering.cpu import distance_planes
from phloem.data.alignment import Alignment

ROWS = 64  # sequences a thread packs at a time


def nucleotide_planes(alignment: Alignment, threads: int = 2) -> tuple[np.ndarray, np.ndarray, int]:
    """Planes of the sites that differ, of those that only lack characters, and how many do neither.

    (n, 3, W) uint64: pyrimidine (C, T), keto (G, T), observed; (n, 1, V): observed. Every ambiguous character
    is unobserved. In closely related genomes most sites are constant, and cost a quarter or nothing.
    """
    seen = np.zeros(alignment.n_sites, np.int32)
    distance_planes.states_seen(alignment.codes, 0, alignment.n_taxa, 4, seen)
    lacking = seen & 16 > 0
    differing = (seen & 15 & ((seen & 15) - 1)) > 0
    constant = np.flatnonzero(lacking & ~differing)
    table = np.zeros((3, len(alignment.state_sets)), bool)
    table[0, [1, 3]], table[1, [2, 3]], table[2, :4] = True, True, True
    return (
        bit_planes(alignment.codes, table, np.flatnonzero(differing), threads),
        bit_planes(alignment.codes, table[2:], constant, threads),
        int(np.sum(~differing & ~lacking)),
    )


def one_hot_planes(alignment: Alignment, threads: int = 2) -> np.ndarray:
    """(n, S, W) uint64: plane s marks the sites in state s."""
    states = alignment.alphabet.n_states
    table = np.eye(states, len(alignment.state_sets), dtype=bool)
    return bit_planes(alignment.codes, table, np.arange(alignment.n_sites), threads)


def state_planes(alignment: Alignment, threads: int = 2) -> np.ndarray:
    """(n, K+1, W) uint64: the K bits of the state's number, then observed."""
    states, codes = alignment.alphabet.n_states, len(alignment.state_sets)
    bits = max(1, int(np.ceil(np.log2(states))))
    table = np.zeros((bits + 1, codes), bool)
    table[:bits, :states] = (np.arange(states) >> np.arange(bits)[:, None]) & 1
    table[bits, :states] = True
    return bit_planes(alignment.codes, table, np.arange(alignment.n_sites), threads)


def bit_planes(codes: np.ndarray, table: np.ndarray, sites: np.ndarray, threads: int = 2) -> np.ndarray:
    """(n, K, W) uint64 with bit l % 64 of word l // 64 set in plane k where table[k, codes[:, sites[l]]]."""
    n = len(codes)
    planes = np.empty((n, len(table), -(-len(sites) // 64)), np.uint64)
    plane_bits = (table.astype(np.uint64) << np.arange(len(table), dtype=np.uint64)[:, None]).sum(axis=0)

    def pack(start: int) -> None:
        distance_planes.pack_rows(codes, sites, plane_bits, start, min(start + ROWS, n), planes)

    with ThreadPoolExecutor(threads) as workers:
        list(workers.map(pack, range(0, n, ROWS)))
    return planes
