"""Newick as text: its tokens, and how a tree is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.io.annotations import format_annotation
from phloem.io.nexus import end_of_comment, find_semicolon, unterminated_quote, warn_of_line
from phloem.io.source_text import SourceText
from phloem.tree.tree import Tree

# Newick text before its grammar: comments taken out and remembered, quoted characters marked.


_PROTECTED = re.compile(r"""(?<=[^\s(){},;:=\[\]'"])['"]|'[^']*+'|"[^"]*+"|\[[^\[\]]*+\]|[\[\]'"]""")
_PAML_COUNTS = re.compile(r"\s*(?:(\d{1,9})[ \t]+)?(\d{1,9})[ \t]*\n(?=\s*[(\[])")
QUOTED = 1
"""Code that stands for a character inside quotes, so that it delimits nothing."""


@dataclass(frozen=True)
class Spans:
    """Half-open intervals of a text, ascending and disjoint. start, stop: (n,) int64."""

    start: np.ndarray
    stop: np.ndarray

    @classmethod
    def of(cls, pairs: list[tuple[int, int]]) -> Spans:
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])


@dataclass(frozen=True)
class CleanText:
    """What the grammar sees: text without comments (and without other removed spans).

    text: the remaining characters. codes: one number each, QUOTED inside quotes.
    removed: the spans taken out of the source. removed_at: where in text each of them stood.
    """

    source: SourceText
    text: str
    codes: np.ndarray
    removed: Spans
    removed_at: np.ndarray
    offset: int

    def error(self, message: str, position: int, **where) -> InputError:
        """An InputError at a position of the clean text (blanks skipped), in the source's coordinates."""
        while position < len(self.text) and self.text[position].isspace():
            position += 1
        before = self.removed_at <= position
        lost = int((self.removed.stop - self.removed.start)[before].sum())
        return self.source.error(message, self.offset + position + lost, **where)


@dataclass(frozen=True)
class Counts:
    """Where the trees of a text begin and end; announced: PAML's numbers of taxa (None where it has only that
    of trees) and trees before them."""

    start: int
    stop: int
    announced: tuple[int | None, int] | None = None


def read_counts(source: SourceText) -> Counts:
    """PAML's first line, if there is one, and where the trees that it announces end.

    A warning where more trees follow; notes may.
    """
    line = _PAML_COUNTS.match(source.text)
    if line is None:
        return Counts(0, len(source.text))
    n_taxa, n_trees = None if line[1] is None else int(line[1]), int(line[2])
    announced, end = (n_taxa, n_trees), line.end()
    for _ in range(n_trees):
        found = find_semicolon(source, end)
        if found < 0:
            return Counts(line.end(), len(source.text), announced)
        end = found + 1
    if "(" in source.text[end:] and find_semicolon(source, end) >= 0:
        message = f"only the first {n_trees} tree(s) are read, as PAML's first line says"
        warn_of_line(source, source.locate(end)[0], message)
    return Counts(line.end(), end, announced)


def protected_spans(source: SourceText, start: int = 0, stop: int | None = None) -> tuple[Spans, Spans]:
    """Comments [...] (which nest) and quoted strings '...' of a text, each outside the other."""
    text = source.text
    stop = len(text) if stop is None else stop
    comments: list[tuple[int, int]] = []
    quotes: list[tuple[int, int]] = []
    while True:
        resume = _collect(source, start, stop, comments, quotes)
        if resume is None:
            return Spans.of(comments), Spans.of(quotes)
        start = resume


def _collect(source: SourceText, start: int, stop: int, comments: list, quotes: list) -> int | None:
    """Collect spans from start on; returns where to go on after a nested comment, None at the end."""
    for match in _PROTECTED.finditer(source.text, start, stop):
        token = match.group()
        if token[0] == "[":
            if len(token) == 1:
                end = end_of_comment(source, match.start())
                comments.append((match.start(), end))
                return end
            comments.append(match.span())
        elif len(token) > 1:
            quotes.append(match.span())
        elif token == "]":
            hint = "Remove it, or open the comment with '['."
            raise source.error("']' closes no comment", match.start(), hint=hint)
        elif not _inside_word(source.text, match.start()):
            raise unterminated_quote(source, match.start())
    return None


def _inside_word(text: str, position: int) -> bool:
    """Whether a quote stands within an unquoted name, where it is a character like any other."""
    return position > 0 and text[position - 1] not in " \t\n(){},;:=[]'\""


def clean_text(source: SourceText, start: int, stop: int, removed: Spans, quotes: Spans) -> CleanText:
    """The text from start to stop without the removed spans, closed by ';' if the file forgot it."""
    begin = np.append(start, removed.stop).tolist()
    end = np.append(removed.start, stop).tolist()
    kept = (
        source.text[start:stop]
        if len(end) == 1
        else "".join(map(source.text.__getitem__, map(slice, begin, end)))
    )
    size = removed.stop - removed.start
    lost = np.cumsum(size)
    removed_at = removed.start - start - (lost - size)
    kept = kept.rstrip()
    if not kept.endswith(";"):
        kept += ";"
    codes = character_codes(kept)
    if len(quotes.start):
        before = np.append(0, lost)[np.searchsorted(removed.start, quotes.start)]
        _mark(codes, quotes.start - start - before, quotes.stop - start - before)
    return CleanText(source, kept, codes, removed, removed_at, start)


def character_codes(text: str) -> np.ndarray:
    """(length,) uint8: one code a character whatever the encoding (all above ASCII are 127)."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8).copy()
    wide = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.minimum(wide, 127).astype(np.uint8)


def _mark(codes: np.ndarray, start: np.ndarray, stop: np.ndarray) -> None:
    inside = np.zeros(len(codes) + 1, np.int8)
    np.add.at(inside, start, 1)
    np.add.at(inside, stop, -1)
    codes[np.cumsum(inside[:-1]).astype(bool)] = QUOTED


# Trees to Newick text.


_PLAIN = re.compile(r"""[^\s()\[\]{}:;,='"]+""")


def newick_name(name: str) -> str:
    """A name as Newick writes it: in single quotes (doubled inside) where it has blanks or punctuation."""
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"


def write_newick(
    tree: Tree,
    *,
    precision: int | None = None,
    annotations: bool = True,
    rooting: bool = False,
    names: Mapping[str, str] | None = None,
) -> str:
    """The tree as one line ending in ';', children in the order of their numbers.

    precision: significant digits of branch lengths; None writes the shortest text that reads back the same
    number. annotations: write [&key=value]. rooting: begin with [&R] or [&U]. names: replaces tip names.
    A length that is NaN is left out, and so is a root edge of 0.
    """
    pieces = _tails(tree, precision, annotations)
    for x, name in enumerate(tree.taxa):
        written = names[name] if names and name in names else newick_name(name)
        pieces[x] = written + pieces[x]
    return ("[&R] " if tree.rooted else "[&U] ") * rooting + _assemble(tree, pieces) + ";"


def _assemble(tree: Tree, pieces: list[str]) -> str:
    """Brackets around children, written in one walk so that deep trees cost no quadratic copying."""
    out: list[str] = []
    stack: list[tuple[int, bool, bool]] = [(tree.n_nodes - 1, False, True)]
    while stack:
        node, closing, first = stack.pop()
        if closing:
            out += [")", pieces[node]]
            continue
        out.append("" if first else ",")
        children = tree.children(node).tolist()
        if not children:
            out.append(pieces[node])
            continue
        out.append("(")
        stack.append((node, True, first))
        stack += [(child, False, k == 0) for k, child in reversed(list(enumerate(children)))]
    return "".join(out)


def _tails(tree: Tree, precision: int | None, annotations: bool) -> list[str]:
    """What follows each node's name or bracket: label, annotation, length."""
    labels = tree.labels or (None,) * tree.n_nodes
    texts = ["" if label is None else newick_name(label) for label in labels]
    if annotations:
        for x, values in tree.annotations.items():
            texts[x] += format_annotation(values)
    numbers = tree.lengths.tolist()
    root = tree.n_nodes - 1
    for x, length in enumerate(numbers):
        if not np.isnan(length) and not (x == root and length == 0):
            texts[x] += ":" + (repr(length) if precision is None else f"{length:.{precision}g}")
    return texts
