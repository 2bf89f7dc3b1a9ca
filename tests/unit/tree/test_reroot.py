"""Rooting changes where the root is and nothing else."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.io.newick_text import write_newick
from phloem.tree.random import uniform_rooted, uniform_unrooted
from phloem.tree.rearrange import topology_key
from phloem.tree.reroot import is_support, root_at_branch, root_at_midpoint, root_at_outgroup, unroot
from phloem.tree.tree import node_depths


def tip_distances(tree):
    """(T, T) path lengths between tips, by walking up from each."""
    lines = []
    for x in range(tree.n_tips):
        line, node, walked = {x: 0.0}, x, 0.0
        while tree.parent[node] >= 0:
            walked += tree.lengths[node]
            node = int(tree.parent[node])
            line[node] = walked
        lines.append(line)
    return np.array([[min(a[k] + b[k] for k in a.keys() & b.keys()) for b in lines] for a in lines])


@pytest.mark.parametrize("seed", range(5))
def test_every_branch_as_root_keeps_all_distances(seed):
    tree = uniform_unrooted(9, np.random.default_rng(seed))
    distances = tip_distances(tree)
    for node in range(tree.n_nodes - 1):
        rooted = root_at_branch(tree, node, 0.3)
        assert rooted.rooted and rooted.is_binary and rooted.n_nodes == 17
        np.testing.assert_allclose(tip_distances(rooted), distances)
        back = unroot(rooted)
        assert not back.rooted and back.n_nodes == 16
        assert topology_key(back) == topology_key(tree)
        np.testing.assert_allclose(tip_distances(back), distances)


def test_midpoint_halves_the_longest_path():
    for seed in range(10):
        tree = uniform_rooted(15, np.random.default_rng(seed))
        rooted = root_at_midpoint(tree)
        longest = tip_distances(tree).max()
        depth = np.sort(node_depths(rooted)[:15])
        assert depth[-1] == pytest.approx(longest / 2)
        sides = [node_depths(rooted)[x] for x in range(15)]
        assert sum(np.isclose(sides, longest / 2)) >= 2
        np.testing.assert_allclose(tip_distances(rooted), tip_distances(tree))


def test_outgroup_and_its_fraction():
    (tree,) = parse_newick("((A:1,B:1)90:1,(C:1,D:1)80:3,(E:1,F:1)70:1);")
    rooted = root_at_outgroup(tree, ["C", "D"], fraction=0.25)
    ends = rooted.children(rooted.n_nodes - 1).tolist()
    assert sorted(rooted.lengths[ends]) == [0.75, 2.25]
    same = root_at_outgroup(tree, ["A", "B", "E", "F"], fraction=0.75)
    assert topology_key(same) == topology_key(rooted)
    np.testing.assert_allclose(np.sort(same.lengths), np.sort(rooted.lengths))


def test_support_travels_with_its_branch_and_names_stay():
    (tree,) = parse_newick("((A:1,B:1)90:1,(C:1,D:1)80:3,(E:1,F:1)70:1);")
    assert write_newick(root_at_outgroup(tree, "A", 0.5)) in (
        "(A:0.5,(B:1.0,((C:1.0,D:1.0)80:3.0,(E:1.0,F:1.0)70:1.0)90:1.0):0.5);",
        "((B:1.0,((C:1.0,D:1.0)80:3.0,(E:1.0,F:1.0)70:1.0)90:1.0):0.5,A:0.5);",
    )
    (named,) = parse_newick("((A:1,B:1)cats:1,C:1,D:1)base;")
    assert "cats" in root_at_outgroup(named, "A").labels and "base" in root_at_outgroup(named, "A").labels


@pytest.mark.parametrize("label", ["-/33.3", "/0.98", "95/-", "95/100"])
def test_several_supports_travel_though_some_are_missing(label):
    (tree,) = parse_newick(f"((A:1,B:1){label}:1,(C:1,D:1)80:3,E:1);")
    (split,) = (x for x, text in enumerate(tree.labels) if text == label)
    rooted = root_at_outgroup(tree, "A", 0.5)
    (moved,) = (x for x, text in enumerate(rooted.labels) if text == label)
    taxa = {name for x, name in enumerate(rooted.taxa) if moved in path_of(rooted, x)}
    assert taxa == {"C", "D", "E"} and tree.lengths[split] == 1
    assert is_support(label) and not is_support("cats") and not is_support("cats/90") and not is_support("")


def path_of(tree, x):
    found = [x]
    while tree.parent[found[-1]] >= 0:
        found.append(int(tree.parent[found[-1]]))
    return found


def test_what_is_no_outgroup():
    (tree,) = parse_newick("((Homo_sapiens:1,B:1):1,(C:1,D:1):3,E:1);")
    with pytest.raises(InputError, match="not a group"):
        root_at_outgroup(tree, ["B", "C"])
    with pytest.raises(InputError, match="empty"):
        root_at_outgroup(tree, [])
    with pytest.raises(InputError) as caught:
        root_at_outgroup(tree, ["Homo sapiens"])
    assert "Homo_sapiens" in caught.value.hint
    with pytest.raises(InputError):
        root_at_branch(tree, tree.n_nodes - 1)
