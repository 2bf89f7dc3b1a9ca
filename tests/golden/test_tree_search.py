"""The search on data that other programs searched (../shared/golden/tree_search.json, where it is there)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (SHARED / "golden" / "tree_search.json").exists(), reason="../shared is not there"
    ),
]


def best_of_others(name: str) -> float:
    rows = json.loads((SHARED / "golden" / "tree_search.json").read_text())["tree_search"]
    return max(row["lnL"] for row in rows if row["id"] in (f"iq_{name}", f"ng_{name}", f"iqf_{name}"))


@pytest.mark.parametrize("name", ["DS1", "DS3", "DS5", "DS7"])
def test_as_high_as_the_best_of_other_programs(name):
    data = read_alignment(SHARED / "data" / "ds" / f"{name}.fasta")
    found = search_tree(data, model_for_alignment("GTR+F+G4", data), settings=SearchSettings(threads=1))
    assert found.optimum.log_likelihood >= best_of_others(name) - 0.1
    again = TreeLikelihood(data, found.optimum.tree, found.optimum.model_text, engine="reference")
    assert again.log_likelihood() == pytest.approx(found.optimum.log_likelihood, rel=1e-9)
