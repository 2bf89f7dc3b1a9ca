"""`phloem ml`: the likeliest tree of an alignment, with every length and parameter fitted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from phloem import __version__
from phloem.analysis.draw import DrawSettings, at_midpoint, save_picture
from phloem.analysis.likelihood import optimum_record, plain
from phloem.analysis.ml_report import choice_record, choice_table, report_text
from phloem.analysis.ml_settings import MlSettings, choice_settings, replicates_of, support_settings
from phloem.analysis.ml_supports import BranchSupports, supports_of
from phloem.analysis.model_file import model_file_of, model_of, model_string, usual_model
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import alignment_of
from phloem.data.alignment import Alignment
from phloem.errors import InputError, in_file
from phloem.hardware.limits import require_threads
from phloem.hardware.notice import on_first_compilation
from phloem.io.input_file import input_digest
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, read_trees, write_trees
from phloem.likelihood.model_for_alignment import ModelReader
from phloem.plot.terminal_tree import draw_tree
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.identical import Distinct
    from phloem.inference.ml.model_choice import ModelChoice
    from phloem.inference.ml.search_state import Checkpoint, Told
    from phloem.inference.ml.tree_search import SearchResult, SearchSettings
    from phloem.inference.ml.tree_starts import Start

_NOT_CONVERGED = "the last fit of lengths and parameters did not converge"


@dataclass(frozen=True, eq=False)
class MlResult:
    """found: what the search found, on the distinct sequences. choice: of the model. tree: of all sequences,
    with its drawing for a terminal. supports: of the tree's branches, if any were asked for. files: name →
    what it holds. seconds: of choice, search and supports, without reading."""

    settings: MlSettings
    found: SearchResult | None
    choice: ModelChoice | None
    supports: BranchSupports | None
    rows: Distinct
    tree: Tree | None
    drawing: str
    data: dict[str, object]
    files: dict[str, str]
    seconds: float
    provenance: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def newick(self) -> str:
        """The tree, with supports if there are any."""
        tree = self.tree if self.supports is None else self.supports.tree
        return "" if tree is None else newick_text([tree]).strip()

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        chosen = {} if self.choice is None else {"model_choice": choice_record(self.choice)}
        searched = {} if self.found is None else _search_record(self.found, self.newick)
        supported = {} if self.supports is None else {"supports": self.supports.to_json()}
        return {
            **searched,
            **supported,
            **chosen,
            "seconds": self.seconds,
            "data": self.data,
            "identical_sequences": self.rows.groups(),
            "warnings": list(self.warnings),
            "settings": asdict(self.settings),
            "provenance": self.provenance,
        }


def _search_record(found: SearchResult, tree: str) -> dict[str, object]:
    optimum = found.optimum
    return {
        "log_likelihood": optimum.log_likelihood,
        "model": optimum.model_text,
        "tree": tree,
        "optimum": optimum_record(optimum),
        "start": {"origin": found.origin, "log_likelihood": found.first},
        "starts": [one._asdict() for one in found.starts],
        "difficulty": None if found.difficulty is None else found.difficulty._asdict(),
        "tries": found.tries,
        "better_trees": [better._asdict() for better in found.found],
    }


def run_ml(
    settings: MlSettings,
    told: Told | None = None,
    compiling: Callable[[str], None] | None = None,
) -> MlResult:
    """Read, choose a model if asked to, search, write the files.

    told: called with what is being done and the best log-likelihood so far. compiling: called with a sentence
    if kernels have to be compiled first. Errors: PhloemError of every kind.
    """
    from phloem.inference.ml.tree_search import SearchSettings, search_tree
    from phloem.inference.ml.tree_starts import bionj_start

    if compiling is not None:
        on_first_compilation(compiling)
    require_threads(settings.threads)
    of_choice, of_supports, _ = choice_settings(settings), support_settings(settings), replicates_of(settings)
    check_outputs(settings.files, settings.inputs, settings.redo)
    alignment = alignment_of(settings)
    rows = _distinct(alignment, settings)
    searched = rows.rows_of(alignment)
    given, warnings = _start(settings, rows)
    tries = settings.radius, settings.patience, settings.starts
    of_search = SearchSettings(*tries, settings.seed, settings.threads)
    model = None if of_choice else model_of(settings.model, alignment, settings.gamma)
    begin = time.perf_counter()
    start, choice = given or bionj_start(searched), None
    if of_choice is not None:
        from phloem.inference.ml.model_choice import choose_model

        reader = ModelReader(alignment, settings.gamma)
        choice = choose_model(searched, start, of_choice, of_search, reader, told)
        start, model = _after_choice(start, choice), reader(choice.winner.text)
    found = supports = tree = checkpoint = None
    if settings.searches and model is not None:
        named = settings.model or usual_model(alignment.alphabet.kind)
        text = choice.winner.text if choice is not None else model_string(named)
        checkpoint = _checkpoint(settings, text)
        found = search_tree(searched, model, start, of_search, told, of_supports, checkpoint)
        tree = rows.put_back(found.optimum.tree)
        warnings += [] if found.optimum.converged else [_NOT_CONVERGED]
        drawn = _bootstrapped(settings, rows, text, found, of_search, told)
        supports = supports_of(found.optimum.tree, found.supports, drawn, rows)
    made = settings, found, choice, supports, rows, tree
    result = MlResult(
        *made,
        drawing=draw_tree(tree, 80) if tree is not None else "",
        data=_data(alignment),
        files=settings.files,
        seconds=time.perf_counter() - begin,
        provenance=_provenance(settings, found),
        warnings=tuple(warnings),
    )
    _write(result)
    if checkpoint is not None:
        checkpoint.remove()
    return result


def _distinct(alignment: Alignment, settings: MlSettings) -> Distinct:
    """InputError where less than three sequences would be left."""
    from phloem.inference.ml.identical import distinct

    rows = distinct(alignment, apart=settings.keep_identical)
    if rows.n_copies and len(rows.kept) < 3:
        raise InputError(
            f"of {alignment.n_taxa} sequences only {len(rows.kept)} are distinct: no tree can be told",
            file=alignment.source,
            hint="Add taxa, or say --keep-identical.",
        )
    return rows


def _bootstrapped(
    settings: MlSettings,
    rows: Distinct,
    text: str,
    found: SearchResult,
    of_search: SearchSettings,
    told: Told | None,
) -> list[Tree] | None:
    """Trees of the distinct sequences, None unless asked for."""
    from phloem.inference.ml.bootstrap import bootstrap_trees
    from phloem.inference.ml.search_state import Doing

    replicates, value = replicates_of(settings), found.optimum.log_likelihood
    if replicates is None:
        return None

    left: Literal["about", "at most"] = "at most" if replicates == "auto" else "about"

    def counted(k: int, most: int) -> None:
        if told is not None:
            told(Doing("bootstrap", k, most, f"bootstrap {k} of {most}", left), value)

    others = of_search, settings.gamma, counted, rows
    return bootstrap_trees(rows.alignment, text, found.optimum.parameters, replicates, *others)


def _checkpoint(settings: MlSettings, model: str) -> Checkpoint:
    """Of this search: what decides its numbers is part of its identity, threads and supports are not."""
    from phloem.inference.ml.search_state import Checkpoint

    others = (
        "prefix", "threads", "redo", "alrt", "ufboot", "bnni", "bootstrap", "picture"
    )  # fmt: skip
    chosen = {k: v for k, v in asdict(settings).items() if k not in others}
    files = [input_digest(file) for file in settings.inputs]
    text = json.dumps([__version__, model, chosen, files], sort_keys=True, default=str)
    identity = hashlib.sha256(text.encode()).hexdigest()
    return Checkpoint(f"{settings.file_prefix}.checkpoint", identity, settings.redo)


def _after_choice(start: Start, choice: ModelChoice) -> Start:
    """Where the search begins: at the tree and the numbers of the winner."""
    origin = f"the tree on which the model was chosen, a climb from {start.origin}"
    fit = choice.winner.fit
    return replace(start, tree=fit.tree, origin=origin, values=fit.parameters)


def _write(result: MlResult) -> None:
    prefix, supports = result.settings.file_prefix, result.supports
    if result.found is not None:
        head = "" if supports is None else f"[branch labels, in percent: {'/'.join(supports.names)}]\n"
        write_file(f"{prefix}.tree", head + result.newick + "\n")
        _write_optimum(prefix, result.found)
    if result.settings.picture is not None and result.tree is not None:
        labelled = result.tree if supports is None else supports.tree
        save_picture(at_midpoint(labelled), result.settings.picture, DrawSettings())
    if supports is not None and supports.replicates:
        write_trees(f"{prefix}.bootstrap.nwk", supports.replicates)
    if result.choice is not None:
        write_file(f"{prefix}.models.tsv", choice_table(result.choice))
    write_file(f"{prefix}.report", report_text(result))
    write_json(result.to_json(), f"{prefix}.json")  # last: with it all is there


def _write_optimum(prefix: str, found: SearchResult) -> None:
    """The model with its numbers, and a row a site: log-likelihood, posterior mean rate."""
    likelihood = found.likelihood
    write_file(f"{prefix}.model", model_file_of(likelihood.model, found.optimum.model_text).text())
    by_site, rates = likelihood.site_log_likelihoods().tolist(), likelihood.site_rates().tolist()
    rows = (f"{k}\t{value:.10g}\t{rate:.6g}" for k, (value, rate) in enumerate(zip(by_site, rates), 1))
    write_file(f"{prefix}.sites", "\n".join(("site\tlog_likelihood\trate", *rows)) + "\n")


def _provenance(settings: MlSettings, found: SearchResult | None) -> dict[str, Any]:
    selection = found.selection if found is not None else None
    return provenance(settings.inputs, selection) | {"seed": settings.seed}


def _start(settings: MlSettings, rows: Distinct) -> tuple[Start | None, list[str]]:
    from phloem.inference.ml.tree_starts import Start

    if settings.tree is None:
        return None, []
    trees = list(read_trees(settings.tree))
    more = [f"the tree file has {len(trees):,} trees: this starts from the first"] if len(trees) > 1 else []
    with in_file(settings.tree):
        return Start(rows.taken_out(trees[0])), more


def _data(alignment: Alignment) -> dict[str, object]:
    return {
        "taxa": alignment.n_taxa,
        "sites": alignment.n_sites,
        "datatype": alignment.alphabet.kind,
        "states": alignment.alphabet.n_states,
        "alignment_settings": {key: plain(value) for key, value in alignment.settings.items()},
    }
