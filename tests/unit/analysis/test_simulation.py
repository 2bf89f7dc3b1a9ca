"""`phloem simulate` as a user meets it, and its speed on a large tree."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.simulation import SimulationSettings, run_simulation
from phloem.cli import build_app
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, ModelError
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.simulation import simulate_alignment
from phloem.tree.random import caterpillar, yule
from phloem.tree.tree import is_ultrametric, node_heights

MODELS = {
    "dna": ("HKY{3}+F{0.3,0.2,0.3,0.2}+G4{0.5}", {}),
    "protein": ("LG+G4{0.8}", {}),
    "codon": ("GY94{0.2,2}+FQ", {"genetic_code": 2}),
    "standard": ("MK", {"states": 4}),
    "binary": ("JC2", {"datatype": "binary"}),
}


def command(*arguments: str):
    return CliRunner().invoke(build_app(), ["simulate", *arguments])


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("ending", [".fasta", ".phy", ".nex"])
def test_files_read_back_as_they_were_drawn(tmp_path, kind, ending):
    model, options = MODELS[kind]
    out = str(tmp_path / f"x{ending}")
    result = run_simulation(SimulationSettings(model, 60, tips=7, out=out, **options))
    code = options.get("genetic_code", 1)
    back = read_alignment(out, datatype=None if kind in ("dna", "protein") else kind, genetic_code=code)
    assert back.taxa == result.alignment.taxa
    assert np.array_equal(back.codes, result.alignment.codes)
    tree = read_tree(str(tmp_path / "x.nwk"))
    assert sorted(tree.taxa) == sorted(back.taxa)


def test_the_tree_written_is_the_tree_used(tmp_path):
    out = str(tmp_path / "x.fasta")
    settings = SimulationSettings("JC", 10, tips=12, shape="coalescent", height=0.3, out=out)
    result = run_simulation(settings)
    assert is_ultrametric(result.tree) and node_heights(result.tree)[-1] == pytest.approx(0.3)
    written = read_tree(str(tmp_path / "x.nwk"))
    assert node_heights(written)[-1] == node_heights(result.tree)[-1]


def test_command_writes_and_keeps(tmp_path):
    out, record = str(tmp_path / "x.phy"), str(tmp_path / "x.json")
    arguments = ["--tips", "6", "--tree", "uniform", "-m", "JC", "-n", "30", "-o", out, "--json", record]
    assert command(*arguments).exit_code == 0
    stored = json.loads((tmp_path / "x.json").read_text())
    assert stored["provenance"]["seed"] == 1 and stored["settings"]["shape"] == "uniform"
    first = (tmp_path / "x.phy").read_text()
    refused = command(*arguments)
    assert isinstance(refused.exception, InputError) and "exists" in str(refused.exception)
    assert command(*arguments, "--redo").exit_code == 0
    assert (tmp_path / "x.phy").read_text() == first
    assert command(*arguments, "--redo", "--seed", "2").exit_code == 0
    assert (tmp_path / "x.phy").read_text() != first


def test_standard_output_is_the_alignment_alone(tmp_path):
    (tmp_path / "t.nwk").write_text("(a:0.1,b:0.1,c:0.1,(d:0.1,e:0.1,f:0.1):0.1);")
    done = command(str(tmp_path / "t.nwk"), "-m", "JC", "-n", "20")
    assert done.exit_code == 0 and done.stdout.startswith(">a\n") and done.stdout.count(">") == 6


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InputError, "tree file, or --tips"),
        ({"tips": 5}, InputError, "no file to go to"),
        ({"tips": 5, "out_tree": "x.nwk", "mean_length": 0.2}, InputError, "--mean-length"),
        ({"tips": 5, "out_tree": "x.nwk", "shape": "uniform", "height": 1.0}, InputError, "--height"),
        ({"tips": 5, "out_tree": "x.nwk", "height": -1.0}, InputError, "positive"),
        ({"tips": 5, "out_tree": "x.nwk", "states": 3}, InputError, "--states"),
        ({"tips": 1, "out_tree": "x.nwk"}, InputError, "at least 2 tips"),
        ({"tips": 5, "out_tree": "x.nwk", "model": "HKY{2}+F"}, ModelError, "no data are given"),
        ({"tips": 5, "out_tree": "x.nwk", "model": "NONSENSE"}, ModelError, "NONSENSE"),
        ({"tips": 5, "out_tree": "x.nwk", "seed": -1}, InputError, "seed"),
    ],
)
def test_settings_that_contradict_each_other(tmp_path, monkeypatch, options, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        run_simulation(SimulationSettings(**({"model": "JC", "sites": 10} | options)))
    assert list(tmp_path.iterdir()) == []


def test_large_trees_take_seconds():
    """Measured 1.4 s and 2 s; the limits leave room for a busy machine."""
    model = model_for_alphabet("TN93{4,6}+F{0.3,0.2,0.25,0.25}", alphabet("dna"))
    start = time.process_time()
    simulate_alignment(yule(10_000, np.random.default_rng(1)), model, 1500)
    assert time.process_time() - start < 15
    start = time.process_time()
    simulate_alignment(caterpillar(5_000, 1e-4), model, 100)
    assert time.process_time() - start < 15


def test_a_model_in_words_is_that_model():
    tree, text = yule(5, np.random.default_rng(1)), "HKY{3}+F{0.1,0.2,0.3,0.4}"
    known = simulate_alignment(tree, model_for_alphabet(text, alphabet("dna")), 50)
    assert np.array_equal(simulate_alignment(tree, text, 50).codes, known.codes)
    assert simulate_alignment(tree, "LG", 5).alphabet.kind == "protein"
    assert simulate_alignment(tree, "JC", 5, states=alphabet("rna")).alphabet.kind == "rna"
