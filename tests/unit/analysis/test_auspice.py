"""--auspice: trees of `phloem date` and of `phloem summarize` as datasets for Nextstrain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.auspice import AuspiceOptions
from phloem.cli import build_app
from phloem.errors import InputError
from phloem.io.trees import read_tree
from unit.auspice_rules import problems, walk

GOLDEN = Path(__file__).parents[2] / "golden" / "mrbayes_sumt"
# A clock of 0.01 from 1990 on: (a 2000, b 2004) at 1996, c 2002, and (d 2001, e 2005) at 1994.
CLOCK = "(((a:0.04,b:0.08)95:0.03,c:0.09)80/0.9:0.03,(d:0.07,e:0.11):0.04);\n"
META = """strain\tdate\tcountry\treads\taccession\tregion
a\t2000\tPeru\t1\tAC_1\t?
b\t2004\tChile\t2.5\tAC 2\tunknown
c\t[2001:2003]\tPeru\t3\tAC_3\t
d\t2001\t?\t4\tAC_4\tNA
e\t2005\tPeru\t5\tAC_5\t?
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.nwk").write_text(CLOCK)
    (tmp_path / "m.tsv").write_text(META)
    return tmp_path


def called(*arguments: str):
    return CliRunner().invoke(build_app(), list(arguments))


def nodes_of(file: str) -> tuple[dict, dict]:
    found = json.loads(Path(file).read_text())
    assert problems(found) == []
    return found["meta"], {node["name"]: node for node, _ in walk(found)}


DATE = ["date", "t.nwk", "--dates", "m.tsv", "--sites", "5000", "--intervals", "20", "--root", "keep"]


def test_a_dated_tree(folder):
    told = called(*DATE, "--auspice", "x.json", "--out", "x.tre")
    assert told.exit_code == 0 and "dataset of Auspice written to x.json" in told.output
    meta, nodes = nodes_of("x.json")
    dates = {name: node["node_attrs"]["num_date"] for name, node in nodes.items()}
    assert dates["b"] == {"value": 2004.0, "inferred": False}
    assert dates["c"]["inferred"] and dates["c"]["value"] == pytest.approx(2002, abs=1e-4)
    tree = read_tree("x.tre")
    root = nodes["NODE_0000003"]["node_attrs"]
    assert root["num_date"]["value"] == pytest.approx(float(tree.annotations[8]["date"]), abs=1e-5)
    low, high = root["num_date"]["confidence"]
    assert low < 1990 < high and "inferred" not in root["num_date"]
    assert nodes["e"]["node_attrs"]["div"] == pytest.approx(0.15) and root["div"] == 0
    labels = {own["branch_attrs"]["labels"]["support"] for own in nodes.values() if "branch_attrs" in own}
    assert labels == {"95", "80/0.9"}
    assert [one["key"] for one in meta["colorings"]] == ["num_date", "support"]
    assert meta["panels"] == ["tree"] and "rate 0.01 subst" in meta["description"]


def test_columns_of_the_table_of_dates_or_of_another(folder):
    columns = [f"--metadata-column={name}" for name in ("country", "reads", "accession", "region")]
    with pytest.warns(UserWarning) as warned:
        assert called(*DATE, "--auspice", "x.json", *columns).exit_code == 0
    told = [str(one.message) for one in warned]
    assert any("'region' is known of no tip" in one for one in told)
    assert any("1 texts of 'accession' are left out" in one and "'AC 2'" in one for one in told)
    meta, nodes = nodes_of("x.json")
    kinds = {one["key"]: one["type"] for one in meta["colorings"]}
    assert list(kinds)[:2] == ["country", "reads"] and kinds["reads"] == "continuous"
    assert meta["filters"] == ["country"] and meta["display_defaults"]["color_by"] == "country"
    assert nodes["b"]["node_attrs"]["reads"]["value"] == 2.5 and "country" not in nodes["d"]["node_attrs"]
    assert nodes["a"]["node_attrs"]["accession"] == "AC_1" and "accession" not in nodes["b"]["node_attrs"]
    (folder / "n.tsv").write_text("name\tcountry\na\tFiji\nb\tFiji\nc\tFiji\nd\tFiji\ne\tFiji\n")
    called(*DATE, "--auspice", "y.json", "--metadata", "n.tsv", "--metadata-column", "country")
    assert nodes_of("y.json")[1]["d"]["node_attrs"]["country"] == {"value": "Fiji"}


