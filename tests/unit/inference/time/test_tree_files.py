"""What files of dated trees say of branches."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from phloem.inference.mcmc.samples import Samples
from phloem.inference.time import sampler


def test_an_ancestor_has_no_rate():
    """0, which was written, lowers the mean rate of that tip wherever the trees are summarised."""
    parent, lengths = np.array([[3, 3, 4, 4, -1]]), np.array([[1.0, 0.0, 2.0, 1.0, 0.0]])
    sets = np.stack([np.zeros(5), np.array([0.5, 0.0, 0.25, 2.0, 0.0])])[None]
    draws = Samples(np.array([100]), np.zeros((1, 3)), parent, lengths, sets)
    line = sampler._tree_line(draws, 0, SimpleNamespace(trait=None, rate_traits=("rate",)))
    wanted = "(3[&rate=2.500000e-01]:2,(1[&rate=5.000000e-01]:1,2:0)[&rate=2.000000e+00]:1);\n"
    assert line == f"tree STATE_100 [&lnP=0.000000] = [&R] {wanted}"
