"""Partition files: lists of RAxML, RAxML-NG and IQ-TREE, and NEXUS with CHARPARTITION or MrBayes' PARTITION.

A list has a line for each subset, MODEL or data type first:
    GTR+G, gene1 = 1-500, 700-900\\3
    DNA, gene2 = 501-699
    DOUBLET, stems = 700:760, 701-709:759-751
NEXUS has named sets of columns, and a command that gives each a model (IQ-TREE) or only lists them:
    begin sets;    charset a = 1-100\\3 201-.;  charset b = CODON2, 101-200;
                   charpartition p = GTR{1,2,1,1,2}+G:a, GY94:b;    end;
    begin mrbayes; charset a = 1-100; charset b = 101-.;
                   partition genes = 2: a, b;  set partition = genes;  end;
A NEXUS file with CHARSETs alone means one subset for each, as in IQ-TREE.

Not read, each an error: columns of several alignments (phloem concatenate reads such files), lengths of trees
behind a set (`a{0.5}`), ascertainment lists of RAxML (`[asc~file], …`), `AUTO`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from phloem.data.doublets import names_pairs, pairs_not_said, parse_pairs
from phloem.data.partition import Scheme, Subset, Unassigned, make_scheme
from phloem.data.sites import parse_sites, parse_sites_once
from phloem.errors import InputError, count_of
from phloem.io.nexus import Block, Command, is_nexus, read_blocks
from phloem.io.nexus_names import SET_HOLDERS, named_sets
from phloem.io.partition_words import TypedColumns, datatype_of, model_of_states, plain_sets, typed_columns
from phloem.io.source_text import read_source

_LIST_HINT = "Write a line for each subset, as in 'GTR+G, gene1 = 1-500, 700-900\\3'."
_AUTO_HINT = "To have its model chosen, write the data type in its place, as in DNA or AA, with --model auto."
_NAME = re.compile(r"[^\s=,]+")
_TREE_LENGTH = re.compile(r"\{[^{}]*\}$")


@dataclass(frozen=True)
class _Columns:
    """What texts of columns mean in one file.

    n_sites, alignment: the alignment's width and path. charsets: the sets by name; lines: where they stand.
    """

    n_sites: int
    alignment: str | None
    charsets: Mapping[str, str]
    lines: Mapping[str, int]

    def subset(self, name: str, text: str, line: int, once: bool = False) -> Subset:
        """A subset from "[file:] [TYPE,] columns", or from the name of a set of them.

        once: a column named twice is an error.
        """
        named = self.set_of(text)
        if named is not None:
            text, line = self.charsets[named], self.lines.get(named, line)
        with _at_line(line):
            paired, kind = typed_columns(text.strip())
            is_doublet = kind is not None and kind.datatype == "doublet"
            if names_pairs(paired) and (kind is None or is_doublet):
                return Subset(name, parse_pairs(paired, self.n_sites), None, "doublet", line=line)
            if is_doublet:
                raise pairs_not_said(f"of '{name}'")
            text, kind = self._typed(text.strip())
            parse = parse_sites_once if once else parse_sites
            sites = parse(text, self.n_sites, plain_sets(self.charsets))
            datatype, code, n_states = kind or (None, None, None)
            return Subset(name, sites, None, datatype, code, line, n_states)

    def set_of(self, text: str) -> str | None:
        """The set that a text names, as the file spells it."""
        wanted = text.strip().strip("'").lower()
        return next((name for name in self.charsets if name.lower() == wanted), None)

    def _typed(self, text: str) -> TypedColumns:
        """Those of "[file:] [TYPE,] columns"."""
        file, colon, rest = text.rpartition(":")
        if colon:
            known = self.alignment is not None and os.path.basename(self.alignment)
            if file.strip().strip("'") not in (known, self.alignment):
                raise InputError(
                    f"columns of another file, '{file.strip()}', are asked for",
                    hint="phloem concatenate makes one alignment of several files.",
                )
            text = rest
        return typed_columns(text)


def read_partitions(
    path: str | os.PathLike[str],
    n_sites: int,
    *,
    charsets: Mapping[str, str] | None = None,
    alignment: str | None = None,
    name: str | None = None,
    unassigned: Unassigned = "error",
) -> Scheme:
    """Read a partition file, of a list or of NEXUS, for an alignment of n_sites columns.

    charsets: the alignment's own sets of columns, which the file may build on. alignment: its path, which
    IQ-TREE's sets may name. name: which CHARPARTITION or PARTITION, where the file has several; without it
    the one that `set partition` or a `*` chooses, or the only one. unassigned: columns in no subset are an
    "error", or left out ("drop"). Raises InputError with file, line and remedy (see also `make_scheme`).
    """
    source = read_source(path)
    with _in_file(source.file):
        if is_nexus(source.text):
            blocks = read_blocks(source)
            own = named_sets(blocks, "charset")
            sets = {**(charsets or {}), **{key: found.columns for key, found in own.items()}}
            lines = {key: found.command.line for key, found in own.items()}
            title, subsets = _nexus_subsets(
                blocks, name, _Columns(n_sites, alignment, sets, lines), list(own)
            )
        else:
            title, subsets = (
                None,
                _listed_subsets(source.text, _Columns(n_sites, alignment, charsets or {}, {})),
            )
        if name is not None and title is None:
            raise InputError(
                f"there is no partition '{name}'", hint="Leave the name out: the file has one list."
            )
        return make_scheme(subsets, n_sites, name=title, file=source.file, unassigned=unassigned)


def listed_partitions(
    lines: Sequence[str], n_sites: int, charsets: Mapping[str, str], unassigned: Unassigned = "error"
) -> Scheme:
    """The scheme of lines as in a list of RAxML-NG or IQ-TREE, "MODEL, name = columns"; with a data type
    beside the model: "MODEL, name = TYPE, columns"."""
    columns = _Columns(n_sites, None, charsets, {})
    subsets = []
    for text in lines:
        try:
            subsets.append(replace(_listed_subset(text, 0, columns), line=None))
        except InputError as error:
            error.line = None
            error.message = f"--part '{text}': {error.message}"
            raise
    return make_scheme(subsets, n_sites, unassigned=unassigned)


@contextmanager
def _in_file(file: str | None) -> Iterator[None]:
    """InputErrors raised inside that name no file name this one."""
    try:
        yield
    except InputError as error:
        error.file = error.file or file
        raise


@contextmanager
def _at_line(line: int) -> Iterator[None]:
    """InputErrors raised inside that name no line name this one."""
    try:
        yield
    except InputError as error:
        if error.line is None:
            error.line, error.site = line, None  # the message names the columns
        raise


# ---------------------------------------------------------------------------------------------- lists


def chooses_partition(path: str | os.PathLike[str], name: str | None = None) -> bool:
    """Whether a NEXUS file has a CHARPARTITION or PARTITION to be taken; not where it asks for MrBayes'
    default, which is none."""
    blocks = read_blocks(read_source(path))
    asked = _set_partition(blocks)
    default = name is None and asked is not None and asked[0] in ("default", "1")
    return bool(_definitions(blocks)) and not default


def _listed_subsets(text: str, columns: _Columns) -> list[Subset]:
    subsets = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            with _at_line(number):
                subsets.append(_listed_subset(line, number, columns))
    return subsets


def _listed_subset(line: str, number: int, columns: _Columns) -> Subset:
    """One line of a list, "MODEL, name = columns"."""
    model, rest = _split_outside_braces(line, ",")
    if rest is None:
        raise InputError(f"'{line.strip()[:60]}' is no subset", hint=_LIST_HINT)
    model = model.strip()
    if model.startswith("[") or model.upper().startswith("ASC_"):
        raise InputError("ascertainment lists of RAxML are not read", hint="Write the model with +ASC.")
    if model.upper() in ("", "AUTO"):
        raise InputError(f"the subset has no model, but '{model}'", hint=_AUTO_HINT if model else _LIST_HINT)
    name, equals, text = rest.partition("=")
    if not equals or _NAME.fullmatch(name.strip()) is None:
        raise InputError(f"'{rest.strip()[:60]}' has no name or no '='", hint=_LIST_HINT)
    text = re.sub(r"/(?=\s*\d)", r"\\", text)  # RAxML-NG writes strides with a slash too
    return _with_model(columns.subset(name.strip(), text, number, once=True), model)


def _with_model(subset: Subset, model: str) -> Subset:
    """The subset with a model, or with the data type that stands in its place."""
    of_states = model_of_states(model)
    if of_states is not None:
        word, name = of_states
        return replace(_with_model(subset, word), model_text=name)
    found = datatype_of(model)
    if found is None:
        return replace(subset, model_text=model)
    kind, code, n_states = found
    if kind == "doublet" and subset.datatype is None:
        raise pairs_not_said(f"of '{subset.name}'")
    if subset.datatype not in (None, kind):
        raise InputError(
            f"'{subset.name}' is {subset.datatype} by its set and {kind} by its partition",
            hint="Correct one of them.",
        )
    if n_states is not None and subset.n_states not in (None, n_states):
        raise InputError(
            f"'{subset.name}' has {subset.n_states} states by its set and {n_states} by its partition",
            hint="Correct one of them.",
        )
    return replace(
        subset,
        datatype=kind,
        genetic_code=code or subset.genetic_code,
        n_states=n_states or subset.n_states,
    )


def _split_outside_braces(text: str, separator: str) -> tuple[str, str | None]:
    """What stands before and after the first separator outside {…}."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if character == separator and depth == 0:
            return text[:index], text[index + 1 :]
    return text, None


