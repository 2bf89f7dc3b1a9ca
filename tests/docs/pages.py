"""The pages that tell a user what to type, and the blocks of code in them.

A block is what a fence marks: `python` runs as Python, no word or `bash` as lines of a shell; everything else
(`text`, `toml`, `xml`) is to look at.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVERY_PAGE = sorted([ROOT / "README.md", ROOT / "examples" / "README.md", *(ROOT / "docs").rglob("*.md")])
# How phloem was made: figures and commands of the machines and programs that they were made with.
ABOUT = {"architecture", "experiments", "gpu", "kernels", "performance", "theory", "validation"}
TO_FOLLOW = [p for p in EVERY_PAGE if p.stem not in ABOUT and p.parent.name != "decisions"]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=indent)```", re.M | re.S)
SHELL = ("", "bash", "sh", "console")


@dataclass(frozen=True)
class Block:
    """What stands between two fences; line: of its first line in the page."""

    line: int
    language: str
    text: str

    def commands(self) -> list[str]:
        """Lines of a shell: those that end in a backslash go on, comments and empty ones are left out."""
        joined = re.sub(r"\\\n\s*", " ", self.text)
        lines = (line.strip().removeprefix("$ ") for line in joined.splitlines())
        return [line for line in lines if line and not line.startswith("#")]


def name_of(page: Path) -> str:
    """The page as the repository knows it."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(text: str) -> list[Block]:
    """All blocks of a page, in order."""
    found = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        found.append(Block(line, match["language"], match["text"]))
    return found


def steps_of(command: str) -> list[list[str]]:
    """The words of each command of a line, `a && b` being two; comments are left out."""
    words = shlex.split(command, comments=True)
    steps: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            steps.append([])
        else:
            steps[-1].append(word)
    return steps
