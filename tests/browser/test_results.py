"""What analyses found, and what is asked of them, in headless Chromium."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

CALLED = (
    "const [module, name, argument, done] = arguments; import(module).then((m) => done(m[name](argument)))"
)


def past(dated: bool) -> str:
    """A table of times as `phloem time` writes it."""
    sizes = ("population_size", "population_size_low", "population_size_high")
    rows = ["\t".join(("age", "date", *sizes, "lineages", "lineages_low", "lineages_high"))]
    for age in np.linspace(0, 40, 50):
        rows.append("\t".join(f"{v:.6g}" for v in (age, 1994 - age, 50 + age, 20, 400, 3, 1, 5)))
    lines = [row.split("\t") for row in rows]
    return "\n".join("\t".join(c for k, c in enumerate(line) if dated or k != 1) for line in lines) + "\n"


def finished(server, kind: str, record: dict, files: dict[str, str]) -> str:
    """An analysis as it lies in the folder when it is done; its name."""
    name = f"data.{kind}-1"
    folder = server.folder / name
    folder.mkdir()
    now = time.time()
    told = {
        "id": name, "kind": kind, "file": "data.fasta", "answers": {}, "prefix": f"{name}/data",
        "words": [kind], "created": now, "pid": 1, "started": now, "ended": now + 1, "status": 0,
        "stopped": False,
    }  # fmt: skip
    (folder / "page.json").write_text(json.dumps(told))
    for ending, text in files.items():
        (folder / f"data{ending}").write_text(text)
    (folder / "data.json").write_text(json.dumps(record))
    (folder / "data.tests.json").write_text(json.dumps(record))
    return name


MCC = (
    "(a[&height_median=0,height_95%_HPD={0,0}]:30,(b[&height_median=5]:10,c[&height_median=0]:15)"
    "[&height_median=15,height_95%_HPD={12,18},prob=0.9]:15)[&height_median=30,height_95%_HPD={25,41},prob=1];\n"
)


@pytest.fixture(scope="module")
def dated(server):
    trace = "state\tLnL\n" + "".join(f"{200 * k}\t{-5 - k % 3}\n" for k in range(40))
    files = {".past.tsv": past(True), ".mcc.tre": MCC, ".run1.log": trace, ".run2.log": trace}
    moves = {"swap": {"tried": 1000, "accepted": 0.234, "tuning": 1.0}}
    return finished(server, "time", {"model": "JC", "acceptance": moves}, files)


def test_the_past_is_drawn_in_years(visit, dated):
    visit.at("run", dated)
    visit.until("Through time")
    for course in ("population_size", "lineages"):
        visit.drawn(f"[data-course={course}] canvas", 2000)
    label = visit.one("[data-course=population_size] canvas").get_attribute("aria-label")
    assert "against year" in label and "at 1994" in label and "50, 20, 400" in label
    visit.driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert "23.4 %" in visit.text and "swap" in visit.text


@pytest.mark.parametrize(("ends", "shown"), [((20, 400), [20, 50, 100, 200]), ((25, 36), [30, 35])])
def test_sizes_have_numbers_at_their_axis(visit, ends, shown):
    script = (
        "const [ends, done] = arguments; import('/static/plot.js').then((m) =>"
        "done(m.powers(...ends.map(Math.log10)).map((one) => 10 ** one)))"
    )
    assert visit.driver.execute_async_script(script, ends) == pytest.approx(shown)


def test_a_dated_tree_has_an_axis_of_years_and_bars(visit, dated):
    visit.at("tree", f"{dated}/data.mcc.tre")
    visit.one("canvas.tree")
    svg = saved(visit, "svg").decode()
    words = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    years = [word for word in words if word and word.isdecimal() and 1950 <= int(word) <= 1994]
    assert len(years) >= 3 and {"a", "b", "c"} <= set(words)
    assert svg.count("<polygon") == 2  # bars of both nodes
    visit.press("HPD bars")
    assert "<polygon" not in saved(visit, "svg").decode()
    visit.press("HPD bars")
    visit.press("Root at midpoint")  # heights and years are of the root of the file

    def elsewhere() -> bool:
        found = saved(visit, "svg").decode()
        return "<polygon" not in found and f">{years[0]}<" not in found

    visit.wait(elsewhere, "bars and years of another root")
    assert f">{years[0]}<" in svg


def saved(visit, kind: str) -> bytes:
    """What is saved of the tree that is shown."""
    visit.driver.execute_script(
        "window.saved = null; URL.createObjectURL = (blob) => {"
        "blob.arrayBuffer().then((b) => { window.saved = Array.from(new Uint8Array(b)); }); return '#/'; };"
    )
    Select(visit.one("select[aria-label='Kind of file']")).select_by_value(kind)
    here = visit.driver.current_url
    visit.press("Save")
    end = time.monotonic() + 60
    while (content := visit.driver.execute_script("return window.saved")) is None:
        assert time.monotonic() < end, visit.one("#said").text
        time.sleep(0.1)
    assert visit.driver.current_url == here
    return bytes(content)


def test_a_tree_is_saved_in_every_form(visit, dated):
    visit.at("tree", f"{dated}/data.mcc.tre")
    visit.press("Circular")
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF", "newick": b"(", "nexus": b"#NEXUS"}
    for kind, first in begins.items():
        content = saved(visit, kind)
        assert content.startswith(first) and len(content) > 60, kind


DRAWN = (
    "window.drawn = null; window.plain ??= window.fetch; window.fetch = (path, options) => {"
    "if (path === '/api/pdf') window.drawn = options.body; return window.plain(path, options); }"
)


def test_pictures_have_collapsed_clades_as_they_are_shown(visit, dated):
    visit.at("tree", f"{dated}/data.mcc.tre")
    before = saved(visit, "svg").decode()
    visit.one("input[type=search]").send_keys("b", Keys.ENTER)
    visit.press("Parent")
    visit.press("Collapse")
    visit.press("HPD bars")
    visit.driver.execute_script(DRAWN)
    for shape in ("rectangular", "circular"):
        svg, pdf = (saved(visit, kind) for kind in ("svg", "pdf"))
        drawn = json.loads(visit.driver.execute_script("return window.drawn"))
        words = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
        for found in (words, [one["text"] for one in drawn["texts"]]):
            assert {"clade of 2 taxa", "a"} <= set(found) and not {"b", "c"} & set(found), shape
        areas = [one for one in drawn["strokes"] if one.get("filled")]
        assert len(areas) == 2 and svg.count(b"<polygon") == 1  # the paper, and what stands for the clade
        assert pdf.startswith(b"%PDF") and pdf != svg
        visit.press("Circular")
    visit.press("Expand")
    assert saved(visit, "svg").decode().count("<polygon") == 0
    assert "clade of 2 taxa" not in before  # the control


def test_pictures_have_whole_names(visit, server):
    long = f"{'virus' * 20}_end"
    (server.folder / "long.nwk").write_text(f"((a:3,{long}:4)88:9,(c:1,{long}_2:12)99:2);\n")
    visit.at("tree", "long.nwk")
    for _ in range(2):  # circular too
        svg = ElementTree.fromstring(saved(visit, "svg"))
        side = float(svg.get("width"))
        texts = {node.text: node for node in svg.iter() if node.tag.endswith("text")}
        assert {"a", "c", long, "88", "99"} <= set(texts)
        for text, node in texts.items():
            room = side if "transform" in node.attrib else side - float(node.get("x"))
            assert len(text) < 10 or node.get("text-anchor") == "end" or len(text) * 5 < room
        visit.press("Circular")
    visit.one("input[type=search]").send_keys("virus end 2", Keys.ENTER)
    visit.wait(lambda: "1 taxon found" in visit.one("#said").text, "blanks find no underscores")


def test_models_are_compared(visit, server):
    for name, model, log in (("one", "JC", -40.0), ("two", "HKY", -36.0), ("other", "JC", -3.0)):
        record = {
            "model": model, "log_marginal_likelihood": log, "standard_error": 0.5,
            "data": {"taxa": 4, "sites": 5 if name == "other" else 9},
            "settings": {"sites": None, "ambiguity": "partial"},
            "provenance": {"files": {"a.fasta": {"sha256": "x"}}},
        }  # fmt: skip
        (server.folder / f"{name}.ss.json").write_text(json.dumps(record))
    visit.driver.execute_script("location.hash = '#/models'")
    visit.until("phloem bayes-factors one.ss.json two.ss.json")
    rows = [
        [cell.text for cell in row.find_elements("css selector", "td")] for row in visit.all("main tbody tr")
    ]
    assert rows[0][1:] == ["-36.00", "0.50", "0.00", "0.00", "0.00", "0.982", ""]
    assert rows[1][1:] == ["-40.00", "0.50", "-4.00", "0.71", "-8.00", "0.018", "strong"]
    assert (
        visit.driver.execute_script("return document.activeElement.id") == "main"
    )  # for those who do not see
    assert "other.ss.json" in visit.text and "Without another model" in visit.text
    assert visit.problems() == []


def test_tests_of_trees_are_a_table(visit, server):
    rows = "tree\tlog_likelihood\tkh\tau\n1\t-5.5\t0.9\t0.8\n2\t-9.25\t0.01\t0.002\n"
    name = finished(server, "tests", {"seconds": 1.0}, {".tests.tsv": rows, ".tests.nwk": "(a:1,b:1,c:1);\n"})
    visit.at("run", name)
    visit.until("Trees against each other")
    assert [cell.text for cell in visit.all("main td .short")] == ["0.01", "0.002"]


def test_models_that_were_compared(visit, server):
    of = {"model": "HKY+F", "log_likelihood": -12.5, "free_numbers": 7, "bic": 40.0, "bic_weight": 0.75}
    choice = {"criterion": "bic", "models": [of], "not_fitted": [], "why": ["HKY+F has the best BIC."]}
    record = {"model": "HKY{3.141592653}+F", "tries": 4, "better_trees": [], "model_choice": choice,
              "supports": {"names": ["SH-aLRT", "UFBoot"]}}  # fmt: skip
    name = finished(server, "ml", record, {".tree": "((a:1,b:1)99/100:1,c:1,d:1);\n"})
    visit.at("run", name)
    visit.until("SH-aLRT / UFBoot")
    for words in ("HKY{3.142}+F", "Models, by BIC", "0.75", "4 tries from elsewhere", "has the best BIC"):
        assert words in visit.text


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"stage": "first climb", "step": "first climb", "done": 1, "total": 3, "log_likelihood": -9.5},
         "first climb, step 1 of 3; log-likelihood -9.5."),
        ({"stage": "search", "step": "try 7", "done": 3, "total": 10, "log_likelihood": -9.5, "speed": 0.5,
          "seconds_left": 14, "left": "at least"},
         "try 7; 3 of 10 tries in a row without a better tree; log-likelihood -9.5; 0.5 tries a second; "
         "14 s left if none is better."),
        ({"stage": "bootstrap", "step": "bootstrap 5 of 100", "done": 5, "total": 100,
          "log_likelihood": -9.5, "speed": 2, "seconds_left": 120, "left": "about"},
         "bootstrap 5 of 100; log-likelihood -9.5; 2 replicates a second; about 2 min 0 s left."),
        ({"stage": "fit", "step": "evaluation 40", "done": 40, "total": None, "log_likelihood": -9.5,
          "speed": 20,
          "seconds_left": None, "left": None},
         "evaluation 40; log-likelihood -9.5; 20 evaluations a second."),
    ],
)  # fmt: skip
def test_how_far_a_search_is_in_words(visit, told, words):
    assert visit.driver.execute_async_script(CALLED, "/static/run.js", "stage", told) == words


def test_the_clock_is_looked_at_before_a_time_tree(visit, tmp_path):
    rng, rows = np.random.default_rng(3), []
    ancestor = rng.integers(0, 4, 400)
    for k in range(8):  # changes as old as the sample is young
        row = ancestor.copy()
        row[rng.choice(400, 4 * (k + 1), replace=False)] += 1
        rows.append(f">v{k}_{2000 + k}\n{''.join('ACGT'[x % 4] for x in row)}\n")
    (tmp_path / "virus.fasta").write_text("".join(rows))
    visit.drop(tmp_path / "virus.fasta")
    visit.until("every name ends in a date")
    visit.driver.execute_script("arguments[0].click()", visit.one("[data-kind=time]"))
    visit.until("into a table")
    visit.press("Put the dates of the names into a table")
    visit.until("by permuted dates")
    assert "8 tips" in visit.one("form canvas").get_attribute("aria-label")
    visit.one("#q-clade").send_keys("old=v0_2000,v1_2001\nyoung=v6_2006,v7_2007")
    visit.until("--clade old=v0_2000,v1_2001 --clade young=v6_2006,v7_2007")
    assert "--dates virus.dates.tsv" in visit.text
    select = Select(visit.one("#q-dates"))
    assert select.first_selected_option.text == "virus.dates.tsv"
    select.select_by_value("virus.fasta")  # what is no table is an error with a remedy, in place of the plot
    visit.until("did not work")
    assert visit.all("form canvas") == [] and "What to do" in visit.text


def test_a_tree_file_is_looked_at_and_can_be_analysed(visit, server):
    (server.folder / "some.nwk").write_text(
        "((ant:1,bee:1):1,cat:2,dog:3);\n((ant:1,cat:1):1,bee:2,dog:3);\n"
    )
    visit.at("file", "some.nwk")
    visit.until("Date this tree")
    visit.drawn("canvas.tree", 300)
    visit.driver.execute_script("arguments[0].click()", visit.one("[data-kind=summary]"))
    visit.until("phloem summarise some.nwk --out some.summary-1/some.tre")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_everyone_can_read_and_reach_results(visit, server, dated, scheme, width):
    (server.folder / "one.nwk").write_text("((ant,bee),(cat,dog),eel);")
    (server.folder / "two.nwk").write_text("((ant,cat),(bee,dog),eel);")
    try:
        visit.colour_scheme(scheme, width)
        for view, words in (
            (("run", dated), "Through time"),
            (("compare", "one.nwk", "two.nwk"), "Face to face"),
        ):
            visit.at(*view)
            visit.until(words)
            visit.at_rest()
            visit.driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
            assert visit.problems() == []
            wide = visit.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{view} is {wide} pixels wider than the window"
        visit.at("file", "some.nwk")
        visit.until("Date this tree")
        visit.driver.execute_script("arguments[0].click()", visit.one("[data-kind=date-tree]"))
        visit.until("phloem date some.nwk")
        visit.driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        assert visit.problems() == []
    finally:
        visit.colour_scheme("light", 1280)


def test_no_script_failed(visit):
    told = [one for one in visit.driver.get_log("browser") if one["level"] == "SEVERE"]
    assert [one["message"] for one in told if one["source"] not in ("network", "security")] == []
