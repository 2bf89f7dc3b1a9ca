"""The files of a run: MrBayes reads them, and so does phloem."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from golden.test_mrbayes_sumt import assert_same_tables
from phloem import read_alignment
from phloem.analysis.split_tables import write_split_tables
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import new_run
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.mcmc.trace_files import begin_history, history_path
from phloem.io.trees import read_tree_sample
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.splits import split_table
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
    result, folder, taxa = finished
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
    table = split_table([run.samples.tree_sample(taxa, first) for run in result.runs])
    write_split_tables(str(folder / "ours"), table)
    for ending in ("parts", "tstat", "vstat"):
        assert_same_tables(folder / f"ours.{ending}", folder / f"primates.{ending}")


def test_acceptance_and_agreement_by_generation(finished):
    result, folder, _ = finished
    lines = (folder / "primates.mcmc").read_text().splitlines()
    rows = [line for line in lines if not line.startswith("[")]
    names, last = rows[0].split("\t"), rows[-1].split("\t")
    assert lines[0] == (folder / "primates.run1.p").read_text().split(" [TL")[0]
    assert [row.split("\t")[0] for row in rows[1:]] == ["10000", "20000"]
    assert {len(row.split("\t")) for row in rows} == {len(names)} and len(set(names)) == len(names)
    found = dict(zip(names, last))
    assert float(found["AvgStdDev(s)"]) == pytest.approx(result.diagnosis.asdsf, abs=1e-6)
    for run in result.runs:
        state, number = run.state, run.number + 1
        place = [move.name for move in run.moves].index("alpha_multiplier")
        share = state.accepted[0, place] / state.tried[0, place]
        assert float(found[f"multiplier(alpha)$acc_run{number}"]) == pytest.approx(share, abs=1e-6)
        tuning = state.tuning[0, place]
        assert float(found[f"multiplier(alpha)$tuning_run{number}"]) == pytest.approx(tuning, rel=1e-6)
        swaps = state.swaps_accepted[1, 3] / state.swaps_tried[1, 3]
        assert float(found[f"Swap(2<>4)$acc({number})"]) == pytest.approx(swaps, abs=1e-6)
    assert {"nni(Tau)$acc_run1", "branch_multiplier(V)$acc_run2", "joint_normal(all)$acc_run1"} < set(names)


def test_rows_of_what_is_done_again_go(finished):
    """A former file's rows up to the checkpoint stay as they are; later ones and damaged ones do not."""
    result, folder, _ = finished
    path = history_path(str(folder / "primates"))
    whole = path.read_text()
    head, first, last = whole.rpartition("AvgStdDev(s)\n")[0], *whole.splitlines()[-2:]
    path.write_text(f"{head}AvgStdDev(s)\n{first}\n15000\t0.1\nnonsense\n20000\t0.2\n90000\t0.3\n1")
    begin_history(str(folder / "primates"), result.runs, result.diagnosis.asdsf)
    assert path.read_text() == whole
    path.write_text(f"of another program\n{first}\n")
    begin_history(str(folder / "primates"), result.runs, result.diagnosis.asdsf)
    assert path.read_text() == whole.replace(f"{first}\n", "") and last in whole


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