# ---------------------------------------------------------------------------------------------- NEXUS


@dataclass(frozen=True)
class _Definition:
    """A CHARPARTITION or PARTITION: its name, its text after '=', and whether '*' marks it as the default."""

    name: str
    command: Command
    text: str
    marked: bool


def _nexus_subsets(
    blocks: Sequence[Block], name: str | None, columns: _Columns, own_sets: Sequence[str]
) -> tuple[str | None, list[Subset]]:
    """The name (None where CHARSETs alone make the partition) and the subsets."""
    found = _definitions(blocks)
    if found:
        definition = _chosen(blocks, found, name)
        if definition is None:
            return "default", [Subset("all", np.arange(columns.n_sites, dtype=np.int64))]
        read = _mrbayes_subsets if definition.command.name == "partition" else _charpartition_subsets
        with _at_line(definition.command.line):
            return definition.name, read(definition, columns)
    if not own_sets:
        raise InputError("the file has neither CHARPARTITION, PARTITION nor CHARSET", hint=_LIST_HINT)
    return None, [columns.subset(key, key, columns.lines[key]) for key in own_sets]


def _definitions(blocks: Sequence[Block]) -> dict[str, _Definition]:
    """Lower-case name → definition, of every CHARPARTITION and PARTITION."""
    found: dict[str, _Definition] = {}
    for block in (block for block in blocks if block.name in SET_HOLDERS):
        names = ("charpartition", "partition") if block.name == "mrbayes" else ("charpartition",)
        for command in (command for command in block.commands if command.name in names):
            words = command.tokens(punctuation="")  # without comments
            text = " ".join(f"'{word.text}'" if word.quoted else word.text for word in words)
            head, equals, text = text.partition("=")
            title = [word for word in head.replace("*", " ").split()]
            if not equals or not title:
                raise command.error(f"{command.name.upper()} has no name or no '='", hint="Write 'p = …'.")
            name = title[0].strip("'")
            if name.lower() in found:
                line = found[name.lower()].command.line
                message = f"the partition '{name}' is there twice, first in line {line}"
                raise command.error(message, hint="Rename one of them.")
            found[name.lower()] = _Definition(name, command, text, "*" in head)
    return found


