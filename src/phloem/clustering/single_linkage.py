"""Single linkage: clusters that any chain of short distances connects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from phloem.clustering.cpu import forms, linkage_single
from phloem.clustering.merges import Merges
from phloem.clustering.packing import equal_areas, not_finite, refuse_negative


def single_linkage(entries: np.ndarray, n: int, workers: ThreadPoolExecutor, threads: int) -> Merges:
    """Merge the closest clusters, of equals those of the smallest names, until one is left.

    entries: those of data.distance_triangle for n > 1 leaves; they are not changed. Raises as linkage does.
    """
    integer = np.dtype(f"i{entries.itemsize}")
    infinity = np.array(np.inf, entries.dtype).view(integer)[()]
    bits, edges = entries.view(integer), equal_areas(0, n, threads)
    pointers, levels = np.tile(np.arange(n), (threads, 1)), np.full((threads, n), infinity)

    def link(t: int) -> tuple[int, int]:
        return linkage_single.link_rows(bits, edges[t], edges[t + 1], pointers[t], levels[t])

    smallest, largest = zip(*workers.map(link, range(threads)))
    if max(largest) >= infinity:
        raise not_finite()
    if min(smallest) < 0:
        refuse_negative(entries)
        return single_linkage(entries + 0.0, n, workers, threads)  # negative zeros become zeros
    t, leaf = np.nonzero(levels < infinity)
    order = np.argsort(levels[t, leaf], kind="stable")
    t, leaf = t[order], leaf[order]
    links = np.column_stack([leaf, pointers[t, leaf]])
    lower, upper, distance = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    linkage_single.merges_of_links(
        entries, forms.TRIANGLE, links, levels[t, leaf].view(entries.dtype), lower, upper, distance
    )
    return Merges(lower, upper, distance)
