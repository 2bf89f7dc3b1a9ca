from __future__ import annotations

from phloem.io.trees import parse_trees
from phloem.tree.match import branch_names


def names(newick: str) -> set[str]:
    return set(branch_names(parse_trees(newick)[0]))


def test_names_do_not_depend_on_root_or_order():
    one = names("((a:1,b:1):1,(c:1,d:1):1,(e:1,f:1):1);")
    assert one == {*"abcdef", "mrca(a,b)", "mrca(c,d)", "mrca(e,f)"}
    assert names("(f:1,e:1,((d:1,c:1):1,(b:1,a:1):1):1);") == one


def test_equal_sides_take_the_one_without_the_first_taxon():
    expected = {*"abcd", "mrca(c,d)"}
    assert names("(a:1,b:1,(c:1,d:1):1);") == expected
    assert names("((a:1,b:1):1,c:1,d:1);") == expected


def test_rooted_trees_keep_their_clades():
    assert names("((a:1,b:1):1,((c:1,d:1):1,e:1):1);") == {*"abcde", "mrca(a,b)", "mrca(c,d)", "mrca(c,e)"}


def test_labels_that_are_names_win_and_support_values_do_not():
    assert names("((a:1,b:1)Alpha:1,(c:1,d:1)95:1,e:1);") == {*"abcde", "Alpha", "mrca(c,d)"}
    assert names("((a:1,b:1)-/97:1,(c:1,d:1)/0.9:1,e:1);") == {*"abcde", "mrca(a,b)", "mrca(c,d)"}


def test_names_are_unique_on_a_caterpillar_with_multifurcation():
    found = branch_names(parse_trees("(a:1,b:1,(c:1,d:1,(e:1,f:1,(g:1,h:1):1):1):1);")[0])
    assert len(set(found)) == len(found) == 11
