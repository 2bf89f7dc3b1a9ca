"""`phloem concordance`: gene and quartet concordance of a tree's branches, beside the supports it has."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.errors import InputError
from phloem.io.input_file import read_input
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, read_trees
from phloem.summary.concordance import Concordance, concordance
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree

COLUMNS = (
    "branch", "length", "label", "gCF", "gCF_N", "gDF1", "gDF1_N", "gDF2", "gDF2_N", "gDFP", "gDFP_N", "gN",
    "q1", "q2", "q3", "local_posterior",
)  # fmt: skip
_NAMES = re.compile(r"\s*\[branch labels, in percent: ([^\]]*)\]")  # as phloem ml writes it ahead of a tree


@dataclass(frozen=True)
class ConcordanceSettings:
    """tree: one unrooted binary tree, with labels or without. genes: a file of gene trees, of some of its
    taxa each. prefix: of the files written, by default the tree's name."""

    tree: str
    genes: str
    prefix: str | None = None
    redo: bool = False

    @property
    def file_prefix(self) -> str:
        return self.prefix or str(Path(self.tree).name).removesuffix(".gz").rsplit(".", 1)[0]

    @property
    def files(self) -> dict[str, str]:
        """Name → what is written there."""
        prefix = self.file_prefix
        return {
            f"{prefix}.cf.tree": "the tree, concordance behind the labels that it had",
            f"{prefix}.cf.tsv": "a row a branch",
            f"{prefix}.cf.json": "the same, for programs",
        }


@dataclass(frozen=True, eq=False)
class ConcordanceResult:
    """rows: of every inner branch, by COLUMNS; names: of the numbers of a label, in its order."""

    settings: ConcordanceSettings
    rows: tuple[dict[str, Any], ...]
    names: tuple[str, ...]
    tree: Tree
    n_genes: int
    seconds: float


def run_concordance(settings: ConcordanceSettings) -> ConcordanceResult:
    """Read, count, write. Errors: InputError as summary.concordance, with the file."""
    begin = time.perf_counter()
    inputs = [settings.tree, settings.genes]
    check_outputs(settings.files, inputs, settings.redo)
    trees, genes = read_trees(settings.tree), read_trees(settings.genes)
    if len(trees) != 1:
        what = f"there are {len(trees)} trees, and concordance is of one"
        raise InputError(what, file=settings.tree, hint="Take the others out, or exchange the two files.")
    tree = unroot(trees[0])
    if tree.n_tips < 4:
        raise InputError("a tree of few taxa has no inner branch", file=settings.tree, hint="Add taxa.")
    found = concordance(tree, genes, (settings.tree, settings.genes))
    rows, labelled = _rows(tree, found), _labelled(tree, found)
    named = _NAMES.match(bytes(read_input(settings.tree)).decode(errors="replace"))
    had = tuple(named[1].split("/")) if named else ("label",) * any(row["label"] for row in rows)
    result = ConcordanceResult(
        settings, rows, (*had, "gCF", "local posterior"), labelled, len(genes), time.perf_counter() - begin
    )
    tree_file, table, record = settings.files
    head = f"[branch labels, in percent: {'/'.join(result.names)}]\n"
    write_file(tree_file, head + newick_text([labelled]).strip() + "\n")
    lines = ["\t".join(COLUMNS), *("\t".join(_cell(row[name]) for name in COLUMNS) for row in rows)]
    write_file(table, "\n".join(lines) + "\n")
    write_json(
        {
            "branches": list(rows),
            "labels": list(result.names),
            "gene_trees": len(genes),
            "seconds": result.seconds,
            "settings": asdict(settings),
            "provenance": provenance(inputs, None),
        },
        record,
    )
    return result


def _rows(tree: Tree, found: Concordance) -> tuple[dict[str, Any], ...]:
    """branch: the taxa below it, in the drawing that the file has; shares in percent, None without a gene."""
    below = _names_below(tree)
    rows = []
    for k, x in enumerate(found.branches.tolist()):
        n = int(found.decisive[k])
        counts = (found.concordant[k], found.first[k], found.second[k], found.neither[k])
        row: dict[str, Any] = {
            "branch": ",".join(below[x]),
            "length": float(tree.lengths[x]) if np.isfinite(tree.lengths[x]) else None,
            "label": (tree.labels[x] if tree.labels else None) or "",
        }
        for name, count in zip(("gCF", "gDF1", "gDF2", "gDFP"), map(int, counts)):
            row |= {name: 100.0 * count / n if n else None, f"{name}_N": count}
        row |= {"gN": n, "local_posterior": float(found.posterior[k])}
        rows.append(row | {f"q{i + 1}": float(q) for i, q in enumerate(found.quartets[k])})
    return tuple(rows)


def _names_below(tree: Tree) -> list[list[str]]:
    below: list[list[str]] = [[name] for name in tree.taxa] + [[] for _ in range(tree.n_nodes - tree.n_tips)]
    for x in range(tree.n_nodes - 1):
        below[int(tree.parent[x])] += below[x]
    return below


def _labelled(tree: Tree, found: Concordance) -> Tree:
    labels = list(tree.labels or (None,) * tree.n_nodes)
    for k, x in enumerate(found.branches.tolist()):
        n = int(found.decisive[k])
        share = f"{100 * found.concordant[k] / n:.1f}" if n else "-"
        own = [label for label in (labels[x],) if label]
        labels[x] = "/".join((*own, share, f"{100 * found.posterior[k]:.1f}"))
    return replace(tree, labels=tuple(labels))


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
