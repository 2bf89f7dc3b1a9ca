"""Every input of every command may be standard input, read once; records have its checksum."""

from __future__ import annotations

import hashlib
import io
import json
import sys

import numpy as np
import pytest

import phloem.cli

TAXA = ("a", "b", "c", "d")
ALIGNMENT = "".join(
    f">{name}\n{text}\n" for name, text in zip(TAXA, ("ACGTACGT", "ACGTACGA", "AGGTACTT", "AGGTTCTT"))
)
TREE = "(a:0.1,b:0.1,(c:0.1,d:0.2):0.3);\n"
PARTITIONS = "JC, one = 1-4\nJC, two = 5-8\n"
MATRIX = "4\na 0 1 3 4\nb 1 0 3 4\nc 3 3 0 2\nd 4 4 2 0\n"
DATES = "a\t2001\nb\t2003\nc\t2002\nd\t2005\n"
NAMES = "a\nb\nc\nd\n"
CASES = [
    (ALIGNMENT, ("likelihood", "-", "--tree", "TREE", "--model", "JC", "--json", "-")),
    (TREE, ("likelihood", "ALIGNMENT", "--tree", "-", "--model", "JC", "--json", "-")),
    (PARTITIONS, ("likelihood", "ALIGNMENT", "--tree", "TREE", "--partitions", "-", "--json", "-")),
    (ALIGNMENT, ("plan", "-", "--model", "JC")),
    (TREE, ("plan", "ALIGNMENT", "--tree", "-", "--model", "JC")),
    (MATRIX, ("plan", "-", "--method", "nj")),
    (ALIGNMENT, ("upgma", "-", "--json", "-")),
    (MATRIX, ("nj", "-", "--json", "-")),
    (MATRIX, ("distances", "-", "--out", "OUT", "--json", "-")),
    (NAMES, ("nj", "ARRAY", "--names", "-", "--json", "-")),
    (TREE, ("draw", "-")),
    (TREE, ("date", "-", "--dates", "DATES", "--intervals", "0", "--json", "-")),
    (DATES, ("date", "TREE", "--dates", "-", "--intervals", "0", "--json", "-")),
    (
        ALIGNMENT,
        ("temporal-signal", "--alignment", "-", "--dates", "DATES", "--permutations", "9", "--json", "-"),
    ),
    (TREE * 10, ("summarise", "-")),
    (TREE, ("simulate", "-", "--model", "JC", "--sites", "10")),
]  # fmt: skip


def called(monkeypatch, capsys, given, folder, arguments):
    """Exit status, standard output and error of a command."""
    files = {"ALIGNMENT": ALIGNMENT, "TREE": TREE, "DATES": DATES}
    for name, text in files.items():
        (folder / name).write_text(text)
    np.save(folder / "ARRAY.npy", np.array([line.split()[1:] for line in MATRIX.split("\n")[1:5]], float))
    there = {"ALIGNMENT", "TREE", "DATES", "OUT"}
    named = [str(folder / word) if word in there else word for word in arguments]
    named = [str(folder / "ARRAY.npy") if word == "ARRAY" else word for word in named]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    monkeypatch.setattr(sys, "argv", ["phloem", *named])
    status = phloem.cli.run()
    return status, *capsys.readouterr()


@pytest.mark.parametrize("given, arguments", CASES)
def test_every_input_of_every_command(monkeypatch, capsys, tmp_path, given, arguments):
    status, out, err = called(monkeypatch, capsys, given, tmp_path, arguments)
    assert status == 0, err
    if "--json" in arguments:
        files = json.loads(out)["provenance"]["files"]
        assert files["standard input"] == {"sha256": hashlib.sha256(given.encode()).hexdigest()}
        assert len(files) == 1 + sum(word in ("ALIGNMENT", "TREE", "DATES", "ARRAY") for word in arguments)


@pytest.mark.parametrize("given, arguments", CASES)
def test_what_is_wrong_with_it_is_said(monkeypatch, capsys, tmp_path, given, arguments):
    only_looks = arguments[0] == "plan" and given == MATRIX
    for wrong in ("", "\x02", "\n\n", "4\nx")[: 3 if only_looks else 4]:
        status, _, err = called(monkeypatch, capsys, wrong, tmp_path, arguments)
        assert status == 2 and "hint: " in err and "standard input" in err and "Traceback" not in err


def test_chains_of_an_alignment_from_standard_input(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    sampled = ("--model", "JC", "--generations", "3000", "--sample-every", "100", "--chains", "1")
    status, _, err = called(monkeypatch, capsys, ALIGNMENT, tmp_path, ("mcmc", "-", *sampled))
    assert status == 0, err
    record = json.loads((tmp_path / "stdin.json").read_text())
    digest = hashlib.sha256(ALIGNMENT.encode()).hexdigest()
    assert record["provenance"]["files"] == {"standard input": {"sha256": digest}}
    more = ("mcmc", "-", *sampled[:3], "4000", *sampled[4:])
    status, _, err = called(monkeypatch, capsys, ALIGNMENT.replace("A", "G"), tmp_path, more)
    assert status == 2 and "alignment" in err
    assert called(monkeypatch, capsys, ALIGNMENT, tmp_path, more)[0] == 0
    started = ("mcmc", "ALIGNMENT", "--start", "-", "--prefix", "other", *sampled)
    assert called(monkeypatch, capsys, TREE, tmp_path, started)[0] == 0
    assert "standard input" in json.loads((tmp_path / "other.json").read_text())["start"]