def test_what_is_asked_wrongly(folder):
    for more, told in (
        (["--metadata-column", "country"], "is for a dataset of Auspice"),
        (["--auspice", "m.tsv"], "this file is an input"),
        (["--auspice", "x.json", "--metadata", "m.tsv"], "no column of the metadata"),
        (["--auspice", "x.json", "--metadata-column", "num_date"], "Auspice's own"),
        (["--auspice", "x.json", "--metadata-column", "contry"], "no column is called 'contry'"),
    ):
        error = called(*DATE, *more).exception
        assert isinstance(error, InputError) and told in str(error) and error.hint
    assert not Path("x.json").exists()
    with pytest.raises(InputError, match="no table"):
        AuspiceOptions("x.json", columns=("country",)).table()


def test_tips_off_the_clock_are_a_colouring(folder):
    years = {f"t{k:02}": 1992 + k * 0.25 for k in range(60)}
    tips = [f"{name}:{0.01 * (year - 1990) + 1e-4 * (k % 3)}" for k, (name, year) in enumerate(years.items())]
    (folder / "m.nwk").write_text(f"({','.join(tips)});\n")
    years["t05"] = 2009.5
    (folder / "y.tsv").write_text("".join(f"{name}\t{year:.3f}\n" for name, year in years.items()))
    line = ["date", "m.nwk", "--dates", "y.tsv", "--intervals", "0"]
    assert called(*line, "--auspice", "x.json").exit_code == 0
    meta, nodes = nodes_of("x.json")
    off = {name: node["node_attrs"].get("off_the_clock", {}).get("value") for name, node in nodes.items()}
    assert [name for name, own in off.items() if own == "yes"] == ["t05"] and len(set(off.values())) == 3
    assert "off_the_clock" in meta["filters"]
    assert called(*line, "--auspice", "y.json", "--without-outliers", "out.tsv").exit_code == 0
    meta, nodes = nodes_of("y.json")
    assert "t05" not in nodes and "off_the_clock" not in meta["filters"]


SAMPLED = "tree t{k} = [&R] ((a[&place=\"{p}\",rate=0.1]:{x},b[&place=\"P\",rate=0.3]:3)" \
    "[&place=\"{p}\",rate=0.2]:2,c[&place=\"Q\",rate={r}]:4)[&place=\"{q}\"];\n"  # fmt: skip


def _sample(folder) -> None:
    """Ten dated trees: (a, b) 3 years before b, the root 2 before that, and c 1 year before the latest."""
    trees = ""
    for k in range(10):
        p, q = ("P" if k < most else "Q" for most in (8, 5))
        trees += SAMPLED.format(k=k, p=p, q=q, x=2.5 + 0.05 * k, r=0.1 + 0.01 * k)
    (folder / "s.trees").write_text(f"#NEXUS\nbegin trees;\n{trees}end;\n")


