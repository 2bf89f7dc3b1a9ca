"""What a MRBAYES block says about columns and taxa: CHARSET, PARTITION, EXCLUDE, CTYPE, DELETE, …"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phloem.analysis.mrbayes_divisions import Division, Setting
from phloem.data.doublets import parse_pairs
from phloem.data.partition import Subset
from phloem.data.sites import format_sites, parse_sites
from phloem.errors import InputError, count_of
from phloem.io.character_rows import CharacterRows
from phloem.io.mrbayes import MrBayesCommand
from phloem.io.nexus import Token
from phloem.io.partition_words import plain_sets
from phloem.tree.match import folded

_BLANKS = re.compile(r"\s*([-\\])\s*")
_NO_NAME = re.compile(r"[\s=,{}:()]")


@dataclass
class Sets:
    """What the commands so far have said, of the characters of the data."""

    characters: CharacterRows
    charsets: dict[str, str] = field(default_factory=dict)
    taxsets: dict[str, set[int]] = field(default_factory=dict)
    excluded: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    ordered: set[int] = field(default_factory=set)
    partner: dict[int, int] = field(default_factory=dict)
    constraints: dict[str, tuple[str, list[list[str]], MrBayesCommand]] = field(default_factory=dict)
    outgroup: str | None = None

    def __post_init__(self) -> None:
        self.charsets |= plain_sets(self.characters.charsets)

    @property
    def taxa(self) -> Sequence[str]:
        return self.characters.taxa

    @property
    def kept(self) -> list[str]:
        """Taxa that are not deleted."""
        return [taxon for i, taxon in enumerate(self.taxa) if i not in self.deleted]

    @property
    def deleted_names(self) -> set[str]:
        return {self.taxa[i] for i in self.deleted}

    def take(self, command: MrBayesCommand) -> bool:
        """Obey a command that is about columns or taxa; False for another."""
        name, words = command.name, command.words
        if name == "charset":
            head, rest = _split(command, words, "=")
            self.charsets[_name(command, head)] = _columns(rest)
        elif name in ("exclude", "include"):
            columns = set(self.columns(command, _columns(words)).tolist())
            self.excluded = self.excluded | columns if name == "exclude" else self.excluded - columns
        elif name == "ctype":
            self.set_type(command)
        elif name == "pairs":
            self.pair(command)
        elif name == "taxset":
            head, rest = _split(command, words, "=")
            self.taxsets[folded(_name(command, head))] = self.members(command, rest)
        elif name in ("delete", "restore"):
            taxa = self.members(command, words)
            self.deleted = self.deleted | taxa if name == "delete" else self.deleted - taxa
        elif name == "outgroup":
            taxa = self.members(command, words)
            if len(taxa) != 1:
                raise command.error("OUTGROUP takes one taxon", "Name one taxon, by name or number.")
            self.outgroup = self.taxa[taxa.pop()]
        elif name == "constraint":
            self.constrain(command)
        else:
            return False
        return True

    def columns(self, command: MrBayesCommand, text: str) -> np.ndarray:
        """0-based columns of a text of numbers, ranges and sets."""
        try:
            return parse_sites(text, self.characters.n_sites, self.charsets)
        except InputError as error:
            error.file, error.line, error.site = command.file, command.line, None
            raise

    def pair(self, command: MrBayesCommand) -> None:
        """PAIRS a:b, c:d, …: columns that face each other in a stem."""
        text = " ".join(w.text for w in command.words)
        try:
            pairs = parse_pairs(text, self.characters.n_sites).reshape(-1, 2).tolist()
        except InputError as error:
            error.file, error.line, error.site = command.file, command.line, None
            raise
        for a, b in pairs:
            if twice := [c + 1 for c in (a, b) if c in self.partner]:
                raise command.error(f"column {twice[0]} pairs more than once", "Give it one partner.")
            self.partner |= {a: b, b: a}

    def set_type(self, command: MrBayesCommand) -> None:
        head, rest = _split(command, command.words, ":")
        word = _name(command, head).lower()
        known = [name for name in ("ordered", "unordered", "irreversible") if name.startswith(word)]
        columns = set(self.columns(command, _columns(rest)).tolist())
        if known == ["ordered"]:
            self.ordered |= columns
        elif known == ["unordered"]:
            self.ordered -= columns
        else:
            raise command.error(f"CTYPE {word} is not supported", "Choose ordered or unordered.")

    def constrain(self, command: MrBayesCommand) -> None:
        """name [hard|negative] = taxa, name partial = taxa : taxa."""
        head, rest = _split(command, command.words, "=")
        kinds = [w.text.lower() for w in head[1:]]
        kind = kinds[0] if kinds and not re.fullmatch(r"-?[\d.]+", kinds[0]) else "hard"
        known = [name for name in ("hard", "partial", "negative") if name.startswith(kind)]
        if len(known) != 1:
            raise command.error(f"{kind} constraints are unknown", "Choose hard, partial or negative.")
        sets = _split(command, rest, ":") if known[0] == "partial" else (rest,)
        names = [[self.taxa[i] for i in sorted(self.members(command, own))] for own in sets]
        self.constraints[folded(_name(command, head))] = (known[0], names, command)

    def members(self, command: MrBayesCommand, words: Sequence[Token]) -> set[int]:
        """Numbers of taxa from names, numbers, ranges such as 3-5 or 3-., sets, and "all"."""
        found: set[int] = set()
        text = _BLANKS.sub(r"\1", " ".join(w.text.replace(" ", "\0") for w in words if w.text != ","))
        places = {folded(taxon): i for i, taxon in enumerate(self.taxa)}
        for word in (word.replace("\0", " ") for word in text.split()):
            key = folded(word)
            if key in places:
                found.add(places[key])
            elif key in self.taxsets:
                found |= self.taxsets[key]
            elif key == "all":
                found |= set(range(len(self.taxa)))
            else:
                found |= self._range(command, word)
        if not found:
            raise command.error(f"{command.name.upper()} names no taxon", "Name taxa, or numbers of them.")
        return found

    def _range(self, command: MrBayesCommand, word: str) -> set[int]:
        match = re.fullmatch(r"(\d+)(?:-(\d+|\.)(?:\\(\d+))?)?", word)
        n = len(self.taxa)
        first = count_of(match.group(1)) if match else 0
        last = (
            first
            if not match or match.group(2) is None
            else n
            if match.group(2) == "."
            else count_of(match.group(2))
        )
        step = count_of(match.group(3)) if match and match.group(3) else 1
        if not 1 <= first <= last <= n or step < 1:
            raise command.error(f"there is no taxon or set of taxa '{word[:60]}'", "Check its spelling.")
        return set(range(first - 1, last, step))

    def partition(self, command: MrBayesCommand) -> tuple[str, list[Subset]]:
        """PARTITION name = n: columns, columns, …"""
        head, rest = _split(command, command.words, "=")
        count, items = _split(command, rest, ":")
        texts, own = [], list[Token]()
        for token in (*items, None):
            if token is None or (token.text == "," and not token.quoted):
                texts.append(own)
                own = []
            else:
                own.append(token)
        announced = count_of("".join(t.text for t in count))
        if announced != len(texts):
            told = f"PARTITION announces {announced} parts and lists {len(texts)}"
            raise command.error(told, "Correct the number.")
        names = {name.lower(): name for name in self.charsets}
        subsets = []
        for number, words in enumerate(texts, 1):
            text = _columns(words)
            name = names.get(text.strip("'").lower(), f"part{number}")
            name = _NO_NAME.sub("_", name)
            subsets.append(Subset(name, self.columns(command, text), line=command.line))
        return _name(command, head), subsets

    def without_excluded(self, division: Division) -> Division:
        kept = np.setdiff1d(division.sites, np.array(sorted(self.excluded), np.int64))
        if not len(kept):
            raise InputError(
                f"all columns of part '{division.name}' are excluded", file=self.characters.source.file
            )
        return replace(division, sites=kept, partner=self.partner)

    def options(self, topology: Setting | None) -> dict[str, Any]:
        """Options of `phloem mcmc` about taxa and characters. topology: what PRSET TOPOLOGYPR says."""
        ordered = np.array(sorted(self.ordered - self.excluded), np.int64)
        return {
            "without": [self.taxa[i] for i in sorted(self.deleted)],
            "ordered": format_sites(ordered) if len(ordered) else None,
            "outgroup": self.outgroup,
            "constraint": self.chosen_constraints(topology),
        }

    def chosen_constraints(self, topology: Setting | None) -> list[str]:
        """Texts for --constraint of those that PRSET TOPOLOGYPR names."""
        return [self._constraint(name) for name in self._chosen(topology)]

    def chosen(self, topology: Setting | None) -> dict[str, tuple[str, list[list[str]], MrBayesCommand]]:
        """The same by name: kind, taxa of its sets, command."""
        return {name: self._kept_constraint(name) for name in self._chosen(topology)}

    def _chosen(self, topology: Setting | None) -> list[str]:
        value = None if topology is None else topology.option.value
        if topology is None or value is None or value.word != "constraints":
            return []
        found, names = list[str](), list(self.constraints)
        for word in value.arguments or ():
            first, dash, last = word.partition("-")
            if folded(word) in names:
                chosen = [folded(word)]
            elif 1 <= count_of(first) <= count_of(last if dash else first) <= len(names):  # by number
                chosen = names[count_of(first) - 1 : count_of(last if dash else first)]
            else:
                told, hint = f"there is no constraint '{word}'", f"There are: {', '.join(names) or 'none'}."
                raise topology.command.error(told, hint, topology.option.line)
            found += chosen
        return found

    def _kept_constraint(self, name: str) -> tuple[str, list[list[str]], MrBayesCommand]:
        """One of them without deleted taxa."""
        kind, sets, command = self.constraints[name]
        kept = [[taxon for taxon in taxa if taxon not in self.deleted_names] for taxa in sets]
        if not all(kept):
            raise command.error(f"all taxa of constraint '{name}' are deleted", "Leave it out.")
        return kind, kept, command

    def _constraint(self, name: str) -> str:
        """One of them as text for --constraint."""
        kind, kept, _ = self._kept_constraint(name)
        return f"{name}{'' if kind == 'hard' else f' {kind}'}: {' | '.join(map(', '.join, kept))}"


def _split(
    command: MrBayesCommand, words: Sequence[Token], mark: str
) -> tuple[Sequence[Token], Sequence[Token]]:
    """The words before and after the first mark."""
    for i, word in enumerate(words):
        if word.text == mark and not word.quoted:
            return words[:i], words[i + 1 :]
    raise command.error(f"{command.name.upper()} has no '{mark}'", f"Write a name, '{mark}', and what it is.")


def _name(command: MrBayesCommand, head: Sequence[Token]) -> str:
    names = [word.text for word in head if word.text != "*"]
    if not names:
        raise command.error(f"{command.name.upper()} has no name", "Write a name before '='.")
    return names[0]


def _columns(words: Sequence[Token]) -> str:
    text = " ".join(f"'{word.text}'" if word.quoted else word.text for word in words if word.text != ",")
    return _BLANKS.sub(r"\1", text)
