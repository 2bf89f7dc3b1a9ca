"""Standard output and error as they may be: closed, full, read no further, of any encoding, a terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from functools import cache
from itertools import pairwise

import pytest
from rich.table import Table

from phloem.cli import streams

PHLOEM = [sys.executable, "-m", "phloem"]
FASTA = ">Žluťásek\nACGTACGTAAGG\n>b\nACGTACGAAAGG\n>c_of_a_long_name\nACTTACGAAAGC\n>d\nACTTAGGAAAGC\n"
NEWICK = "(Žluťásek:0.1,b:0.2,(c_of_a_long_name:0.15,d:0.3)0.87:0.1);\n"
ENCODINGS = {
    "C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "utf-8": {"PYTHONIOENCODING": "utf-8"},
}
LIKELIHOOD = ["likelihood", "a.fa", "--tree", "t.nwk", "--model", "GTR{1,4,1,1,4}+FQ+G4{0.5}", "--gradient"]
LIKELIHOOD += ["--engine", "reference"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(FASTA, encoding="utf-8")
    (tmp_path / "t.nwk").write_text(NEWICK, encoding="utf-8")
    return tmp_path


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    program = f'phloem() {{ "{sys.executable}" -m phloem "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", program], capture_output=True, env=os.environ | environment)


@pytest.mark.parametrize(
    "command", ["draw t.nwk", "summarise t.nwk --burn-in 0", "simulate t.nwk -m JC -n 9", "--help"]
)
@pytest.mark.parametrize("how", [">&-", ">/dev/full"])
def test_a_result_that_has_no_way_out_is_an_error(command, how, folder):
    told = shell(f"phloem {command} {how}")
    assert told.returncode == 2 and told.stdout == b"", told
    errors = told.stderr.decode().splitlines()
    assert errors[-1].startswith("error: standard output: "), errors
    assert how == ">/dev/full" or len(errors) == 1, "before anything is computed"


def test_files_are_written_whatever_the_streams_are(folder):
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        told = shell(f"phloem draw t.nwk --out x.svg --redo {closed}")
        assert told.returncode == 0 and (folder / "x.svg").read_text().endswith("</svg>\n"), (closed, told)
        (folder / "x.svg").unlink()
    told = shell(f"phloem summarise t.nwk --burn-in 0 --out x.nwk {closed}")
    assert told.returncode == 0 and (folder / "x.nwk").read_text().startswith("("), (closed, told)
    assert shell("phloem draw t.nwk 2>&-").stdout.decode().count("─") > 20
    assert shell("phloem draw no-such.nwk >&- 2>&-").returncode == 2


def test_what_was_to_be_kept_is_kept_where_printing_fails(folder):
    command = " ".join(f"'{word}'" for word in LIKELIHOOD)
    told = shell(f"phloem {command} --json x.json >/dev/full")
    assert told.returncode == 2 and b"error: standard output: No space left" in told.stderr
    assert json.loads((folder / "x.json").read_text())["log_likelihood"] < 0


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_seen_enough(unbuffered, folder):
    """Before anything is said, and of the last one, which is more than a pipe holds, when some was."""
    for command, seen in (
        ("simulate t.nwk -m JC -n 9", 0),
        ("draw t.nwk", 0),
        ("--help", 0),
        ("simulate t.nwk -m JC -n 99999", 9),
    )[-1 if unbuffered else 0 :]:
        reads, writes = os.pipe()
        if not seen:
            os.close(reads)
        told = subprocess.Popen(
            [*PHLOEM, *command.split()],
            stdout=writes,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
        os.close(writes)
        if seen:
            os.read(reads, seen)
            os.close(reads)
        errors = told.communicate()[1]
        assert told.returncode == 1 and b"rror" not in errors, (command, errors)


@cache
def drawn_in(encoding: str) -> subprocess.CompletedProcess[bytes]:
    """The tree of the folder that is current, which is the same in all tests."""
    return shell("phloem draw t.nwk", **ENCODINGS[encoding])


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("ascii", "latin-1")]


@pytest.mark.parametrize("encoding", ["C locale", "utf-8", *OTHERS])
def test_results_are_utf8_and_drawings_what_the_terminal_has(encoding, folder):
    environment = ENCODINGS[encoding]
    drawn = drawn_in(encoding)
    assert drawn.returncode == 0, drawn.stderr
    assert ("├" in drawn.stdout.decode("utf-8", "replace")) == (encoding == "utf-8")
    if encoding in ("C locale", "ascii"):
        assert b"+---" in drawn.stdout and b" Zlutasek" in drawn.stdout
        plain, fine = drawn.stdout.decode(), drawn_in("utf-8").stdout.decode()
        assert list(map(len, plain.splitlines())) == list(map(len, fine.splitlines()))
    for command in ("summarise t.nwk --burn-in 0", "simulate t.nwk -m JC -n 9"):
        found = shell(f"phloem {command}", **environment)
        assert found.returncode == 0 and "Žluťásek" in found.stdout.decode("utf-8"), found
    told = shell("phloem " + " ".join(f"'{word}'" for word in LIKELIHOOD), **environment)
    assert told.returncode == 0 and b"log-likelihood: -" in told.stdout, told.stderr


def test_file_names_that_are_no_text(folder):
    odd = os.fsencode(folder) + b"/caf\xe9.nwk"
    os.rename(folder / "t.nwk", odd)
    for environment in ENCODINGS.values():
        told = shell("phloem draw caf\udce9.nwk --out x\udce9.svg --redo", **environment)
        assert told.returncode == 0 and b"picture written to x\xe9.svg" in told.stderr, told


def in_terminal(columns: int, *arguments: str) -> tuple[int, str]:
    """Exit status and what the command showed in a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    command = subprocess.Popen(
        [*PHLOEM, *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            more = os.read(master, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(master)
    text = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
    return command.wait(), text.rsplit("\r", 1)[-1]


@pytest.mark.parametrize("arguments", [["draw", "t.nwk"], LIKELIHOOD], ids=["draw", "likelihood"])
def test_a_narrow_terminal_loses_nothing_and_a_wide_one_is_used(arguments, folder):
    shown = {columns: in_terminal(columns, *arguments) for columns in (20, 40, 80, 200)}
    for columns, (status, text) in shown.items():
        assert status == 0 and "Traceback" not in text, text
        numbers = set(re.findall(r"-?\d+\.\d{3,}", text))
        assert numbers == set(re.findall(r"-?\d+\.\d{3,}", shown[200][1])), columns
    longest = {columns: max(map(len, text.splitlines())) for columns, (_, text) in shown.items()}
    if arguments[0] == "draw":
        assert all(longest[columns] <= columns for columns in longest), longest
        assert all(longest[a] < longest[b] for a, b in pairwise(longest)), longest
        assert all(name in shown[40][1] for name in ("Žluťásek", "b", "d"))
    else:
        assert longest[80] <= 80 and longest[40] < 60, longest


def test_a_summary_tree_is_drawn_for_people_and_newick_for_programs(folder):
    (folder / "s.nwk").write_text("((a:1,b:1):1,c:1,d:1);\n" * 4)
    command = ["summarise", "s.nwk", "--burn-in", "0"]
    status, text = in_terminal(80, *command)
    assert status == 0 and "├" in text and "&prob" not in text and "--out FILE" in text
    assert "&prob" in in_terminal(80, *command, "--out", "-")[1]
    piped = shell("phloem " + " ".join(command))
    assert piped.stdout.startswith(b"(") and b"--out" not in piped.stderr


@pytest.mark.parametrize(
    ("line", "other"),
    [("ml x.fa --out y", "--prefix"), ("draw x.nwk -p y", "--out"), ("doctor --out y", None)],
)
def test_out_and_prefix_are_told_apart(line, other, folder):
    told = shell(f"phloem {line}").stderr.decode()
    assert "No such option" in told and ("Possible" in told) == (other is not None)
    assert other is None or f"options: {other})" in told


def test_a_table_is_never_cut():
    table = Table()
    table.add_column("name", overflow="fold")
    table.add_column("value", no_wrap=True)
    table.add_row("a" * 30, "1234567890" * 3)
    for width in (20, 40, 80):
        console = streams.report_console()
        console.width, console.file = width, io.StringIO()
        streams.print_table(console, table)
        text = console.file.getvalue()
        assert "1234567890" * 3 in text and text.count("a") == 30 + 2
        assert max(map(len, text.splitlines())) <= max(width, 30 + 8 + 7)


def test_what_users_write_is_no_markup(folder):
    """A name in brackets is a name; `[/x]` ends nothing."""
    (folder / "t[red][").mkdir()
    (folder / "t[red][/x].nwk").write_text(NEWICK, encoding="utf-8")
    likelihood = [word if word != "t.nwk" else "t[red][/x].nwk" for word in LIKELIHOOD]
    told = subprocess.run([*PHLOEM, *likelihood], capture_output=True, text=True)
    assert told.returncode == 0 and "tree: t[red][/x].nwk" in told.stdout, told
