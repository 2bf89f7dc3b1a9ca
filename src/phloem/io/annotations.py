"""Node annotations in Newick comments: [&key=value,…] (BEAST, FigTree, MrBayes) and [&&NHX:key=value:…]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_PAIR = re.compile(r'\s*([^,={}"]+)(?:=(\{[^{}]*\}|"[^"]*"|[^,{}"]*))?\s*(?:,|$)')
_UNSAFE_IN_KEY = str.maketrans(dict.fromkeys('[]{},="\n', "_"))
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class Annotations(Mapping[int, Mapping[str, object]]):
    """Node number → {key: value}, parsed from the comments only when a node is asked for."""

    def __init__(self, comments: Mapping[int, str]) -> None:
        self._comments = comments
        self._parsed: dict[int, dict[str, object]] = {}

    def __getitem__(self, node: int) -> Mapping[str, object]:
        if node not in self._parsed:
            self._parsed[node] = parse_annotation(self._comments[node])
        return self._parsed[node]

    def __iter__(self) -> Iterator[int]:
        return iter(self._comments)

    def __len__(self) -> int:
        return len(self._comments)


def parse_annotation(comment: str) -> dict[str, object]:
    """Keys and values of comment bodies that begin with '&', several separated by newlines.

    Numbers become int or float, {a,b} a tuple, "text" its content; a key without a value is True.
    """
    found: dict[str, object] = {}
    for part in comment.split("\n&"):
        body = part.removeprefix("&")
        if body.startswith("&NHX"):
            found.update(_parse_nhx(body[4:]))
        else:
            found.update(_parse_pairs(body))
    return found


def _parse_nhx(body: str) -> dict[str, object]:
    pairs = (field.partition("=") for field in body.split(":") if field.strip())
    return {key.strip(): _value(value) for key, _, value in pairs}


def _parse_pairs(body: str) -> dict[str, object]:
    found: dict[str, object] = {}
    position = 0
    while position < len(body):
        match = _PAIR.match(body, position)
        if match is None:
            return {**found, **_parse_nested(body[position:])}
        key, value = match.groups()
        found[key.strip()] = True if value is None else _value(value)
        position = match.end()
    return found


def _parse_nested(body: str) -> dict[str, object]:
    """The same for braces within braces (Markov jump histories): fields split at commas outside them."""
    fields = _split(body)
    pairs = (field.partition("=") for field in fields if field.strip())
    return {key.strip(): _value(value) if equals else True for key, equals, value in pairs}


def _split(body: str) -> list[str]:
    """Parts between commas that stand in no brace and no quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, character in enumerate(body):
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character == "{") - (character == "}")
            if character == "," and depth == 0:
                parts.append(body[start:i])
                start = i + 1
    return [*parts, body[start:]]


def _value(text: str, nesting: int = 0) -> object:
    text = text.strip()
    if text[:1] == "{" and text[-1:] == "}" and nesting < 20:
        inner = text[1:-1]
        return tuple(_value(part, nesting + 1) for part in _split(inner)) if inner.strip() else ()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if _NUMBER.fullmatch(text):
        return int(text) if text.isdecimal() and len(text) < 19 else float(text)
    return text


def annotation_key(name: str) -> str:
    """A name without the characters that would end a key."""
    return name.translate(_UNSAFE_IN_KEY)


def format_annotation(values: Mapping[str, object]) -> str:
    """'[&key=value,…]', or '' if there is nothing to say."""
    if not values:
        return ""
    keyed = ((annotation_key(key), value) for key, value in values.items())
    fields = (key if value is True else f"{key}={_format(value)}" for key, value in keyed)
    return f"[&{','.join(fields)}]"


def _format(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return "{" + ",".join(_format(item) for item in value) + "}"
    if isinstance(value, str):
        text = value.translate({ord('"'): "'", ord("["): "(", ord("]"): ")", ord("\n"): " "})
        return text if re.fullmatch(r"[\w.+#-]+", text) and not _NUMBER.fullmatch(text) else f'"{text}"'
    if isinstance(value, float):
        return repr(float(value))
    return str(value)
