"""`phloem test-trees`: which of some trees an alignment, or its parts together, rejects."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from phloem.analysis.ml_settings import FitSettings
from phloem.analysis.negative_lengths import trees_to_fit
from phloem.analysis.outputs import alone, check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.tested_data import (
    TestedData,
    by_site_of,
    read_tested_data,
    selection_of,
    texts_of,
)
from phloem.density.parts import LengthLinkage
from phloem.errors import InputError, in_file
from phloem.hardware.limits import require_threads
from phloem.hardware.notice import on_first_compilation
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, write_trees
from phloem.tree.distances import branch_score, quartet_distance
from phloem.tree.reroot import unroot
from phloem.tree.splits import robinson_foulds, tree_splits
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.search_state import Told
    from phloem.inference.ml.searched import Fit
    from phloem.inference.ml.tree_tests import TreeTests
    from phloem.pruning.select import Selection

REJECTED = 0.05
MOST_QUARTETS = 500  # taxa, up to which quartets are compared: a second or two a tree
_COLUMNS = ("bootstrap", "kh", "sh", "wsh", "elw", "au")


@dataclass(frozen=True)
class TreeTestsSettings(FitSettings):
    """Everything that `phloem test-trees` can be told; field names are those of its options.

    trees: a file of two or more. replicates: of each of the ten scales of AU, and of the other tests.
    linkage, link: what parts have in common, as in MlSettings.
    """

    trees: str
    replicates: int = 10_000
    linkage: LengthLinkage | None = None
    link: tuple[str, ...] = ()

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        return [*super().inputs, self.trees]

    @property
    def files(self) -> dict[str, str]:
        """Name → what is written there."""
        prefix = self.file_prefix
        return {
            f"{prefix}.tests.tsv": "a row a tree",
            f"{prefix}.tests.nwk": "the trees with their branch lengths fitted",
            f"{prefix}.sites.tsv": "log-likelihoods of sites, a row a site and a column a tree",
            f"{prefix}.tests.json": "the whole result, for programs",
        }


class Distances(NamedTuple):
    """Of tree/splits.py and tree/distances.py. quartets: None for more taxa than MOST_QUARTETS."""

    robinson_foulds: int
    branch_score: float
    quartets: float | None


@dataclass(frozen=True, eq=False)
class TreeTestsResult:
    """tests: inference/ml/tree_tests.py. distances: to the best tree. models: fitted, of every tree by the
    name of the part ("" of an alignment without parts)."""

    settings: TreeTestsSettings
    tests: TreeTests
    distances: tuple[Distances, ...]
    models: tuple[dict[str, str], ...]
    trees: tuple[str, ...]
    seconds: float
    provenance: dict[str, Any]
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        rows = []
        for i, (model, tree) in enumerate(zip(self.models, self.trees)):
            numbers = {name: column[i].item() for name, column in self.tests._asdict().items()}
            fitted = {"model": model[""]} if "" in model else {"models": model}
            rows.append(numbers | self.distances[i]._asdict() | fitted | {"tree": tree})
        return {
            "trees": rows,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
            "settings": asdict(self.settings) | {"link": list(self.settings.link)},
            "provenance": self.provenance,
        }

    def lines(self) -> list[str]:
        """The table within 80 columns; - marks what is rejected."""
        tests = self.tests
        head = f"{'tree':>4}{'log L':>13}{'behind':>9}{'RF':>5}" + "".join(f"{n:>7} " for n in _HEADS)
        lines = [head]
        for i in range(len(tests.log_likelihood)):
            apart = self.distances[i].robinson_foulds
            row = f"{i + 1:>4}{tests.log_likelihood[i]:>13.3f}{tests.difference[i]:>9.3f}{apart:>5}"
            for name in _COLUMNS:
                value = float(getattr(tests, name)[i])
                out = not tests.in_elw_set[i] if name == "elw" else value < REJECTED
                row += f"{value:>7.3f}{'-' if out and name != 'bootstrap' else ' '}"
            lines.append(row)
        return [
            *lines,
            "- rejected at 5 % (ELW: not among the trees with 95 % of the weight). RF: branches",
            "  that differ from the best tree's. boot: share of resampled data where it is best.",
        ]


_HEADS = ("boot", "KH", "SH", "wSH", "ELW", "AU")


def run_tree_tests(
    settings: TreeTestsSettings,
    told: Told | None = None,
    compiling: Callable[[str], None] | None = None,
) -> TreeTestsResult:
    """Fit every tree's lengths and the model's free parameters on it, and test them together. One process at
    a time works on a prefix.

    Errors: PhloemError of every kind.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    require_threads(settings.threads)
    with alone(settings.file_prefix, settings.inputs):
        return _run_alone(settings, told)


