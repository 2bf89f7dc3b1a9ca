"""A search that was killed goes on from its file, with the same numbers as one that was not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.inference.ml.branch_tests import SupportSettings
from phloem.inference.ml.search_state import Checkpoint, Doing
from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted

SETTINGS, WANTED = SearchSettings(patience=3, starts=2, seed=3, threads=1), SupportSettings(ufboot=1000)


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def hard():
    """Data with several hilltops: long branches, few sites."""
    tree = uniform_unrooted(14, np.random.default_rng(3), 0.9)
    return simulate_alignment(tree, parse_model("HKY{3}+FQ", datatype="dna"), 120, seed=2)


def searched(data, checkpoint=None, kill_after: str | None = None):
    def told(what: Doing, value: float) -> None:
        if str(what) == kill_after:
            raise Killed

    model = model_for_alignment("HKY+FQ+G4", data)
    return search_tree(data, model, None, SETTINGS, told, WANTED, checkpoint)


def numbers(result) -> tuple:
    best = result.optimum
    ends = result.supports, result.starts, result.difficulty
    return best.log_likelihood, best.branch_lengths.tolist(), result.tries, result.found, *ends


def test_killed_searches_end_as_others_do(hard, tmp_path):
    whole = numbers(searched(hard))
    assert len(whole[5]) == 2 and whole[2] >= 6
    path = str(tmp_path / "x.checkpoint")
    for after in ("try 2", "try 5"):
        with pytest.raises(Killed):
            searched(hard, Checkpoint(path, "same", seconds=0.0), kill_after=after)
        assert json.loads((tmp_path / "x.checkpoint").read_text())["state"]["tries"] > 0
    again = numbers(searched(hard, Checkpoint(path, "same", seconds=0.0)))
    assert again == whole
    tampered = json.loads((tmp_path / "x.checkpoint").read_text())
    tampered["state"]["in_vain"] = 0
    tampered["state"]["place"]["lengths"] = [0.3] * len(tampered["state"]["place"]["lengths"])
    (tmp_path / "x.checkpoint").write_text(json.dumps(tampered))
    assert numbers(searched(hard, Checkpoint(path, "same", seconds=0.0))) != whole


def test_another_analysis_is_refused_or_replaced(tmp_path):
    path = tmp_path / "x.checkpoint"
    assert Checkpoint(str(path), "mine").read() is None
    for text in (
        "no JSON",
        "{}",
        '{"form": 2, "identity": "theirs", "state": {}}',
        '{"form": 1, "identity": "mine", "state": {}}',
        '{"form": 2, "identity": "mine"}',
    ):
        path.write_text(text)
        with pytest.raises(InputError, match="another analysis"):
            Checkpoint(str(path), "mine").read()
        assert Checkpoint(str(path), "mine", replace=True).read() is None
    Checkpoint(str(path), "mine").remove()
    assert not path.exists()
