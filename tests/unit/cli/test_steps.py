"""What a command shows of its steps."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from phloem.cli.streams import shown_steps


def written(terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=80)
    with shown_steps(console, "reading") as progress:
        progress("reading", 1, 4)
        progress("distances", 30, 60)
        progress("tree", 0, 0)
        console.print("a sentence in between")
    return console.file.getvalue()


def test_a_terminal_sees_the_step_its_share_and_the_time_left():
    text = written(True)
    assert "tree" in text and "left" in text and "a sentence in between" in text
    assert max(len(line) for line in text.split("\r")[0].splitlines()) < 200  # escapes included


def test_nothing_but_messages_goes_to_a_file():
    assert written(False) == "a sentence in between\n"
