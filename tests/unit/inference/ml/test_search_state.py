"""A search that was killed goes on from its file, with the same numbers as one that was not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.hardware.ranks import Ranks
from phloem.inference.ml import tree_search, tree_starts
from phloem.inference.ml.branch_tests import SupportSettings
from phloem.inference.ml.search_state import Checkpoint, Doing
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.tree_search import SearchSettings, search
from phloem.inference.ml.tree_starts import bionj_start, own_starts
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted
from unit.inference.mcmc.ranks_in_threads import led

SETTINGS, WANTED = SearchSettings(patience=3, starts=4, seed=3, threads=1), SupportSettings(ufboot=1000)


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def hard():
    """Data with several hilltops: long branches, few sites."""
    tree = uniform_unrooted(14, np.random.default_rng(3), 0.9)
    return simulate_alignment(tree, parse_model("HKY{3}+FQ", datatype="dna"), 120, seed=2)


def searched(data, checkpoint=None, kill_after: str | None = None, size: int = 1):
    """On so many processes."""

    def told(what: Doing, value: float) -> None:
        if str(what) == kill_after:
            raise Killed

    one = OneAlignment(data, model_for_alignment("HKY+FQ+G4", data))
    return led(size, lambda here: search(one, bionj_start(data), SETTINGS, told, WANTED, checkpoint, here))


def numbers(result) -> tuple:
    best = result.optimum
    ends = result.supports, result.starts, result.difficulty
    return best.log_likelihood, best.branch_lengths.tolist(), result.tries, result.found, *ends


@pytest.fixture(scope="module")
def whole(hard):
    return numbers(searched(hard))


def test_killed_searches_end_as_others_do_on_another_number_of_processes(hard, whole, tmp_path):
    assert len(whole[5]) == 5 and whole[2] >= 15
    path = str(tmp_path / "x.checkpoint")
    for after in ("start 1, try 2", "start 2, try 2", "after start 4, try 14", "start 5, try 1"):
        with pytest.raises(Killed):
            searched(hard, Checkpoint(path, "same", seconds=0.0), kill_after=after)
    for name in ("x.checkpoint", "x.checkpoint.2", "x.checkpoint.after-4"):
        assert json.loads((tmp_path / name).read_text())["state"]["tries"] > 0
    again = numbers(searched(hard, Checkpoint(path, "same", seconds=0.0), size=3))
    assert again == whole
    assert len(list(tmp_path.glob("x.checkpoint*"))) in (6, 7)
    last = max(tmp_path.glob("x.checkpoint.after-*"))
    tampered = json.loads(last.read_text())
    tampered["state"]["in_vain"] = 0
    tampered["state"]["place"]["lengths"] = [0.3] * len(tampered["state"]["place"]["lengths"])
    last.write_text(json.dumps(tampered))
    assert numbers(searched(hard, Checkpoint(path, "same", seconds=0.0))) != whole


def test_a_killed_search_of_many_taxa_ends_as_another(hard, tmp_path, monkeypatch):
    for module in (tree_starts, tree_search):
        monkeypatch.setattr(module, "MANY", 10)
    whole, path = numbers(searched(hard)), str(tmp_path / "x.checkpoint")
    with pytest.raises(Killed):
        searched(hard, Checkpoint(path, "same", seconds=0.0), kill_after="start 1, try 2")
    assert numbers(searched(hard, Checkpoint(path, "same", seconds=0.0))) == whole
    assert whole[3] or whole[2] >= 3


def test_searches_do_not_depend_on_the_number_of_processes(hard, whole, monkeypatch):
    for size in (2, 5):
        assert numbers(searched(hard, size=size)) == whole
    kept = {n: None for k in range(3) for n in own_starts(8, Ranks(k, 3))}
    assert sorted(kept) == [*range(1, 9)] and own_starts(8, Ranks(0, 3)) == [1, 6, 7]
    right = tree_search.further_start  # planted: starts are numbered on every process anew
    monkeypatch.setattr(tree_search, "further_start", lambda some, number, *a: right(some, 2, *a))
    assert numbers(searched(hard, size=2)) != whole


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
    for name in ("x.checkpoint.3", "x.checkpoint.after-3", "x.checkpoint.mine"):
        (tmp_path / name).write_text("of another start, or the user's own")
    Checkpoint(str(path), "mine").remove()
    assert [kept.name for kept in tmp_path.iterdir()] == ["x.checkpoint.mine"]
