"""Distance trees as starts of `phloem mcmc` and as the tree of `phloem likelihood`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.mcmc import ChainSettings, McmcSettings, run_mcmc
from phloem.analysis.mcmc_start import chain_start
from phloem.cli import build_app
from phloem.clustering.distances import pairwise_distances
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.settings import DistanceSettings
from phloem.clustering.starting_tree import SHORTEST, starting_tree
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import new_run
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree, write_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.tree.random import uniform_unrooted
from phloem.tree.splits import robinson_foulds

PRIMATES = Path(__file__).resolve().parents[3] / "examples/primates.nex"
SHORT = ChainSettings(generations=3000, sample_every=50, check_every=1000, tuning_generations=500, n_chains=2)


@pytest.fixture(scope="module")
def primates():
    return read_alignment(PRIMATES)


@pytest.mark.parametrize("method", ["nj", "bionj", "upgma"])
def test_starting_trees_have_no_branch_of_length_zero(primates, method):
    names, texts = primates.taxa, ["ACGTACGTAC"] * 3 + ["ACGTACGTTT"] + ["TTGTACGTAC"] * 2
    twins = alignment_from_sequences(dict(zip(names, texts)), alphabet("dna"))
    for data in (primates, twins):
        found = starting_tree(data, method)
        assert found.tree.taxa == data.taxa and found.tree.lengths[:-1].min() >= SHORTEST
        assert ("shorter branches" in found.origin) == (data is twins)
        assert found.origin.startswith(method.upper()) and "jc69" in found.origin


def test_a_start_from_distances_of_ones_own(primates):
    settings = DistanceSettings("tn93", shape=0.5, saturated="error")
    found = starting_tree(primates, "nj", distances=settings)
    joined = neighbour_joining(pairwise_distances(primates, settings)).tree(primates.taxa)
    assert "tn93" in found.origin
    assert np.array_equal(found.tree.lengths[:-1], np.maximum(joined.lengths[:-1], SHORTEST))


def test_sequences_without_a_common_site_have_no_clock_like_tree():
    data = alignment_from_sequences({"a": "ACGT----", "b": "----ACGT", "c": "ACGTACGT"}, alphabet("dna"))
    with pytest.raises(InputError, match="'a'"):
        starting_tree(data, "upgma")


def starts(primates, start: str, n_chains: int = 3):
    structure = structure_of_model(model_for_alignment("HKY+FO+G4", primates))
    tree = chain_start(start, primates, SHORT).tree
    chains = replace(SHORT, n_chains=n_chains)
    return new_run(0, observations(primates), structure, chains, tree).state


def test_chains_start_near_the_tree_but_apart(primates):
    near, random = starts(primates, "bionj"), starts(primates, "random")
    assert near.log_likelihood.min() > random.log_likelihood.max() + 100
    assert len({row[0].tobytes() for row in near.parent}) == 3


def test_a_tree_file_with_lengths_missing_and_negative(primates, tmp_path):
    tree = uniform_unrooted(12, np.random.default_rng(1))
    lengths = tree.lengths.copy()
    lengths[0], lengths[1] = np.nan, -0.1
    file = str(tmp_path / "t.nwk")
    write_trees(file, replace(tree, taxa=primates.taxa, lengths=lengths))
    found = chain_start(file, primates, SHORT)
    assert robinson_foulds(found.tree, replace(tree, taxa=primates.taxa)) == 0
    assert "1 missing lengths" in found.origin and "1 lengths moved" in found.origin
    with pytest.raises(InputError, match="neither a kind of start nor a file"):
        chain_start("bioNJ", primates, SHORT)
    write_trees(file, tree)
    with pytest.raises(InputError, match="'t1'"):
        chain_start(file, primates, SHORT)


def test_the_start_is_recorded_and_guards_the_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = McmcSettings(str(PRIMATES), "HKY+FO", start="bionj", prefix="x", chains=SHORT)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_mcmc(
            replace(settings, chains=replace(SHORT, generations=10**7, check_every=10**7)), progress=stop
        )
    with pytest.raises(InputError, match="another start"):
        run_mcmc(replace(settings, start="random"))
    with pytest.raises(InputError, match="another start"):
        run_mcmc(replace(settings, start="nj"))
    told = []
    resumed = run_mcmc(settings, started=lambda data, start, device: told.append(start))
    assert resumed.resumed_at is not None and told == [resumed.start]
    stored = json.loads(Path("x.json").read_text())
    assert stored["settings"]["start"] == "bionj" and "3 random interchanges" in stored["start"]


def test_one_start_one_analysis(tmp_path):
    traces = []
    for name, start in (("a", "bionj"), ("b", "bionj"), ("c", "nj"), ("d", "random")):
        prefix = str(tmp_path / name)
        run_mcmc(McmcSettings(str(PRIMATES), "HKY+FO", start=start, prefix=prefix, chains=SHORT))
        traces.append((tmp_path / f"{name}.run1.p").read_text())
    assert traces[0] == traces[1] and len(set(traces)) >= 3


def test_likelihood_without_a_tree_takes_bionj(tmp_path):
    result = run_likelihood(LikelihoodSettings(str(PRIMATES), None, "GTR+F+G4", optimize=True))
    assert result.tree_origin == "BIONJ from jc69 distances of the alignment"
    assert result.log_likelihood == pytest.approx(-5719.3559, abs=2e-3)  # docs/validation.md, best known tree
    assert str(PRIMATES) in result.provenance["files"] and len(result.provenance["files"]) == 1


def test_likelihood_command_says_where_the_tree_is_from(tmp_path):
    out = str(tmp_path / "fitted.nwk")
    arguments = ["likelihood", str(PRIMATES), "-m", "JC", "--optimize", "--out-tree", out]
    record = str(tmp_path / "r.json")
    done = CliRunner().invoke(build_app(), [*arguments, "--json", record])
    assert done.exit_code == 0, done.exception
    assert "tree: BIONJ from jc69 distances" in done.stdout
    assert json.loads(Path(record).read_text())["tree_origin"].startswith("BIONJ")
    given = CliRunner().invoke(build_app(), ["likelihood", str(PRIMATES), "-m", "JC", "--tree", out])
    assert f"tree: {out}"[:60] in given.stdout.replace("\n", "")
    assert read_tree(out).n_tips == 12
