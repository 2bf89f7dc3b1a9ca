"""`phloem summarize` on files of other programs: which are meant, traces, trees in batches, the report."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis import tree_runs
from phloem.analysis.summarise import SummariseSettings, run_summarise, sampled_files
from phloem.analysis.trace_file import is_trace
from phloem.analysis.trace_view import read_trace_files
from phloem.analysis.tree_runs import read_tree_runs
from phloem.cli import build_app
from phloem.errors import InputError, InputWarning
from phloem.io import tree_stream
from phloem.io.trees import read_tree, write_trees
from phloem.summary.splits import split_frequency_deviation
from phloem.tree.random import yule

GOLDEN = Path(__file__).parents[2] / "golden" / "mrbayes_sumt"
RUNS = [str(GOLDEN / f"sample.run{k}.t") for k in (1, 2)]


@pytest.fixture
def in_batches(monkeypatch):
    """Every file is read as a large one, some trees at a time."""
    monkeypatch.setattr(tree_stream, "LARGE", 0)
    monkeypatch.setattr(tree_stream, "LARGE_PACKED", 0)
    monkeypatch.setattr(tree_stream, "BATCH", 3000)


def same_tables(a, b) -> None:
    assert a.sample.taxa == b.sample.taxa
    for name in ("splits", "frequency", "trivial", "counted", "probability"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_batches_give_the_same_table(in_batches, monkeypatch, tmp_path):
    streamed = read_tree_runs(RUNS, 0.1)
    packed = [str(tmp_path / f"{r}.t.gz") for r in (1, 2)]
    for file, own in zip(packed, RUNS):
        Path(file).write_bytes(gzip.compress(Path(own).read_bytes()))
    from_packed = read_tree_runs(packed, 0.1)
    monkeypatch.setattr(tree_stream, "LARGE", 1 << 30)
    whole = read_tree_runs(RUNS, 0.1)
    same_tables(streamed.table, whole.table)
    same_tables(from_packed.table, whole.table)
    np.testing.assert_array_equal(streamed.table.sample.parent, whole.table.sample.parent)
    assert streamed.per_run == whole.per_run == (180, 180) and streamed.held == whole.held == 360
    other = read_tree_runs(RUNS, 0.2)
    assert not np.array_equal(other.table.probability, whole.table.probability[: other.table.n_splits])


def test_frequencies_count_trees_that_are_not_held(in_batches, monkeypatch):
    monkeypatch.setattr(tree_runs, "KEPT", 60)
    streamed = read_tree_runs(RUNS, 0.0)
    monkeypatch.setattr(tree_stream, "LARGE", 1 << 30)
    whole = read_tree_runs(RUNS, 0.0)
    assert streamed.per_run == (200, 200) and streamed.held == 60
    held = {row.tobytes(): k for k, row in enumerate(streamed.table.splits)}
    for k, row in enumerate(whole.table.splits):
        if row.tobytes() in held:
            found = streamed.table.frequency[:, held[row.tobytes()]]
            np.testing.assert_array_equal(found, whole.table.frequency[:, k])
    deviations = [split_frequency_deviation(one.table) for one in (streamed, whole)]
    assert deviations[0] == deviations[1]
    of_the_held = np.bincount(streamed.table.which[streamed.table.which >= 0]) / 60
    assert not np.allclose(of_the_held, streamed.table.probability), (
        "the control: what is held would tell else"
    )


def test_damage_in_a_large_file_has_its_line(in_batches, tmp_path):
    lines = Path(RUNS[0]).read_text().splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if "gen.3000 " in line)
    bad = tmp_path / "bad.t"
    bad.write_text(
        "".join([*lines[:at], lines[at].replace("(3:", "(99:").replace("3:", "99:"), *lines[at + 1 :]])
    )
    with pytest.raises(InputError) as told:
        read_tree_runs([str(bad)], 0.1)
    assert told.value.line == at + 1 and told.value.file == str(bad)
    bad.write_text("".join([*lines[:at], lines[at][:40] + "\n", *lines[at + 1 :]]))
    with pytest.raises(InputError, match="no whole tree") as told:
        read_tree_runs([str(bad)], 0.1)
    assert told.value.line == at + 1
    bad.write_text("".join(lines) + "begin trees;\ntree a = (t1:1,t2:1,t3:1);\nend;\n")
    with pytest.raises(InputError, match="several blocks"):
        read_tree_runs([str(bad)], 0.1)
    bad.write_text("#NEXUS\nbegin taxa; dimensions ntax=3; end;\n")
    with pytest.raises(InputError, match="no tree"):
        read_tree_runs([str(bad)], 0.1)


BEAST1 = """#NEXUS
Begin taxa;
\tDimensions ntax=4;
\t\tTaxlabels
\t\t\t'a|2001'
\t\t\tb
\t\t\tc
\t\t\td
\t\t\t;
End;
Begin trees;
\tTranslate
\t\t1 'a|2001',
\t\t2 b,
\t\t3 c,
\t\t4 d
\t\t;
"""
BEAST2 = "#NEXUS\nBegin trees;\n\tTranslate\n\t\t1 a,\n\t\t2 b,\n\t\t3 c,\n\t\t4 d\n;\n"
SHAPES = (
    "((1[&rate={r}]:{h},2[&rate={r}]:{h})[&rate={r}]:1.0,(3[&rate={r}]:1.5,4:1.5):{h})",
    "(((1[&rate={r}]:{h},3:{h})[&rate={r}]:0.5,2:1.0):0.5,4:1.5)",
)


def beast_files(folder, version: int) -> tuple[str, str]:
    """Trees and a log with as many states, as BEAST writes them; a quarter has the second shape."""
    rng = np.random.default_rng(version)
    trees = [BEAST1 if version == 1 else BEAST2]
    rows = []
    for i in range(80):
        shape = SHAPES[i % 4 == 0].format(r=round(rng.random(), 4), h=0.5)
        rooting = f" [&lnP=-{i}.5] = [&R]" if version == 1 else " ="
        trees.append(
            f"tree STATE_{i * 1000}{rooting} {shape}:0.0;\n"
            if version == 2
            else f"tree STATE_{i}{rooting} {shape};\n"
        )
        rows.append([i * 1000, -100 + rng.normal(), rng.gamma(3)])
    names = ["state", "joint", "clock.rate"] if version == 1 else ["Sample", "posterior", "clockRate"]
    head = "# BEAST v1.10.4\n# Generated Tue\n" if version == 1 else "#\n#model:\n#<beast>\n#\n"
    end = "" if version == 1 else "\t"
    log = head + "\t".join(names) + end + "\n" + "".join("\t".join(map(str, r)) + end + "\n" for r in rows)
    paths = folder / f"x{version}.trees", folder / f"x{version}.log"
    paths[0].write_text("".join(trees) + "End;\n")
    paths[1].write_text(log)
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize("large", [False, True], ids=["whole", "batches"])
@pytest.mark.parametrize("version", [1, 2])
def test_files_of_beast(version, large, tmp_path, monkeypatch):
    trees, log = beast_files(tmp_path, version)
    if large:
        monkeypatch.setattr(tree_stream, "LARGE", 0)
    prefix = str(tmp_path / f"x{version}")
    assert sampled_files([prefix]) == ((trees,), (log,))
    found = run_summarise(SummariseSettings((prefix,), "mcc", burn_in=0.25))
    assert found.per_run == (60,) and found.draws == 60 and found.tree.rooted
    probabilities = sorted(notes["prob"] for notes in found.tree.annotations.values() if "prob" in notes)
    assert probabilities[:2] == [0.75, 0.75] and probabilities[2:] == [1.0] * (len(probabilities) - 2)
    table = np.array([line.split("\t")[:3] for line in Path(log).read_text().splitlines()[-80:]], float)
    np.testing.assert_allclose(found.numbers.summary.mean, table[20:, 1:].mean(axis=0))
    assert found.numbers.summary.names[1] == ("clock.rate" if version == 1 else "clockRate")
    assert is_trace(log) and not is_trace(trees)


@pytest.mark.parametrize("large", [False, True], ids=["whole", "batches"])
def test_files_of_revbayes(large, tmp_path, monkeypatch):
    """Trees stand in a table; Replicate_ID tells the runs of a file apart, the columns of numbers too."""
    if large:
        monkeypatch.setattr(tree_stream, "LARGE", 0)
    head = "#RevBayes version (1.2.4)\nIteration\tReplicate_ID\tPosterior\t"
    shapes = "((a[&index=1]:1.0,b:1)[&index=5]:1,c:1,d:2)[&index=6]:0.0;", "((a:1,d:1):2,c:1,b:1);"
    trees, numbers = [head + "psi\n"], [head + "alpha[1]\thistory\n"]
    for i in range(80):  # run 0 has the second shape once in four samples, run 1 never
        run = i % 2
        trees.append(f"{i}\t{run}\t-5.5\t{shapes[run == 0 and i % 8 == 0]}\n")
        numbers.append(f"{i}\t{run}\t{'-inf' if i < 4 else -5 - i % 7}\t{run * 100 + i % 5}\t{{1,0.5}}\n")
    x = tmp_path / "x"
    x.with_suffix(".trees").write_text("".join(trees))
    x.with_suffix(".log").write_text("".join(numbers))
    found = run_summarise(SummariseSettings((str(x),), burn_in=0.25))
    assert found.per_run == (30, 30) and found.draws == 30
    of_ab = next(n for n in found.tree.annotations.values() if n["prob"] < 1)
    assert of_ab["prob"] == pytest.approx(1 - 7 / 60) and of_ab["prob_stddev"] > 0.1
    assert found.numbers.summary.names == ("Posterior", "alpha[1]")
    assert found.numbers.summary.r_hat[1] > 1.5, "two runs that are apart"
    whole = x.with_suffix(".trees").read_text()
    for run in (0, 1):  # the same in a file a run, whose taxa come in another order
        rows = [line for line in whole.splitlines() if f"\t{run}\t-5" in line]
        (tmp_path / f"y_run_{run + 1}.trees").write_text(
            "Iteration\tpsi\n" + "".join("1\t" + row.split("\t")[3] + "\n" for row in rows)
        )
    apart = read_tree_runs(sampled_files([str(tmp_path / "y")])[0], 0.25)
    same_tables(apart.table, read_tree_runs([str(x) + ".trees"], 0.25).table)
    x.with_suffix(".trees").write_text("".join([*trees[:9], "8\t0\n", *trees[9:]]))
    with pytest.raises(InputError, match="2 columns") as told:
        read_tree_runs([str(x) + ".trees"], 0.25)
    assert told.value.line == 11 and told.value.file == str(x) + ".trees"
    x.with_suffix(".trees").write_text("".join(trees).replace("psi", "psi\tphi").replace(";", ";\t(a,b);"))
    with pytest.raises(InputError, match="psi and phi"):
        read_tree_runs([str(x) + ".trees"], 0.25)


@pytest.mark.parametrize("large", [False, True], ids=["whole", "batches"])
def test_runs_whose_taxa_come_in_another_order(large, tmp_path, monkeypatch):
    if large:
        monkeypatch.setattr(tree_stream, "LARGE", 0)
    a, b, c = (tmp_path / f"{name}.ufboot" for name in "abc")
    a.write_text("(a:1,b:2,(c:3,d:4):1);\n" * 4)
    b.write_text("(d:4,(b:2,a:1):1,c:3);\n" * 4)
    found = read_tree_runs([str(a), str(b)], 0.0)
    assert split_frequency_deviation(found.table).largest == 0.0
    np.testing.assert_array_equal(found.table.sample.lengths[:, :4], [[1, 2, 3, 4]] * 8)
    b.write_text("(a:4,(b:2,d:1):1,c:3);\n" * 4)  # the control
    assert split_frequency_deviation(read_tree_runs([str(a), str(b)], 0.0).table).largest > 0.5
    c.write_text("(d:4,(b:2,e:1):1,c:3);\n" * 4)
    with pytest.raises(InputError, match="it has 'e'; it lacks 'a'") as told:
        read_tree_runs([str(a), str(c)], 0.0)
    assert told.value.file == str(c)
    c.write_text("(a:1,b:2,(c:3,d:4):1);\n(d:4,(b:2,e:1):1,c:3);\n")
    with pytest.raises(InputError, match="tree 2 and the first") as told:
        read_tree_runs([str(c)], 0.0)
    assert told.value.file == str(c)
    with pytest.raises(InputError, match="given twice"):
        sampled_files([str(a), str(tmp_path / "." / "a.ufboot")])


@pytest.mark.parametrize("large", [False, True], ids=["whole", "batches"])
def test_a_tree_that_was_cut_short_is_left_out(large, tmp_path, monkeypatch):
    if large:
        monkeypatch.setattr(tree_stream, "LARGE", 0)
    cut = tmp_path / "cut.t"
    lines = Path(RUNS[0]).read_text().splitlines(keepends=True)
    last = max(k for k, line in enumerate(lines) if "gen." in line)
    newick = "(a:1,b:2,(c:3,d:4):1);\n"
    table = "Iteration\tpsi\n" + f"0\t{newick}" * 3
    for text, trees, line in (
        ("".join(lines[:last]) + lines[last][:50], 199, last + 1),
        (newick * 3 + newick[:9], 3, 4),
        (table + "3\t" + newick[:9], 3, 5),
        (table + "3", 3, 5),
    ):
        cut.write_text(text)
        with pytest.warns(InputWarning, match=f"line {line}: the last tree was cut short"):
            assert read_tree_runs([str(cut)], 0.0).per_run == (trees,)


def test_numbers_that_are_not_finite(tmp_path):
    """In the burn-in they do no harm, after it their column is left out, with a word."""
    log = tmp_path / "x.log"
    rows = [f"{i}\t{'-inf' if i == 3 else i % 7}\t{'NaN' if i == 30 else i % 5}\t{{1}}\n" for i in range(40)]
    log.write_text("state\tp\tq\thistory\n" + "".join(rows))
    settings = SummariseSettings((str(log),), report=str(tmp_path / "x.html"))
    with pytest.warns(InputWarning, match="in 1 samples after the burn-in q is"):
        assert run_summarise(settings).numbers.summary.names == ("p",)
    assert "nan" not in (tmp_path / "x.html").read_text()
    log.write_text("state\thistory\n" + "0\t{1}\n" * 9)
    with pytest.raises(InputError, match="no column of this trace holds numbers"):
        run_summarise(SummariseSettings((str(log),)))


def test_runs_of_unequal_length_and_columns(tmp_path):
    """Samples of the longer one evenly spread; columns that both have; texts are no numbers."""
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text("state\tp\tq\tname\n" + "".join(f"{i}\t{i % 7}\t{i % 3}\tx\n" for i in range(40)))
    b.write_text("state\tq\tp\tname\n" + "".join(f"{i}\t{i % 3}\t{i % 7}\tx\n" for i in range(60)) + "60\t1")
    with pytest.warns(InputWarning, match=r"hold no number are left out: name \('x', line 2\)$"):
        traces = read_trace_files([str(a), str(b)])
    assert traces.names == ("p", "q") and [len(v) for v in traces.values] == [40, 60]
    np.testing.assert_array_equal(traces.values[0], traces.values[1][:40])
    found = run_summarise(SummariseSettings((str(a), str(b)), burn_in=0.5))
    assert found.draws == 20 and found.numbers.first == [20, 30] and found.tree is None
    dense, thin = tmp_path / "dense.log", tmp_path / "thin.log"
    for file, every in ((dense, 1), (thin, 10)):  # the same samples, of which one keeps a tenth
        file.write_text("state\tp\n" + "".join(f"{i}\t{i}\n" for i in range(0, 401, every)))
    same = run_summarise(SummariseSettings((str(dense), str(thin)), burn_in=0.25)).numbers.summary
    assert same.mean[0] == pytest.approx(250, abs=1) and same.sd[0] == pytest.approx(91, abs=3)
    (tmp_path / "c.log").write_text("state\tother\n0\t1\n1\t2\n")
    with pytest.raises(InputError, match="no column in common"):
        read_trace_files([str(a), str(tmp_path / "c.log")])
    b.write_text("state\tq\n0\t1\t2\n")
    with pytest.raises(InputError, match="3 columns of 2") as told:
        read_trace_files([str(b)])
    assert told.value.line == 2
    with pytest.raises(InputError, match="no such file"):
        sampled_files([str(tmp_path / "nothing")])
    with pytest.raises(InputError, match="there is no tables"):
        run_summarise(SummariseSettings((str(a),), tables=str(tmp_path / "t")))


class Page(HTMLParser):
    """Tags and attributes that are there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_page_without_scripts_or_network(tmp_path):
    trees = tmp_path / "x.trees"
    rng = np.random.default_rng(3)
    sample = [yule(6, rng) for _ in range(50)]
    names = ("<script>alert(1)</script>", "a&b", *sample[0].taxa[2:])
    write_trees(trees, [type(t)(names, t.parent, t.lengths, None, {}, True, None) for t in sample])
    (tmp_path / "x.log").write_text(
        "state\t<b>p</b>\n" + "".join(f"{i}\t{x}\n" for i, x in enumerate(rng.normal(size=50)))
    )
    page = tmp_path / "x.html"
    arguments = ["summarize", str(tmp_path / "x"), "--tree", "mcc", "--report", str(page), "--out"]
    done = CliRunner().invoke(build_app(), [*arguments, str(tmp_path / "x.tre")])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    read = Page(text)
    assert read.open == [] and "script" not in read.tags and "b" not in read.tags and "link" not in read.tags
    assert read.tags.count("svg") == 2 and "table" in read.tags
    outside = [v for k, v in read.attributes if k in ("src", "href") or (k == "style" and "url" in v)]
    assert outside == [] and not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "&lt;script&gt;" in text and "&lt;b&gt;p&lt;/b&gt;" in text
    assert read_tree(tmp_path / "x.tre").n_tips == 6
    again = CliRunner().invoke(build_app(), [*arguments, str(tmp_path / "y.tre")])
    assert isinstance(again.exception, InputError) and "x.html" in str(again.exception)


