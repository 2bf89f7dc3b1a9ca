"""Trees of a sampler's file in batches, for files that are too large to be held: a tree a line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.input_file import first_bytes, input_size, input_stream
from phloem.io.source_text import SourceText, decode
from phloem.io.tree_table import TreeTable, tree_table
from phloem.io.trees import CUT_SHORT, HEAD, parse_trees
from phloem.tree.sample import TreeSample, sample_of_trees

LARGE = 64 << 20  # bytes of a file that is read in batches
LARGE_PACKED = 16 << 20
BATCH = 8 << 20  # bytes of trees at a time

_NOTES = re.compile(rb"\[&(?![RU]\])[^\]]*\]", re.IGNORECASE)  # but how a tree is rooted
_BEGIN = re.compile(rb"\s*begin\s+trees\s*;", re.IGNORECASE)
_TREE = re.compile(rb"\s*u?tree\b", re.IGNORECASE)
_END = re.compile(rb"\s*end(block)?\s*;", re.IGNORECASE)


def is_large(path: str) -> bool:
    """Whether a file of trees is to be read in batches."""
    packed = first_bytes(path, 2) == b"\x1f\x8b" or str(path).endswith(".gz")
    return input_size(path) > (LARGE_PACKED if packed else LARGE)


@dataclass(frozen=True)
class TreeStream:
    """A file with n_trees trees of one run, a line each: NEXUS, Newick or a table. head: what stands before
    the first one, b"" but of NEXUS; first_line: the number of lines of it. table: how trees stand in a table,
    and run: whose they are."""

    path: str
    n_trees: int
    head: bytes = b""
    first_line: int = 0
    table: TreeTable | None = None
    run: str = ""

    def batches(
        self, first: int = 0, taxa: tuple[str, ...] | None = None, noted: Collection[int] = ()
    ) -> Iterator[tuple[int, TreeSample]]:
        """The trees from number `first` on: the number of a batch's first tree, and the batch. taxa: the
        order of the tips, else that of the first tree. noted: numbers of trees that are read with their
        annotations."""
        held: list[bytes] = []
        size, number, begun, at = 0, 0, first, 0
        for line_number, line, run in self._lines():
            number += run == self.run
            if number <= first or run != self.run:
                continue
            at = at or line_number
            if number - 1 not in noted and b"'" not in line:
                line = _NOTES.sub(b"", line)
            held.append(line)
            size += len(line)
            if size > BATCH or number == self.n_trees:
                sample = self._sample(held, at, taxa, len(noted) > 0)
                taxa = sample.taxa
                yield begun, sample
                held, size, begun, at = [], 0, number, 0

    def first_tree(self, first: int, taxa: tuple[str, ...] | None = None) -> TreeSample:
        """Tree number `first` alone, annotated."""
        lines = ((at, line) for at, line, run in self._lines() if run == self.run)
        at, line = next(islice(lines, first, None))
        return self._sample([line], at, taxa, True)

    def _lines(self) -> Iterator[tuple[int, bytes, str]]:
        return _tree_lines(self.path, bool(self.head), self.table)

    def _sample(self, lines: list[bytes], line: int, taxa: tuple[str, ...] | None, noted: bool) -> TreeSample:
        head = self.head
        text = decode(head + b"".join(lines) + (b"end;\n" if head else b""), self.path)
        try:
            trees = parse_trees(SourceText(text, self.path))
            if len(trees) != len(lines):
                raise _not_a_tree_a_line(self.path)
            sample = sample_of_trees(trees, noted)
            return sample if taxa is None else sample.ordered_as(taxa)
        except InputError as error:
            before = self.first_line if head else 0
            if error.line is not None and error.line > before:
                error.line += line - before - 1
            error.file = error.file or self.path
            raise


def tree_streams(path: str) -> list[TreeStream]:
    """Look through a file once: its runs, several only of a table that says of which run a tree is.

    InputError for one without trees, or whose trees are not a line each. A last line that was cut short is
    left out with a warning.
    """
    begins = first_bytes(path, 6).upper() == b"#NEXUS"
    table = tree_table(first_bytes(path, HEAD).decode("utf-8", "replace"), path)
    counts: dict[str, int] = {}
    for _, _, run in _tree_lines(path, begins, table, warned=True):
        counts[run] = counts.get(run, 0) + 1
    if not counts:
        raise InputError("this file contains no tree", file=path, hint="Give a file of sampled trees.")
    head: list[bytes] = []
    if begins:
        with input_stream(path) as stream:
            in_block = False
            for line in stream:
                in_block |= bool(_BEGIN.match(line))
                if in_block and _TREE.match(line):
                    break
                head.append(line)
    text = b"".join(head)
    return [TreeStream(path, n, text, len(head), table, run) for run, n in counts.items()]


def _tree_lines(
    path: str, nexus: bool, table: TreeTable | None, warned: bool = False
) -> Iterator[tuple[int, bytes, str]]:
    """Line number, from 1, line and run of every tree."""
    in_block, blocks = not nexus, 0
    with input_stream(path) as stream:
        for number, line in enumerate(stream, 1):
            run = ""
            if not line.endswith((b"\n", b";")) and (table or not nexus or _TREE.match(line)):
                _tell_cut_short(path, number, warned)
                return
            if table is not None:
                if number <= table.first_line or not line.strip():
                    continue
                row = line.rstrip(b"\r\n").decode("utf-8", "replace")
                tree, _, run = table.fields(row, number, path)
                line = f"{tree}\n".encode()
            if nexus and _BEGIN.match(line):
                in_block, blocks = True, blocks + 1
                if blocks > 1:
                    raise InputError(
                        "a file this large has several blocks of trees",
                        file=path,
                        line=number,
                        hint="Give each block a file of its own.",
                    )
            elif nexus and in_block and _END.match(line):
                in_block = False
            elif in_block and (_TREE.match(line) if nexus else line.strip()):
                if not line.rstrip().endswith(b";"):
                    raise _not_a_tree_a_line(path, number)
                yield number, line if line.endswith(b"\n") else line + b"\n", run


def _tell_cut_short(path: str, line: int, warned: bool) -> None:
    if warned:
        warnings.warn(f"{shown_file(path)}, line {line}: {CUT_SHORT}", InputWarning, stacklevel=4)


def _not_a_tree_a_line(path: str, line: int | None = None) -> InputError:
    return InputError(
        "a file this large is read by lines, and this is no whole tree",
        file=path,
        line=line,
        hint="Write a tree a line, as samplers do; take a line off that was cut short.",
    )