def _run_alone(settings: TreeTestsSettings, told: Told | None) -> TreeTestsResult:
    """run_tree_tests, while no other process works on the same files."""
    from phloem.inference.ml.tree_tests import TreeTests, compare_trees

    check_outputs(settings.files, settings.inputs, settings.redo)
    data, trees = read_tested_data(settings), trees_to_fit(settings.trees)
    if len(trees) < 2:
        raise InputError("a test wants two trees at least", file=settings.trees, hint="Add trees.")
    begin = time.perf_counter()
    same = _same_topologies(data, trees, settings.trees)
    fits, by_site, selection = _fits(settings, data, trees, same, told)
    distinct, of_tree = np.unique(same, return_inverse=True)
    own = compare_trees(data.by_pattern(by_site[distinct]), settings.replicates, settings.seed)
    tests = TreeTests(*(column[of_tree] for column in own))
    fitted = [fit.tree for fit in fits]
    best = fitted[int(np.argmax(tests.log_likelihood))]
    result = TreeTestsResult(
        settings=settings,
        tests=tests,
        distances=tuple(_distances(tree, best) for tree in fitted),
        models=tuple(texts_of(fit) for fit in fits),
        trees=tuple(newick_text([tree]).strip() for tree in fitted),
        seconds=time.perf_counter() - begin,
        provenance=provenance(settings.inputs, selection) | {"seed": settings.seed},
        warnings=(*data.warnings, *_named_twice(same), *_not_converged(fits)),
    )
    table, tree_file, site_file, record = settings.files
    write_file(table, _table(result))
    write_trees(tree_file, fitted)
    write_file(site_file, _sites(data, by_site))
    write_json(result.to_json(), record)
    return result


def _root_is_free(data: TestedData) -> bool:
    from phloem.inference.ml.searchable import root_is_free

    return all(root_is_free(model) for model in data.models)


def _same_topologies(data: TestedData, trees: Sequence[Tree], file: str) -> np.ndarray:
    """(n,) for every tree the first one with its topology, itself where there is none before it.

    Errors: InputError where all have one.
    """
    free, first = _root_is_free(data), dict[tuple[object, ...], int]()
    same = []
    for i, tree in enumerate(trees):
        own = unroot(tree) if free else tree
        same.append(first.setdefault((own.taxa, own.rooted, tree_splits(own).tobytes()), i))
    if len(first) < 2:
        what = f"the {len(trees)} trees have one topology, and a test wants two at least"
        raise InputError(what, file=file, hint="Add trees with other branches; lengths are fitted.")
    return np.array(same)


def _named_twice(same: np.ndarray) -> list[str]:
    """Two copies of a tree would share what resampled data give to one."""
    copies = [(i + 1, first + 1) for i, first in enumerate(same.tolist()) if first != i]
    if not copies:
        return []
    told = ", ".join(f"{i} as {first}" for i, first in copies[:5])
    more = f" and {len(copies) - 5} more" if len(copies) > 5 else ""
    return [f"trees with the topology of an earlier one are tested once, as that: {told}{more}"]


def _fits(
    settings: TreeTestsSettings, data: TestedData, trees: Sequence[Tree], same: np.ndarray, told: Told | None
) -> tuple[list[Fit], np.ndarray, Selection]:
    """A fit of every tree, and (n, L) its log-likelihoods of sites, parts one behind the other; of same
    topologies the first one's."""
    from phloem.inference.ml.optimize import optimize
    from phloem.inference.ml.search_state import Doing
    from phloem.inference.ml.tree_starts import with_lengths

    fits: list[Fit] = []
    rows, free = [], _root_is_free(data)
    for i, (tree, first) in enumerate(zip(trees, same.tolist())):
        if first == i:
            with in_file(settings.trees):
                own = with_lengths(unroot(tree) if free else tree)
                likelihood = data.likelihood(own, settings.threads)
            fits.append(optimize(likelihood))
            rows.append(by_site_of(likelihood))
        else:
            fits.append(fits[first])
            rows.append(rows[first])
        if told is not None:
            doing = Doing("trees", i + 1, len(trees), f"tree {i + 1} of {len(trees)}", "about")
            told(doing, fits[-1].log_likelihood)
    return fits, np.array(rows), selection_of(likelihood)


def _not_converged(fits: Sequence[Fit]) -> list[str]:
    numbers = ", ".join(str(i) for i, fit in enumerate(fits, 1) if not fit.converged)
    return [f"the fit of tree {numbers} did not converge"] if numbers else []


def _distances(tree: Tree, best: Tree) -> Distances:
    near = quartet_distance(tree, best) if tree.n_tips <= MOST_QUARTETS else None
    return Distances(robinson_foulds(tree, best), branch_score(tree, best), near)


def _table(result: TreeTestsResult) -> str:
    tests = result.tests._asdict()
    lines = ["\t".join(("tree", *tests, *Distances._fields))]
    for i, distance in enumerate(result.distances):
        values = [column[i].item() for column in tests.values()]
        cells = [f"{v:.6f}" if isinstance(v, float) else str(v).lower() for v in (*values, *distance)]
        lines.append("\t".join((str(i + 1), *cells)))
    return "\n".join(lines) + "\n"


def _sites(data: TestedData, by_site: np.ndarray) -> str:
    names = [f"tree_{i + 1}" for i in range(len(by_site))]
    head = ("part", "site", *names) if data.linkage is not None else ("site", *names)
    rows = ((*site, *(f"{v:.10g}" for v in column)) for site, column in zip(data.site_names(), by_site.T))
    return "\n".join("\t".join(row) for row in (head, *rows)) + "\n"