def _chosen(
    blocks: Sequence[Block], found: Mapping[str, _Definition], name: str | None
) -> _Definition | None:
    """The partition to take; None for MrBayes' default, no partition."""
    known = ", ".join(definition.name for definition in found.values())
    if name is not None:
        if name.lower() in found:
            return found[name.lower()]
        raise InputError(f"there is no partition '{name}'", hint=f"Use one of {known}.")
    asked = _set_partition(blocks)
    if asked is not None:
        word, command = asked
        if word not in found and 2 <= count_of(word) <= len(found) + 1:
            return list(found.values())[count_of(word) - 2]  # MrBayes' default is the first
        if word not in found and word not in ("default", "1"):
            raise command.error(f"there is no partition '{word}'", hint=f"Use one of {known}.")
        return found.get(word)
    candidates = [definition for definition in found.values() if definition.marked] or list(found.values())
    if len(candidates) > 1:
        raise candidates[1].command.error(
            f"the file has several partitions: {known}",
            hint="Choose one with --partition-name, or 'set partition = NAME;' in a MRBAYES block.",
        )
    return candidates[0]


def _set_partition(blocks: Sequence[Block]) -> tuple[str, Command] | None:
    """The last `set partition = NAME` of a MRBAYES block, in lower case."""
    asked = None
    for block in (block for block in blocks if block.name == "mrbayes"):
        for command in (command for command in block.commands if command.name == "set"):
            words = [token.text.lower() for token in command.tokens()]
            if "partition" not in words:
                continue
            at = words.index("partition")
            if words[at + 1 : at + 2] != ["="] or at + 2 >= len(words):
                raise command.error("SET PARTITION has no name", hint="Write 'set partition = p;'.")
            asked = words[at + 2], command
    return asked


