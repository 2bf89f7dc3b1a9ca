"""Tree files: Newick or NEXUS, one tree or many."""

from __future__ import annotations

import gzip
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.newick import parse_newick, trees_of
from phloem.io.newick_text import Spans, clean_text, protected_spans, write_newick
from phloem.io.nexus import (
    Block,
    Command,
    end_of_comment,
    is_nexus,
    quote_name,
    read_blocks,
    skip_space,
)
from phloem.io.nexus_format import read_format
from phloem.io.nexus_matrix import read_rows
from phloem.io.nexus_names import read_dimension, taxa_block, taxon_labels
from phloem.io.output_file import write_file
from phloem.io.source_text import SourceText, read_source
from phloem.io.tree_table import newick_of_table, tree_table
from phloem.tree.match import folded, spellings
from phloem.tree.sample import TreeSample, sample_of_trees
from phloem.tree.tree import Tree

# TREES blocks of NEXUS files: TRANSLATE, TREE and UTREE commands, read in one batch.


_NUMBERED_TIP = re.compile(r"[(,]\s*\d+\s*[:,)\[]")
HEAD = 1 << 16  # characters by which a text is known
CUT_SHORT = "the last tree was cut short, and is left out"
_TREE_COMMAND = re.compile(r"\s*u?tree\b", re.IGNORECASE)
_NEWICK = re.compile(r"\s*[(\[]")
_NAME = re.compile(r"""'((?:[^']|'')*)'|"([^"]*)"|([^\s=\[\]'";]+)""")


def read_nexus_trees(source: SourceText, *, allow_negative: bool = False) -> list[Tree]:
    """The trees of every TREES block. Tips follow the order of TRANSLATE, or else of the TAXA block.

    A tip label that TRANSLATE does not know must be a taxon's name, or its number in the TAXA block.
    Raises InputError (line, column, remedy) for a file without trees or with a damaged one.
    """
    blocks = read_blocks(source, enough=lambda read: any(_tree_commands(block) for block in read))
    trees: list[Tree] = []
    for block in (block for block in blocks if block.name == "trees"):
        trees += _block_trees(block, _taxa_of(blocks, block), allow_negative)
    if not trees:
        hint = "Give a file with 'begin trees; tree name = (…);'; phloem ml makes a tree of an alignment."
        raise source.error("the NEXUS file contains no tree", 0, hint=hint)
    return trees


def _tree_commands(block: Block) -> list[Command]:
    return [c for c in block.commands if block.name == "trees" and c.name in ("tree", "utree")]


def _taxa_of(blocks: Sequence[Block], block: Block) -> list[str]:
    """Names of the taxa that a TREES block's numbers stand for, in order; [] where the file does not say.

    They are those of its TAXA block; without one, and without TRANSLATE, of the rows of a DATA block.
    """
    taxa = taxon_labels(taxa_block(blocks, block))
    data = next((one for one in blocks if one.name == "data" and one.command("matrix")), None)
    if taxa or data is None or block.command("translate") or not _NUMBERED_TIP.search(block.text):
        return taxa
    command = data.command("matrix")
    assert command is not None
    form, n_taxa = read_format(data), read_dimension(data, "ntax")
    return [row.taxon for row in read_rows(command, form.interleave, n_taxa, read_dimension(data, "nchar"))]


def _block_trees(block: Block, taxa: list[str], allow_negative: bool) -> list[Tree]:
    commands = _tree_commands(block)
    if not commands:
        return []
    known, spelling = set(taxa), spellings(taxa)
    translate = {str(i + 1): name for i, name in enumerate(taxa)} | dict(zip(taxa, taxa))
    order = taxa
    for command in (c for c in block.commands if c.name == "translate"):
        own = _translation(command).items()
        table = {key: name if name in known else spelling.get(folded(name), name) for key, name in own}
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


# Reading and writing tree files: Newick or NEXUS, one tree or many, gzip-compressed or not.


def read_trees(path: str | os.PathLike[str], *, allow_negative: bool = False) -> list[Tree]:
    """Every tree of a Newick or NEXUS file, or of a table as RevBayes writes it, in order.

    Trees of the same taxa share one order of tips. Raises InputError with line and column for anything wrong.
    """
    return parse_trees(read_source(path), allow_negative=allow_negative)


def parse_trees(text: str | SourceText, *, allow_negative: bool = False) -> list[Tree]:
    """The same for a text in memory."""
    return _trees_and_runs(text if isinstance(text, SourceText) else SourceText(text), allow_negative)[0]


def _trees_and_runs(source: SourceText, allow_negative: bool = False) -> tuple[list[Tree], list[str]]:
    """Trees, and of a table the run of each; [] otherwise."""
    table = tree_table(source.text[:HEAD], source.file)
    if table is None:
        return _parsed(source, allow_negative), []
    newick, runs = newick_of_table(source, table)
    return parse_newick(newick, allow_negative=allow_negative), runs


def _parsed(source: SourceText, allow_negative: bool) -> list[Tree]:
    if is_nexus(source.text):
        return read_nexus_trees(source, allow_negative=allow_negative)
    if source.text.lstrip()[:1] == ">":
        hint = "Give a Newick or NEXUS file as the tree; phloem ml makes one of an alignment."
        raise source.error("this is a FASTA file, not a tree", 0, hint=hint)
    if not set("(;") & set(source.text):
        raise source.error("this is no tree", 0, hint="Give a Newick or NEXUS file as the tree.")
    return parse_newick(source, allow_negative=allow_negative)


