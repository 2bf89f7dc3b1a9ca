"""Trees of a MRBAYES block's own file: what chains start from (STARTVALS), and the topology that they keep
(PRSET TOPOLOGYPR=FIXED)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from phloem.analysis.mcmc_start import named_trees
from phloem.analysis.mrbayes_divisions import Setting
from phloem.io.mrbayes import MrBayesCommand
from phloem.io.nexus import read_blocks
from phloem.io.source_text import SourceText
from phloem.io.trees import parse_trees
from phloem.tree.match import folded

_PARTS = re.compile(r"\{\s*(?:all|[\d,\s]*)\s*\}", re.IGNORECASE)  # of the data, which have one tree
_VALUE = re.compile(r"\s*(\w+)\s*(\([^)]*\))?\s*=\s*(\([^)]*\)|[^\s()]+)")
_TREE = {"tau": "a topology", "v": "branch lengths"}


@dataclass
class Starts:
    """source: the file with the block. tree: the name that STARTVALS has for the topology, and the command.
    others: parameters that it has values for."""

    source: SourceText
    tree: tuple[str, MrBayesCommand] | None = None
    lengths: tuple[str, MrBayesCommand] | None = None
    others: list[str] = field(default_factory=list)

    def take(self, command: MrBayesCommand) -> None:
        """STARTVALS tau=tree V=tree parameter=(…): InputError for what chains do not start from."""
        text, at = _PARTS.sub("", command.text), 0
        while text[at:].strip():
            found = _VALUE.match(text, at)
            if found is None:
                hint = "Write 'startvals tau=name', of a tree in this file."
                raise command.error(f"STARTVALS: '{text[at:].strip()[:40]}' is no value", hint)
            name, chain, value = found.groups()
            at = found.end()
            if name.lower() not in _TREE:
                self.others.append(name)
            elif chain is not None:
                told = f"STARTVALS {name}{chain} is of some chains, and here all start from one tree"
                raise command.error(told, f"Write 'startvals {name}={value}'.")
            elif name.lower() == "tau":
                self.tree = value, command
            else:
                self.lengths = value, command

    def refuse_dated(self) -> None:
        """InputError: `phloem time` takes no tree to start from."""
        if self.tree is not None:
            told = "STARTVALS tau is not supported where trees have a clock"
            raise self.tree[1].error(told, "Leave it out: dated chains start from random trees.")

    def options(self, topology: Setting | None, asked: str | None, notes: list[str]) -> dict[str, Any]:
        """Options of `phloem mcmc`. topology: what PRSET TOPOLOGYPR says. asked: starttree of the chains'
        command. notes: what has no meaning, or is done otherwise, is added."""
        value = None if topology is None else topology.option.value
        if self.others:
            notes.append(f"startvals {', '.join(self.others)}: each chain starts from its own")
        if self.lengths and (self.tree is None or folded(self.lengths[0]) != folded(self.tree[0])):
            told = f"STARTVALS V={self.lengths[0]}: lengths are those of the tree that tau names"
            raise self.lengths[1].error(told, f"Write 'startvals tau={self.lengths[0]}', or leave V out.")
        if topology is not None and value is not None and value.word == "fixed":
            wanted, line = (value.arguments or ("",))[0], topology.option.line
            if self.tree and folded(self.tree[0]) != folded(wanted):
                told = f"STARTVALS tau={self.tree[0]}, and topologypr=fixed({wanted})"
                raise self.tree[1].error(told, "Name one tree.")
            chosen = self._named(wanted, topology.command, f"topologypr=fixed({wanted})", line)
            return chosen | {"fixed_topology": True}
        own = {"start": "parsimony"} if asked == "parsimony" else {}
        if self.tree is None:
            return own
        wanted, command = self.tree
        chosen = self._named(wanted, command, f"STARTVALS tau={wanted}", command.line)
        if asked in ("random", "parsimony"):
            notes.append(f"line {command.line}: startvals tau has no effect: starttree={asked}")
            return own
        notes.append(f"line {command.line}: each chain starts some interchanges from '{wanted}'")
        return chosen

    def _named(self, wanted: str, command: MrBayesCommand, what: str, line: int) -> dict[str, Any]:
        """--start and --start-tree for a tree of the file."""
        there = any(block.name == "trees" for block in read_blocks(self.source))
        names = [tree.name or "" for tree in parse_trees(self.source)] if there else []
        at = named_trees(wanted, names)
        if len(at) > 1:
            raise command.error(f"{what}: {len(at)} trees are called so", "Rename all but one.", line)
        if not at:
            hint = f"There are: {', '.join(names[:9])}." if names else "Add a TREES block to the file."
            raise command.error(f"{what}: there is no such tree", hint, line)
        return {"start": self.source.file} | ({"start_tree": names[at[0]]} if at[0] else {})
