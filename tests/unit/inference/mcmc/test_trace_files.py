"""The files of a run: MrBayes reads them, and so does phloem."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from phloem import read_alignment
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import new_run
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.trees import read_tree_sample
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.trees import consensus_tree

ROOT = Path(__file__).resolve().parents[4]
PRIMATES = ROOT / "examples/primates.nex"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A short analysis under the name mrbayes looks for, and its folder."""
    folder = tmp_path_factory.mktemp("trace")
    alignment = read_alignment(PRIMATES)
    structure = structure_of_model(model_for_alignment("GTR+I+G4", alignment))
    settings = ChainSettings(generations=20_000, sample_every=100, check_every=10_000)
    return (
        sample(observations(alignment), structure, settings, str(folder / "primates")),
        folder,
        alignment.taxa,
    )


def test_headers_are_mrbayes(finished):
    _, folder, _ = finished
    lines = (folder / "primates.run1.p").read_text().splitlines()
    assert re.fullmatch(r"\[ID: \d+\] \[TL: expected substitutions per site\]", lines[0])
    rates = ["r(A<->C)", "r(A<->G)", "r(A<->T)", "r(C<->G)", "r(C<->T)", "r(G<->T)"]
    frequencies = ["pi(A)", "pi(C)", "pi(G)", "pi(T)"]
    assert lines[1].split("\t") == ["Gen", "LnL", "LnPr", "TL", *rates, *frequencies, "alpha", "pinvar"]
    numbers = np.array([line.split("\t") for line in lines[2:]], float)
    assert numbers[:, 0].tolist() == list(range(0, 20_001, 100))
    assert np.allclose(numbers[:, 4:10].sum(axis=1), 1) and np.allclose(numbers[:, 10:14].sum(axis=1), 1)
    trees = (folder / "primates.run1.t").read_text().splitlines()
    assert trees[:2] == ["#NEXUS", lines[0].partition(" [TL")[0]] and trees[-1] == "end;"
    assert trees[2:4] == ["[Branch lengths: expected substitutions per site]", "[Param: tree]"]
    assert sum(line.startswith("   tree gen.") for line in trees) == 201


def test_trees_and_numbers_come_back(finished):
    result, folder, taxa = finished
    samples = read_tree_sample(folder / "primates.run2.t")
    assert samples.taxa == taxa and samples.n_trees == 201 and not samples.rooted
    own = result.runs[1].samples
    assert np.allclose(samples.lengths.sum(axis=1), own.lengths.sum(axis=1), rtol=1e-8)
    assert np.allclose(own.lengths.sum(axis=1), own.numbers[:, 2], rtol=1e-12)
    read, kept = consensus_tree(samples), consensus_tree(own.tree_sample(taxa))
    assert np.array_equal(read.parent, kept.parent)


def test_mrbayes_reads_them(finished):
    if shutil.which("mb") is None:
        pytest.skip("MrBayes is not installed")
    result, folder, _ = finished
    shutil.copy(PRIMATES, folder / "primates.nex")
    (folder / "read.nex").write_text(
        "begin mrbayes;\n set autoclose=yes nowarn=yes;\n execute primates.nex;\n"
        " sump filename=primates nruns=2;\n sumt filename=primates nruns=2;\nend;\n"
    )
    out = subprocess.run(["mb", "read.nex"], cwd=folder, capture_output=True, text=True).stdout
    assert (folder / "primates.pstat").exists() and (folder / "primates.tstat").exists(), out[-3000:]
    lines = (folder / "primates.pstat").read_text().splitlines()
    rows = dict(line.split("\t")[:2] for line in lines if "\t" in line)
    first = int(0.25 * 201)
    mean = np.mean([run.samples.numbers[first:, 2].mean() for run in result.runs])
    assert float(rows["TL"]) == pytest.approx(mean, rel=1e-3)


def test_renumbering_keeps_the_tree():
    rng = np.random.default_rng(2)
    for n_tips in (3, 4, 9, 30):
        tree = random_tree(n_tips, rng)
        own = np.delete(np.arange(2 * n_tips - 2), tree.left[-1])
        tree.lengths[own] = rng.random(len(own))
        new_parent, new_length = renumbered(tree.parent, tree.lengths, tree.order)
        assert new_parent[-1] == -1 and new_length[-1] == 0
        assert np.all(new_parent[:-1] > np.arange(2 * n_tips - 3))
        assert np.bincount(new_parent[:-1])[-1] == 3
        assert sorted(new_length[:-1]) == sorted(tree.lengths[own])


def test_a_start_is_sampled_too():
    alignment = read_alignment(PRIMATES)
    structure = structure_of_model(model_for_alignment("HKY", alignment))
    run = new_run(0, observations(alignment), structure, ChainSettings())
    assert run.samples.n == 1 and run.samples.generation[0] == 0
    assert run.columns.names == ("TL", "kappa", "pi(A)", "pi(C)", "pi(G)", "pi(T)")
