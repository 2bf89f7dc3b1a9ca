"""TREES blocks of NEXUS files: TRANSLATE, TREE and UTREE commands, read in one batch."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from phloem.io.newick import trees_of
from phloem.io.newick_scan import Spans, clean_text, protected_spans
from phloem.io.nexus import Block, Command, end_of_comment, find_block, read_blocks, skip_space
from phloem.io.source_text import SourceText
from phloem.tree.tree import Tree

_NAME = re.compile(r"""'((?:[^']|'')*)'|"([^"]*)"|([^\s=\[\]'";]+)""")


def read_nexus_trees(source: SourceText, *, allow_negative: bool = False) -> list[Tree]:
    """The trees of every TREES block. Tips follow the order of TRANSLATE, or else of the TAXA block.

    A tip label that TRANSLATE does not know must be a taxon's name, or its number in the TAXA block.
    Raises InputError (line, column, remedy) for a file without trees or with a damaged one.
    """
    blocks = read_blocks(source)
    trees: list[Tree] = []
    for block in (block for block in blocks if block.name == "trees"):
        trees += _block_trees(block, _taxa_of(blocks), allow_negative)
    if not trees:
        hint = "Give a file with 'begin trees; tree name = (…);'."
        raise source.error("the NEXUS file contains no tree", 0, hint=hint)
    return trees


def _taxa_of(blocks: Sequence[Block]) -> list[str]:
    """Names of the TAXA block in order, [] without one."""
    block = find_block(blocks, "taxa")
    labels = block.command("taxlabels") if block else None
    return [token.text for token in labels.tokens()] if labels else []


def _block_trees(block: Block, taxa: list[str], allow_negative: bool) -> list[Tree]:
    commands = [c for c in block.commands if c.name in ("tree", "utree")]
    if not commands:
        return []
    translate = {str(i + 1): name for i, name in enumerate(taxa)} | dict(zip(taxa, taxa))
    order = taxa
    for command in (c for c in block.commands if c.name == "translate"):
        table = _translation(command)
        translate = dict(zip(table.values(), table.values())) | translate | table
        order = list(table.values())
    names, removed, quotes = _spans(block.source, commands)
    clean = clean_text(block.source, commands[0].begin, commands[-1].end + 1, removed, quotes)
    trees = trees_of(
        clean, taxa=order or None, translate=translate, names=names, allow_negative=allow_negative
    )
    return [_unrooted(tree) if c.name == "utree" else tree for tree, c in zip(trees, commands)]


def _unrooted(tree: Tree) -> Tree:
    return Tree(tree.taxa, tree.parent, tree.lengths, tree.labels, tree.annotations, False, tree.name)


def _translation(command: Command) -> dict[str, str]:
    """TRANSLATE's table; its pairs are separated by commas."""
    table: dict[str, str] = {}
    pair: list[str] = []
    listed = [*command.tokens(punctuation=","), None]
    for token in listed:
        if token is not None and not (token.text == "," and not token.quoted):
            pair.append(token.text)
            continue
        if len(pair) == 2 and pair[0] not in table:
            table[pair[0]] = pair[1]
        elif pair:
            shown = " ".join(pair)[:60]
            problem = "stands twice" if len(pair) == 2 else "is not a pair of key and name"
            hint = "Write 'translate 1 name_one, 2 name_two;' and quote names with blanks."
            raise command.error(f"'{shown}' in TRANSLATE {problem}", hint=hint)
        pair = []
    return table


def _spans(source: SourceText, commands: Sequence[Command]) -> tuple[list[str | None], Spans, Spans]:
    """Trees' names, everything that is not Newick (headers, comments) and quoted names."""
    names: list[str | None] = []
    removed, quotes = [], []
    stop = commands[0].begin
    for command in commands:
        name, equals = _header(source, command)
        names.append(name)
        removed.append(np.array([[stop, equals + 1]]))
        stop = command.end + 1
        comments, quoted = protected_spans(source, equals + 1, stop)
        removed.append(np.column_stack([comments.start, comments.stop]))
        quotes.append(np.column_stack([quoted.start, quoted.stop]))
    spans = np.concatenate(removed)
    words = np.concatenate(quotes)
    return names, Spans(spans[:, 0], spans[:, 1]), Spans(words[:, 0], words[:, 1])


def _header(source: SourceText, command: Command) -> tuple[str | None, int]:
    """The tree's name and the offset of its '='."""
    text = source.text
    position = skip_space(source, command.start)
    if text.startswith("*", position):
        position = skip_space(source, position + 1)
    match = _NAME.match(text, position, command.end)
    name = None
    if match is not None:
        single, double, plain = match.groups()
        name = single.replace("''", "'") if single is not None else double if double is not None else plain
        position = skip_space(source, match.end())
    while text.startswith("[", position):
        position = skip_space(source, end_of_comment(source, position))
    if not text.startswith("=", position):
        raise command.error("this tree has no '='", hint="Write 'tree name = (…);'.")
    return name, position
