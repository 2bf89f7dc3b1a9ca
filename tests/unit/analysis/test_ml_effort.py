"""`phloem ml`: --fast and --thorough, and what the report says of them and of the data's adequacy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis import ml_adequacy
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_effort import FAST, THOROUGH, USUAL, effort_line
from phloem.analysis.ml_settings import MlSettings, checkpoint_of
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.summary.composition import composition_test, symmetry_test

ROWS = {
    "a": "ACGTACGTACGTACGAAC",
    "b": "ACGTACGTACGTACTAAC",
    "c": "ACGTTCGAACGTACTAGC",
    "d": "ACGATCGAACGGACTAGC",
    "e": "AAAAAAAAAAAAAAATAA",
}


@pytest.fixture
def alignment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    return "small.fasta"


def of(alignment, prefix, **given):
    return run_ml(MlSettings(alignment, prefix=prefix, **({"model": "JC", "threads": 1} | given)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fast": True, "thorough": True}, "opposites"),
        ({"fast": True, "starts": 1}, "--fast sets --starts 1, and --starts 1 is given too"),
        ({"fast": True, "patience": 3}, "--fast sets --patience 0, and --patience 3"),
        ({"thorough": True, "patience": 0}, "--thorough sets --patience 20, and --patience 0"),
        ({"thorough": True, "starts": 9}, "--thorough sets --starts 5, and --starts 9"),
        ({"thorough": True, "model": "MF"}, "--thorough is about the search"),
        ({"fast": True, "engine": "differences"}, "--engine differences has no --fast"),
        ({"patience": 11, "engine": "differences"}, "--engine differences has no --patience"),
        ({"starts": 2, "engine": "differences"}, "--engine differences has no --starts"),
    ],
)
def test_words_and_numbers_that_contradict_each_other_are_refused(alignment, given, said):
    with pytest.raises(InputError, match=said) as caught:
        of(alignment, "x", **given)
    assert caught.value.hint and not list(Path().glob("x.*"))


def test_what_is_meant_by_the_words_and_numbers():
    assert MlSettings("x").effort == USUAL == ("usual", 1, 10)
    assert MlSettings("x", fast=True).effort == FAST and MlSettings("x", thorough=True).effort == THOROUGH
    assert MlSettings("x", starts=1, patience=10).effort == USUAL
    assert MlSettings("x", starts=3).effort == ("own", 3, 10)
    assert effort_line(MlSettings("x", starts=3, patience=1).effort) == (
        "effort: 3 starts, each until 1 vain try; more on hard data"
    )
    for effort in (USUAL, THOROUGH, MlSettings("x", starts=1000, patience=10_000).effort):
        assert len(f"  {effort_line(effort)}") <= 80


def test_a_word_is_the_search_of_its_numbers(alignment):
    fast, same = of(alignment, "fast", fast=True), of(alignment, "same", patience=0)
    assert fast.found.tries == 0 and len(fast.found.starts) == 1
    assert fast.found.optimum.log_likelihood == same.found.optimum.log_likelihood
    thorough = of(alignment, "thorough", thorough=True)
    assert len(thorough.found.starts) == 5 and thorough.found.tries >= 100
    for result, effort in ((fast, FAST), (thorough, THOROUGH)):
        prefix = result.settings.file_prefix
        assert json.loads(Path(f"{prefix}.json").read_text())["effort"] == effort._asdict()
        assert effort_line(effort) in Path(f"{prefix}.report").read_text()
    assert of(alignment, "usual", patience=1).found.tries > 0  # the comparison can see tries


def test_a_killed_search_goes_on_with_the_word_or_its_numbers(alignment):
    def identity(**given):
        return checkpoint_of(MlSettings(alignment, **given), ["JC"])._identity

    assert identity(thorough=True) == identity(starts=5, patience=20) != identity()
    assert identity(fast=True) == identity(patience=0) != identity()


def test_the_report_and_the_record_have_composition_and_symmetry(alignment):
    result, data = of(alignment, "small", fast=True), read_alignment(alignment)
    record = json.loads(Path("small.json").read_text())["adequacy"]
    composition, symmetry = composition_test(data), symmetry_test(data)
    assert [row["taxon"] for row in record["composition"]["sequences"]] == list(ROWS)
    assert [row["p"] for row in record["composition"]["sequences"]] == composition.p.tolist()
    assert record["composition"]["below_0.05"] == 1 and composition.p.argmin() == 4
    below = int((symmetry.p < 0.05).sum())
    assert record["symmetry"]["below_0.05"] == below > 0 and record["symmetry"]["pairs"] == 10
    best = record["symmetry"]["smallest"]
    assert best["p"] == symmetry.p.min() and best["p_bonferroni"] == min(1, 10 * symmetry.p.min())
    assert best["taxa"] == [data.taxa[k] for k in symmetry.pairs[np.argmin(symmetry.p)]]
    lines = Path("small.report").read_text().splitlines()
    assert "  composition, chi-square with 3 degrees of freedom: 1 of 5 sequences" in lines
    assert any(line.startswith(f"    {'e':<42}") for line in lines)
    assert any(f"{below} of 10 pairs of sequences have p < 0.05" in line for line in lines)
    assert result.warnings == ()


def test_variable_characters_alone_are_told_unless_the_model_knows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"a": "01" * 12, "b": "10" * 12, "c": "0110" * 6, "d": "0?" * 12, "e": "1-" * 12}

    def said(model, rows, **given):
        Path("v.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
        return of("v.fasta", "v", model=model, datatype="binary", fast=True, redo=True, **given).warnings

    (told,) = said("MK", rows)
    assert told.startswith("no character is constant") and "+ASC" in told
    assert said("MK+ASC", rows) == ()
    assert said("MK", {name: "0" + row for name, row in rows.items()}) == ()
    assert said("MK", {name: "?" + row for name, row in rows.items()}) == (told,)  # nothing is known there
    assert said("MK", {name: row[:19] for name, row in rows.items()}) == ()  # by chance
    Path("two.txt").write_text("BIN, one = 1-24\nBIN, two = 25-26\n")
    (told,) = said("MK", {name: row + "00" for name, row in rows.items()}, partitions="two.txt")
    assert "of part 'one'" in told


def test_pairs_of_too_many_sequences_are_said_not_to_be_tested(alignment, monkeypatch):
    monkeypatch.setattr(ml_adequacy, "MOST_TAXA", 4)
    of(alignment, "many", model="MF", model_set="JC", rate_set="E")
    said = "pairs are tested of at most 4 sequences, and these are 5"
    assert json.loads(Path("many.json").read_text())["adequacy"]["symmetry"] == {"not_tested": said}
    assert f"  symmetry (Bowker) not tested: {said}" in Path("many.report").read_text()


def test_every_part_has_its_tests(alignment):
    Path("two.txt").write_text("DNA, one = 1-9\nDNA, two = 10-18\n")
    of(alignment, "parts", partitions="two.txt", fast=True)
    record = json.loads(Path("parts.json").read_text())["adequacy"]
    assert [part["part"] for part in record] == ["one", "two"]
    for part, sites in zip(record, ("1-9", "10-18")):
        first, last = map(int, sites.split("-"))
        rows = {name: row[first - 1 : last] for name, row in ROWS.items()}
        Path("part.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
        want = composition_test(read_alignment("part.fasta")).p
        assert [row["p"] for row in part["composition"]["sequences"]] == want.tolist()
    rows = [line.split() for line in Path("parts.report").read_text().splitlines() if " of 5 " in line]
    assert [(row[0], row[6]) for row in rows] == [("one", "9"), ("two", "10")]  # a and b begin alike
