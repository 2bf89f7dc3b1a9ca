"""`phloem time --engine`: when sequences of ancestors are sampled, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.dated_input import DateOptions
from phloem.analysis.time import TimeSettings, TimeTreeSettings, run_time
from phloem.analysis.time_data import time_input
from phloem.analysis.time_start import (
    CODED_SAMPLES,
    MANY,
    MANY_CODED,
    time_selection,
    with_engine,
    with_usual_samples,
)
from phloem.errors import InputError


def settings(tmp_path, n=MANY, changed=0.005, letters="ACGT", **more) -> TimeTreeSettings:
    """Of n genomes of 400 sites, whose names have dates."""
    rng = np.random.default_rng(1)
    base, lines = rng.choice(list(letters), 400), []
    for k in range(n):
        own = base.copy()
        at = rng.random(400) < changed
        own[at] = rng.choice([*letters, "N"], at.sum())
        lines.append(f">g{k}_{2000 + k / 100:.2f}\n{''.join(own)}\n")
    (tmp_path / "x.fasta").write_text("".join(lines))
    usual = {"model": "HKY+G4", "dates": DateOptions(date_field=-1)}
    return TimeTreeSettings(str(tmp_path / "x.fasta"), **usual | more)


def decided(asked: TimeTreeSettings):
    return with_engine(asked, time_input(asked))


def test_ancestors_are_sampled_of_many_nearly_equal_genomes(tmp_path):
    asked = settings(tmp_path)
    found, why = decided(asked)
    assert found.chains.ancestors == "sampled" and why.startswith("200 genomes differ at 0.")
    selection = time_selection(found, time_input(found))
    assert selection.engine == "cpu" and "ancestors" in selection.reason


def test_and_of_no_others_unasked(tmp_path):
    for change in (
        {"n": MANY - 1},
        {"changed": 0.05},
        {"letters": "N"},
        {"model": "HKY+I"},
        {"engine": "patterns"},
        {"device": "gpu"},
        {"chains": TimeSettings(use_data=False)},
        {"chains": TimeSettings(stones=5)},
        {"chains": TimeSettings(n_chains=2)},
    ):
        other = settings(tmp_path, **change)
        assert decided(other) == (other, "")


def test_of_codons_and_amino_acids_there_need_not_be_many(tmp_path):
    of = {"datatype": "protein", "model": "WAG+G4", "letters": "ARNDC"}
    found, why = decided(settings(tmp_path, n=MANY_CODED, **of, usual_samples=True))
    assert found.chains.ancestors == "sampled" and why.startswith("20 genomes differ")
    assert found.chains.sample_every == CODED_SAMPLES * TimeSettings().sample_every
    asked = settings(tmp_path, n=MANY_CODED, **of)
    assert decided(asked)[0].chains.sample_every == TimeSettings().sample_every  # as asked for
    for n, changed in ((MANY_CODED - 1, 0.005), (MANY_CODED, 0.05)):
        other = settings(tmp_path, n=n, changed=changed, **of)
        assert decided(other) == (other, "")


def test_samples_are_farther_apart_of_many_taxa(tmp_path):
    asked = settings(tmp_path, n=5)
    for n, every in ((5, 200), (199, 200), (200, 400), (1000, 2000)):
        assert with_usual_samples(asked, n) == asked
        usual = with_usual_samples(replace(asked, usual_samples=True), n)
        assert usual.chains.sample_every == every


def test_what_is_asked_for_is_done_or_refused(tmp_path):
    few = settings(tmp_path, n=5, changed=0.1, engine="ancestors")
    assert decided(few)[0].chains.ancestors == "sampled"
    for change, words in (
        ({"model": "HKY+I"}, r"without \+I"),
        ({"model": "MIX{JC,HKY}"}, "one process"),
        ({"device": "gpu"}, "on CPUs"),
        ({"chains": TimeSettings(stones=5)}, "tips' data alone"),
    ):
        with pytest.raises(InputError, match=words):
            decided(replace(few, **change))


def test_swaps_are_in_the_record(tmp_path):
    own = TimeSettings(n_chains=3, generations=4_000, threads=2)
    asked = settings(tmp_path, n=5, prefix=str(tmp_path / "x"), chains=own)
    result = run_time(asked)
    assert len(result.swaps) == 2 and min(result.swaps) > 0
    record = json.loads((tmp_path / "x.json").read_text())
    assert record["swaps_between_neighbouring_ranks"] == list(result.swaps)
    assert record["settings"]["chains"]["n_chains"] == 3
    again = run_time(asked)
    assert again.was_finished and again.swaps == result.swaps
    for other in (replace(own, heating=0.2), TimeSettings(generations=4_000)):
        with pytest.raises(InputError, match="heating"):
            run_time(replace(asked, chains=other))
