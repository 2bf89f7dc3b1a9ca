"""Sets of columns that a BEAST file makes of an alignment, as text that chooses sites.

BEAST 2: `<data id="1stpos" spec="FilteredAlignment" data="@dna" filter="1-457\\3,660-.\\3"/>`, 1-based, also
written 1:457:3 or 1::3. BEAST 1: `<patterns id="CP3.patterns" from="3" every="3"><alignment idref="dna"/>…`,
and several of them in one `<mergePatterns id="CP12.patterns">`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence

from phloem.errors import InputWarning, shown_file
from phloem.io.beast_elements import Element
from phloem.io.source_text import SourceText

_STEPS = re.compile(r"\s*(\d*)\s*:\s*(\d*|\.)\s*:\s*(\d+)\s*")
_ALL = "1-."


def column_sets(root: Element, source: SourceText) -> dict[str, dict[str, str]]:
    """Of every alignment, by its id, name → columns of every set of it, in the order of the file; those of
    all columns are none.

    Raises InputError where two sets of an alignment have one name and other columns.
    """
    found: dict[str, dict[str, str]] = {}
    for element, alignment, columns in (*_filtered(root), *_patterns(root)):
        name = element.attributes.get("id", "").removesuffix(".patterns")
        if not name or columns == _ALL:
            continue
        if found.setdefault(alignment, {}).setdefault(name, columns) != columns:
            told = f"two sets of columns are called '{name}'"
            raise source.error(told, element.offset, hint="Give each an id of its own.")
    return found


def check_counting(root: Element, alignments: Sequence[Element], source: SourceText) -> None:
    """InputError where BEAST 2 counts columns of these alignments otherwise than once each: by weights, with
    constant ones besides, or without those that do not vary. A warning where it conditions on some."""
    named = {one.attributes.get("id", "") for one in alignments}
    filtered = [element for element in root.everything() if _is_filtered(element)]
    for element in (*alignments, *(one for one in filtered if _filtered_from(one) in named)):
        at = element.attributes
        constant = any(
            "constantSiteWeights" in (one.name, one.attributes.get("name")) for one in element.children
        )
        if constant or "constantSiteWeights" in at:
            told = "columns are not counted, besides those there are, as constantSiteWeights has them"
            hint = "Add as many constant columns to the alignment, or take it out to leave them uncounted."
            raise source.error(told, element.offset, hint=hint)
        if at.get("weights", "").strip() or at.get("strip") == "true":
            told = "columns count once each, whatever weights and strip say of them"
            hint = "Write every column as often as it counts, and take weights and strip out."
            raise source.error(told, element.offset, hint=hint)
        if at.get("ascertained") == "true":
            told = "columns that the analysis is conditional on (ascertained) are read as data"
            hint = "leave them out by --sites, and say +ASC in --model"
            file = shown_file(source.file or "the file")
            warnings.warn(f"{file}:{element.line}: {told}: {hint}", InputWarning, stacklevel=4)
    for sequence in (one for alignment in alignments for one in alignment.every("sequence")):
        if sequence.attributes.get("uncertain") == "true":
            told, hint = "sequences of probabilities (uncertain) are not read", "Give characters."
            raise source.error(told, sequence.offset, taxon=sequence.attributes.get("taxon"), hint=hint)


def _is_filtered(element: Element) -> bool:
    return element.attributes.get("spec", "").endswith("FilteredAlignment")


def _filtered_from(element: Element) -> str:
    """The id of the alignment that a filter chooses columns of."""
    inside = next((one.attributes.get("idref") for one in element.every("data")), None)
    return (element.attributes.get("data") or inside or "").removeprefix("@")


def _filtered(root: Element) -> Iterator[tuple[Element, str, str]]:
    for element in root.everything():
        text = element.attributes.get("filter")
        if text and _is_filtered(element):
            yield element, _filtered_from(element), ", ".join(_columns(piece) for piece in text.split(","))


def _columns(piece: str) -> str:
    """A piece of a filter as phloem writes it."""
    steps = _STEPS.fullmatch(piece)
    if steps is None:
        return piece.strip()
    return f"{steps[1] or 1}-{steps[2] or '.'}\\{steps[3]}"


def _patterns(root: Element) -> Iterator[tuple[Element, str, str]]:
    merged = list(root.every("mergePatterns"))
    inner = {id(one) for several in merged for one in several.every("patterns")}
    sets = [one for one in root.every("patterns") if id(one) not in inner]
    for element in (*sets, *merged):
        own = list(element.every("patterns")) if element.name == "mergePatterns" else [element]
        of = dict.fromkeys(_alignment_of(one) for one in own)
        for alignment in of:
            columns = ", ".join(_every(one) for one in own if _alignment_of(one) == alignment)
            yield element, alignment, columns


def _alignment_of(patterns: Element) -> str:
    return next((one.attributes.get("idref", "") for one in patterns.every("alignment")), "")


def _every(patterns: Element) -> str:
    at = patterns.attributes
    columns = f"{at.get('from', '1')}-{at.get('to', '.')}"
    return columns + (f"\\{at['every']}" if at.get("every", "1") != "1" else "")
