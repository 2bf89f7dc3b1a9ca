"""`phloem concordance`: of a tree's branches with gene trees and with sites, beside the supports it has."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from phloem.analysis.concordance_parts import COLUMNS as PART_COLUMNS
from phloem.analysis.concordance_parts import part_rows, rows_of_sites, rows_of_taxa
from phloem.analysis.ml_supports import BOOTSTRAP, TRANSFER
from phloem.analysis.model_file import file_of_model, model_of
from phloem.analysis.negative_lengths import without_negative
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import DataOptions
from phloem.data.alignment import Alignment
from phloem.data.given_fields import settle_fields
from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.input_file import read_input, unpacked_name
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, read_trees
from phloem.summary.concordance import SHORTEST, Concordance, around_branches, concordance
from phloem.summary.site_concordance import (
    SiteConcordance,
    likely_concordance,
    seen_in_all,
    site_concordance,
)
from phloem.tree.match import match_taxa, respelled
from phloem.tree.reroot import unroot
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits
from phloem.tree.tree import Tree

COLUMNS = ("branch", "length", "label")
OF_GENES = (
    "gCF", "gCF_N", "gDF1", "gDF1_N", "gDF2", "gDF2_N", "gDFP", "gDFP_N", "gN",
    "q1", "q2", "q3", "local_posterior",
)  # fmt: skip
_STREAM = 8  # of random numbers
_NAMES = re.compile(r"\s*\[branch labels, in percent: ([^\]]*)\]")  # as phloem ml writes it ahead of a tree


@dataclass(frozen=True)
class ConcordanceSettings:
    """tree: one unrooted binary tree, with labels or without. genes: a file of gene trees, of some of its
    taxa each, whose inner branches below shortest resolve nothing. alignment: whose sites are counted,
    datatype: of its characters; quartets: of taxa a branch at most, drawn by seed. scfl: also by likelihood,
    under model, fitted on the tree. partitions: a file of its parts, each of which is counted alone, too.
    replicates: trees of all taxa, of a bootstrap or a sample, whose share that have a branch and transfer
    expectation are its supports. prefix: of the files written, by default the tree's name."""

    tree: str
    genes: str | None = None
    shortest: float = SHORTEST
    replicates: str | None = None
    alignment: str | None = None
    datatype: str | None = None
    partitions: str | None = None
    quartets: int = 1000
    scfl: bool = False
    model: str | None = None
    seed: int = 1
    prefix: str | None = None
    redo: bool = False

    def __post_init__(self) -> None:
        settle_fields(self)

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        given = (self.tree, self.genes, self.replicates, self.alignment, self.partitions)
        return [*(file for file in given if file is not None), *file_of_model(self.model)]

    @property
    def file_prefix(self) -> str:
        return self.prefix or unpacked_name(self.tree).rsplit(".", 1)[0]

    @property
    def files(self) -> dict[str, str]:
        """Name → what is written there."""
        prefix = self.file_prefix
        return {
            f"{prefix}.cf.tree": "the tree, concordance behind the labels that it had",
            f"{prefix}.cf.tsv": "a row a branch",
            f"{prefix}.cf.json": "the same, for programs",
        } | ({f"{prefix}.cf.parts.tsv": "a row a branch and part"} if self.partitions else {})


@dataclass(frozen=True, eq=False)
class ConcordanceResult:
    """rows: of every inner branch, by columns; names: of the numbers of a label, in its order. parts: a row a
    branch and part. short: how many branches of every gene tree were taken for none. model: the one of
    likelihoods, with its numbers."""

    settings: ConcordanceSettings
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    names: tuple[str, ...]
    tree: Tree
    n_genes: int
    n_replicates: int
    parts: tuple[dict[str, Any], ...]
    short: tuple[int, ...]
    model: str | None
    seconds: float


