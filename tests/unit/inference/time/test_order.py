"""Nodes by height: in what order compiled code goes through them."""

from __future__ import annotations

import numpy as np

from phloem.inference.time.compiled.density import sort_by_height


def test_a_tip_comes_before_the_node_whose_age_it_has():
    """It is an ancestor there, and the node, younger before, stood below it."""
    heights = np.array([0.0, 1.5, 0.7, 0.7, 1.5, 1.5, 1.8])  # tips 0 to 3; 4 and 5 are as old as tip 1
    for before in ([0, 2, 3, 4, 5, 1, 6], [2, 3, 0, 5, 1, 4, 6], [0, 1, 2, 3, 4, 5, 6]):
        order = np.array(before)
        sort_by_height(heights, order)
        assert order[0] == 0 and set(order[1:3]) == {2, 3} and order[3] == 1 and order[6] == 6
        assert (np.diff(heights[order]) >= 0.0).all()
