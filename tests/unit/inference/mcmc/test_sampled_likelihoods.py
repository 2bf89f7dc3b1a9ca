"""Every log-likelihood that the sampler writes is the NumPy reference's of the tree and the numbers written
beside it: small data, states that never occur, lengths near 0."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import Alignment
from phloem.errors import NumericalError
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, Priors
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment

ACIDS = "ARNDCQEGHILKMFPSTWYV"
CODONS = tuple(
    a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT" if a + b + c not in ("TAA", "TAG", "TGA")
)


def alignment_of(rows: list[str], folder, **options) -> Alignment:
    file = folder / "a.fasta"
    file.write_text("".join(f">t{i}\n{row}\n" for i, row in enumerate(rows)))
    return read_alignment(file, **options)


def random_rows(letters, n_taxa: int, n_sites: int, seed: int) -> list[str]:
    """Each row a copy of the first with a third of its characters drawn anew."""
    rng = np.random.default_rng(seed)
    first = rng.choice(list(letters), n_sites)
    changed = rng.random((n_taxa, n_sites)) < 0.33
    drawn = rng.choice(list(letters), (n_taxa, n_sites))
    return ["".join(row) for row in np.where(changed, drawn, first)]


def largest_difference(alignment: Alignment, text: str, **settings) -> float:
    """Relative, over the samples of one short run of two chains, its own guard not asked."""
    model = model_for_alignment(text, alignment)
    structure = structure_of_model(model)
    chains = ChainSettings(**{"n_runs": 1, "n_chains": 2, "generations": 200, "sample_every": 20} | settings)
    run = sample(observations(alignment, structure.parts[0].model.unseen), structure, chains).runs[0]
    assert run.samples.n == 11 and len(np.unique(run.samples.numbers[:, 0])) > 3
    plain = plain_likelihood([alignment], structure)
    expected = np.array(
        [plain(*run.samples.tree_and_numbers(i, run.columns.names)) for i in range(run.samples.n)]
    )
    return float(np.max(np.abs(run.samples.numbers[:, 0] / expected - 1)))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_sites", [6, 8])
def test_fewer_patterns_than_codes(seed, n_sites, tmp_path):
    """6 taxa and up to 20 acids in 6 to 8 columns: a pair of classes used to be mistaken for another one."""
    rows = random_rows(ACIDS, 6, n_sites, seed)
    assert largest_difference(alignment_of(rows, tmp_path, datatype="protein"), "Poisson", seed=seed) < 1e-9


@pytest.mark.parametrize(
    ("text", "letters", "datatype"),
    [
        ("WAG+F", ACIDS.replace("C", "").replace("W", ""), "protein"),
        ("WAG+F+I+G4", ACIDS.replace("C", "").replace("W", ""), "protein"),
        ("Poisson+F", ACIDS.replace("V", ""), "protein"),
        ("GTR+F", "ACT", "dna"),
        ("HKY+F+G4", "AG", "dna"),
        ("GY94+F", [c for c in CODONS if c != "ACG"], "codon"),
        ("MG94+F3X4", [c for c in CODONS if c[0] != "G"], "codon"),
    ],
)
def test_states_of_frequency_zero(text, letters, datatype, tmp_path):
    alignment = alignment_of(random_rows(letters, 6, 60, 1), tmp_path, datatype=datatype)
    structure = structure_of_model(model_for_alignment(text, alignment))
    assert (structure.site_model(0, structure.space.start()).invariant_frequencies == 0).any()
    assert largest_difference(alignment, text) < 1e-9


def test_free_frequencies_of_absent_states_stay_positive(tmp_path):
    alignment = alignment_of(random_rows("ACT", 6, 60, 1), tmp_path, datatype="dna")
    assert largest_difference(alignment, "GTR+FO") < 1e-9


def test_an_observed_state_of_frequency_zero_is_refused(tmp_path):
    alignment = alignment_of(random_rows("ACGT", 6, 60, 1), tmp_path, datatype="dna")
    with pytest.raises(NumericalError):
        largest_difference(alignment, "HKY+F{0.3,0.3,0,0.4}")


@pytest.mark.parametrize(
    ("text", "letters", "datatype"), [("GTR+G4", "ACGT", "dna"), ("WAG+G4", ACIDS, "protein")]
)
def test_branches_of_almost_no_length(text, letters, datatype, tmp_path):
    """All lengths are about 1e-8; then a column's likelihood is made of what exp(Q t) differs from I by."""
    priors = Priors(branch_lengths=ExponentialPrior(1e9))
    alignment = alignment_of(random_rows(letters, 6, 12, 2), tmp_path, datatype=datatype)
    difference = largest_difference(alignment, text, priors=priors, branch_length_bounds=(1e-8, 3e-8))
    assert difference < 1e-9


@pytest.mark.parametrize(
    ("text", "column", "datatype"),
    [
        ("JC", "ACA", "dna"),
        ("HKY+FO+I+G4", "ACGTAC", "dna"),
        ("GTR+FO", "AA-NRA", "dna"),
        ("LG+G4", "ARNDCQ", "protein"),
        ("MK", "010110", "binary"),
    ],
)
def test_one_column(text, column, datatype, tmp_path):
    assert largest_difference(alignment_of(list(column), tmp_path, datatype=datatype), text) < 1e-9


@pytest.mark.parametrize(
    ("text", "letters", "datatype"), [("GTR+F+G4", "ACT-Y", "dna"), ("LG+F", "ARX-", "protein")]
)
def test_states_of_frequency_zero_where_columns_are_rescaled(text, letters, datatype, tmp_path):
    """Many taxa with gaps: what an absent state has at a node must not hide what the others have."""
    alignment = alignment_of(random_rows(letters, 60, 30, 5), tmp_path, datatype=datatype)
    assert largest_difference(alignment, text, generations=200) < 1e-9
