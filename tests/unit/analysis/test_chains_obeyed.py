"""`phloem mcmc` and `phloem time`: an option is obeyed, or refused with a remedy; none is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from phloem.analysis import obeyed
from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_options import mcmc_settings, merged_options
from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.time import TimeSettings, TimeTreeSettings, TreeModel
from phloem.analysis.time_data import time_input
from phloem.errors import InputError
from phloem.inference.mcmc.settings import Convergence

ROWS = {
    "a": "ACGTACGTACGTACGAACRA",
    "b": "ACGTACGTACGTACTAACAA",
    "c": "ACGTTCGAACGTACTAGCAA",
    "d": "ACGATCGAACGGACTAGCCA",
    "e": "ATGATCGAACGGACTTGCCT",
}
LINES = ["JC, one = 1-10", "HKY, two = 11-20"]
PARTS = {"partitions": "two.txt", "model": "HKY"}
STONES = {"stepping_stone": 5, "generations": 1000}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("two.txt").write_text("DNA, one = 1-10\nDNA, two = 11-20\n")
    Path("named.txt").write_text("JC, one = 1-10\nHKY, two = 11-20\n")
    return tmp_path


def sampled(given):
    return chain_input(mcmc_settings({"alignment": "small.fasta"} | given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gamma": "median", "model": "HKY"}, "--gamma median is about .G"),
        ({"gamma": "median", "model": "HKY+R3"}, "--gamma median is about .G"),
        (PARTS | {"gamma": "median"}, "--gamma median is about .G"),
        ({"partitions": "named.txt", "model": "GTR"}, "every part has a model already"),
        ({"part": LINES, "model": "GTR"}, "every part has a model already"),
        ({"part": LINES, "partition_name": "x"}, "--partition-name is about --partitions"),
        (PARTS | {"linkage": "linked", "link": ["lengths:one,two"]}, "all are linked"),
        (
            PARTS | {"linkage": "unlinked", "link": ["rate=1:one"]},
            "no part has a rate where branch lengths are",
        ),
        ({"asc": "mrbayes"}, "--asc mrbayes is about .ASC"),
        ({"character_states": "all"}, "--character-states all is about standard characters"),
        ({"heating": 0.3, "chains": 1}, "heating and swaps are of several chains"),
        ({"swap_every": 3, "chains": 1}, "heating and swaps are of several chains"),
        ({"swap_seed": 3, "chains": 1}, "heating and swaps are of several chains"),
        ({"asdsf": 0.1, "runs": 1}, "--asdsf is about how runs agree, and there is one"),
        (STONES | {"asdsf": 0.1}, "--asdsf is about samples of a posterior"),
        (STONES | {"least_ess": 10.0}, "--least-ess is about samples"),
        (STONES | {"r_hat": 1.1}, "--r-hat is about samples"),
        (STONES | {"report": True}, "--report is about samples"),
        (STONES | {"outgroup": "a"}, "--outgroup is about samples"),
        (STONES | {"consensus": "allcompat"}, "--consensus is about samples"),
        ({"model": "JC", "prior": ["kappa=exponential(1)"]}, "no part has a free parameter of that name"),
    ],
)
def test_mcmc_refuses_what_it_would_not_obey(folder, given, said):
    with pytest.raises(InputError, match=said) as caught:
        sampled(given)
    assert caught.value.hint


@pytest.mark.parametrize(
    "given",
    [
        {"gamma": "median", "model": "HKY+G4"},
        PARTS | {"gamma": "median", "model": "HKY+G4"},
        {"part": ["JC, one = 1-10", "DNA, two = 11-20"], "model": "HKY"},
        PARTS | {"linkage": "unlinked", "link": ["lengths:one,two"]},
        PARTS | {"link": ["rate=1:one"]},
        {"heating": 0.3, "swap_every": 3, "swap_seed": 3},
        STONES | {"usual_weights": True},
        {"asdsf": 0.1, "report": True, "outgroup": "a", "consensus": "allcompat"},
    ],
)
def test_mcmc_takes_them_where_they_are_obeyed(folder, given):
    sampled(given)


@pytest.mark.parametrize(
    ("given", "tree", "chains", "said"),
    [
        ({"gamma": "median", "model": "HKY"}, {}, {}, "--gamma median is about .G"),
        ({"partitions": "named.txt", "model": "GTR"}, {}, {}, "every part has a model already"),
        (PARTS | {"linkage": "linked", "link": ("rate=1:one",)}, {}, {}, "no part has a rate"),
        ({}, {"clock_sd": "log"}, {}, "--clock-sd log is about the spread of --clock ucln or autocorrelated"),
        (
            {},
            {"clock": "autocorrelated", "clock_sd": "log-median"},
            {},
            "--clock-sd log-median is about the spread of --clock ucln, and the clock is autocorrelated",
        ),
        ({"engine": "ancestors", "model": "HKY"}, {}, {"use_data": False}, "--engine ancestors is about"),
        ({"summary_tree": "ccd"}, {}, {"stones": 5}, "--summary-tree is about samples of a posterior"),
        ({}, {}, {"stones": 5, "convergence": Convergence(ess=9.0)}, "--least-ess is about samples"),
        ({}, {}, {"n_runs": 1, "convergence": Convergence(asdsf=0.1)}, "--asdsf is about how runs agree"),
        ({"prior": ("clock_rate=1", "clock_rate=2")}, {}, {}, "--prior says two things of 'clock_rate'"),
        (
            {"calibrate": ("root=normal(1,2)", "root=normal(3,2)")},
            {},
            {},
            "--calibrate says two things of 'root'",
        ),
    ],
)
def test_time_refuses_what_it_would_not_obey(folder, given, tree, chains, said):
    settings = TimeTreeSettings(
        "small.fasta", **given, tree=TreeModel(**tree), chains=TimeSettings(generations=1000, **chains)
    )
    with pytest.raises(InputError, match=said) as caught:
        time_input(settings)
    assert caught.value.hint


def test_time_takes_them_where_they_are_obeyed(folder):
    tree = TreeModel(clock="ucln", clock_sd="log")
    given = {"gamma": "median", "model": "HKY+G4", "summary_tree": "ccd", "prior": ("kappa=exponential(1)",)}
    time_input(TimeTreeSettings("small.fasta", **given, tree=tree))


def test_a_block_may_say_what_mrbayes_itself_would_have_no_use_for(folder):
    """Heating of one chain, the outgroup of stepping stones; said beside the block they are refused."""
    rows = "\n".join(f"{name} {row}" for name, row in ROWS.items())
    head = f"#NEXUS\nbegin data; dimensions ntax=5 nchar=20; format datatype=dna; matrix\n{rows}\n;end;\n"
    alone = "outgroup c; lset nst=2; mcmcp nchains=1 temp=0.3 swapfreq=5 ngen=1000; ss nsteps=4;"
    Path("block.nex").write_text(f"{head}begin mrbayes; {alone} end;\n")
    block = block_analysis("block.nex")
    assert block is not None
    settings = mcmc_settings(merged_options(block, {}, {})[0])
    chain_input(settings)
    assert settings.outgroup is None
    for given in ({"heating": 0.2}, {"outgroup": "a"}):
        with pytest.raises(InputError):
            chain_input(mcmc_settings(merged_options(block, {}, given)[0]))


def test_a_check_that_sees_nothing_is_noticed(folder, monkeypatch):
    """Planted: nothing is refused."""
    monkeypatch.setattr(obeyed, "_refuse", lambda options: None)
    sampled({"asc": "mrbayes"})