def _mrbayes_subsets(definition: _Definition, columns: _Columns) -> list[Subset]:
    """`partition name = 2: a, b`: each item one set's name, or columns."""
    count, colon, items = definition.text.partition(":")
    announced = count_of(count.strip())
    if not colon or announced < 0:
        raise InputError("PARTITION has no number of subsets", hint="Write 'partition p = 2: a, b;'.")
    texts = [item.strip() for item in items.split(",")]
    if len(texts) != announced:
        message = f"PARTITION announces {announced} subsets and lists {len(texts)}"
        raise InputError(message, hint="Correct the number.")
    line = definition.command.line
    return [
        columns.subset(columns.set_of(text) or f"subset{number}", text, line)
        for number, text in enumerate(texts, 1)
    ]


def _charpartition_subsets(definition: _Definition, columns: _Columns) -> list[Subset]:
    """`charpartition p = MODEL:set, …` (IQ-TREE), or `1:set, name:columns, rest:remainder` (NEXUS)."""
    subsets: list[Subset] = []
    rest: str | None = None
    for number, item in enumerate(_items(definition.text), 1):
        head, colon, body = (part.strip() for part in item.partition(":"))
        if not colon or not head or not body:
            raise InputError(
                f"'{item.strip()[:60]}' is no subset", hint="Write 'MODEL:set', or 'name:columns'."
            )
        if _TREE_LENGTH.search(body):
            raise InputError(
                f"'{body[:60]}': lengths of trees are not read", hint="Leave out the braces behind the set."
            )
        named, line = columns.set_of(body), definition.command.line
        if body.lower() == "remainder":
            rest = head
        elif named is not None:
            subset = columns.subset(named, body, line)
            subsets.append(subset if count_of(head) >= 0 else _with_model(subset, head))
        elif "+" in head or "{" in head:
            subsets.append(_with_model(columns.subset(f"subset{number}", body, line), head))
        else:
            subsets.append(replace(columns.subset(head, body, line), maybe_model=True))
    if rest is not None:
        taken = np.concatenate([np.empty(0, np.int64), *(subset.sites for subset in subsets)])
        left = np.setdiff1d(np.arange(columns.n_sites, dtype=np.int64), taken)
        subsets.append(Subset(rest, left, line=definition.command.line, maybe_model=True))
    return subsets


def _items(text: str) -> list[str]:
    """The items of a list; what has no colon belongs to the item before, as columns with commas do."""
    items: list[str] = []
    rest: str | None = text
    while rest is not None:
        item, rest = _split_outside_braces(rest, ",")
        if ":" not in item and items:
            items[-1] += "," + item
        else:
            items.append(item)
    return items
