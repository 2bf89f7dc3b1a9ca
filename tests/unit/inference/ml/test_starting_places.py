"""Identical sequences out and back, further starts, and how hard data are called."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering.parsimony import Parsimony
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.inference.ml.identical import distinct, listed
from phloem.inference.ml.tree_starts import difficulty, further_start
from phloem.io.trees import parse_trees
from phloem.tree.half_edges import half_edges
from phloem.tree.splits import robinson_foulds

ROWS = {"a": "ACGT", "b": "ACGA", "c": "ACGT", "d": "TCGT", "e": "ACG-", "f": "ACGT", "g": "ACGR"}
SIX = tuple("abcdef")


@pytest.fixture(scope="module")
def rows():
    return distinct(alignment_from_sequences(ROWS, alphabet("dna")))


def tree(text):
    return parse_trees(text)[0]


def test_equal_means_gaps_and_ambiguity_too(rows):
    data = rows.alignment
    assert rows.groups() == {"a": ["c", "f"]} and rows.n_copies == 2
    assert rows.rows_of(data).taxa == ("a", "b", "d", "e", "g")
    assert distinct(data, apart=True).groups() == {}
    assert list(listed({str(k): ["x"] for k in range(9)}, 2))[-1] == "and 7 groups more"


@pytest.mark.parametrize(
    "text",
    [
        "((a:1,b:2)90:3,(d:4,e:5)80:6,g:7);",
        "((b:1,d:2)90:1,e:2,(a:1,g:1)80:1);",
        "(a:1,b:1,(d:1,e:1,g:1)9:1);",
    ],
)
def test_out_and_back(rows, text):
    thin = tree(text)
    whole = rows.put_back(thin)
    assert whole.taxa == tuple(ROWS)
    assert sorted(x for x in whole.labels if x) == sorted(x for x in thin.labels if x)
    assert whole.lengths[:-1].sum() == thin.lengths[:-1].sum()
    assert [whole.lengths[whole.taxa.index(name)] for name in "acf"] == [0.0, 0.0, 0.0]
    again = rows.taken_out(whole)
    assert robinson_foulds(again, thin) == 0 and again.taxa == rows.rows_of(rows.alignment).taxa
    assert again.lengths[:-1].sum() == thin.lengths[:-1].sum()


def test_a_tree_of_other_taxa_is_refused(rows):
    with pytest.raises(InputError, match="not in the alignment"):
        rows.taken_out(tree("(a,b,(c,d),(e,f),h);"))


def test_further_starts_are_of_two_kinds_and_seeded(rows):
    data = rows.rows_of(rows.alignment)
    made = [further_start(Parsimony(data), k, {}, seed=1) for k in (2, 3, 2)]
    assert [m.origin.split(",")[0] for m in made] == ["parsimony", "a random tree", "parsimony"]
    assert robinson_foulds(made[0].tree, made[2].tree) == 0 and made[1].tree.taxa == data.taxa


def test_difficulty_is_0_where_climbs_agree():
    same = [half_edges(tree("((a:1,b:1):1,(c:1,d:1):1,(e:1,f:1):1);"), SIX)] * 6
    found = difficulty(same, np.full((6, 3), -2.0), np.ones(3))
    assert found.value == 0.0 and found.topologies == found.plausible == 1


def test_difficulty_grows_with_disagreement():
    pairs = ("abcdef", "acbedf", "adbfce", "aebdcf", "afbcde")  # no two trees share a branch
    texts = [f"(({p[0]}:1,{p[1]}:1):1,({p[2]}:1,{p[3]}:1):1,({p[4]}:1,{p[5]}:1):1);" for p in pairs]
    apart = [half_edges(tree(text), SIX) for text in texts]
    sites = np.full((5, 100), -2.0) - 0.5 * (np.arange(5) > 0)[:, None]
    one = difficulty(apart, sites, np.ones(100))
    assert one.topologies == 5 and one.distance == 1.0 and one.plausible == 1
    assert one.value == pytest.approx((1 + 1 + 0 + 0 + 0.8) / 5)
    level = difficulty(apart, np.full((5, 100), -2.0), np.ones(100))
    assert level.plausible == 5 and level.value == pytest.approx(4 / 5)
    assert difficulty(apart[:4], sites[:4], np.ones(100)) is None
