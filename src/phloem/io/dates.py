"""Sampling dates from a file of names and dates."""

from __future__ import annotations

import os
from collections.abc import Iterable

from phloem.data.dates import SamplingDates, dates_from_table
from phloem.io.source_text import read_source


def read_dates(path: str | os.PathLike[str], taxa: Iterable[str] | None = None) -> SamplingDates:
    """Read name and date from each line of a file (tab, comma or blanks between); see `dates_from_table`."""
    source = read_source(path)
    return dates_from_table(source.text, source.file, taxa)
