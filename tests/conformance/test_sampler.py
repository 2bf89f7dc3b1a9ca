"""The sampler's path in the table: the log-likelihood that chains start with, and have after a few moves.

Its problems are alignments, since that is what it is given: sizes, states that never occur, one column,
fewer columns than codes.
"""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import STANDARD_SYMBOLS, alphabet
from phloem.data.genetic_code import genetic_code
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.sampler import sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment

BOUND = 1e-9  # relative
ACIDS = "ARNDCQEGHILKMFPSTWYV"
CODONS = genetic_code(1).sense_codons

# states: data type, model, what a character is drawn from
KINDS = {
    2: ("binary", "GTR2+FO+G4", "01"),
    4: ("dna", "GTR+FO+I+G4", "ACGTRN-"),
    8: ("standard", "MK+G4", STANDARD_SYMBOLS[:8]),
    20: ("protein", "WAG+G2", ACIDS + "BX-"),
    61: ("codon", "GY94+F3X4", CODONS),
}
TABLE = [  # tips, sites, states
    (4, 63, 2), (5, 1, 2), (64, 63, 2),
    (4, 1, 4), (5, 63, 4), (64, 1000, 4), (257, 63, 4),
    (4, 63, 8), (5, 1, 8), (64, 63, 8),
    (4, 1, 20), (5, 63, 20), (64, 63, 20),
    (4, 63, 61), (5, 1, 61), (64, 20, 61),
]  # fmt: skip
ABSENT = {
    "dna": ("ACT", "GTR+F"),
    "protein": (ACIDS.replace("W", ""), "WAG+F+G2"),
    "binary": ("0", "GTR2+FO"),
}


def drawn(tips: int, sites: int, kind: str, letters, seed: int = 1) -> Alignment:
    """Each row the first with a third of its characters drawn anew."""
    rng = np.random.default_rng(seed)
    first = rng.choice(list(letters), sites)
    rows = np.where(rng.random((tips, sites)) < 0.33, rng.choice(list(letters), (tips, sites)), first)
    states = alphabet(kind, symbols=letters) if kind == "standard" else alphabet(kind)
    return alignment_from_sequences({f"t{i}": "".join(row) for i, row in enumerate(rows)}, states)


def largest_difference(alignment: Alignment, text: str, generations: int = 20) -> float:
    structure = structure_of_model(model_for_alignment(text, alignment))
    chains = ChainSettings(n_runs=1, n_chains=2, generations=generations, sample_every=generations // 2)
    run = sample(observations(alignment, structure.parts[0].model.unseen), structure, chains).runs[0]
    plain, names = plain_likelihood([alignment], structure), run.columns.names
    expected = [plain(*run.samples.tree_and_numbers(i, names)) for i in range(run.samples.n)]
    assert run.samples.n == 3 and np.isfinite(expected).all()
    return float(np.max(np.abs(run.samples.numbers[:, 0] - expected) / np.maximum(np.abs(expected), 1.0)))


@pytest.mark.parametrize("tips, sites, states", TABLE)
def test_chains_carry_the_likelihood(tips, sites, states):
    kind, text, letters = KINDS[states]
    assert largest_difference(drawn(tips, sites, kind, letters), text) < BOUND


@pytest.mark.parametrize("kind", ABSENT)
def test_states_that_never_occur(kind):
    letters, text = ABSENT[kind]
    assert largest_difference(drawn(6, 40, kind, letters), text) < BOUND


def test_a_wrong_alignment_is_seen(monkeypatch):
    """Negative control: the plain path is given one character that the chains were not."""
    alignment = drawn(5, 63, "dna", "ACGT")
    codes = alignment.codes.copy()
    codes[0, 0] = (codes[0, 0] + 1) % 4
    other = Alignment(alignment.taxa, alignment.alphabet, codes, alignment.state_sets)
    structure = structure_of_model(model_for_alignment("JC", alignment))
    chains = ChainSettings(n_runs=1, n_chains=1, generations=2, sample_every=2)
    run = sample(observations(alignment), structure, chains).runs[0]
    tree_and_numbers = run.samples.tree_and_numbers(0, run.columns.names)
    right, wrong = (plain_likelihood([data], structure)(*tree_and_numbers) for data in (alignment, other))
    found = run.samples.numbers[0, 0]
    assert abs(found / right - 1) < BOUND < 1e-5 < abs(found / wrong - 1)
