"""The dataset of Auspice of a tree that `phloem date` has dated."""

from __future__ import annotations

from collections.abc import Sequence

from phloem.analysis.auspice import NodeAttributes
from phloem.data.dates import TipDates
from phloem.dating.least_squares import Dating
from phloem.io.auspice import Attributes, dated
from phloem.tree.tree import node_depths


def attributes_of_dating(found: Dating, dates: TipDates, off_the_clock: Sequence[str]) -> NodeAttributes:
    """Divergence, in substitutions per site since the root; dates with 95% intervals, and of tips whether
    they were estimated; supports that the tree came with, and which tips are off the clock.

    Ages, which have no calendar, are years before 0.
    """
    tree = found.tree
    all_of = NodeAttributes(tree)
    all_of.divergence(node_depths(found.substitutions))
    exact = dates.of(tree.taxa).exact
    values: dict[int, Attributes] = {}
    for x, year in enumerate(found.years.tolist()):
        limits = None if found.year_intervals is None else found.year_intervals[x].tolist()
        known = x < tree.n_tips and bool(exact[x])
        values[x] = dated(year, None if known else limits, None if x >= tree.n_tips else not known)
    all_of.put("num_date", values, "Date", "continuous")
    all_of.support_labels()
    if off_the_clock:
        off: dict[int, Attributes] = {
            x: {"value": "yes" if name in off_the_clock else "no"} for x, name in enumerate(tree.taxa)
        }
        all_of.put("off_the_clock", off, "Off the clock", "categorical")
    return all_of
