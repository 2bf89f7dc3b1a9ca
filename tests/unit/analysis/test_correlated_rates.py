"""+AG in analyses: columns that are left out keep their place, parts are chains of their own, and what takes
sites as independent says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from phloem.analysis.distance import run_distance_analysis
from phloem.analysis.distance_source import DistanceAnalysisSettings
from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.mcmc import McmcSettings, run_mcmc
from phloem.analysis.mcmc_data import chain_input, prior_text
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.partitioned_likelihood import run_partitioned_likelihood
from phloem.analysis.plan import PlanSettings, run_plan
from phloem.analysis.time_data import time_input
from phloem.analysis.time_record import TimeTreeSettings
from phloem.analysis.tree_tests import TreeTestsSettings, run_tree_tests
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.recorded import only_of_kind
from phloem.data.translation import distances
from phloem.errors import DeviceError, InputError, ModelError
from phloem.inference.mcmc.settings import ChainSettings, Priors
from phloem.io.trees import read_trees
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.simulation import evolved_states, simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood

NEWICK = "((a:0.2,b:0.3):0.1,c:0.25,(d:0.4,e:0.05):0.15);\n"
TRUE = "HKY{2}+F{0.1,0.2,0.3,0.4}+AG4{0.4,0.8}"
N = 120


@pytest.fixture
def files(tmp_path) -> tuple[Path, dict[str, str]]:
    (tmp_path / "t.nwk").write_text(NEWICK)
    drawn = simulate_alignment(read_trees(tmp_path / "t.nwk")[0], TRUE, N, 3)
    letters = np.array(list("ACGT-"))
    rows = {name: "".join(letters[codes]) for name, codes in zip(drawn.taxa, drawn.codes)}
    write(tmp_path / "a.fasta", rows)
    return tmp_path, rows


def write(file: Path, rows: dict[str, str]) -> None:
    file.write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))


def settings(folder: Path, name: str = "a.fasta", **more) -> LikelihoodSettings:
    return LikelihoodSettings(str(folder / name), str(folder / "t.nwk"), TRUE, **more)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_columns_left_out_keep_their_place(files, engine):
    folder, rows = files
    kept = [i for i in range(N) if i % 7 and not 30 <= i < 41]
    masked = {name: "".join(c if i in kept else "-" for i, c in enumerate(row)) for name, row in rows.items()}
    write(folder / "masked.fasta", masked)
    write(folder / "close.fasta", {name: "".join(row[i] for i in kept) for name, row in rows.items()})
    columns = ",".join(str(i + 1) for i in kept)
    found = run_likelihood(settings(folder, sites=columns, engine=engine)).log_likelihood
    masked_value = run_likelihood(settings(folder, "masked.fasta", engine=engine)).log_likelihood
    assert found == pytest.approx(masked_value, rel=1e-12)
    closed = run_likelihood(settings(folder, "close.fasta", engine=engine)).log_likelihood
    assert abs(closed - found) > 0.1  # as if what is left were neighbours


def test_parts_are_chains_of_their_own(files):
    folder, rows = files
    parts = "\n".join(f"{TRUE}, p{k} = {k}-{N}\\3" for k in (1, 2, 3))
    (folder / "parts.txt").write_text(parts + "\n")
    total = 0.0
    for k in range(3):
        one = {n: "".join(c if i % 3 == k else "-" for i, c in enumerate(row)) for n, row in rows.items()}
        write(folder / "one.fasta", one)
        total += run_likelihood(settings(folder, "one.fasta")).log_likelihood
    together = replace(settings(folder), model=None, partitions=str(folder / "parts.txt"))
    assert run_partitioned_likelihood(together).log_likelihood == pytest.approx(total, rel=1e-12)


def test_how_far_apart_sites_are():
    names = {"a": "ATGAAACCCGGGTTT", "b": "ATGAAACCCGGGTTC"}
    dna = alignment_from_sequences(names, alphabet("dna"), sites="1,2,5,12-15")
    assert distances(dna).tolist() == [1, 1, 3, 7, 1, 1, 1]
    codons = alignment_from_sequences(names, alphabet("codon"), sites="1-3,10-15")
    assert distances(codons).tolist() == [1, 3, 1]
    whole = alignment_from_sequences(names, alphabet("dna"))
    assert distances(whole).tolist() == [1] * 15
    assert distances(only_of_kind(whole, "variable")[0]).tolist() == [1]
    assert distances(only_of_kind(dna, "variable")[0]).tolist() == [1]
    with pytest.raises(InputError, match="order of the file"):
        distances(replace(dna, places=dna.places[::-1]))
    with pytest.raises(ValueError, match="places"):
        replace(whole, places=np.arange(3))


def test_simulated_neighbours_are_as_likely_as_the_likelihood_says(tmp_path):
    """Pairs of sites one apart, and 10,000 from the next pair."""
    n = 60_000
    (tmp_path / "t.nwk").write_text("(a:0.4,b:0.7);")
    tree = read_trees(tmp_path / "t.nwk")[0]
    text, other = "MK+AG3{0.3,0.8}", "MK+AG3{0.3,-0.2}"
    observed = np.zeros((4, 4))
    model = model_for_alphabet(text, alphabet("binary")).evaluate()
    far = np.tile([10_000, 1], n)
    states = evolved_states(tree, tree.lengths, model, 2 * n, np.random.default_rng(4), far)[:2]
    first, second = (2 * states[0] + states[1]).reshape(n, 2).T
    np.add.at(observed, (first, second), 1)

    def expected(text: str) -> np.ndarray:
        found = np.zeros((4, 4))
        for i, j in np.ndindex(4, 4):
            rows = {"a": f"{i // 2}{j // 2}", "b": f"{i % 2}{j % 2}"}
            pair = TreeLikelihood(alignment_from_sequences(rows, alphabet("binary")), tree, text, "reference")
            found[i, j] = n * np.exp(pair.log_likelihood())
        return found

    assert expected(text).sum() == pytest.approx(n, rel=1e-12)
    assert chisquare(observed.ravel(), expected(text).ravel()).pvalue > 1e-3
    assert chisquare(observed.ravel(), expected(other).ravel()).pvalue < 1e-6


def test_what_takes_sites_as_independent_says_so(files):
    folder, _ = files
    data, tree = str(folder / "a.fasta"), str(folder / "t.nwk")
    (folder / "two.nwk").write_text(NEWICK + NEWICK.replace("b", "x").replace("c", "b").replace("x", "c"))
    with pytest.raises(ModelError, match="independent"):
        run_ml(MlSettings(data, model="JC+AG4", prefix=str(folder / "ml"), fast=True))
    with pytest.raises(ModelError, match="phloem time takes sites as independent"):
        time_input(TimeTreeSettings(data, model="JC+AG4"))
    with pytest.raises(ModelError, match="independent"):
        run_tree_tests(TreeTestsSettings(data, trees=str(folder / "two.nwk"), model=TRUE))
    with pytest.raises(InputError, match="distances take sites as independent"):
        run_distance_analysis(DistanceAnalysisSettings(data, model=TRUE, out=str(folder / "d.txt")))
    with pytest.raises(DeviceError, match="on CPUs only"):
        run_likelihood(settings(folder, engine="gpu"))
    one = TreeLikelihood(
        chain_input(McmcSettings(data, model=TRUE)).alignments["all"], read_trees(tree)[0], TRUE
    )
    for method in (
        "site_log_likelihoods",
        "site_branch_derivatives",
        "second_derivatives",
        "ancestral_states",
    ):
        with pytest.raises(ModelError, match=r"\+G"):
            getattr(one, method)()
    assert one.site_categories().sum(axis=0) == pytest.approx(np.ones(N))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"site_table": True}, "--site-table takes sites as independent"),
        ({"ancestral": True}, "--ancestral takes sites as independent"),
        ({"device": "gpu"}, "on CPUs only"),
    ],
)
def test_what_chains_do_not_make_of_it(files, more, told):
    folder, _ = files
    chains = ChainSettings(n_runs=1, n_chains=1, generations=2000, sample_every=10)
    asked = McmcSettings(str(folder / "a.fasta"), model=TRUE, prefix=str(folder / "x"), chains=chains, **more)
    with pytest.raises((InputError, DeviceError), match=told):
        run_mcmc(asked)
    assert not list(folder.glob("x*.p"))


def test_characters_that_are_cut_into_parts_are_no_neighbours(tmp_path):
    (tmp_path / "m.fasta").write_text(">a\n0120\n>b\n1021\n>c\n0011\n>d\n1100\n")
    asked = McmcSettings(str(tmp_path / "m.fasta"), model="MK+AG4", datatype="standard")
    with pytest.raises(InputError, match="several numbers of states"):
        chain_input(asked)
    assert chain_input(replace(asked, character_states="all")).structure.along_sites


def test_the_prior_is_told(files):
    folder, _ = files
    data = chain_input(McmcSettings(str(folder / "a.fasta"), model="JC+AG4"))
    told = prior_text(data.structure, data.priors)
    assert "uniform(-1,1) correlation of neighbours' rates" in told and "Dirichlet" not in told
    given = chain_input(
        McmcSettings(
            str(folder / "a.fasta"),
            model="JC+AG4",
            chains=ChainSettings(priors=Priors(others=("rho=uniform(0,0.5)",))),
        )
    )
    told = prior_text(given.structure, given.priors)
    assert "rho=uniform(0,0.5)" in told and "uniform(-1,1)" not in told
    with pytest.raises(InputError, match="takes another density"):
        chain_input(
            McmcSettings(
                str(folder / "a.fasta"),
                model="JC+AG4",
                chains=ChainSettings(priors=Priors(others=("rho=exponential(1)",))),
            )
        )


def test_a_forecast(files):
    folder, _ = files
    found = run_plan(PlanSettings(str(folder / "a.fasta"), model="HKY+AG4"))
    assert found.parts[0].selection.engine == "cpu" and found.parts[0].categories == 4
