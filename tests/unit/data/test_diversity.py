"""The mean distance of sequences: counted by hand, against the truth of simulated pairs, at its limits."""

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.diversity import mean_distance
from phloem.io.trees import parse_trees
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model

DNA = alphabet("dna")


def of(*rows: str) -> float:
    return mean_distance(alignment_from_sequences({f"t{i}": row for i, row in enumerate(rows)}, DNA))


def test_pairs_are_counted_column_by_column():
    # 3 pairs in the first column, 2 of which differ; 1 in the second, alike; none in the third
    assert of("AA-", "AAC", "CNR") == pytest.approx(-0.75 * np.log(1 - 4 / 3 * 0.5))
    assert of("ACGT", "ACGT") == 0.0
    assert np.isnan(of("AC--", "--GT"))
    assert of("AAAA", "CCCC") == pytest.approx(2.0)


def test_the_distance_of_simulated_sequences():
    tree = parse_trees("(a:0.1,b:0.2,c:0.3);")[0]
    data = simulate_alignment(tree, parse_model("JC", datatype="dna"), 60_000, seed=1)
    assert mean_distance(data) == pytest.approx(0.4, rel=0.05)  # of every sixth column
