"""Names of FASTA files that a blank cuts short: 'hCoV-19/South' of 'hCoV-19/South Africa/KRISP-1/2021'."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable

from phloem.errors import InputWarning, shown_file

_BETWEEN_FIELDS = "|/"
_LONGEST = 80


def tell_cut_names(headers: Iterable[str], file: str | None) -> None:
    """A warning of headers, without their '>', whose first word lacks fields that the names of others have
    and the rest of the header has: dates and tables of taxa would not be found by such a name."""
    whole, several = list[str](), list[str]()
    for header in headers:
        (several if len(header.split(None, 1)) > 1 else whole).append(header.strip())
    if not whole or not several:
        return
    usual = {
        mark: Counter(name.count(mark) for name in whole).most_common(1)[0][0] for mark in _BETWEEN_FIELDS
    }
    cut = [header for header in several if _is_cut(header, usual)]
    if cut:
        names = "1 name ends" if len(cut) == 1 else f"{len(cut):,} names end"
        at = f"{shown_file(file)}: " if file else ""
        told = f"{names} at the first blank, as '{cut[0].split()[0]}' of '{cut[0][:_LONGEST]}'"
        warnings.warn(f"{at}{told}; write _ for blanks in names", InputWarning, stacklevel=3)


def _is_cut(header: str, usual: dict[str, int]) -> bool:
    name = header.split(None, 1)[0]
    return any(name.count(mark) < count <= header.count(mark) for mark, count in usual.items())
