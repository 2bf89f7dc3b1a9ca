"""Distinct columns below a node (site repeats: Kobert, Flouri, Stamatakis 2017) while topologies change.

Numbered in order of first appearance, the classes of a node depend on the set of tips below it and on nothing
else. A move that keeps the set therefore keeps the classes, and only nodes whose set changed are numbered
anew: one for an NNI.
"""

from __future__ import annotations

from phloem.inference.mcmc.compiled.compile import compiled


@compiled
def number_classes(left, right, n_codes, repeats, class_of, representative, key, value):
    """Number the pairs (left[p], right[p]) into class_of (P,); representative[k] is the first pattern of
    class k.

    A class is a tip's code or a number below P, so a pair has a key of its own over the larger of n_codes and
    P, in 64 bits. key (int64), value: scratch of an open-addressing table, a power of two of at least 2 P
    entries. Returns how many.
    """
    n_patterns = left.shape[0]
    if not repeats:
        for p in range(n_patterns):
            class_of[p] = p
            representative[p] = p
        return n_patterns
    mask, base = key.shape[0] - 1, max(n_codes, n_patterns)
    key[:] = -1
    count = 0
    for p in range(n_patterns):
        pair = left[p] * base + right[p]
        at = ((pair * 0x9E3779B1) >> 15) & mask
        while key[at] != pair and key[at] != -1:
            at = (at + 1) & mask
        if key[at] == -1:
            key[at] = pair
            value[at] = count
            representative[count] = p
            count += 1
        class_of[p] = value[at]
    return count
