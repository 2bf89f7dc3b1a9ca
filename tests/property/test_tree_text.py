"""Whatever the text, reading trees works or says what is wrong; what was written reads back the same."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phloem.errors import PhloemError
from phloem.io.annotations import format_annotation, parse_annotation
from phloem.io.newick import parse_newick
from phloem.io.trees import newick_text, nexus_text, parse_trees, read_trees
from phloem.tree.build import tree_from_parents
from phloem.tree.match import folded
from phloem.tree.rearrange import topology_key
from phloem.tree.tree import Tree

NEWICK_PIECES = st.sampled_from(
    [
        "(",
        ")",
        ",",
        ":",
        ";",
        "'",
        '"',
        "[",
        "]",
        "[&",
        "[&R]",
        "A",
        "B",
        "é",
        " ",
        "\n",
        "0.1",
        "1e-3",
        "-2",
        "nan",
    ]
    + ["=", "{", "}", "&&NHX:a=b", "_", "''", "1_0", "9" * 400, "\t"]
)
NEXUS_PIECES = st.sampled_from(
    [
        "begin trees;",
        "end;",
        "translate",
        "tree",
        "utree",
        " a = ",
        "[&U]",
        "1 A,",
        "2 B",
        ";",
        "(1,2)",
        "(A,B):1",
        "*",
    ]
    + ["begin taxa;", "taxlabels A B", "'", "[", "]", " ", "\n", "dimensions ntax=2;", "=", "begin", "#NEXUS"]
)


def reads_or_explains(read, text):
    try:
        trees = read(text)
    except PhloemError as error:
        assert str(error)
        return
    for tree in trees:
        check_record(tree)
        dict(tree.annotations)
        for node in tree.annotations:
            assert isinstance(tree.annotations[node], dict)


def check_record(tree: Tree):
    n = tree.n_nodes
    assert tree.parent.shape == tree.lengths.shape == (n,)
    assert tree.parent[-1] == -1
    assert np.all(tree.parent[:-1] > np.arange(n - 1))
    degree = np.bincount(tree.parent[:-1], minlength=n)
    assert np.all(degree[: tree.n_tips] == 0) and np.all(degree[tree.n_tips :] >= 2)
    assert len(set(tree.taxa)) == tree.n_tips


@settings(max_examples=400, deadline=None)
@given(st.lists(NEWICK_PIECES, max_size=30).map("".join))
@example("(A:[&x]1[c],B)[&y={1,{2}}];")
@example("(A,B)'x'y;")
@example("[&R];")
def test_newick_fuzz(text):
    reads_or_explains(parse_newick, text)


@settings(max_examples=300, deadline=None)
@given(st.lists(NEXUS_PIECES, max_size=25).map("".join))
@example("begin trees; tree a = [&U] (1,2); end;")
@example("begin trees; tree a = (1,2); tree b = ; end;")
@example("begin trees; tree a = (1,2);(3,4); end;")
@example("begin trees; tree = ;")
@example("begin trees; translate 1 A, 1 B; tree a = (1,2); end;")
@example("begin trees; translate 1 A, 2 A; tree a = (1,2); end;")
def test_nexus_fuzz(text):
    reads_or_explains(parse_trees, "#NEXUS\n" + text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text):
    reads_or_explains(parse_trees, text)


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=80))
def test_any_bytes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "tree"
    path.write_bytes(data)
    reads_or_explains(read_trees, path)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_annotation_fuzz(text):
    assert isinstance(parse_annotation("&" + text), dict)


names = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufeff"), min_size=1, max_size=8
).filter(lambda name: name == name.strip() and name)


@st.composite
def trees(draw):
    taxa = draw(st.lists(names, min_size=2, max_size=9, unique_by=folded))  # as NEXUS has it
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    parent = [-1] * len(taxa)
    active = list(range(len(taxa)))
    while len(active) > 1:
        k = int(rng.integers(2, min(4, len(active)) + 1))
        chosen = rng.choice(len(active), k, replace=False)
        for i in chosen:
            parent[active[i]] = len(parent)
        active = [x for i, x in enumerate(active) if i not in chosen] + [len(parent)]
        parent.append(-1)
    lengths = np.where(rng.random(len(parent)) < 0.2, np.nan, 10.0 ** rng.uniform(-12, 5, len(parent)))
    lengths[-1] = 0.0
    notes = {
        x: {"rate": float(rng.random()), "set": (1, 2.5), "text": "a b"} for x in range(0, len(parent), 2)
    }
    labels = [*taxa, *(None if rng.random() < 0.5 else f"l {x}" for x in range(len(taxa), len(parent)))]
    return tree_from_parents(labels, parent, lengths, annotations=notes, rooted=bool(rng.random() < 0.5))


def same(a: Tree, b: Tree):
    order = [b.taxa.index(name) for name in a.taxa]
    assert sorted(order) == list(range(a.n_tips))
    if a.taxa == b.taxa:
        assert topology_key(a) == topology_key(b)
    np.testing.assert_array_equal(a.lengths[: a.n_tips], b.lengths[order])
    np.testing.assert_array_equal(np.sort(a.lengths), np.sort(b.lengths))
    assert a.rooted == b.rooted
    for x in range(a.n_tips):
        assert a.annotations.get(x, {}) == b.annotations.get(order[x], {})
    assert sorted(filter(None, a.labels or ())) == sorted(filter(None, b.labels or ()))


@settings(max_examples=150, deadline=None)
@given(trees(), st.integers(1, 3))
@pytest.mark.parametrize("write", [newick_text, nexus_text])
def test_round_trip(write, tree, copies):
    back = parse_trees(write([tree] * copies))
    assert len(back) == copies
    for read in back:
        same(tree, read)


@given(
    st.dictionaries(st.from_regex(r"[a-z_%]{1,6}", fullmatch=True), st.integers(-9, 9) | st.floats(-1e5, 1e5))
)
def test_annotation_round_trip(values):
    text = format_annotation(values)
    assert parse_annotation(text[1:-1]) == {key: pytest.approx(value) for key, value in values.items()}
