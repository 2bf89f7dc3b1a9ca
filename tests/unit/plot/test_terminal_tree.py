"""Trees as text: nothing lost, nothing wider than asked."""

from dataclasses import replace

import numpy as np
import pytest

from phloem.io.newick import parse_newick
from phloem.plot.terminal_tree import draw_tree, len_shown
from phloem.tree.random import balanced, caterpillar, uniform_unrooted, yule
from phloem.tree.tree import Tree


def test_small_tree_to_the_letter():
    (tree,) = parse_newick("((a:1,b:1)[&prob=0.97]:1,c:2);")
    assert draw_tree(tree, width=30).splitlines() == [
        "┌────────────────────────── c",
        "│",
        "│            ┌───────────── a",
        "└─────────.97┤",
        "             └───────────── b",
        "",
        "├─────┤ 0.5",
    ]


def test_plain_ascii_on_request():
    drawn = draw_tree(parse_newick("((a:1,b:1)[&prob=1]:1,c:2);")[0], width=30, ascii_only=True)
    assert drawn.isascii()
    assert "1+" in drawn


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("n", [3, 12, 41, 300])
def test_every_tip_once_and_within_the_width(n, width):
    rng = np.random.default_rng(n)
    for tree in (uniform_unrooted(n, rng), yule(n, rng), caterpillar(n), balanced(n)):
        lines = draw_tree(tree, width).splitlines()
        assert max(map(len_shown, lines)) <= width
        names = [line.split()[-1] for line in lines[:-2] if not line.rstrip().endswith(("│", "┤", "├"))]
        assert sorted(name for name in names if name.startswith("t")) == sorted(tree.taxa)
        assert len(lines) <= (2 * n + 1 if n <= 40 else n + 2)


def test_long_and_wide_names_are_shortened():
    tree = parse_newick(f"(({'x' * 200}:1,學名學名:1):1,c:1);")[0]
    lines = draw_tree(tree, 60).splitlines()
    assert max(map(len_shown, lines)) <= 60
    assert any("…" in line for line in lines)


def test_support_comes_from_annotations_or_labels():
    tree = parse_newick("((a:1,b:1)[&prob=0.5,posterior=0.25]:1,(c:1,d:1)88:1);")[0]
    assert ".50" in draw_tree(tree) and "88" in draw_tree(tree)
    assert ".25" in draw_tree(tree, support="posterior")
    bare = draw_tree(tree, support=None)
    assert ".50" not in bare and "88" not in bare


def test_without_lengths_there_is_no_scale():
    drawn = draw_tree(parse_newick("((a,b),(c,(d,e)));")[0])
    assert "├──" not in drawn.splitlines()[-1]
    assert drawn.count("┤") >= 2


def test_zero_lengths():
    tree = parse_newick("((a:0,b:0):0,c:0);")[0]
    assert all(name in draw_tree(tree) for name in "abc")


@pytest.mark.parametrize("n", [5, 12, 30, 100, 200])
def test_every_support_value_is_shown_or_counted(n):
    tree = uniform_unrooted(n, np.random.default_rng(n))
    tree = replace(tree, annotations={x: {"prob": 0.5} for x in range(n, tree.n_nodes - 1)})
    drawn = draw_tree(tree)
    left_out = int(drawn.splitlines()[-1].split()[0][1:]) if "not shown" in drawn else 0
    assert drawn.count(".50") + left_out == n - 3
    assert left_out == 0 or n > 12


def test_longer_branches_are_drawn_longer():
    tree = uniform_unrooted(10, np.random.default_rng(2))
    lengths = tree.lengths.copy()
    lengths[4] *= 30
    drawn = draw_tree(Tree(tree.taxa, tree.parent, lengths, rooted=False)).splitlines()
    ends = {
        line.split()[-1]: line.rfind("─") for line in drawn if line.split() and line.split()[-1] in tree.taxa
    }
    assert max(ends, key=ends.__getitem__) == "t5"
