"""What a chain carries along after many partial updates is the likelihood of phloem's reference, for every
kind of data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem import TreeLikelihood, read_alignment
from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, ModelError, NumericalError
from phloem.inference.mcmc import seen
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.pruning.cpu.cell_memory import Part, column_ranges
from phloem.tree.tree import Tree

ROOT = Path(__file__).resolve().parents[4]
KNOWN = np.vstack([np.eye(2, dtype=bool), np.ones((1, 2), bool)])
GOLDEN = ROOT / "tests" / "golden" / "fixed_trees"


def check(alignment, text: str, generations: int, **settings) -> None:
    """The last sample, after many partial updates, against tree and model as a user has them."""
    model = model_for_alignment(text, alignment)
    structure = structure_of_model(model)
    chains = ChainSettings(
        n_runs=1,
        n_chains=2,
        generations=generations,
        sample_every=generations,
        tuning_generations=0,
        **settings,
    )
    run = sample(observations(alignment, structure.parts[0].model.unseen), structure, chains).runs[0]
    assert run.samples.n == 2 and run.samples.numbers[0, 0] != run.samples.numbers[1, 0]
    parent, lengths, numbers = run.samples.tree_and_numbers(-1, run.columns.names)
    assert numbers["TL"] == pytest.approx(lengths.sum())
    per_character = 3 * lengths if alignment.alphabet.kind == "codon" else lengths
    tree = Tree(alignment.taxa, parent, per_character, rooted=False)
    given = structure.model_values(0, structure.values_of(numbers))
    fixed = model.with_values({p.name: given[p.name] for p in model.free})
    assert not fixed.free
    expected = TreeLikelihood(alignment, tree, fixed, engine="reference").log_likelihood()
    assert run.samples.numbers[-1, 0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "text",
    ["JC", "K80+I", "HKY+F+G4", "GTR+FO+I+G5", "TN93+R3{0.3,0.1,0.3,0.5,0.4,2.1}", "TIM2+G8", "HKY+I+LN5"],
)
def test_nucleotides(text):
    check(read_alignment(ROOT / "examples/primates.nex"), text, 1500)


def test_without_site_repeats_the_numbers_are_the_same():
    alignment = read_alignment(ROOT / "examples/primates.nex")
    structure = structure_of_model(model_for_alignment("GTR+G4", alignment))
    chains = ChainSettings(n_runs=1, sample_every=50, generations=500)
    traces = [
        sample(observations(alignment), structure, replace(chains, repeats=repeats)).runs[0].samples.numbers
        for repeats in (True, False)
    ]
    assert len(traces[0]) == 11 and np.array_equal(*traces)


@pytest.mark.parametrize("text", ["MK+FB4+G2+ASC", "MK+FB5"])
def test_frequencies_of_characters(text):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (6, 20))
    codes[0], codes[1] = 0, 1  # none is constant
    check(Alignment(tuple("abcdef"), alphabet("binary"), codes.astype(np.uint8), KNOWN), text, 200)


def golden(name: str, **options):
    return read_alignment(GOLDEN / name, **options)


@pytest.mark.parametrize("text", ["LG+G4", "WAG+FO+I", "AAMIXED+G4", "AAMIXED+FO+I"])
def test_proteins(text):
    check(golden("carnivores_aa.fasta", datatype="protein"), text, 40)


@pytest.mark.parametrize("text", ["GY94+F3X4", "MG94+F1X4+G2"])
def test_codons(text):
    check(golden("carnivores13_codon.fasta", datatype="codon", genetic_code=2), text, 15)


@pytest.fixture
def small_ranges(monkeypatch):
    """Columns in ranges of some tens, where the sampler would take thousands."""
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_ENTRIES", 900)
    monkeypatch.setattr("phloem.pruning.cpu.cell_memory.RANGE_COLUMNS", 1)


@pytest.mark.parametrize("text", ["GTR+FO+I+G4", "GTR+FO+R3"])
def test_ranges_of_columns(text, small_ranges):
    check(read_alignment(ROOT / "examples/primates.nex"), text, 700)


def test_ranges_of_codons(small_ranges):
    check(golden("carnivores13_codon.fasta", datatype="codon", genetic_code=2), "GY94+F3X4", 15)


@pytest.mark.parametrize("what", ["a range is left out", "ranges have models of their own"])
def test_wrong_ranges_are_seen(what, small_ranges, monkeypatch):
    if what == "a range is left out":
        monkeypatch.setattr(seen, "column_ranges", lambda *part: column_ranges(*part)[:-1])
    else:
        monkeypatch.setattr("phloem.pruning.cpu.forest.MODEL_FIELDS", ())
    with pytest.raises((AssertionError, NumericalError)):
        check(read_alignment(ROOT / "examples/primates.nex"), "GTR+FO+I+G4", 700)


def test_threads_take_ranges_and_change_no_bit(small_ranges, monkeypatch):
    monkeypatch.setattr("phloem.inference.mcmc.run.SMALL_RUN", 0)
    alignment, traces = read_alignment(ROOT / "examples/primates.nex"), []
    structure = structure_of_model(model_for_alignment("GTR+G4", alignment))
    for threads in (1, 2, 3):
        chains = ChainSettings(n_chains=1, sample_every=20, tuning_generations=0)
        run = new_run(0, observations(alignment), structure, chains, threads=threads)
        assert len(run.scratches) == threads and len(run.forest.parts) > 3
        traces.append(advanced(run, 400).samples.numbers)
    assert len(traces[0]) == 21 and np.array_equal(traces[0], traces[1])
    assert np.array_equal(traces[0], traces[2])


def test_ranges_cover_all_columns_and_depend_on_the_data_alone():
    codes = np.random.default_rng(1).integers(0, 4, (5, 4000)).astype(np.int32)
    zeros = np.zeros(4, np.int64)
    whole = Part(codes, np.eye(4, dtype=bool), np.arange(4000.0), np.zeros(4000, bool), zeros, zeros)
    ranges = column_ranges(whole, 2)
    assert len(ranges) == 4 and [part.model_of for part in ranges] == [-1, 2, 2, 2]
    assert np.array_equal(np.concatenate([part.tip_codes for part in ranges], 1), codes)
    assert np.array_equal(np.concatenate([part.weights for part in ranges]), whole.weights)
    hidden = replace(whole, unobservable=np.arange(4000) < 4)
    assert column_ranges(hidden, 0) == [hidden]


def test_many_taxa_are_rescaled():
    rng = np.random.default_rng(0)
    names = [f"t{i}" for i in range(150)]
    text = "".join(f">{n}\n{''.join(rng.choice(list('ACGTN'), 40))}\n" for n in names)
    check(alignment_of(text), "HKY+I+G4", 300, branch_length_bounds=(1e-8, 100.0))


@pytest.mark.parametrize("text", ["MK", "MKV+G4", "ORDERED+FO", "GTRK+FO"])
def test_characters(text, tmp_path):
    rows = "\n".join(["a 01201012", "b 01210010", "c 1102(01)?12", "d 11221110", "e 20011021"])
    file = tmp_path / "standard.nex"
    file.write_text(
        '#NEXUS\nbegin data; dimensions ntax=5 nchar=8; format datatype=standard symbols="012" missing=?;\n'
        f"matrix\n{rows}\n; end;\n"
    )
    check(read_alignment(file), text, 400)


def alignment_of(text: str):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.fasta"
        file.write_text(text)
        return read_alignment(file)


def test_what_cannot_be_sampled_is_refused():
    alignment = read_alignment(ROOT / "examples/primates.nex")
    for text, word in (("UNREST", "root"), ("HKY+FROOT", "root")):
        with pytest.raises(ModelError, match=word):
            structure_of_model(model_for_alignment(text, alignment))
    with pytest.raises(InputError, match="three taxa"):
        observations(alignment_of(">a\nACGT\n>b\nACGA\n"))
    with pytest.raises(InputError, match="could be constant"):
        observations(alignment, unseen=(0, 1, 2, 3))
