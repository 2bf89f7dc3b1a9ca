"""Distance matrices as MEGA writes them: commands that begin with '!', names behind '#', then a triangle."""

from __future__ import annotations

import re
from bisect import bisect_right

import numpy as np

from phloem.io.distance_rows import Form, RowSpans, columns_of
from phloem.io.source_text import SourceText, read_source

_HEAD = re.compile(r"#mega\b", re.IGNORECASE)
_OF_DISTANCES = re.compile(r"\bDataType\s*=\s*Distance\b", re.IGNORECASE)
_COMMENT = re.compile(r"\[[^\]]*\]")  # numbers of rows and columns, standard errors
_COMMAND = re.compile(r"^[ \t]*!\s*(\w+)([^;]*);", re.MULTILINE)
_NAME = re.compile(r"#[ \t]*([^#\n]+)")
_GROUP = re.compile(r"\s*\{[^}]*\}\s*$")
_FORMS: dict[str, Form] = {"lowerleft": "lower", "upperright": "upper"}


def is_mega(head: str) -> bool:
    """Whether a file, by its beginning, is MEGA's, and of distances."""
    return _HEAD.match(head.lstrip("\ufeff \t\r\n")) is not None and _OF_DISTANCES.search(head) is not None


def distances_of_mega(path: str) -> tuple[np.ndarray, RowSpans]:
    """A text of the numbers alone, a row a taxon, and where they lie in it.

    InputError where names or numbers are not as many as announced.
    """
    source = read_source(path)
    text = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source.text)
    said = _format(source, text)
    text = _COMMAND.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    begin = _HEAD.search(text)
    names = list(_NAME.finditer(text, begin.end() if begin else 0))
    taxa = [_GROUP.sub("", match[1].strip()) for match in names]
    n = int(said.get("ntaxa", len(taxa)))
    if len(taxa) != n or n == 0:
        hint = "Name every taxon on a line of its own, behind '#', or correct NTaxa."
        raise source.error(f"NTaxa is {n}, and {len(taxa)} taxa are named", 0, hint=hint)
    form = _FORMS[said.get("dataformat", "lowerleft")]
    words = list(re.compile(r"\S+").finditer(text, names[-1].end()))
    widths = [columns_of(form, n, i)[1] for i in range(n)]
    if len(words) != sum(widths):
        told = f"{len(words):,} distances, where {n:,} taxa have {sum(widths):,}"
        raise source.error(told, names[-1].end(), hint="Export the whole matrix, or correct NTaxa.")
    breaks = [match.start() for match in re.finditer("\n", source.text)]
    rows, lines, at = [], [], 0
    for width in widths:
        first = words[min(at, len(words) - 1)].start() if words else names[-1].end()
        lines.append(bisect_right(breaks, first) + 1)
        rows.append((" ".join(word[0] for word in words[at : at + width]) + "\n").encode())
        at += width
    stops = np.cumsum([len(row) for row in rows])
    starts = stops - [len(row) for row in rows]
    data = np.frombuffer(b"".join(rows), np.uint8)
    return data, RowSpans(taxa, starts, stops, np.array(lines), form, lambda row, _: row)


def _format(source: SourceText, text: str) -> dict[str, str]:
    """What the command FORMAT says, in lower case; InputError for what it cannot say."""
    found = {match[1].lower(): match for match in _COMMAND.finditer(text)}
    match = found.get("format")
    pairs = re.findall(r"(\w+)\s*=\s*([^\s=]+)", match[2]) if match else []
    said = {name.lower(): value.lower() for name, value in pairs}
    at = match.start() if match else 0
    if said.get("dataformat", "lowerleft") not in _FORMS:
        raise source.error(
            f"there is no DataFormat '{said['dataformat'][:40]}'", at, hint="Write LowerLeft or UpperRight."
        )
    if not said.get("ntaxa", "1").isdigit():
        told = f"NTaxa is no number: '{said['ntaxa'][:40]}'"
        raise source.error(told, at, hint="Write how many taxa there are.")
    return said