def run_concordance(settings: ConcordanceSettings) -> ConcordanceResult:
    """Read, count, write. Errors: InputError as summary.concordance, with the file; for options that would
    not be obeyed."""
    begin = time.perf_counter()
    _check(settings)
    check_outputs(settings.files, settings.inputs, settings.redo)
    trees = _read(settings.tree)
    if len(trees) != 1:
        what = f"there are {len(trees)} trees, and concordance is of one"
        raise InputError(what, file=settings.tree, hint="Take the others out, or exchange the two files.")
    tree = unroot(trees[0])
    if tree.n_tips < 4:
        raise InputError("a tree of few taxa has no inner branch", file=settings.tree, hint="Add taxa.")
    branches, groups = around_branches(tree, settings.tree)
    rows: list[dict[str, Any]] = [_branch(tree, names, x) for names, x in _below_each(tree, branches)]
    columns: tuple[str, ...] = COLUMNS
    labels: list[str] = []
    short: tuple[int, ...] = ()
    model, n_replicates = None, 0
    if settings.replicates is not None:
        n_replicates, of_replicates = _of_replicates(tree, branches, settings.replicates)
        columns, labels = (*columns, BOOTSTRAP, TRANSFER), [BOOTSTRAP, TRANSFER]
        for row, numbers in zip(rows, of_replicates):
            row |= numbers
    if settings.genes is not None:
        genes = _read(settings.genes)
        found = concordance(tree, genes, (settings.tree, settings.genes), settings.shortest)
        short = found.short
        for row, numbers in zip(rows, _of_genes(found)):
            row |= numbers
        columns, labels = (*columns, *OF_GENES), [*labels, "gCF", "local posterior"]
    for name, of_sites, text in _site_factors(settings, tree, groups):
        more = rows_of_sites(name, of_sites)
        columns, labels, model = (*columns, *more[0]), [*labels, name], text or model
        for row, numbers in zip(rows, more):
            row |= numbers
    named = _NAMES.match(bytes(read_input(settings.tree)).decode(errors="replace"))
    had = tuple(named[1].split("/")) if named else _numbered([row["label"] for row in rows])
    shown = [[row[_LABELS.get(name, name)] for name in labels] for row in rows]
    result = ConcordanceResult(
        settings,
        columns,
        tuple(rows),
        (*had, *labels),
        tree=_labelled(tree, branches, shown, len(had)),
        n_genes=len(short),
        n_replicates=n_replicates,
        parts=_of_parts(settings, tree, groups, [row["branch"] for row in rows]),
        short=short,
        model=model,
        seconds=time.perf_counter() - begin,
    )
    _write(result)
    return result


def _of_replicates(tree: Tree, branches: np.ndarray, file: str) -> tuple[int, list[dict[str, Any]]]:
    """How many, and supports in percent: Felsenstein's and the transfer expectation. InputError for a tree of
    other taxa."""
    from phloem.inference.ml.bootstrap import split_shares, transfer_expectation

    trees = [match_taxa(one, tree.taxa, file=file) for one in read_trees(file, allow_negative=True)]
    splits = sample_splits(sample_of_trees([tree]))[0][branches]
    shares = split_shares(trees)
    whole = [100.0 * shares.get(split.tobytes(), 0.0) for split in splits]
    transfer = (100.0 * transfer_expectation(splits, trees)).tolist()
    return len(trees), [{BOOTSTRAP: a, TRANSFER: b} for a, b in zip(whole, transfer)]


def _of_parts(
    settings: ConcordanceSettings, tree: Tree, groups: np.ndarray, branches: list[str]
) -> tuple[dict[str, Any], ...]:
    if settings.partitions is None or settings.alignment is None:
        return ()
    data = DataOptions(
        settings.alignment,
        datatype=settings.datatype,
        partitions=settings.partitions,
        unassigned_sites="drop",
    )
    seed = [settings.seed, _STREAM]
    return tuple(part_rows(data, tree, groups, branches, settings.quartets, seed))


def _read(file: str) -> list[Tree]:
    return without_negative(read_trees(file, allow_negative=True), file)


_LABELS = {"local posterior": "_posterior"}


def _check(settings: ConcordanceSettings) -> None:
    if settings.genes is None and settings.alignment is None and settings.replicates is None:
        raise InputError(
            "nothing is given to compare the tree with",
            hint="Add gene trees, --alignment FILE, or --replicates FILE.",
        )
    usual = ConcordanceSettings(settings.tree)
    for name in ("datatype", "partitions", "quartets", "scfl", "model", "seed"):
        if settings.alignment is None and getattr(settings, name) != getattr(usual, name):
            raise InputError(f"--{name} is about sites", hint="Add --alignment FILE, or leave it out.")
    if settings.genes is None and settings.shortest != usual.shortest:
        raise InputError("--shortest is about gene trees", hint="Add a file of these, or leave it out.")
    if not settings.shortest >= 0:
        raise InputError(f"--shortest {settings.shortest}", hint="Give a length; 0 takes all branches.")
    if settings.model is not None and not settings.scfl:
        raise InputError("--model is of likelihoods", hint="Add --scfl, or leave it out.")
    if not 1 <= settings.quartets <= 1_000_000:
        raise InputError(f"{settings.quartets} quartets", hint="Give 1 to 1,000,000.")


def _write(result: ConcordanceResult) -> None:
    settings, columns = result.settings, result.columns
    tree_file, table, record, *of_parts = settings.files
    head = f"[branch labels, in percent: {'/'.join(result.names)}]\n"
    write_file(tree_file, head + newick_text([result.tree]).strip() + "\n")
    write_file(table, _table(columns, result.rows))
    for file in of_parts:
        write_file(file, _table(PART_COLUMNS, result.parts))
    write_json(
        {
            "branches": [{name: row[name] for name in columns} for row in result.rows],
            "labels": list(result.names),
            "gene_trees": result.n_genes,
            "replicates": result.n_replicates,
            "parts": list(result.parts),
            "short_branches": sum(result.short),
            "model": result.model,
            "seconds": result.seconds,
            "settings": asdict(settings),
            "provenance": provenance(settings.inputs, None),
        },
        record,
    )


