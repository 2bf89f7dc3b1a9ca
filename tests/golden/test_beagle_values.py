"""From files to value and gradient: what BEAGLE 4 printed for the carnivores, in double precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def counted_plus_one(alignment) -> str:
    counts = np.bincount(alignment.codes.ravel(), minlength=alignment.alphabet.n_states)
    smoothed = counts[: alignment.alphabet.n_states] + 1.0
    return ",".join(repr(f) for f in (smoothed / smoothed.sum()).tolist())


def build(datatype: str, model: str) -> TreeLikelihood:
    stops = {"stop_codons": "mask"} if datatype == "codon" else {}
    alignment = read_alignment(
        EXAMPLES / "carnivores.fasta.gz", datatype=datatype, ambiguity="missing", **stops
    )
    model = model.replace("COUNTED", counted_plus_one(alignment))
    return TreeLikelihood(alignment, read_tree(EXAMPLES / "carnivores.nwk"), model, engine="cpu")


def test_nucleotides():
    likelihood = build("dna", "GTR{1,1,1,1,1}+F{COUNTED}+G4{1.541}")
    np.testing.assert_allclose(
        likelihood.model.evaluate().rates, [0.23158717, 0.59524159, 1.05274139, 2.12042985], atol=5e-9
    )
    assert likelihood.n_patterns == 5565
    gradient = likelihood.gradient()
    assert gradient.log_likelihood == pytest.approx(-288035.022426, abs=1e-6)
    assert len(gradient.branch_lengths) == 122
    assert gradient.branch_lengths.sum() == pytest.approx(-150947.193176, abs=1e-5)
    likelihood.set(parameters={"rate_AG": 1.00001})
    assert abs(likelihood.log_likelihood() + 288035.022426) > 1e-5


def test_codons():
    likelihood = build("codon", "GY94{omega=1.414,kappa=1.234567}+F{COUNTED}")
    assert likelihood.n_patterns == 3601
    gradient = likelihood.gradient()
    assert gradient.log_likelihood == pytest.approx(-301098.111901, abs=1e-6)
    assert gradient.branch_lengths.sum() == pytest.approx(-184905.978672, abs=1e-5)
