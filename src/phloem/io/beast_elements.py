"""The elements of an XML file, each with its place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.source_text import SourceText

_DEEPEST = 200
_READ = {"taxa", "taxon", "date", "alignment", "data", "sequence", "patterns", "mergePatterns", "trait"}
_SHOWN = 12


@dataclass
class Element:
    """name, attributes, offset of its tag in the text, children and the text between them."""

    name: str
    attributes: Mapping[str, str]
    offset: int
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def every(self, *names: str) -> Iterator[Element]:
        """Elements of these names in it, at any depth, in the order of the file."""
        for child in self.children:
            if child.name in names:
                yield child
            yield from child.every(*names)

    def everything(self) -> Iterator[Element]:
        """All elements in it, at any depth, in the order of the file."""
        for child in self.children:
            yield child
            yield from child.everything()


def parsed(source: SourceText) -> Element:
    """A file as elements, under one without a name. Entities of its own, which may grow without bounds, are
    refused.

    Raises InputError with line for damaged XML.
    """
    data = source.text.encode("utf-8", "replace")
    parser = expat.ParserCreate("utf-8")
    ascii_only = len(data) == len(source.text)
    top = Element("", {}, 0, 1)
    stack = [top]

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if len(stack) > _DEEPEST:
            raise source.error(f"elements are nested more than {_DEEPEST} deep", 0, hint="Check the file.")
        at = parser.CurrentByteIndex
        offset = at if ascii_only else len(data[:at].decode("utf-8", "replace"))
        stack[-1].children.append(Element(name, attributes, offset, parser.CurrentLineNumber))
        stack.append(stack[-1].children[-1])

    def characters(text: str) -> None:
        pieces.setdefault(id(stack[-1]), []).append(text)

    def end(name: str) -> None:
        element = stack.pop()
        element.text = "".join(pieces.pop(id(element), []))

    def entity(*_: object) -> None:
        raise source.error("the file defines entities", 0, hint="Write their content where they are used.")

    pieces: dict[int, list[str]] = {}
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise InputError(
            f"the XML is damaged: {what}", file=source.file, line=error.lineno, column=error.offset + 1,
            hint="Write the file again.",
        ) from None  # fmt: skip
    return top


def tell_unread(root: Element, source: SourceText) -> None:
    """A warning that lists what else the file says."""
    top = next((one for one in root.children if one.name == "beast"), root)
    other = np.unique([one.name for one in top.children if one.name not in _READ]).tolist()
    if other:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        listed = f"{', '.join(name[:40] for name in other[:_SHOWN])}{more}"
        file = shown_file(source.file or "the file")
        read = "alignment, sets of columns, taxa, dates and traits"
        told = f"{file}: of a BEAST file, {read} are read; not {listed}"
        warnings.warn(told, InputWarning, stacklevel=1)  # from one place, so that it is told once a file