def _table(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    lines = ["\t".join(columns), *("\t".join(_cell(row[name]) for name in columns) for row in rows)]
    return "\n".join(lines) + "\n"


def _below_each(tree: Tree, branches: np.ndarray) -> list[tuple[list[str], int]]:
    below = _names_below(tree)
    return [(below[x], x) for x in branches.tolist()]


def _numbered(labels: list[str]) -> tuple[str, ...]:
    """Names for the numbers in labels of another program, such as 97.4/100."""
    n = max((label.count("/") + 1 for label in labels if label), default=0)
    return ("label",) * n if n < 2 else tuple(f"label {i + 1}" for i in range(n))


def _branch(tree: Tree, names: list[str], x: int) -> dict[str, Any]:
    """branch: the taxa below it, in the drawing that the file has."""
    return {
        "branch": ",".join(names),
        "length": float(tree.lengths[x]) if np.isfinite(tree.lengths[x]) else None,
        "label": (tree.labels[x] if tree.labels else None) or "",
    }


def _of_genes(found: Concordance) -> list[dict[str, Any]]:
    """Shares in percent, None without a gene."""
    rows = []
    for k, n in enumerate(found.decisive.tolist()):
        counts = (found.concordant[k], found.first[k], found.second[k], found.neither[k])
        row: dict[str, Any] = {}
        for name, count in zip(("gCF", "gDF1", "gDF2", "gDFP"), map(int, counts)):
            row |= {name: 100.0 * count / n if n else None, f"{name}_N": count}
        posterior = float(found.posterior[k])
        row |= {"gN": n, "local_posterior": posterior, "_posterior": 100 * posterior}
        rows.append(row | {f"q{i + 1}": float(q) for i, q in enumerate(found.quartets[k])})
    return rows


def _site_factors(
    settings: ConcordanceSettings, tree: Tree, groups: np.ndarray
) -> Iterator[tuple[str, SiteConcordance, str | None]]:
    """Name, numbers, and the model with its numbers, if one was asked for."""
    if settings.alignment is None:
        return
    alignment = read_alignment(settings.alignment, datatype=settings.datatype)
    own = rows_of_taxa(tree, alignment, groups, settings.alignment)
    tree = respelled(tree, alignment.taxa)
    rng = np.random.default_rng([settings.seed, _STREAM])
    patterns = site_patterns(alignment)
    yield "sCF", site_concordance(patterns, own, settings.quartets, rng), None
    if settings.scfl:
        yield "sCFL", *_by_likelihood(settings, alignment, tree, own)


def _by_likelihood(
    settings: ConcordanceSettings, alignment: Alignment, tree: Tree, groups: np.ndarray
) -> tuple[SiteConcordance, str]:
    """Lengths and model are fitted on the tree."""
    from phloem.inference.ml.searched import OneAlignment
    from phloem.inference.ml.tree_starts import with_lengths
    from phloem.pruning.cpu.directed_messages import DirectedMessages
    from phloem.tree.half_edges import branch_splits, preorder

    data = OneAlignment(alignment, model_of(settings.model, alignment))
    fit = data.refined(
        data.likelihood(data.edges(with_lengths(tree)), data.start_values(), 1), data.starts(None), 1e-3
    )
    edges, messages = data.edges_of(fit), data.messages(1, 1)
    data.put(messages, data.values_of(fit))
    messages.fill(*edges, preorder(edges.back))
    everything, ends = (1 << alignment.n_taxa) - 1, dict[int, int]()
    for h, split in zip(*branch_splits(edges.back)):
        behind = int.from_bytes(split.astype("<u8").tobytes(), "little")
        ends |= {behind: int(h), everything ^ behind: int(edges.back[h])}
    bits = [[sum(1 << int(i) for i in np.flatnonzero(g)) for g in own.T] for own in groups.transpose(1, 0, 2)]
    assert isinstance(messages, DirectedMessages)
    patterns, made = site_patterns(alignment), []
    for four, seen in zip(bits, seen_in_all(patterns, groups)):
        # a branch at a time: states at four nodes take 32 P S bytes; under +ASC unseen patterns come last
        corners = messages.states_behind([ends[x] for x in four], edges.back)[:, : len(seen)]
        made.append(likely_concordance(corners[None], patterns.weights * seen))
    return SiteConcordance(*(np.concatenate(column) for column in zip(*made))), fit.model_text


def _names_below(tree: Tree) -> list[list[str]]:
    below: list[list[str]] = [[name] for name in tree.taxa] + [[] for _ in range(tree.n_nodes - tree.n_tips)]
    for x in range(tree.n_nodes - 1):
        below[int(tree.parent[x])] += below[x]
    return below


def _labelled(tree: Tree, branches: np.ndarray, numbers: list[list[float | None]], had: int) -> Tree:
    """Every branch with as many numbers, - for those that are not there: had of the file's own labels, as a
    branch that only parts equal sequences has none, then these."""
    labels = list(tree.labels or (None,) * tree.n_nodes)
    for x, own in zip(branches.tolist(), numbers):
        label = labels[x]
        before = label.split("/") if label else []
        more = ["-" if value is None else f"{value:.1f}" for value in own]
        labels[x] = "/".join((*before, *["-"] * (had - len(before)), *more))
    return replace(tree, labels=tuple(labels))


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
