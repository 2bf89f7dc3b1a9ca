"""Traces of a sampler that still runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from phloem.analysis.trace_file import is_trace, refuse_powers
from phloem.analysis.trace_view import (
    read_trace_files,
    read_traces,
    running_means,
    running_summary,
    thinned_trace,
)
from phloem.errors import InputError, InputWarning
from phloem.summary.trace import trace_summary


def trace_of(prefix, run, rows):
    lines = ["[ID: 1]", "Gen\tLnL\talpha", *("\t".join(map(str, row)) for row in rows)]
    with open(f"{prefix}.run{run}.p", "w") as file:
        file.write("\n".join(lines) + "\n")


def test_traces_are_summarised_as_far_as_all_runs_are(tmp_path):
    prefix, rng = str(tmp_path / "x"), np.random.default_rng(1)
    assert read_traces(prefix) is None
    draws = rng.normal(size=(2, 60, 2))
    for run, n in ((1, 60), (2, 50)):
        trace_of(prefix, run, [(500 * k, *draws[run - 1, k]) for k in range(n)])
    found = read_traces(prefix)
    assert found.names == ("LnL", "alpha") and [len(g) for g in found.generations] == [60, 50]
    rows = running_summary(found, 0.2)
    wanted = trace_summary(found.names, draws[:, 10:50])
    assert [row["mean"] for row in rows] == pytest.approx(wanted.mean.tolist())
    assert [row["ess"] for row in rows] == pytest.approx(wanted.ess.tolist())
    assert running_summary(found, 0.95) == []  # too few are left
    late = trace_summary(found.names, draws[:, 21:50])  # moves adapt up to generation 10,000
    assert [row["mean"] for row in running_summary(found, 0.2, 10_000)] == pytest.approx(late.mean.tolist())
    assert running_means(found, 0, 0.2, 100, 10_000)[0]["x"][0] == 10_500


def test_a_line_that_is_being_written_is_left_out(tmp_path):
    prefix = str(tmp_path / "x")
    trace_of(prefix, 1, [(0, -5.0, 1.0), (500, -4.0, 2.0)])
    with open(f"{prefix}.run1.p", "a") as file:
        file.write("1000\t-3.")
    assert read_traces(prefix).values[0].tolist() == [[-5.0, 1.0], [-4.0, 2.0]]


def test_traces_of_dated_trees_are_read_too(tmp_path):
    prefix = str(tmp_path / "x")
    (tmp_path / "x.run1.log").write_text("# phloem\nstate\tLnL\trate\n0\t-5\t1\n200\t-4\t2\n")
    found = read_traces(prefix)
    assert found.names == ("LnL", "rate") and found.values[0].tolist() == [[-5, 1], [-4, 2]]
    assert found.generations[0].tolist() == [0, 200]


def test_plots_get_evenly_chosen_points(tmp_path):
    prefix = str(tmp_path / "x")
    trace_of(prefix, 1, [(k, k * 2.0, 0.0) for k in range(1001)])
    found = thinned_trace(read_traces(prefix), 0, 101)[0]
    assert found["x"] == [10.0 * k for k in range(101)] and found["y"][-1] == 2000


def test_running_means_are_of_all_samples_since_the_burn_in(tmp_path):
    prefix, draws = str(tmp_path / "x"), np.random.default_rng(2).normal(size=400)
    trace_of(prefix, 1, [(10 * k, x, 0.0) for k, x in enumerate(draws)])
    traces = read_traces(prefix)
    whole, few = (running_means(traces, 0, 0.25, most)[0] for most in (1000, 30))
    wanted = [draws[100 : k + 1].mean() for k in range(100, 400)]
    assert whole["y"] == pytest.approx(wanted) and whole["x"] == [10.0 * k for k in range(100, 400)]
    assert few["y"][-1] == pytest.approx(wanted[-1]) and len(few["y"]) == 30
    assert running_means(traces, 0, 0.0, 1000)[0]["y"][-1] != pytest.approx(wanted[-1])  # the control


def test_columns_of_one_name_keep_their_own_numbers(tmp_path):
    file = tmp_path / "x.log"
    file.write_text("state\trate\trate\trate\n" + "".join(f"{k}\t{k}\t{-k}\t0.5\n" for k in range(5)))
    with pytest.warns(InputWarning, match=r"x\.log: .* numbered: rate \(2\), rate \(3\)"):
        found = read_trace_files([str(file)])
    assert found.names == ("rate", "rate (2)", "rate (3)")
    assert found.values[0][3].tolist() == [3, -3, 0.5]


def test_files_of_runs_that_were_put_behind_each_other_are_told(tmp_path):
    file, rows = tmp_path / "x.log", [f"{10 * k}\t{k}\n" for k in range(20)]
    file.write_text("".join(["state\tLnL\n", *rows, *rows]))
    with pytest.warns(InputWarning, match="after 190 the generation is 0"):
        read_trace_files([str(file)])


NAMES, ROWS = ("state", "likelihood", "alpha"), [(10 * k, -50.25 - k, 0.5 + k / 8) for k in range(12)]


@pytest.mark.parametrize("separator", ["\t", ",", ";", " ", "   "])
def test_what_stands_between_fields_is_seen(separator, tmp_path):
    """RevBayes' monitors have a separator; trees, whose lines may be as regular, are no traces."""
    file, lines = tmp_path / "x.log", [separator.join(map(str, row)) for row in [NAMES, *ROWS]]
    file.write_text("# of a monitor\n" + "\n".join(lines) + "\n")
    found = read_trace_files([str(file)])
    assert is_trace(str(file)) and found.names == NAMES[1:]
    np.testing.assert_array_equal(found.values[0], np.array(ROWS)[:, 1:])
    file.write_text('"","state","p"\n"1",10,0.5\n"2",20,0.25\n')  # as R writes tables, with numbers of rows
    found = read_trace_files([str(file)])
    assert found.names == ("p",) and found.generations[0].tolist() == [10, 20]
    assert found.values[0].ravel().tolist() == [0.5, 0.25]
    for text in (
        "(a,b,(c,d));\n",
        "tree 1 = (a,b);\ntree 2 = (a,b);\n",
        "name,date\nPan,1999\n",
        "3\n(a,b,c);\n",
    ):
        file.write_text(text)
        assert not is_trace(str(file))


