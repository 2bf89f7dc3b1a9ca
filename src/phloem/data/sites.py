"""Choosing alignment columns by text: "1-11028", "1-900\\3", "1-10, 20-30", "50-.", a CHARSET's name, or
"not 187, 1059"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from phloem.errors import InputError, count_of

_RANGE = re.compile(r"(\d{1,12}|\.)(?:\s*-\s*(\d{1,12}|\.)?)?(?:\s*\\\s*(\d{1,12}))?(?=[\s,]|$)")
_NOT = re.compile(r"\s*not\s", re.IGNORECASE)
_SEPARATOR = re.compile(r"[\s,]*")
_WORD = re.compile(r"'(?:[^']|'')*'|[^\s,]+")
_MAX_NESTING = 50
_HINT = (
    "Write columns as in '1-900', '1-900\\3', '1-10,20-30', or the name of a CHARSET; "
    "'not 187,1059' chooses all others."
)


def parse_sites(text: str, n_sites: int, charsets: Mapping[str, str] | None = None) -> np.ndarray:
    """The columns that a text chooses: sorted, each once, 0-based, int64.

    "a-b\\3" is every third column from a to b; "." is the last column; "all" is every column. Names of
    `charsets` (any case) stand for their definitions. "not" before all of these chooses all other columns,
    such as those that a list of sites to be masked leaves. Raises InputError for anything else and for
    columns that the alignment does not have.
    """
    if not isinstance(text, str):
        raise InputError(f"sites are given as text, not as {type(text).__name__}", hint=_HINT)
    named = {name.lower(): definition for name, definition in (charsets or {}).items()}
    without = None if "not" in named else _NOT.match(text)
    chosen = np.unique(_Chooser(n_sites, named).columns(text[_end(without) :] if without else text, ()))
    if without and len(chosen):
        chosen = np.setdiff1d(np.arange(n_sites, dtype=np.int64), chosen)
    if not len(chosen):
        raise InputError(f"sites '{text}' choose no column", hint=_HINT)
    return chosen


def parse_sites_once(text: str, n_sites: int, charsets: Mapping[str, str] | None = None) -> np.ndarray:
    """`parse_sites` where a column that is chosen twice is an InputError."""
    chosen = parse_sites(text, n_sites, charsets)
    named = {name.lower(): definition for name, definition in (charsets or {}).items()}
    every, counts = np.unique(_Chooser(n_sites, named).columns(text, ()), return_counts=True)
    if counts.max() > 1:
        twice = format_sites(every[counts > 1])
        raise InputError(
            f"sites '{text}' choose columns {twice} more than once", hint="Name each column once."
        )
    return chosen


def format_sites(sites: np.ndarray) -> str:
    """The text that chooses these 0-based, ascending columns: "1-100, 201"; where three runs or more are as
    long as each other and as far apart, a stride for each of their columns: "1-99\\3, 2-100\\3"."""
    breaks = np.flatnonzero(np.diff(sites) > 1) + 1
    starts = np.concatenate([[0], breaks]).astype(np.int64)[: len(sites)]
    widths = np.diff([*starts, len(sites)])
    firsts, pieces, run = np.asarray(sites)[starts] + 1, list[str](), 0
    while run < len(starts):
        end = _same_runs(firsts, widths, run)
        step, width = int(firsts[run + 1] - firsts[run]) if end - run > 1 else 1, int(widths[run])
        if end - run < 3 or width >= end - run:
            last = firsts[run] + width - 1
            pieces.append(f"{firsts[run]}-{last}" if width > 1 else str(last))
            run += 1
            continue
        pieces += [f"{firsts[run] + k}-{firsts[end - 1] + k}\\{step}" for k in range(width)]
        run = end
    return ", ".join(pieces)


def _same_runs(firsts: np.ndarray, widths: np.ndarray, run: int) -> int:
    """The end of the runs from this one on that are as wide and as far apart as it and the next."""
    end = run + 1
    while (
        end < len(firsts)
        and widths[end] == widths[run]
        and firsts[end] - firsts[end - 1] == firsts[run + 1] - firsts[run]
    ):
        end += 1
    return end


@dataclass(frozen=True)
class _Chooser:
    """Columns of texts and of character sets; a set that others build on is worked out once."""

    n_sites: int
    named: Mapping[str, str]
    known: dict[str, np.ndarray] = field(default_factory=dict)

    def columns(self, text: str, inside: tuple[str, ...]) -> np.ndarray:
        parts = [np.empty(0, np.int64)]
        position = _end(_SEPARATOR.match(text))
        while position < len(text):
            match = _RANGE.match(text, position)
            if match is not None:
                parts.append(_range(match, self.n_sites))
            else:
                match = _WORD.match(text, position)
                assert match is not None
                parts.append(self.named_columns(match.group(), inside))
            position = _end(_SEPARATOR.match(text, match.end()))
        return np.concatenate(parts)

    def named_columns(self, word: str, inside: tuple[str, ...]) -> np.ndarray:
        name = word.strip("'").lower()
        if name in inside or len(inside) > _MAX_NESTING:
            message = f"character set '{word}' is defined through itself, or through too many others"
            raise InputError(message, hint="Correct its definition.")
        if name in self.named:
            if name not in self.known:
                self.known[name] = np.unique(self.columns(self.named[name], (*inside, name)))
            return self.known[name]
        if name == "all":
            return np.arange(self.n_sites, dtype=np.int64)
        sets = f" Character sets of the file: {', '.join(self.named)}." if self.named else ""
        raise InputError(f"'{word}' is neither a column, a range nor a character set", hint=_HINT + sets)


def _end(match: re.Match[str] | None) -> int:
    assert match is not None
    return match.end()


def _range(match: re.Match[str], n_sites: int) -> np.ndarray:
    first, last, step = match.groups()
    start, every = n_sites if first == "." else count_of(first), 1 if step is None else count_of(step)
    ranged = "-" in match.group()
    stop = start if not ranged and step is None else n_sites if last in (None, ".") else count_of(last)
    if not 1 <= start <= stop or every < 1:
        raise InputError(f"'{match.group()}' is no range of columns", hint=_HINT)
    if stop > n_sites:
        raise InputError(
            f"'{match.group()}' reaches past the last column, {n_sites}",
            site=stop,
            hint="Choose columns in range.",
        )
    return np.arange(start - 1, stop, every, dtype=np.int64)
