"""Reading and writing tree files: Newick or NEXUS, one tree or many, gzip-compressed or not."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.io.newick_write import write_newick
from phloem.io.nexus import is_nexus, quote_name
from phloem.io.nexus_trees import read_nexus_trees
from phloem.io.source_text import SourceText, read_source
from phloem.tree.sample import TreeSample, sample_of_trees
from phloem.tree.tree import Tree


def read_trees(path: str | os.PathLike[str], *, allow_negative: bool = False) -> list[Tree]:
    """Every tree of a Newick or NEXUS file, in order.

    Trees of the same taxa share one order of tips. Raises InputError with line and column for anything wrong.
    """
    return parse_trees(read_source(path), allow_negative=allow_negative)


def parse_trees(text: str | SourceText, *, allow_negative: bool = False) -> list[Tree]:
    """The same for a text in memory."""
    source = text if isinstance(text, SourceText) else SourceText(text)
    if is_nexus(source.text):
        return read_nexus_trees(source, allow_negative=allow_negative)
    if source.text.lstrip()[:1] == ">":
        hint = "Give a Newick or NEXUS file as the tree."
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
    """The trees of a sampler's file as arrays, without the first share burn_in of them (rounded down).

    Raises InputError if the trees differ in taxa or in being rooted, or if none is left.
    """
    if not 0.0 <= burn_in < 1.0:
        raise InputError(f"a burn-in of {burn_in} leaves no tree", hint="Give a share from 0 to below 1.")
    trees = read_trees(path)
    return sample_of_trees(trees[int(burn_in * len(trees)) :])


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
    Path(path).write_bytes(gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)


def newick_text(trees: Sequence[Tree], *, precision: int | None = None, annotations: bool = True) -> str:
    """One tree a line; [&R] or [&U] where the number of branches at the root does not say it."""
    return "".join(
        write_newick(
            tree,
            precision=precision,
            annotations=annotations,
            rooting=tree.rooted != (len(tree.children(tree.n_nodes - 1)) <= 2),
        )
        + "\n"
        for tree in trees
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
