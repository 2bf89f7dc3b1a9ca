"""Log densities that BEAST 2's packages BDSKY and SA have of given trees (their own unit tests, which say the
numbers), with one set of rates, with three, and of fossils that may be ancestors given the root.

Where no removal probability is said, theirs are of oriented trees: (T - 1) log 2 lower. They count times of
shifts from the origin, or numbers from the oldest stretch on.
"""

from __future__ import annotations

import numpy as np
import pytest

from phloem.density.tree_priors.tree_prior import REMOVAL, Genealogy, Scale, registered
from phloem.io.newick import parse_newick

UNSHIFTED = {"shift": {"reproductive_number": ()}}
THREE = "((a:4.5,b:4.5):1,c:5.5);"
SMALL = "((a:1.5,b:0.5):1,(c:2,d:1):3);"
VIRUSES = (
    "(((((t1:0.4595008531,t25:0.4595008531):0.3373053072,t23:0.3567584538):0.007310819036,t16:0.3489190732):"
    "0.331009529,((t18:0.03315384045,t14:0.03315384045):0.5063451374,(t10:0.4211543131,t15:0.4211543131):"
    "0.1183446648):0.5956275305):0.1158090878,((t19:0.9429393194,((t6:0.363527235,t11:0.4417423167):"
    "0.01881829549,((((t3:0.3071904376,(((t24:0.01065209364,t13:0.01065209364):0.06076485145,t8:0.07141694509):"
    "0.123620245,(t22:0.1616119808,t2:0.1616119808):0.03342520927):0.1121532475):0.24520579,t9:0.5523962276):"
    "0.3852615426,(((t20:0.2935970782,(t17:0.06569090089,t4:0.06569090089):0.2279061773):0.08350780408,"
    "(t21:0.05109047139,t5:0.05109047139):0.3260144109):0.2298344132,t7:0.6069392955):0.3307184747):"
    "0.01206284377,t26:0.9497206139):0.05755333197):0.03290891884):0.07263755325,t12:1.112820418):0.1381151782);"
)
FOSSILS = (
    "(f4:12.78,((((f2:5.06,(t5:11.81,t1:11.81):1.25):3.89,t3:16.95):4.88,((f3:1.92,t2:10.92):9.08,f5:0):1.83)"
    ":1.15,(t4:5,f1:0):17.98):4.80);"
)
RATES = ("birth_rate", "death_rate", "sampling_rate")
BY_THREE = [4.0, 2.0, 3.0, 0.5, 1.0, 2.5, 1.0, 0.5, 2.0]
OF_PERIODS = {"net_diversification": (14.0,), "sampling_proportion": (10.0, 18.0)}
CASES = {
    "bdsky": (SMALL, 10.0, [1.5, 1.5, 0.3], {"shift": {"reproductive_number": ()}}, 0.0, -26.105360134266082),
    "bdss": (
        VIRUSES, 2.0, BY_THREE, {"sampled": 0.01, "shift": dict.fromkeys(RATES, (0.5, 1.0))}, 1.0,
        -87.59718586549747,
    ),
    "fbd-root": (
        FOSSILS, None, [0.2, 0.3, 0.5, 0.4, 0.3, 0.2], {"sampled": 0.5, "shift": OF_PERIODS}, 0.0,
        -72.18435989275,
    ),
    "bdsky given samples": (
        SMALL, 6.0, [4 / 3, 1.5, 1 / 3], UNSHIFTED | {"condition": "sampling"}, 1.0, -18.574104165089775,
    ),
    "bdsky given samples, some of them of the end": (
        SMALL, 6.0, [4 / 3, 1.5, 1 / 3], UNSHIFTED | {"condition": "sampling", "sampled": 0.01}, 1.0,
        -22.54937791357737,
    ),
    "bdss given samples": (
        VIRUSES, 2.0, [2.0, 0.5, 0.5], {"condition": "sampling", "sampled": 1.0}, 1.0, -21.42666177086957,
    ),
    "bdsky given samples, some of whom infect on": (
        SMALL, 10.0, [1.5, 1.5, 0.3, 0.9], UNSHIFTED | {"condition": "sampling", REMOVAL: True}, 0.0,
        -25.991511346557598,
    ),
    "bdsky given survival": (
        THREE, 10.0, [1.5, 1.5, 0.0], UNSHIFTED | {"condition": "survival", "sampled": 0.01}, 1.0, -7.404227,
    ),
}  # fmt: skip
"""Tree, age of the origin, numbers from the youngest stretch on, options, whether theirs is of oriented
trees, and their log density; the last is R's TreePar's, to seven digits."""


def genealogy(text: str) -> Genealogy:
    tree = parse_newick(text)[0]
    depth = np.zeros(tree.n_nodes)
    for x in range(tree.n_nodes - 2, -1, -1):
        depth[x] = depth[tree.parent[x]] + tree.lengths[x]
    heights = depth.max() - depth
    heights[heights < 1e-8] = 0.0
    ancestors = np.flatnonzero(tree.lengths[: tree.n_tips] == 0.0)
    heights[ancestors] = heights[tree.parent[ancestors]]
    order = np.argsort(heights, kind="stable")
    return Genealogy(heights, order, tree.n_tips, np.zeros(0, np.int64), tree.parent)


@pytest.mark.parametrize("name", CASES)
def test_densities_are_those_of_beast(name):
    text, origin, numbers, options, oriented, expected = CASES[name]
    prior, g, digits = (
        registered()[name.split()[0]],
        genealogy(text),
        1e-9 if "survival" not in name else 5e-7,
    )
    settings = prior.parameters(Scale(1.0, g.n_tips, 1), options).settings
    x = np.array([*numbers, *([] if origin is None else [origin - g.heights[g.order[-1]]])])
    theirs = expected + oriented * (g.n_tips - 1) * np.log(2)
    assert prior.log_density(g, x, settings) == pytest.approx(theirs, abs=digits)
    slopes = np.zeros(len(g.heights)), np.zeros(len(x))
    assert prior.density(g, x, settings, *slopes) == pytest.approx(theirs, abs=digits)
    for place in range(len(x)):  # the control: any number a thousandth off
        moved = x.copy()
        moved[place] *= 1.001
        assert x[place] == 0.0 or prior.log_density(g, moved, settings) != pytest.approx(theirs, abs=1e-6)
