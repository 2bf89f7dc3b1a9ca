"""Genomes as sets of nucleotides, counted and compared with a reference, one genome at a time."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted


@uncounted
def read_sets(text, table, sets):
    """sets[k] = table[text[k]], the nucleotides that a character allows; the first character that allows none
    (0), or -1."""
    wrong = -1
    for k in range(len(text)):
        sets[k] = table[text[k]]
        if sets[k] == 0 and wrong < 0:
            wrong = k
    return wrong


@uncounted
def count(sets, single, every):
    """single (L, 4) += 1 where a genome has one nucleotide, every (16,) += how often it has each set."""
    for k in range(len(sets)):
        one = sets[k]
        every[one] += 1
        if one == 1:
            single[k, 0] += 1
        elif one == 2:
            single[k, 1] += 1
        elif one == 4:
            single[k, 2] += 1
        elif one == 8:
            single[k, 3] += 1


@uncounted
def differences(sets, reference, span, states):
    """Writes a genome's differences to the reference (L,) of sets; returns how many. span (L, 2), states
    (L,)."""
    n, k, sites = 0, 0, len(sets)
    while k < sites:
        one = sets[k]
        if one == reference[k]:
            k += 1
            continue
        begin = k
        k += 1
        if one == 15:
            while k < sites and sets[k] == 15:
                k += 1
        span[n, 0], span[n, 1], states[n] = begin, k, one
        n += 1
    return n
