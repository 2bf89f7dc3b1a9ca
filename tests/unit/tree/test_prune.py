"""Tips taken out of a tree: the others stay as far from each other as they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.io.newick_text import write_newick
from phloem.tree.prune import without_tips
from phloem.tree.random import uniform_rooted, uniform_unrooted


def _distances(tree):
    """{(a, b): path length}, by walking up from each tip."""
    lines = {}
    for x, name in enumerate(tree.taxa):
        line, node, walked = {x: 0.0}, x, 0.0
        while tree.parent[node] >= 0:
            walked += float(tree.lengths[node])
            node = int(tree.parent[node])
            line[node] = walked
        lines[name] = line
    return {
        (a, b): min(one[k] + other[k] for k in one.keys() & other.keys())
        for a, one in lines.items()
        for b, other in lines.items()
    }


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [uniform_rooted, uniform_unrooted])
def test_the_others_keep_their_distances(make, seed):
    rng = np.random.default_rng(seed)
    tree = make(12, rng)
    tree = replace(tree, lengths=np.append(rng.exponential(size=tree.n_nodes - 1), 0.0))
    out = [str(name) for name in rng.choice(tree.taxa, int(rng.integers(1, 9)), replace=False)]
    fewer = without_tips(tree, out)
    assert fewer.taxa == tuple(name for name in tree.taxa if name not in out)
    assert fewer.rooted == tree.rooted
    before, after = _distances(tree), _distances(fewer)
    assert after == pytest.approx({pair: before[pair] for pair in after})
    children = np.diff(fewer.child_offsets)[fewer.n_tips :]
    assert children.min() >= 2 and (fewer.rooted or children[-1] >= 3 or fewer.n_tips < 3)


def test_the_root_is_the_common_ancestor_of_what_is_left():
    (tree,) = parse_newick("(((a:1,b:2)90:3,c:4)80:5,(d:6,e:7)60:10);")
    assert write_newick(without_tips(tree, ["D", "e"])).strip() == "(c:4.0,(a:1.0,b:2.0)90:3.0)80;"
    assert without_tips(tree, ["d"]).lengths.max() == 17.0
    assert without_tips(tree, []) is tree


def test_names_that_no_tip_has_and_too_many_are_refused():
    tree = uniform_rooted(4, np.random.default_rng(1))
    with pytest.raises(InputError, match="no tip 'nobody'") as error:
        without_tips(tree, ["nobody"], "x.nwk")
    assert error.value.file == "x.nwk"
    with pytest.raises(InputError, match="fewer than two"):
        without_tips(tree, tree.taxa[1:])
