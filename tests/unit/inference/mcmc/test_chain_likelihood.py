"""What a chain carries along after many partial updates is the likelihood of phloem's reference, for every
kind of data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phloem import TreeLikelihood, read_alignment
from phloem.errors import InputError, ModelError
from phloem.inference.mcmc.observations import observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure_of_model import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.tree.tree import Tree

ROOT = Path(__file__).resolve().parents[4]
GOLDEN = ROOT / "tests" / "golden" / "fixed_trees"


def values_of(model, structure, parameters) -> dict:
    """The model's free parameters from the sampler's blocks."""
    values, at = {}, 0
    for block in structure.blocks:
        x = parameters[at : at + block.size]
        at += block.size
        if not block.free:
            continue
        if block in (structure.exchangeability, structure.omega):
            rates = [p for p in model.free if p.name not in ("frequencies", "alpha", "p_invariable")]
            mine = [p for p in rates if (p.name == "omega") == (block is structure.omega)]
            ratios = iter(x[1:] / x[0])
            values |= {
                p.name: np.array([next(ratios) for _ in p.elements]) if p.elements else next(ratios)
                for p in mine
            }
        elif block is structure.frequency:
            values["frequencies"] = x
        else:
            values["alpha" if block is structure.alpha else "p_invariable"] = float(x[0])
    return values


def check(alignment, text: str, generations: int, **settings) -> None:
    model = model_for_alignment(text, alignment)
    structure = structure_of_model(model)
    chains = ChainSettings(n_chains=2, sample_every=generations, tuning_generations=0, **settings)
    run = advanced(new_run(0, observations(alignment, structure.ascertained), structure, chains), generations)
    h = int(np.flatnonzero(run.state.rank == 0)[0])
    parameters = run.state.parameters[h, run.state.slot[h]]
    assert run.state.accepted.sum() > 0
    tree = Tree(alignment.taxa, run.samples.parent[-1], run.samples.lengths[-1], rooted=False)
    values = values_of(model, structure, parameters)
    expected = TreeLikelihood(alignment, tree, model.with_values(values), engine="reference").log_likelihood()
    assert run.samples.numbers[-1, 0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "text",
    ["JC", "K80+I", "HKY+F+G4", "GTR+FO+I+G5", "TN93+R3{0.3,0.1,0.3,0.5,0.4,2.1}", "TIM2+G8", "GTR+G4{0.5}"],
)
def test_nucleotides(text):
    check(read_alignment(ROOT / "examples/primates.nex"), text, 1500)


def test_without_site_repeats_the_numbers_are_the_same():
    alignment = read_alignment(ROOT / "examples/primates.nex")
    structure = structure_of_model(model_for_alignment("GTR+G4", alignment))
    traces = [
        advanced(
            new_run(0, observations(alignment), structure, ChainSettings(sample_every=50, repeats=r)), 500
        )
        for r in (True, False)
    ]
    assert np.array_equal(traces[0].samples.numbers, traces[1].samples.numbers)


def golden(name: str, **options):
    return read_alignment(GOLDEN / name, **options)


@pytest.mark.parametrize("text", ["LG+G4", "WAG+FO+I"])
def test_proteins(text):
    check(golden("carnivores_aa.fasta", datatype="protein"), text, 40)


@pytest.mark.parametrize("text", ["GY94+F3X4", "MG94+F1X4+G2"])
def test_codons(text):
    check(golden("carnivores13_codon.fasta", datatype="codon", genetic_code=2), text, 15)


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
    refused = (
        ("UNREST", "root"),
        ("HKY+R3", "no move"),
        ("HKY+F+COV{0.3,0.4}", "hidden states"),
        ("HKY+FROOT", "move"),
    )
    for text, word in refused:
        with pytest.raises(ModelError, match=word):
            structure_of_model(model_for_alignment(text, alignment))
    with pytest.raises(InputError, match="three taxa"):
        observations(alignment_of(">a\nACGT\n>b\nACGA\n"))
    with pytest.raises(InputError, match="could be constant"):
        observations(alignment, ascertained=True)