def test_a_sample_of_dated_trees(folder):
    _sample(folder)
    line = ["summarize", "s.trees", "--burn-in", "0", "--tree", "mcc", "--out", "s.tre", "--auspice"]
    assert called(*line, "x.json", "--latest", "2020-07-02").exit_code == 0
    meta, nodes = nodes_of("x.json")
    own = {name: node["node_attrs"] for name, node in nodes.items()}
    latest = 2020 + 183 / 366
    assert own["b"]["num_date"] == {"value": pytest.approx(latest), "inferred": False}
    assert own["c"]["num_date"]["value"] == pytest.approx(latest - 1)
    root = own["NODE_0000001"]
    assert root["num_date"]["value"] == pytest.approx(latest - 5)
    a = own["a"]["num_date"]  # which is sampled in time
    assert a["inferred"] and a["value"] == pytest.approx(latest - 0.275)
    assert a["confidence"] == [pytest.approx(latest - 0.5), pytest.approx(latest - 0.05)]
    assert own["NODE_0000000"]["place"]["confidence"] == {"P": 0.8, "Q": 0.2}
    assert root["place"]["entropy"] == pytest.approx(np.log(2))
    assert own["c"]["rate"]["value"] == pytest.approx(0.145) and len(own["c"]["rate"]["confidence"]) == 2
    assert nodes["NODE_0000000"]["branch_attrs"]["labels"] == {"posterior": "1.00"}
    assert [one["key"] for one in meta["colorings"]] == ["place", "num_date", "rate", "posterior"]


def test_traits_called_as_what_auspice_has_itself(folder):
    """They get another key; and a number that is called a mean is one of its own."""
    _sample(folder)
    text = Path("s.trees").read_text().replace("place=", "div=").replace("rate=", "speed_mean=")
    Path("s.trees").write_text(text)
    line = ["summarize", "s.trees", "--burn-in", "0", "--tree", "mcc", "--out", "s.tre"]
    assert called(*line, "--auspice", "x.json").exit_code == 0
    meta, nodes = nodes_of("x.json")
    assert nodes["NODE_0000000"]["node_attrs"]["div_of_nodes"]["value"] == "P"
    assert nodes["c"]["node_attrs"]["div"] == pytest.approx(4.0)
    assert "speed_mean" in {one["key"] for one in meta["colorings"]}


def test_the_latest_date_that_phloem_time_has_written(folder):
    _sample(folder)
    Path("s.trees").rename("run.run1.trees")
    Path("run.past.tsv").write_text("age\tdate\tlineages\n0\t2010.25\t2\n1\t2009.25\t2\n")
    line = ["summarize", "run", "--burn-in", "0", "--out", "s.tre", "--auspice", "x.json"]
    told = called(*line)
    assert isinstance(told.exception, InputError) and "consensus" in str(told.exception)
    assert called(*line, "--tree", "mcc").exit_code == 0
    assert nodes_of("x.json")[1]["b"]["node_attrs"]["num_date"]["value"] == pytest.approx(2010.25)


def test_trees_whose_latest_tip_has_no_one_date_are_refused(folder):
    _sample(folder)
    text = Path("s.trees").read_text()
    for k in range(10):  # b is sometimes before c
        text = text.replace("rate=0.3]:3)", f"rate=0.3]:{1.5 + 0.2 * k})", 1)
    Path("s.trees").write_text(text)
    line = ["summarize", "s.trees", "--burn-in", "0", "--tree", "mcc", "--auspice", "x.json"]
    error = called(*line, "--latest", "2020.5").exception
    assert isinstance(error, InputError) and "no tip is the latest in all trees" in str(error) and error.hint
    assert called(*line, "--out", "s.tre").exit_code == 0  # without dates


def test_a_sample_without_dates_has_divergences(folder):
    runs = [str(GOLDEN / f"sample.run{k}.t") for k in (1, 2)]
    assert called("summarize", *runs, "--out", "s.tre", "--auspice", "x.json").exit_code == 0
    meta, nodes = nodes_of("x.json")
    assert meta["display_defaults"]["distance_measure"] == "div" and "lengths as in" in meta["description"]
    clades = [own["node_attrs"] for own in nodes.values() if "children" in own]
    shown = [own["posterior"]["value"] for own in clades if "posterior" in own]
    assert len(shown) == len(clades) - 1 and all(0.5 < share <= 1 for share in shown)  # but for the base
    for more, told in (
        (["--latest", "2020", "--auspice", "y.json"], "unrooted trees have no dates"),
        (["--latest", "2020"], "is for a dataset"),
        (["--latest", "2020-07", "--auspice", "y.json"], "is no day"),
    ):
        error = called("summarize", *runs, *more).exception
        assert isinstance(error, InputError) and told in str(error)