def test_columns_without_a_number_are_told(tmp_path):
    file = tmp_path / "x.log"
    file.write_text("state\tp\tq\tr\ts\n" + "".join(f"{k}\t{k}\t0,5{k}\tnan\tok\n" for k in range(9)))
    told = r"left out: q \('0,50', line 2\), r, s \('ok', line 2\); decimal commas are not read"
    with pytest.warns(InputWarning, match=told):
        assert read_trace_files([str(file)]).names == ("p",)
    file.write_text("state;p\n" + "".join(f"{k};0,5\n" for k in range(9)))
    with pytest.raises(InputError, match=r"holds numbers: p \('0,5', line 2\); decimal commas"):
        read_trace_files([str(file)])
    file.write_text("name\tp\n" + "".join(f"{k}{'x' * (k == 4)}\t0.5\n" for k in range(9)))
    with pytest.raises(InputError, match="'4x' is no generation: the first column, 'name'") as error:
        read_trace_files([str(file)])
    assert error.value.line == 6


def test_words_in_the_trace_of_a_prefix_are_told(tmp_path):
    prefix = str(tmp_path / "x")
    trace_of(prefix, 1, [(0, "-5,25", 1.0), (10, "-4,5", 2.0)])
    with pytest.warns(InputWarning, match=r"run1\.p: .* LnL \('-5,25', line 3\); decimal commas"):
        found = read_traces(prefix)
    assert np.isnan(found.values[0][:, 0]).all() and found.values[0][:, 1].tolist() == [1.0, 2.0]


def test_a_first_row_of_numbers_is_a_sample(tmp_path):
    """PhyloBayes has its names in a comment. Without any, the sample was taken for names."""
    file, rows = tmp_path / "x.trace", "".join("\t".join(map(str, row)) + "\n" for row in ROWS)
    file.write_text("#" + "\t".join(NAMES) + "\n" + rows)
    found = read_trace_files([str(file)])
    assert found.names == NAMES[1:] and len(found.values[0]) == len(ROWS)
    for above in ("", "# a comment\n", "#1\t2\t3\n"):
        file.write_text(above + rows)
        with pytest.raises(InputError, match="nothing names its columns") as error:
            read_trace_files([str(file)])
        assert error.value.line == 1 + above.count("\n")


def test_power_posteriors_of_other_programs_are_refused(tmp_path):
    """MrBayes' own files do not say it: its PREFIX.ss beside them has their ID."""
    trace_of(tmp_path / "x", 1, [(0, -5.0, 1.0)])
    (tmp_path / "x.run1.t").write_text("#NEXUS\n[ID: 1]\nbegin trees;\n")
    head = "[LEGEND: The file contains statistics on the Steppingstone Sampling.]\n"
    files = [str(tmp_path / f"x.run1.{ending}") for ending in "pt"]
    for statistics in ("", f"{head}[ID: 12]\n", "[ID: 1]\n"):  # none, of another analysis, no such file
        (tmp_path / "x.ss").write_text(statistics)
        for file in files:
            refuse_powers(file)
    (tmp_path / "x.ss").write_text(f"{head}[ID: 1]\nStep\tPower\n")
    for file in files:
        with pytest.raises(InputError, match="no posterior"):
            refuse_powers(file)
    log = tmp_path / "x.log"
    for names, refused in (
        ("state\tpathLikelihood.delta\tpathLikelihood.theta", True),  # of BEAST
        ("state\tpower\tlikelihood", True),  # of RevBayes
        ("state\tlikelihood\tpopulation.theta", False),
        ("state,power,likelihood", True),
    ):
        log.write_text(names + "\n" + re.sub("[^\t,]+", "1", names) + "\n")
        if refused:
            with pytest.raises(InputError, match="no posterior"):
                refuse_powers(str(log))
        else:
            refuse_powers(str(log))
