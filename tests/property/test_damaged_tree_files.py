"""Good tree files damaged at random places: read, or refused with a reason; what was read can be used."""

import random

import pytest

from phloem.errors import InputError, PhloemError
from phloem.io.trees import newick_text, nexus_text, parse_trees
from phloem.plot.terminal_tree import draw_tree
from phloem.summary.trees import consensus_tree, maximum_clade_credibility
from phloem.tree.layout import resolve
from phloem.tree.reroot import root_at_midpoint, root_at_outgroup, unroot
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import tree_splits
from phloem.tree.tree import require_lengths

GOOD = [
    "#NEXUS\n[c]\nbegin taxa; dimensions ntax=3; taxlabels 'Homo sapiens' Pan Gorilla; end;\nBegin Trees;\n"
    " Translate 1 'Homo sapiens', 2 Pan [x], 3 Gorilla;\n tree * 'best one' [&lnP=-1.5] = [&U] [&W 1/2] "
    "(1[&rate=1]:0.1,(2:0.2,3:0.3)[&prob=0.9]:0.4);\n UTREE s = (3:3,(1:1,2:2):4);\nEnd;\n",
    "((a[&r={1,{2}}]:1e-3,'b c''d':2)0.9[&&NHX:a=b]:3,(c:1,\"d e\":2)x,O'B:.5)[&k]:0;\n[&U](a,b,c);",
]
CHARACTERS = "()[]{}',;:=&\"ab1 .-e\n\t#*é\x00_"
USES = [
    draw_tree, unroot, root_at_midpoint, resolve, tree_splits, require_lengths,
    lambda tree: root_at_outgroup(tree, tree.taxa[0]),
    lambda tree: consensus_tree(sample_of_trees([tree, tree])),
    lambda tree: maximum_clade_credibility(sample_of_trees([tree, tree])),
]  # fmt: skip


def damaged(rng):
    text = list(rng.choice(GOOD))
    for _ in range(rng.randint(1, 6)):
        at, kind = rng.randrange(len(text)), rng.random()
        if kind < 0.4:
            text[at] = rng.choice(CHARACTERS)
        elif kind < 0.6 and len(text) > 12:
            del text[at : at + rng.randint(1, 10)]
        elif kind < 0.8:
            text.insert(at, rng.choice(CHARACTERS))
        else:
            start = rng.randrange(len(text))
            text[at:at] = text[start : start + rng.randint(1, 30)]
    return "".join(text)


@pytest.mark.filterwarnings("ignore::phloem.errors.InputWarning")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(4))
def test_damaged_files(seed):
    rng = random.Random(seed)
    read = 0
    for _ in range(1000):
        try:
            trees = parse_trees(damaged(rng))
        except PhloemError as error:
            assert isinstance(error, InputError) and str(error) and error.hint
            continue
        read += 1
        for tree in trees:
            for write in (newick_text, nexus_text):
                (back,) = parse_trees(write([tree]))
                assert set(back.taxa) == set(tree.taxa) and back.n_nodes == tree.n_nodes
                assert back.rooted == tree.rooted
            use_all(tree)
    assert 50 < read < 500


def use_all(tree):
    for use in USES:
        try:
            use(tree)
        except PhloemError as error:
            assert str(error)
