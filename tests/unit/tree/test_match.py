"""Tree and alignment have the same taxa, or the error says which differ and how."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.tree.match import likely_name, match_taxa
from phloem.tree.tree import require_lengths


def test_tips_follow_the_alignment():
    (tree,) = parse_newick("((a:1[&r=1],b:2)0.9:3,c:4,d:5);")
    matched = match_taxa(tree, ["d", "b", "c", "a"])
    assert matched.taxa == ("d", "b", "c", "a")
    assert matched.lengths.tolist() == [5, 2, 4, 1, 3, 0]
    assert matched.parent.tolist() == [5, 4, 5, 4, 5, -1]
    assert dict(matched.annotations) == {3: {"r": 1}}


def test_both_lists_and_a_guess():
    (tree,) = parse_newick("(Homo_sapiens,Pan,Gorila);")
    with pytest.raises(InputError) as caught:
        match_taxa(tree, ["Homo sapiens", "Pan", "Gorilla"], file="x.nwk")
    text = str(caught.value)
    assert "in the tree and not in the alignment: 'Homo_sapiens', 'Gorila'" in text
    assert "in the alignment and not in the tree: 'Homo sapiens', 'Gorilla'" in text
    assert "'Homo_sapiens' the alignment's 'Homo sapiens'" in caught.value.hint
    assert "'Gorila' the alignment's 'Gorilla'" in caught.value.hint


def test_only_one_side():
    (tree,) = parse_newick("(a,b,c);")
    with pytest.raises(InputError, match="not in the alignment") as caught:
        match_taxa(tree, ["a", "b"])
    assert caught.value.taxon == "c" and "prune" in caught.value.hint
    with pytest.raises(InputError, match="not in the tree"):
        match_taxa(tree, ["a", "b", "c", "e"])


def test_unlike_names_are_not_guessed():
    assert likely_name("Panthera", ["Acinonyx", "Mus"]) is None


def test_lengths_are_required_by_name():
    with pytest.raises(InputError, match="above 'b' has no length") as caught:
        require_lengths(parse_newick("(a:1,b,c:1);")[0])
    assert caught.value.taxon == "b"
    with pytest.raises(InputError, match="ancestor of 'b' and 'c' has a negative length"):
        require_lengths(parse_newick("(a:1,(b:1,c:1):-1);", allow_negative=True)[0])
    assert np.all(require_lengths(parse_newick("(a:1,b:0);")[0]) >= 0)
