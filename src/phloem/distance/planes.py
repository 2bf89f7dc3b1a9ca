"""Sequences as bit planes, 64 sites a word, for counting by popcount."""

from __future__ import annotations

import numpy as np

from phloem.data.alignment import Alignment


def nucleotide_planes(alignment: Alignment) -> np.ndarray:
    """(W, 3, n) uint64: pyrimidine (C, T), keto (G, T), observed; every ambiguous character is unobserved."""
    table = np.zeros((3, len(alignment.state_sets)), bool)
    table[0, [1, 3]], table[1, [2, 3]], table[2, :4] = True, True, True
    return bit_planes(alignment.codes, table)


def one_hot_planes(alignment: Alignment) -> np.ndarray:
    """(W, S, n) uint64: plane s marks the sites in state s."""
    states = alignment.alphabet.n_states
    return bit_planes(alignment.codes, np.eye(states, len(alignment.state_sets), dtype=bool))


def state_planes(alignment: Alignment) -> np.ndarray:
    """(W, K+1, n) uint64: the K bits of the state's number, then observed."""
    states, codes = alignment.alphabet.n_states, len(alignment.state_sets)
    bits = max(1, int(np.ceil(np.log2(states))))
    table = np.zeros((bits + 1, codes), bool)
    table[:bits, :states] = (np.arange(states) >> np.arange(bits)[:, None]) & 1
    table[bits, :states] = True
    return bit_planes(alignment.codes, table)


def bit_planes(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(W, K, n) uint64 with bit l % 64 of word l // 64 set in plane k where table[k, codes[:, l]]."""
    n, sites = codes.shape
    words = -(-sites // 64)
    planes = np.empty((words, len(table), n), np.uint64)
    for start in range(0, n, 256):
        part = codes[start : start + 256]
        for k, bit_of_code in enumerate(table):
            packed = np.zeros((len(part), 8 * words), np.uint8)
            packed[:, : -(-sites // 8)] = np.packbits(bit_of_code[part], axis=1, bitorder="little")
            planes[:, k, start : start + 256] = packed.view("<u8").T
    return planes
