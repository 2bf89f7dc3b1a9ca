"""Codons whose ω differs among sites, beside MrBayes 3.2.7a: one tree with its numbers, of each of
omegavar=ny98 and m3, what MrBayes printed of it (LnL, LnPr, and of every codon the probability of positive
selection and ω). And that an analysis writes the means over its draws."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis import mcmc_draws, selection
from phloem.analysis.mcmc import run_mcmc
from phloem.analysis.mcmc_data import chain_input
from phloem.analysis.mcmc_draws import Draw
from phloem.analysis.mcmc_options import mcmc_settings
from phloem.analysis.mrbayes import block_analysis
from phloem.inference.mcmc.priors import number_priors
from phloem.io.trees import read_tree_sample
from phloem.tree.tree import Tree

GOLDEN = json.loads(Path(__file__).with_name("mrbayes_omega_classes.json").read_text())
NAMES = {
    "ny98": {"omega_1": "omega(-)", "omega_3": "omega(+)"}
    | {f"mixture_weight_{k}": f"pi({name})" for k, name in enumerate("-N+", 1)},
    "m3": {f"omega_{k}": f"omega({k})" for k in (1, 2, 3)}
    | {f"mixture_weight_{k}": f"pi({k})" for k in (1, 2, 3)},
}
# what MrBayes leaves out of its prior: the constant of the Dirichlet, 2, and that of the topologies, 3; what
# phloem has of ordered classes, the 6 orders that are one, makes up for both under M3
CONSTANT = {"ny98": np.log(6.0), "m3": 0.0}


def inputs(folder: Path, omegavar: str, codons: int = 100, more: str = ""):
    """The data that both programs read, with the block's options."""
    rows = "".join(f"{taxon} {sites[: 3 * codons]}\n" for taxon, sites in GOLDEN["rows"].items())
    head = f"#NEXUS\nbegin data;\ndimensions ntax=4 nchar={3 * codons};\nformat datatype=rna gap=-;\n"
    block = (
        f"lset nucmodel=codon omegavar={omegavar}; prset statefreqpr=fixed(equal); report possel=yes; {more}"
    )
    file = folder / "x.nex"
    file.write_text(f"{head}matrix\n{rows};\nend;\nbegin mrbayes;\n{block}\nend;\n")
    return mcmc_settings(block_analysis(file).options)


def of_mrbayes(folder: Path, omegavar: str):
    """The data, and MrBayes' draw: tree and numbers under phloem's names."""
    data, golden = chain_input(inputs(folder, omegavar)), GOLDEN[omegavar]
    names = ", ".join(f"{k} {taxon}" for k, taxon in enumerate(data.taxa, 1))
    text = golden["tree"]
    for k, taxon in enumerate(data.taxa, 1):
        text = text.replace(f"{taxon}:", f"{k}:")
    file = folder / "one.t"
    file.write_text(f"#NEXUS\nbegin trees;\ntranslate {names};\ntree a = [&U] {text}\nend;\n")
    sample = read_tree_sample(file)
    assert sample.taxa == data.taxa
    tree = Tree(data.taxa, sample.parent[0], sample.lengths[0], rooted=False)
    numbers = {ours: golden["numbers"][theirs] for ours, theirs in NAMES[omegavar].items()}
    return data, tree, numbers


@pytest.mark.parametrize("omegavar", ["ny98", "m3"])
def test_a_draw_of_mrbayes_has_its_likelihood_prior_and_probabilities_of_selection(tmp_path, omegavar):
    data, tree, numbers = of_mrbayes(tmp_path, omegavar)
    golden, plain = GOLDEN[omegavar], data.plain_likelihood()
    assert plain(tree.parent, tree.lengths, numbers) == pytest.approx(golden["LnL"], abs=1e-3)
    values = data.structure.space.unpack(data.structure.values_of(numbers))
    priors = number_priors(data.structure, data.priors)
    density = sum(float(prior.family.log_density(values[prior.block])) for prior in priors)
    density += float(data.priors.branch_lengths.log_density(tree.lengths[:-1], 4))
    assert density - golden["LnPr"] == pytest.approx(CONSTANT[omegavar], abs=2e-5)
    positive, omega = selection.of_draw(data, 0, Draw(tree.parent, tree.lengths, numbers))
    assert np.allclose(positive, golden["positive"], atol=1e-6)
    assert np.allclose(omega, golden["omega"], rtol=1e-5)
    first, last = "mixture_weight_1", "mixture_weight_3"  # control: the shares of two classes exchanged
    wrong = numbers | {first: numbers[last], last: numbers[first]}
    assert plain(tree.parent, tree.lengths, wrong) < golden["LnL"] - 1.0
    positive, _ = selection.of_draw(data, 0, Draw(tree.parent, tree.lengths, wrong))
    assert not np.allclose(positive, golden["positive"], atol=0.05)


def test_an_analysis_writes_the_means_over_its_draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mcmc_draws, "MOST_DRAWS", 10**6)
    told = "mcmc ngen=600 samplefreq=20 nruns=1 nchains=1 filename=o;"
    settings = inputs(tmp_path, "ny98", codons=8, more=told)
    result = run_mcmc(settings)
    assert "o.possel" in result.files
    lines = [line.split("\t") for line in Path("o.possel").read_text().splitlines()]
    assert lines[0][:2] == ["part", "codon"] and [row[1] for row in lines[1:]] == [
        str(k) for k in range(1, 9)
    ]
    probability, omega = (np.array([float(row[k]) for row in lines[1:]]) for k in (2, 3))
    assert ((probability > 0) & (probability < 1)).all()
    trace = np.loadtxt("o.run1.p", skiprows=2)
    names = Path("o.run1.p").read_text().splitlines()[1].split("\t")
    mean = dict(zip(names, trace.mean(0)))
    assert abs(probability.mean() - mean["mixture_weight_3"]) < 0.3
    assert (omega > trace[:, names.index("omega_1")].min()).all()