def read_tree(path: str | os.PathLike[str], index: int = 0, *, allow_negative: bool = False) -> Tree:
    """One tree of a Newick or NEXUS file; index counts from 0, negative ones from the end."""
    trees = read_trees(path, allow_negative=allow_negative)
    if not -len(trees) <= index < len(trees):
        hint = f"Choose an index from 0 to {len(trees) - 1}."
        raise InputError(f"there is no tree number {index}", file=os.fspath(path), hint=hint)
    return trees[index]


def read_tree_sample(path: str | os.PathLike[str], burn_in: float = 0.0) -> TreeSample:
    """The trees of a sampler's file of one run as arrays, without the first share burn_in of them (rounded
    down).

    Raises InputError if the trees differ in taxa or in being rooted, or if none is left.
    """
    samples = read_tree_samples(path, burn_in)
    if len(samples) > 1:
        told = f"this file holds {len(samples)} runs"
        raise InputError(told, file=os.fspath(path), hint="Give a file of one run.")
    return samples[0]


def read_tree_samples(
    path: str | os.PathLike[str], burn_in: float = 0.0, noted: bool = False
) -> list[TreeSample]:
    """The same of every run of a file: several only of a table that says of which run a tree is; noted: with
    annotations. A last tree that was cut short, as of a sampler that still writes, is left out with a
    warning."""
    if not 0.0 <= burn_in < 1.0:
        raise InputError(f"a burn-in of {burn_in} leaves no tree", hint="Give a share from 0 to below 1.")
    trees, names = _trees_and_runs(_whole_trees(read_source(path)))
    of_run = np.array(names or [""] * len(trees))
    found = []
    for run in dict.fromkeys(of_run.tolist()):
        rows = np.flatnonzero(of_run == run)
        first = int(burn_in * len(rows))
        try:
            found.append(sample_of_trees([trees[k] for k in rows[first:]], noted, first))
        except InputError as error:
            error.file = error.file or os.fspath(path)
            raise
    return found


def _whole_trees(source: SourceText) -> SourceText:
    """The text without a last line that begins a tree and does not end it."""
    text = source.text.rstrip()
    begin = text.rfind("\n") + 1
    pattern = _TREE_COMMAND if is_nexus(text) else _NEWICK
    if begin == 0 or text.endswith(";"):
        return source
    if not pattern.match(text, begin) and tree_table(text[:HEAD], source.file) is None:
        return source
    told = f"{shown_file(source.file or '')}, line {source.locate(begin)[0]}: {CUT_SHORT}"
    warnings.warn(told, InputWarning, stacklevel=3)
    nexus = "end;\n" if is_nexus(text) else ""
    return SourceText(text[:begin] + nexus, source.file)


def write_trees(
    path: str | os.PathLike[str],
    trees: Tree | Sequence[Tree],
    *,
    format: Literal["newick", "nexus"] | None = None,
    precision: int | None = None,
    annotations: bool = True,
) -> None:
    """Write trees to a file; '.gz' compresses.

    format: by default NEXUS for names ending in .nex, .nexus, .tre, .trees or .t, otherwise Newick.
    """
    listed = [trees] if isinstance(trees, Tree) else list(trees)
    stem = Path(path).name.removesuffix(".gz")
    nexus = stem.endswith((".nex", ".nexus", ".tre", ".trees", ".t")) if format is None else format == "nexus"
    text = (nexus_text if nexus else newick_text)(listed, precision=precision, annotations=annotations)
    data = text.encode()
    write_file(path, gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)


def newick_text(
    trees: Tree | Sequence[Tree], *, precision: int | None = None, annotations: bool = True
) -> str:
    """Trees as Newick, one a line; [&R] or [&U] where the number of branches at the root does not say it."""
    return "".join(
        write_newick(
            tree,
            precision=precision,
            annotations=annotations,
            rooting=tree.rooted != (len(tree.children(tree.n_nodes - 1)) <= 2),
        )
        + "\n"
        for tree in ([trees] if isinstance(trees, Tree) else trees)
    )


def nexus_text(trees: Sequence[Tree], *, precision: int | None = None, annotations: bool = True) -> str:
    """A NEXUS file with TAXA and TREES blocks as FigTree, MrBayes and IQ-TREE read it.

    TRANSLATE is used for several trees of the same taxa; a single tree carries its names itself.
    """
    taxa = trees[0].taxa if trees else ()
    shared = all(set(tree.taxa) == set(taxa) for tree in trees)
    numbers = {name: str(i + 1) for i, name in enumerate(taxa)} if shared and len(trees) > 1 else None
    lines = ["#NEXUS"]
    if shared and taxa:
        names = [f"\t\t{quote_name(name)}" for name in taxa]
        lines += ["begin taxa;", f"\tdimensions ntax={len(taxa)};", "\ttaxlabels", *names, "\t\t;", "end;"]
    lines.append("begin trees;")
    if numbers:
        pairs = [f"\t\t{number}\t{quote_name(name)}" for name, number in numbers.items()]
        lines += ["\ttranslate", ",\n".join(pairs), "\t\t;"]
    for i, tree in enumerate(trees):
        newick = write_newick(tree, precision=precision, annotations=annotations, rooting=True, names=numbers)
        lines.append(f"\ttree {quote_name(tree.name or f'tree_{i + 1}')} = {newick}")
    return "\n".join([*lines, "end;", ""])
