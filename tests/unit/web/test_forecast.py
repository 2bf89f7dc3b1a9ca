"""Forecasts, which end with the request for them, and models compared by their marginal likelihoods."""

from __future__ import annotations

import json
import os
import sys

import pytest

from phloem.web.kinds import KINDS
from web_asgi import ask

PILOT = b'{"kind": "mcmc", "file": "a.fasta", "answers": {"runs": "3", "model": "JC"}, "pilot": true}'


@pytest.fixture
def program(opened, tmp_path, monkeypatch):
    """Stands for phloem: it notes what it is called with, and prints what the test says."""

    def prints(text: str, then: str = ""):
        script = tmp_path / "program"
        noted = tmp_path / "called"
        script.write_text(
            f"#!{sys.executable}\nimport os, sys, time\n"
            f"open({str(noted) + '.part'!r}, 'w').write(str(os.getpid()) + ' ' + ' '.join(sys.argv[3:]))\n"
            f"os.rename({str(noted) + '.part'!r}, {str(noted)!r})\nprint({text!r})\n{then}\n"
        )
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))
        return noted

    app, headers, root = opened
    (root / "a.fasta").write_text(">a\nACGT\n>b\nACGA\n>c\nACTT\n")
    return app, headers, prints


def test_a_pilot_is_of_the_very_analysis(program):
    app, headers, prints = program
    noted = prints("┌─┐\n│ speed │ 5 a │\n│ │ second │\n└─┘\nThis is a\nguess.")
    answer = json.loads(ask(app, "POST", "/api/plan", headers, PILOT).text)
    assert answer["rows"] == [["speed", "5 a second"]] and answer["note"] == "This is a guess."
    words = "mcmc a.fasta --mrbayes-block ignore --model JC --until-converged --runs 3 --check-every 20000"
    assert noted.read_text().partition(" ")[2] == f"{words} --pilot 20"
    assert answer["command"] == f"phloem {words} --pilot 20"  # and no files, since none are written


def test_a_forecast_is_of_the_data_as_they_are_read(program):
    app, headers, prints = program
    noted = prints("│ data │ 3 │\n│ why │ small │\n│ phloem mcmc │ CPU │\n│ --optimize │ 1 s │")
    answers = {"model": "GY94", "datatype": "codon", "genetic-code": "2", "sites": "1-3", "seed": "7"}
    for kind, rows in (
        ("fit", ["data", "why", "--optimize"]),
        ("mcmc", ["data", "phloem mcmc"]),
        ("time", ["data"]),
    ):
        extra = {"tree": "a.fasta", "partitions": "a.fasta"} if kind == "fit" else {}
        asked = {"kind": kind, "file": "a.fasta", "answers": answers | extra}
        told = json.loads(ask(app, "POST", "/api/plan", headers, json.dumps(asked).encode()).text)
        assert [row[0] for row in told["rows"]] == rows
        words = noted.read_text().split()[1:]
        assert words[:4] == ["plan", "a.fasta", "--model", "GY94"] and "--seed" not in words
        options = dict(zip(words[4::2], words[5::2]))
        of_files = {"--tree": "a.fasta", "--partitions": "a.fasta"} if extra else {}
        assert options == {"--datatype": "codon", "--genetic-code": "2", "--sites": "1-3"} | of_files


def test_a_forecast_of_parts_names_no_model_for_all(program):
    app, headers, prints = program
    noted = prints("│ data │ 3 │\n┏━━┓\n┃ part ┃ sites ┃ patterns ┃\n┡━━┩\n│ x │ 3 │ 2 │\n└──┘\nA guess.")
    answers = {"partitions": "declared"}
    for model, usual in (
        ({}, ""),
        ({"model": "auto"}, ""),
        ({}, "GTR+F+G4"),
        ({"model": "auto"}, "GTR+F+G4"),
    ):
        asked = {"kind": "ml", "file": "a.fasta", "answers": answers | model, "usual_model": usual}
        answer = json.loads(ask(app, "POST", "/api/plan", headers, json.dumps(asked).encode()).text)
        assert answer["rows"] == [["data", "3"]] and answer["note"] == "A guess."
        assert noted.read_text().split()[1:] == ["plan", "a.fasta", "--partitions", "declared"]


def test_a_forecast_ends_with_its_request(program):
    app, headers, prints = program
    noted = prints("", "time.sleep(100)")
    gone = ask(app, "POST", "/api/plan", headers, PILOT, leaves=noted.exists)
    assert gone.status == 422 and "no longer wanted" in gone.text
    pid = int(noted.read_text().split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_fails_is_told(program):
    app, headers, prints = program
    prints("", "sys.exit('warning: an odd name\\nerror: no such model\\n  hint: Choose one.')")
    told = json.loads(ask(app, "POST", "/api/plan", headers, PILOT).text)
    assert (told["message"], told["hint"]) == ("no such model", "Choose one.")
    for kind in KINDS:
        asked = json.dumps({"kind": kind.name, "file": "a.fasta", "answers": {}, "pilot": True}).encode()
        if kind.command not in ("mcmc", "time"):
            assert "has no pilot" in ask(app, "POST", "/api/plan", headers, asked).text


def record(model: str, log: float, sites: int) -> str:
    return json.dumps({
        "model": model, "log_marginal_likelihood": log, "standard_error": 0.5,
        "data": {"taxa": 4, "sites": sites}, "settings": {"sites": None, "ambiguity": "partial"},
        "provenance": {"files": {"a.fasta": {"sha256": "x"}}},
    })  # fmt: skip


def test_models_of_the_same_data_are_compared(opened, tmp_path):
    app, headers, root = opened
    for name, text in {
        "one": record("JC", -20.0, 9), "two": record("HKY", -18.0, 9), "three": record("JC", -3.0, 5),
        "four": "[]", "five": record("GTR", -17.0, 9),
    }.items():  # fmt: skip
        (root / f"{name}.ss.json").write_text(text)
    (tmp_path / "outside.ss.json").write_text(record("K80", -1.0, 9))
    (root / "link.ss.json").symlink_to(tmp_path / "outside.ss.json")
    job = {
        "id": "a.mcmc-1", "kind": "mcmc", "file": "a.fasta", "answers": {"stepping-stone": "5"},
        "prefix": "a.mcmc-1/a", "words": ["mcmc"], "created": 1.0, "pid": 1, "started": 2.0, "ended": 3.0,
    }  # fmt: skip
    for number, status in ((1, 0), (2, 1)):  # one that is finished, and one that failed
        folder = root / f"a.mcmc-{number}"
        folder.mkdir()
        told = job | {"id": folder.name, "prefix": f"{folder.name}/a", "status": status}
        (folder / "page.json").write_text(json.dumps(told))
        (folder / "a.ss.json").write_text(record("SYM", -19.0, 9))
    groups = json.loads(ask(app, "GET", "/api/bayes-factors", headers).text)["groups"]
    by_size = sorted(groups, key=lambda one: len(one["files"]))
    assert [len(one["models"]) for one in by_size] == [0, 4]
    models = by_size[1]["models"]
    assert [one["model"] for one in models] == ["GTR", "HKY", "SYM", "JC"]
    assert [one["analysis"] for one in models] == [None, None, "a.mcmc-1", None]
    assert [one["log_bayes_factor"] for one in models] == [0.0, -1.0, -2.0, -3.0]
    files = "a.mcmc-1/a.ss.json five.ss.json one.ss.json two.ss.json"
    assert by_size[1]["command"] == f"phloem bayes-factors {files}"
