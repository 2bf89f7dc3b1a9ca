"""Chains on one topology: what is sampled, what is refused, and MRBAYES blocks that ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from phloem.analysis.mcmc import run_mcmc
from phloem.analysis.mcmc_options import command_line, mcmc_settings, settings_text
from phloem.analysis.mcmc_start import chain_start
from phloem.analysis.mrbayes import block_analysis
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.tree.splits import robinson_foulds

DATA = """#NEXUS
begin data; dimensions ntax=6 nchar=12; format datatype=dna; matrix
a ACGTACGTACGT
b ACGTACGAACGA
c ACTTACGTAGGT
d ACGTAGGTACCT
e ACTTACGTACGA
f ACTTACCTACGA
; end;
"""
WANTED = "((a:0.1,f:0.1):0.1,(b:0.1,e:0.1):0.1,(c:0.1,d:0.1):0.1);"
SHORT = {"generations": 4000, "sample_every": 100, "model": "JC", "prefix": "x", "redo": True}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.nex").write_text(DATA)
    Path("t.nwk").write_text(WANTED)
    return tmp_path


def sampled(**options):
    settings = mcmc_settings({"alignment": "d.nex"} | SHORT | options)
    result = run_mcmc(settings)
    return settings, result, [read_trees(f"x.run{r}.t") for r in (1, 2)]


def test_all_trees_have_the_topology_of_the_start(folder):
    wanted = read_trees("t.nwk")[0]
    settings, result, runs = sampled(start="t.nwk", fixed_topology=True)
    for trees in runs:
        assert len(trees) == 41 and {robinson_foulds(tree, wanted) for tree in trees} == {0}
        assert len({tree.lengths.sum() for tree in trees}) > 30
    assert "its topology is fixed" in result.start
    assert not any("started at trees" in text for text in result.warnings)
    assert "--fixed-topology" in command_line(settings)
    assert "fixed_topology = true" in settings_text(settings)
    _, _, runs = sampled(start="t.nwk")
    assert any(robinson_foulds(tree, wanted) for trees in runs for tree in trees)


def test_chains_of_a_fixed_topology_begin_apart(folder):
    alignment, wanted = read_alignment("d.nex"), read_trees("t.nwk")[0]
    structure = structure_of_model(model_for_alignment("JC", alignment))
    chains = ChainSettings(generations=1000, n_chains=3, fixed_topology=True)
    state = new_run(0, observations(alignment), structure, chains, wanted).state
    assert len({row[0].tobytes() for row in state.parent}) == 1
    assert len({row[0].tobytes() for row in state.lengths}) == 3
    with pytest.raises(InputError, match="no tree says which topology"):
        new_run(0, observations(alignment), structure, chains, None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "--start is random"),
        ({"start": "star.nwk"}, "more than two branches below"),
        ({"start": "t.nwk", "constraint": ["x: a, b"]}, "--constraint is of topologies that are sampled"),
    ],
)
def test_what_is_no_fixed_topology(folder, options, told):
    Path("star.nwk").write_text("((a:1,f:1):1,b:1,e:1,(c:1,d:1):1);")
    with pytest.raises(InputError, match=told) as caught:
        sampled(fixed_topology=True, **options)
    assert caught.value.hint


def test_the_marginal_likelihood_of_a_topology(folder):
    settings = mcmc_settings(
        {
            "alignment": "d.nex",
            **SHORT,
            "start": "t.nwk",
            "fixed_topology": True,
            "stepping_stone": 4,
            "generations": 10_000,
            "sample_every": 50,
        }
    )
    run_mcmc(settings)
    trees, wanted = read_trees("x.ss.run1.t"), read_trees("t.nwk")[0]
    assert len(trees) > 40 and {robinson_foulds(tree, wanted) for tree in trees} == {0}


def block(trees: str, wanted: str = "good"):
    lines = f"begin mrbayes; prset topologypr=fixed({wanted}); mcmc ngen=4000 samplefreq=100; end;\n"
    Path("b.nex").write_text(DATA + trees + lines)
    return block_analysis("b.nex")


def test_a_block_that_fixes_the_topology(folder):
    found = block(f"begin trees; tree good = {WANTED} tree other = {WANTED} end;\n", "Good")
    assert found.options["fixed_topology"] is True and found.options["start"] == "b.nex"
    result = run_mcmc(mcmc_settings(found.options | {"prefix": "x"}))
    wanted = read_trees("t.nwk")[0]
    assert {robinson_foulds(tree, wanted) for tree in read_trees("x.run1.t")} == {0}
    assert result.start.startswith("b.nex")


@pytest.mark.parametrize(
    ("trees", "told"),
    [
        ("", "there is no such tree"),
        (f"begin trees; tree bad = {WANTED} end;\n", "there is no such tree"),
    ],
)
def test_a_block_whose_tree_is_not_there(folder, trees, told):
    with pytest.raises(InputError, match=told) as caught:
        block(trees)
    assert caught.value.line == (11 if trees else 10) and caught.value.hint


TREES = f"begin trees; tree bad = ((a,b),(c,d),(e,f)); tree good = {WANTED} end;\n"


def test_a_block_names_any_tree_of_the_file(folder):
    found = block(TREES, "GOOD")
    assert found.options["start_tree"] == "good"
    result = run_mcmc(settings := mcmc_settings(found.options | {"prefix": "x"}))
    wanted, first = read_trees("t.nwk")[0], read_trees("b.nex")[0]
    trees = read_trees("x.run1.t")
    assert {robinson_foulds(tree, wanted) for tree in trees} == {0} != {robinson_foulds(trees[0], first)}
    assert result.start.startswith("b.nex, tree good") and "--start-tree good" in command_line(settings)
    with pytest.raises(InputError, match="another start_tree"):  # of another tree
        run_mcmc(mcmc_settings(found.options | {"prefix": "x", "start_tree": "bad", "generations": 8000}))


@pytest.mark.parametrize("name", ["good", "Good", "2"])
def test_a_tree_by_name_or_number(folder, name):
    Path("t.nex").write_text("#NEXUS\n" + TREES)
    data = read_alignment("d.nex")
    found = chain_start("t.nex", data, ChainSettings(), name)
    assert robinson_foulds(found.tree, read_trees("t.nwk")[0]) == 0
    assert robinson_foulds(chain_start("t.nex", data, ChainSettings()).tree, found.tree) > 0
    for wrong in ("3", "0", "goo"):
        with pytest.raises(InputError, match=f"there is no tree '{wrong}'") as caught:
            chain_start("t.nex", data, ChainSettings(), wrong)
        assert caught.value.hint == "There are 2: bad, good."
    with pytest.raises(InputError, match="is no file"):
        chain_start("random", data, ChainSettings(), name)


def startvals(text: str, *, prior: str = "", chains: str = ""):
    lines = f"begin mrbayes; {prior} startvals {text}; mcmc ngen=4000 {chains}; end;\n"
    Path("b.nex").write_text(DATA + TREES + lines)
    return block_analysis("b.nex")


def test_a_block_that_starts_from_a_tree(folder):
    for text in ("tau=good", "Tau{all} = Good V{all} = good", "tau{1,2}=good pi=(0.1,0.2,0.3,0.4) kappa=2"):
        found = startvals(text)
        assert (found.options["start"], found.options["start_tree"]) == ("b.nex", "good"), text
        assert any("interchanges from" in note for note in found.notes)
        assert ("pi, kappa: each chain starts from its own" in " ".join(found.notes)) == ("pi=" in text)
    assert "start_tree" not in startvals("tau=bad").options  # the first
    random = startvals("tau=good", chains="starttree=random")
    assert "start" not in random.options and any("no effect" in note for note in random.notes)
    least = startvals("tau=good", chains="starttree=parsimony")
    assert least.options["start"] == "parsimony" and any("no effect" in note for note in least.notes)
    assert startvals("tau=good", prior="prset topologypr=fixed(good);").options["fixed_topology"] is True


def test_a_start_of_few_changes_counts_those_of_all_parts():
    """Three columns of one part and five of another are in conflict: one change each of those that have
    their split, two of the others."""

    def of(column, n):
        rows = {f"t{i}": symbol * n for i, symbol in enumerate(column)}
        return alignment_from_sequences(rows, alphabet("dna"))

    one, other, chains = of("AAACCC", 3), of("ACACAC", 5), ChainSettings(seed=3)
    alone, both = chain_start("parsimony", one, chains), chain_start("parsimony", one, chains, None, [other])
    assert alone.origin.startswith("a tree of 3 changes") and both.origin.startswith("a tree of 11 changes")
    assert "random interchanges for each chain" in both.origin
    again = chain_start("parsimony", one, chains, None, [other])
    assert (again.tree.parent == both.tree.parent).all()
    with pytest.raises(InputError, match="is no file"):
        chain_start("parsimony", one, chains, "name")


def test_chains_of_parts_start_from_few_changes_in_all_of_them(folder):
    Path("d.partitions").write_text("JC, one = 1-5\nJC, two = 6-12\n")
    options = {"alignment": "d.nex", "start": "parsimony", "prefix": "x"} | SHORT
    whole = run_mcmc(mcmc_settings(options))
    del options["model"]
    parts = run_mcmc(mcmc_settings(options | {"partitions": "d.partitions", "prefix": "y"}))
    assert " changes, taxa added in random order" in whole.start and parts.start == whole.start


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tau=none", "there is no such tree"),
        ("tau(1,2)=good", "of some chains"),
        ("tau=good V=bad", "lengths are those of the tree that tau names"),
        ("V=good", "lengths are those"),
        ("tau good", "is no value"),
    ],
)
def test_starts_of_a_block_that_are_refused(folder, text, told):
    with pytest.raises(InputError, match=told) as caught:
        startvals(text)
    assert caught.value.line and caught.value.hint
    with pytest.raises(InputError, match="STARTVALS tau=good, and topologypr=fixed"):
        startvals("tau=good", prior="prset topologypr=fixed(bad);")
    twice = TREES.replace("tree bad", "tree Good")
    with pytest.raises(InputError, match="2 trees are called so"):
        block(twice, "GOOD")
    Path("t.nex").write_text("#NEXUS\n" + twice)
    with pytest.raises(InputError, match="2 trees are called 'GOOD'"):
        chain_start("t.nex", read_alignment("d.nex"), ChainSettings(), "GOOD")
    with pytest.raises(InputError, match="where trees have a clock"):
        startvals("tau=good", prior="prset brlenspr=clock:uniform;")
