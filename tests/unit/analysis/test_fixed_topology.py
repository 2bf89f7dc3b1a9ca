"""Chains on one topology: what is sampled, what is refused, and MRBAYES blocks that ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from phloem.analysis.mcmc import run_mcmc
from phloem.analysis.mcmc_options import command_line, mcmc_settings, settings_text
from phloem.analysis.mrbayes import block_analysis
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
        (f"begin trees; tree bad = {WANTED} tree good = {WANTED} end;\n", "only the first tree"),
    ],
)
def test_a_block_whose_tree_is_not_there(folder, trees, told):
    with pytest.raises(InputError, match=told) as caught:
        block(trees)
    assert caught.value.line == (11 if trees else 10) and caught.value.hint
