"""The commands temporal-signal and date: what they write, and the West Nile virus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import phloem
from phloem.analysis.dated_input import DatedTreeOptions, DateOptions, read_dated_tree
from phloem.analysis.dating import DateSettings, dating_lines, run_date
from phloem.analysis.temporal_signal import TemporalSignalSettings, run_temporal_signal
from phloem.cli import build_app
from phloem.dating.least_squares import DatingSettings
from phloem.errors import InputError, InputWarning
from phloem.io.trees import read_tree
from phloem.tree.tree import node_depths

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
# A clock of 0.01 from 1990 on: (a 2000, b 2004) at 1996, c 2002, and (d 2001, e 2005) at 1994.
CLOCK = "(((a:0.04,b:0.08):0.03,c:0.09):0.03,(d:0.07,e:0.11):0.04);\n"
YEARS = {"a": 2000, "b": 2004, "c": 2002, "d": 2001, "e": 2005}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.nwk").write_text(CLOCK)
    (tmp_path / "u.nwk").write_text("(a:0.04,b:0.08,(c:0.09,(d:0.07,e:0.11):0.07):0.03);\n")
    (tmp_path / "d.tsv").write_text("".join(f"{name}\t{year}\n" for name, year in YEARS.items()))
    return tmp_path


def called(*arguments: str):
    return CliRunner().invoke(build_app(), list(arguments))


def test_an_alignment_in_the_place_of_a_tree_has_one_made_of_it(folder):
    rows = {"a": "ACGTACGTAA", "b": "ACGTACGTTT", "c": "ACGTACGAAA", "d": "ACGAACCTAA", "e": "TCGAACCTAC"}
    text = "".join(f">{name}\n{row * 20}\n" for name, row in rows.items())
    (folder / "x.fa").write_text(text)
    (folder / "x.nex").write_text(
        "#NEXUS\nbegin data; dimensions ntax=5 nchar=200; format datatype=dna; matrix\n"
        + "".join(f"{name} {row * 20}\n" for name, row in rows.items()) + "; end;\n"
    )  # fmt: skip
    given = read_dated_tree(DatedTreeOptions(alignment="x.fa", dates=DateOptions("d.tsv")))
    for file in ("x.fa", "x.nex"):
        found = read_dated_tree(DatedTreeOptions(file, dates=DateOptions("d.tsv")))
        assert found.sites == 200 and "BIONJ" in found.origin
        assert (found.tree.parent == given.tree.parent).all()
    told = called("temporal-signal", "x.fa", "--dates", "d.tsv")
    assert told.exit_code == 0 and "BIONJ" in told.output
    for file, other in (("d.tsv", {}), ("x.fa", {"alignment": "x.nex"})):
        with pytest.raises(InputError, match="tree"):
            read_dated_tree(DatedTreeOptions(file, dates=DateOptions("d.tsv"), **other))


def test_a_clock_is_dated(folder):
    line = ["date", "u.nwk", "--dates", "d.tsv", "--out", "x.tre", "--table", "x.tsv", "--picture", "x.svg"]
    told = called(*line, "--json", "x.json", "--intervals", "20", "--sites", "5000")
    assert told.exit_code == 0, told.output
    tree = read_tree("x.tre")
    assert tree.rooted and np.allclose(
        node_depths(tree)[:5], [YEARS[name] - 1990 for name in tree.taxa], atol=1e-6
    )
    notes = tree.annotations[tree.n_nodes - 1]
    assert notes["date"] == pytest.approx(1990, abs=1e-5) and notes["height"] == pytest.approx(15, abs=1e-5)
    low, high = notes["height_95%_CI"]
    assert low < 15 < high
    rows = [line.split("\t") for line in Path("x.tsv").read_text().splitlines()]
    assert rows[0] == ["node", "day", "date", "height", "date_lower", "date_upper"]
    assert rows[1][:2] in (["root", "1990-01-01"], ["root", "1989-12-31"]) and len(rows) == 10
    assert ">2000<" in Path("x.svg").read_text()
    record = json.loads(Path("x.json").read_text())
    assert (
        record["rate"] == pytest.approx(0.01, rel=1e-6)
        and record["root_proven"]
        and not record["sites_assumed"]
    )
    assert record["rate_interval"][0] < 0.01 < record["rate_interval"][1] and "dated_tree" not in record


def test_intervals_repeat_with_the_seed(folder):
    def interval(seed: int) -> list:
        data = DatedTreeOptions("t.nwk", dates=DateOptions("d.tsv"), sites=500)
        return run_date(
            DateSettings(data, DatingSettings(replicates=5, seed=seed))
        ).dating.rate_interval.tolist()

    assert interval(1) == interval(1) != interval(2)


@pytest.mark.parametrize("root", ["branch", "keep"])
def test_roots_that_are_kept(folder, root):
    data = DatedTreeOptions("t.nwk", dates=DateOptions("d.tsv"))
    found = run_date(DateSettings(data, DatingSettings(root=root)))
    assert found.dating.years[-1] == pytest.approx(1990, abs=1e-5) and found.sites_assumed
    with pytest.raises(InputError, match="no root"):
        run_date(
            DateSettings(DatedTreeOptions("u.nwk", dates=DateOptions("d.tsv")), DatingSettings(root=root))
        )


def test_a_root_that_the_dates_hardly_reach_is_told(folder):
    usual, slow = ["date", "t.nwk", "--dates", "d.tsv"], ["--rate", "1e-6"]
    assert "hardly show a rate" not in called(*usual).output
    assert "hardly show a rate; see phloem temporal-signal" in " ".join(called(*usual, *slow).output.split())


def test_what_speaks_against_a_rate_is_told(folder):
    usual = DateSettings(DatedTreeOptions("t.nwk", dates=DateOptions("d.tsv")), DatingSettings(replicates=9))
    clock = run_date(usual)
    assert not any("slope" in line or "does not hold" in line for line in dating_lines(clock))
    beside = replace(clock, dating=replace(clock.dating, rate_interval=np.array([0.02, 0.03])))
    assert "the interval does not hold the rate" in dating_lines(beside)[-1]
    low = run_date(replace(usual, dating=DatingSettings(rates=(1e-6, 3e-3))))
    assert "the slope of the root-to-tip regression is 0.01:" in dating_lines(low)[-1]
    outside = replace(clock.dating, rate=0.007, rate_interval=np.array([0.006, 0.008]))
    assert (
        "regression is 0.01: branches of few substitutions"
        in dating_lines(replace(clock, dating=outside))[-1]
    )
    assert "whole years" in dating_lines(replace(clock, dating=outside))[-1]
    days = replace(clock.data.dates, lower=clock.data.dates.lower + 0.4, upper=clock.data.dates.upper + 0.4)
    of_days = replace(clock, dating=outside, data=replace(clock.data, dates=days))
    assert "whole years" not in dating_lines(of_days)[-1]
    above = replace(outside, rate=0.02, rate_interval=np.array([0.015, 0.03]))
    assert "is 0.01, which its interval" in dating_lines(replace(clock, dating=above))[-1]
    inside = replace(outside, rate_interval=np.array([0.006, 0.011]))
    assert not any("slope" in line for line in dating_lines(replace(clock, dating=inside)))
    given = run_date(replace(usual, dating=DatingSettings(rate=2e-3)))
    assert not any("slope" in line for line in dating_lines(given))


def _many(folder, wrong: str, date: str) -> None:
    """60 tips of a clock of 0.01 from 1990 on, but for one whose date is another."""
    years = {f"t{k:02}": 1992 + k * 0.25 for k in range(60)}
    tips = [f"{name}:{0.01 * (year - 1990) + 1e-4 * (k % 3)}" for k, (name, year) in enumerate(years.items())]
    (folder / "m.nwk").write_text(f"({','.join(tips)});\n")
    lines = [f"{name}\t{date if name == wrong else format(year, '.3f')}\n" for name, year in years.items()]
    (folder / "m.tsv").write_text("".join(lines))


def test_tips_off_the_clock_are_named_and_can_be_left_out(folder):
    usual = DateSettings(DatedTreeOptions("m.nwk", dates=DateOptions("m.tsv")), DatingSettings(replicates=0))
    _many(folder, "none", "")
    assert run_date(usual).outliers == ()
    _many(folder, "t05", "2009.5")
    found = run_date(usual)
    assert found.outliers == ("t05",) == tuple(found.to_json()["outliers"])
    told = [line for line in dating_lines(found) if "off the clock" in line]
    assert len(told) == 1 and "'t05'" in told[0] and "--without" in told[0]
    given = run_date(replace(usual, dating=DatingSettings(replicates=0, rate=0.01)))
    assert given.outliers == ("t05",) and any("off the clock" in line for line in dating_lines(given))
    told = called("date", "m.nwk", "--dates", "m.tsv", "--without", "T05", "--json", "-", "--intervals", "0")
    record = json.loads(told.stdout)
    assert record["outliers"] == [] and record["rate"] == pytest.approx(0.01, rel=0.02)
    assert "t05" not in record["dated_tree"] and "t06" in record["dated_tree"]


def test_tips_off_the_clock_are_left_out_and_a_file_says_why(folder):
    line = ["date", "m.nwk", "--dates", "m.tsv", "--intervals", "0", "--json", "x.json", "--out", "x.tre"]
    _many(folder, "t05", "1902-07-02")
    told = called(*line, "--without-outliers", "out.tsv")
    assert told.exit_code == 0 and "1 tip off the clock left out, see out.tsv: 't05'" in told.output
    head, row = (line.split("\t") for line in Path("out.tsv").read_text().splitlines())
    found = dict(zip(head, row))
    assert found["name"] == "t05" and found["earliest"] == found["latest"] == "1902-07-02"
    assert found["distance_is_of"].startswith("1993-0") and float(found["interquartile_ranges"]) > 3
    record = json.loads(Path("x.json").read_text())
    assert record["left_out"] == ["t05"] and record["outliers"] == []
    assert record["rate"] == pytest.approx(0.01, rel=0.02) and "t05" not in read_tree("x.tre").taxa
    by_hand = called(*line[:6], "--json", "-", "--without", "t05")
    assert json.loads(by_hand.stdout)["rate"] == record["rate"]
    signal = called("temporal-signal", "m.nwk", "--dates", "m.tsv", "--permutations", "0", "--json", "-")
    assert json.loads(signal.stdout)["outliers"] == ["t05"]
    _many(folder, "none", "")
    told = called(*line, "--without-outliers", "out.tsv", "--redo")
    assert "no tip is off the clock" in told.output and len(Path("out.tsv").read_text().splitlines()) == 1
    assert len(read_tree("x.tre").taxa) == 60
    (folder / "m.tsv").write_text("".join(f"t{k:02}\t2000\n" for k in range(60)))
    told = called(*line, "--rate", "0.01", "--without-outliers", "out.tsv", "--redo")
    assert isinstance(told.exception, InputError) and "no clock that tips could be off" in str(told.exception)


def test_a_wide_date_that_holds_the_clock_s_is_no_outlier(folder):
    """t00 is of 1992; half a century around it has its middle far from there."""
    _many(folder, "t00", "[1980:2030]")
    data = DatedTreeOptions("m.nwk", dates=DateOptions("m.tsv"))
    found = run_date(DateSettings(data, DatingSettings(replicates=0)))
    assert found.regression is not None and found.regression.outliers[found.regression.tree.taxa.index("t00")]
    assert found.outliers == ()


def test_tips_are_left_out_before_a_tree_is_made(folder):
    rows = {"a": "ACGTACGTAA", "b": "ACGTACGTTT", "c": "ACGTACGAAA", "d": "ACGAACCTAA", "e": "TCGAACCTAC"}
    (folder / "x.fa").write_text("".join(f">{name}\n{row * 20}\n" for name, row in rows.items()))
    kept = read_dated_tree(
        DatedTreeOptions(alignment="x.fa", dates=DateOptions("d.tsv", undated="unknown"), without=("E",))
    )
    assert kept.tree.taxa == kept.dates.names == ("a", "b", "c", "d")
    for tree, names, told in (
        ("t.nwk", ("z",), "no tip 'z'"),
        (None, ("z",), "no taxon 'z'"),
        ("t.nwk", ("a", "b", "c", "d"), "fewer than two tips"),
    ):
        options = DatedTreeOptions(tree, alignment="x.fa", dates=DateOptions("d.tsv"), without=names)
        with pytest.raises(InputError, match=told):
            read_dated_tree(options)


def test_dates_that_are_not_known_are_estimated(folder):
    (folder / "d.tsv").write_text("a\t2000\nb\t?\nc\t2002\nd\t[1999:2003]\ne\t2005\n")
    with pytest.raises(InputError) as error:
        run_date(DateSettings(DatedTreeOptions("t.nwk", dates=DateOptions("d.tsv"))))
    assert error.value.taxon == "b" and error.value.line == 2
    options = DateOptions("d.tsv", undated="unknown")
    found = run_date(DateSettings(DatedTreeOptions("t.nwk", dates=options), DatingSettings(rate=0.01)))
    dated = dict(zip(found.tree.taxa, found.dating.years))
    assert dated["b"] == pytest.approx(2004, abs=1e-5) and dated["d"] == pytest.approx(2001, abs=1e-5)
    signal = run_temporal_signal(
        TemporalSignalSettings(DatedTreeOptions("t.nwk", dates=options), permutations=0)
    )
    assert signal.regression.dated == 4 and np.isnan(signal.regression.years[found.tree.taxa.index("b")])


def test_dates_without_a_signal(folder):
    (folder / "d.tsv").write_text("a\t2005\nb\t2000\nc\t2002\nd\t2004\ne\t1999\n")
    told = called("temporal-signal", "t.nwk", "--dates", "d.tsv", "--permutations", "99")
    assert told.exit_code == 0 and "p = " in told.output
    (folder / "d.tsv").write_text("".join(f"{name}\t2000\n" for name in YEARS))
    for command in ("temporal-signal", "date"):
        told = called(command, "t.nwk", "--dates", "d.tsv")
        assert isinstance(told.exception, InputError) and "the same date" in str(told.exception)


def test_temporal_signal_of_a_clock(folder):
    line = ["temporal-signal", "u.nwk", "--dates", "d.tsv", "--permutations", "99", "--seed", "3"]
    told = called(*line, "--out-tree", "x.nwk", "--table", "x.tsv", "--picture", "x.svg", "--json", "x.json")
    assert told.exit_code == 0 and "R² 1.0000" in told.output and "│" in told.output
    record = json.loads(Path("x.json").read_text())
    assert record["rate"] == pytest.approx(0.01) and record["root_year"] == pytest.approx(1990)
    assert record["outliers"] == [] and record["randomisation"]["tips"]["p_value"] <= 0.1
    assert len(Path("x.tsv").read_text().splitlines()) == 6 and read_tree("x.nwk").rooted
    assert "sampling date" in Path("x.svg").read_text()


def test_dates_from_names_and_bad_combinations(folder):
    (folder / "n.nwk").write_text(CLOCK.translate(str.maketrans({n: f"{n}|{y}" for n, y in YEARS.items()})))
    told = called("temporal-signal", "n.nwk", "--permutations", "0", "--json", "-")
    assert json.loads(told.stdout)["rate"] == pytest.approx(0.01)
    for extra in (["--name-column", "x"], ["--dates", "d.tsv", "--date-delimiter", "|"]):
        assert isinstance(called("temporal-signal", "n.nwk", *extra).exception, InputError)
    assert isinstance(called("date").exception, InputError)
    assert isinstance(
        called("date", "t.nwk", "--dates", "d.tsv", "--rate-range", "fast").exception, InputError
    )


def test_negative_lengths_count_as_zero(folder):
    (folder / "t.nwk").write_text(CLOCK.replace("c:0.09", "c:-0.001"))
    with pytest.warns(InputWarning, match="1 branch has a negative length"):
        found = run_date(DateSettings(DatedTreeOptions("t.nwk", dates=DateOptions("d.tsv"))))
    assert found.tree.lengths.min() >= 0


def test_the_west_nile_virus():
    data = DatedTreeOptions(
        alignment=str(EXAMPLES / "west_nile.fasta.gz"),
        dates=DateOptions(str(EXAMPLES / "west_nile.dates.tsv")),
    )
    signal = run_temporal_signal(TemporalSignalSettings(data, permutations=100)).regression
    assert 4e-4 < signal.rate < 6e-4 and 1997 < signal.root_year < 1999 and signal.r_squared > 0.7
    found = run_date(DateSettings(data, DatingSettings(replicates=20))).dating
    assert 4e-4 < found.rate < 6e-4 and 1997 < found.years[-1] < 1999 and found.proven
    low, high = found.year_intervals[-1]
    assert low < 1998.58 and high > 1997.72  # the published posterior: 1998.58 (1997.72 – 1999.10)


def test_the_names_a_user_imports():
    for name in ("read_dates", "dates_from_names", "TipDates", "best_root", "date_tree", "DatingSettings"):
        assert getattr(phloem, name).__doc__