FIRST = """((1[&rate=1,place="N",at={1.0,2.0}]:1,2[&rate=2,place="N"]:1)[&rate=4,place="N"]:1,
3[&rate=1.0E-1]:2)[&place="S+N"]"""
SECOND = """((2[&rate=4,place="S"]:1,1[&rate=3,place="N",at={3.0,6.0}]:1)[&rate=5,place="S"]:1,
3[&rate=0.3]:2)[&place="S"]"""
THIRD = """(1[&rate=9,place="N",at={5.0,7.0},path={{1,2}}]:2,
(3[&rate=0.2]:1,2[&rate=6,place="S"]:1)[&rate=9,place="N"]:1)[&place="S"]"""
NOTED = "#NEXUS\nbegin trees;\ntranslate 1 a, 2 b, 3 c;\n" + "".join(
    f"tree t [&lnP=-3] = [&R] {one};\n" for one in (own.replace("\n", "") for own in (FIRST, SECOND, THIRD))
)


@pytest.mark.parametrize("kind", ["mcc", "hipstr", "majority"])
@pytest.mark.parametrize("large", [False, True])
def test_annotations_of_sampled_trees_are_summarised_by_clade(kind, large, monkeypatch, tmp_path):
    """Rates of branches and states of nodes, as BEAST's TreeAnnotator has them."""
    if large:
        monkeypatch.setattr(tree_stream, "LARGE", 0)
        monkeypatch.setattr(tree_stream, "BATCH", 100)
    file = tmp_path / "run.trees"
    file.write_text(f"{NOTED}end;\n")
    with pytest.warns(InputWarning, match="path, are left out"):
        tree = run_summarise(SummariseSettings((str(file),), kind, burn_in=0.0)).tree
    of = {name: tree.annotations[x] for x, name in enumerate(tree.taxa)}
    assert of["a"]["rate"] == pytest.approx(13 / 3) and of["a"]["rate_median"] == 3
    assert of["c"]["rate"] == pytest.approx(0.2) and "place" not in of["c"]
    assert (of["a"]["at1"], of["a"]["at2"]) == (3, 5) and "at1" not in of["b"]
    assert of["b"]["place"] == "S" and of["b"]["place.set"] == ("S", "N")
    assert of["b"]["place.set.prob"] == pytest.approx((2 / 3, 1 / 3))
    both, root = tree.annotations[3], tree.annotations[4]
    assert both["rate"] == 4.5 and both["place.prob"] == 0.5, "of two of three trees"
    assert root["place"] == "S" and root["place.prob"] == pytest.approx(2 / 3) and "rate" not in root
    assert "lnP" not in of["a"]


