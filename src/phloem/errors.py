"""What a user, or a number, can do wrong. Every error phloem raises on purpose is a PhloemError."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

STANDARD_INPUT = "-"  # the name of an input that is standard input


_QUOTED = re.compile(r"'([^'\n]{60})[^'\n]{21,}'")
_LONG_WORD = re.compile(r"(\S{60})\S{41,}")
_ENDLESS = re.compile(r"(\S{60})\S{441,}")  # in a hint, which may name a path


class PhloemError(Exception):
    """Base of all errors that phloem raises on purpose."""


class InputWarning(UserWarning):
    """Something in an input is not obeyed, or not read, and the rest is used all the same."""


class InputError(PhloemError):
    """Something in the user's data or settings is wrong; says where, and what to do.

    file, line (1-based), column (1-based), taxon and site are given where known;
    hint is the remedy, one imperative sentence.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        taxon: str | None = None,
        site: int | None = None,
        hint: str | None = None,
    ) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.taxon = taxon
        self.site = site
        self.hint = None if hint is None else _ENDLESS.sub(r"\1…", _QUOTED.sub(r"'\1…'", hint))

    @property
    def place(self) -> str:
        """Where the error is, as file:line:column."""
        file = None if self.file is None else shown_file(self.file)
        return ":".join(str(part) for part in (file, self.line, self.column) if part is not None)

    def __str__(self) -> str:
        where = self.place
        text = f"{where}: {self.message}" if where else self.message
        taxon = None if self.taxon is None else shortened(f"'{self.taxon}'")
        if taxon is not None and taxon not in self.message:
            text += f" (taxon {taxon})"
        if self.site is not None:
            text += f" (site {self.site})"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


def shortened(text: str) -> str:
    """A message that quotes 80 characters of an input at most: what stands in quotes, and words longer than
    people write them, are cut."""
    return _LONG_WORD.sub(r"\1…", _QUOTED.sub(r"'\1…'", text))


def first_names(names: Sequence[str], most: int = 3) -> str:
    """The first few of some names, in quotes, each of 40 characters at most."""
    quoted = [repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:most]]
    return ", ".join([*quoted, "…"] if len(names) > most else quoted)


def shown_file(file: str) -> str:
    """The name of an input as people read it."""
    return "standard input" if file == STANDARD_INPUT else file


class ModelError(InputError):
    """A model string or a parameter value that makes no model; column counts in the model string, file and
    line say where it stands, if in a file."""

    @property
    def place(self) -> str:
        known = [] if self.file is None else [shown_file(self.file)]
        known += [] if self.line is None else [str(self.line)]
        words = [] if self.column is None else [f"model string, column {self.column}"]
        return ": ".join([":".join(known)] * bool(known) + words)


@contextmanager
def in_file(file: str | None) -> Iterator[None]:
    """InputErrors raised inside that point at a taxon or site, and name no file, name this one."""
    try:
        yield
    except InputError as error:
        if error.taxon is not None or error.site is not None:
            error.file = error.file or file
        raise


def require_count(what: str, value: object) -> None:
    """InputError unless the value is a whole number of at least 1."""
    if _whole(value) < 1:
        raise InputError(f"{what} must be a whole number of at least 1, not {value}")


def require_type(what: str, value: object, wanted: type, hint: str) -> None:
    """InputError with the remedy unless the value is of the type."""
    if not isinstance(value, wanted):
        raise InputError(f"{what} is of type {type(value).__name__}, not {wanted.__name__}", hint=hint)


def count_of(text: str) -> int:
    """The whole number that a text writes in the digits 0 to 9: -1 where it is none, 10¹⁸ where it is longer
    than 18 digits, which no count of anything is."""
    if not (text.isascii() and text.isdigit()):
        return -1
    return int(text) if len(text) <= 18 else 10**18


def require_choice(what: str, value: object, choices: Collection[str]) -> None:
    """InputError that lists the choices unless the value is one of them."""
    if value not in choices:
        raise InputError(f"unknown {what} '{value}'", hint=f"Choose one of {', '.join(choices)}.")


def require_seed(seed: object) -> None:
    """InputError unless it is a whole number that fits a signed 64-bit integer and is not negative."""
    if not 0 <= _whole(seed) < 2**63:
        raise InputError(f"the seed must be a whole number of 0 … 2**63 - 1, not {seed}")


def _whole(value: object) -> int:
    """The value if it is a whole number, else -1."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return -1


class NumericalError(PhloemError):
    """A computation that left the numbers it is defined for (NaN, infinity, no convergence)."""


class DeviceError(PhloemError):
    """A device, or a library that drives it, that is missing, too small or broken; hint is the remedy."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)
        self.hint = hint