def test_annotations_of_runs_are_put_together(tmp_path):
    """Of runs that list their taxa in another order, or say a thing that others do not, or as a text."""
    texts = (
        "((a[&rate=1,x=3]:1,b[&x=1]:1):1,c[&x=2]:2);\n",
        "((c[&rate=3,x=low]:2,b[&x=1]:1):1,a[&rate=2,x=3]:2);\n",
    )
    files = [str(tmp_path / f"r{k}.nwk") for k in (1, 2)]
    for file, text in zip(files, texts):
        Path(file).write_text(text)
    tree = run_summarise(SummariseSettings(tuple(files), "mcc", burn_in=0.0)).tree
    of = {name: tree.annotations[x] for x, name in enumerate(tree.taxa)}
    assert (of["a"]["rate"], of["c"]["rate"]) == (1.5, 3) and "rate" not in of["b"]
    assert of["a"]["x"] == "3" and of["a"]["x.prob"] == 1 and of["c"]["x.set"] == ("2", "low")
    knots = tmp_path / "knots.nwk"  # the tree that is chosen lacks a node that another has
    one = "[&R] (a[&rate=1]:2,b[&rate=2]:2,(c[&rate=3]:1,d[&rate=4]:1)[&rate=5]:1);\n"
    knots.write_text("[&R] ((a[&rate=1]:1,b:1):1,(c:1,d:1):1);\n" + 9 * one)
    tree = run_summarise(SummariseSettings((str(knots),), "mcc", burn_in=0.0)).tree
    assert tree.n_nodes == 6 and [tree.annotations[x]["rate"] for x in range(5)] == [1, 2, 3, 4, 5]
    many = tmp_path / "many.nwk"
    many.write_text("".join(f"((a[&id=n{k}]:1,b:1):1,c:2);\n" for k in range(201)))
    with pytest.warns(InputWarning, match="'id' are 201 different texts"):
        found = run_summarise(SummariseSettings((str(many),), "mcc", burn_in=0.0)).tree
    assert "id" not in found.annotations[0]


def test_a_tree_of_other_taxa_has_its_number_in_the_file(tmp_path):
    file = tmp_path / "x.nwk"
    file.write_text("(a,b,(c,d));\n" * 30 + "(a,b,c);\n")
    with pytest.raises(InputError, match=r"tree 31 and .* it lacks 'd'"):
        read_tree_runs([str(file)], 0.25)
