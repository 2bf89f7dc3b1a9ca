"""`phloem ml`: the likeliest tree of an alignment, with every length and parameter fitted."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phloem import __version__
from phloem.analysis.likelihood import optimum_record, plain
from phloem.analysis.ml_report import choice_record, choice_table, report_text
from phloem.analysis.ml_supports import BranchSupports, supports_of
from phloem.analysis.outputs import check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import DataOptions, alignment_of
from phloem.data.alignment import Alignment
from phloem.errors import STANDARD_INPUT, InputError, count_of
from phloem.hardware.limits import require_threads
from phloem.hardware.notice import on_first_compilation
from phloem.io.input_file import input_digest
from phloem.io.output_file import write_file
from phloem.io.trees import newick_text, read_trees, write_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.plot.terminal_tree import draw_tree

if TYPE_CHECKING:
    from phloem.inference.ml.branch_tests import SupportSettings
    from phloem.inference.ml.model_choice import ChoiceSettings, ModelChoice
    from phloem.inference.ml.search_state import Checkpoint, Told
    from phloem.inference.ml.tree_search import SearchResult, Start

USUAL_MODEL = {
    "dna": "GTR+F+G4",
    "rna": "GTR+F+G4",
    "protein": "LG+G4",
    "codon": "GY94+F3X4",
    "binary": "MK+G4",
}

_NOT_CONVERGED = "the last fit of lengths and parameters did not converge"
AUTOMATIC, ONLY_CHOICE = ("auto", "mfp"), "mf"  # in place of a model, in any case; IQ-TREE's names


@dataclass(frozen=True)
class MlSettings(DataOptions):
    """Everything that `phloem ml` can be told; field names are those of its options.

    model: a model string; by default one for the kind of data (USUAL_MODEL); of AUTOMATIC, the best by the
    criterion (inference/ml/model_choice.py), ONLY_CHOICE without a search. model_set, rate_set,
    frequency_set: separated by commas; with criterion and most_classes they say what is chosen from.
    tree: a file with a tree to begin from. prefix: what the names of the files written begin with; by default
    the alignment's name. radius, patience, seed, threads: inference/ml/tree_search.py. gamma: what +G means
    where the model string does not say. Existing files are replaced only with redo.
    """

    model: str | None = None
    model_set: str | None = None
    rate_set: str | None = None
    frequency_set: str | None = None
    criterion: Literal["bic", "aicc", "aic"] = "bic"
    most_classes: int = 10
    tree: str | None = None
    prefix: str | None = None
    radius: int = 5
    patience: int = 10
    alrt: int = 0
    ufboot: int = 0
    bnni: bool = False
    bootstrap: str | None = None
    seed: int = 1
    threads: int | None = None
    gamma: Literal["mean", "median"] = "mean"
    redo: bool = False

    @property
    def automatic(self) -> bool:
        """Whether the model is to be chosen."""
        return (self.model or "").lower() in (*AUTOMATIC, ONLY_CHOICE)

    @property
    def searches(self) -> bool:
        return (self.model or "").lower() != ONLY_CHOICE

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        return [*self.data_files, *([self.tree] if self.tree is not None else [])]

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with."""
        name = "stdin" if self.alignment == STANDARD_INPUT else Path(self.alignment).name
        return self.prefix or name.removesuffix(".gz").rsplit(".", 1)[0]


@dataclass(frozen=True, eq=False)
class MlResult:
    """found: what the search found. choice: of the model. tree: Newick, with its drawing for a terminal.
    supports: of the tree's branches, if any were asked for. files: name → what it holds. seconds: of choice,
    search and supports, without reading."""

    settings: MlSettings
    found: SearchResult | None
    choice: ModelChoice | None
    supports: BranchSupports | None
    tree: str
    drawing: str
    data: dict[str, object]
    files: dict[str, str]
    seconds: float
    provenance: dict[str, Any]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        chosen = {} if self.choice is None else {"model_choice": choice_record(self.choice)}
        searched = {} if self.found is None else _search_record(self.found, self.tree)
        supported = {} if self.supports is None else {"supports": self.supports.to_json()}
        return {
            **searched,
            **supported,
            **chosen,
            "seconds": self.seconds,
            "data": self.data,
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
    from phloem.inference.ml.bootstrap import bootstrap_trees
    from phloem.inference.ml.tree_search import SearchSettings, bionj_start, search_tree

    if compiling is not None:
        on_first_compilation(compiling)
    require_threads(settings.threads)
    of_choice, of_supports = _choice_settings(settings), _support_settings(settings)
    replicates = _replicates(settings)
    files = output_files(settings)
    check_outputs(files, settings.inputs, settings.redo)
    alignment = alignment_of(settings)
    given, warnings = _start(settings)
    of_search = SearchSettings(settings.radius, settings.patience, settings.seed, settings.threads)
    text = "" if of_choice else settings.model or USUAL_MODEL.get(alignment.alphabet.kind, "MK+G4")
    model = None if of_choice else model_for_alignment(text, alignment, settings.gamma)
    begin = time.perf_counter()
    start, choice = given or bionj_start(alignment), None
    if of_choice is not None:
        from phloem.inference.ml.model_choice import choose_model

        choice = choose_model(alignment, start, of_choice, of_search, settings.gamma, told)
        text, start = choice.winner.text, _after_choice(start, choice)
        model = model_for_alignment(text, alignment, settings.gamma)
    found = supports = drawn = tree = checkpoint = None
    if settings.searches and model is not None:
        checkpoint = _checkpoint(settings, text)
        found = search_tree(alignment, model, start, of_search, told, of_supports, checkpoint)
        tree, fitted = found.optimum.tree, found.optimum.parameters
        warnings += [] if found.optimum.converged else [_NOT_CONVERGED]
        if replicates is not None:
            others = of_search, settings.gamma, _counted(told, found, replicates)
            drawn = bootstrap_trees(alignment, text, fitted, replicates, *others)
        supports = supports_of(tree, found.supports, drawn)
    result = MlResult(
        settings=settings,
        found=found,
        choice=choice,
        supports=supports,
        tree=newick_text([tree if supports is None else supports.tree]).strip() if tree is not None else "",
        drawing=draw_tree(tree, 80) if tree is not None else "",
        data=_data(alignment),
        files=files,
        seconds=time.perf_counter() - begin,
        provenance=_provenance(settings, found),
        warnings=tuple(warnings),
    )
    _write(result)
    if checkpoint is not None:
        checkpoint.remove()
    return result


def _checkpoint(settings: MlSettings, model: str) -> Checkpoint:
    """Of this search: what decides its numbers is part of its identity, threads and supports are not."""
    from phloem.inference.ml.search_state import Checkpoint

    others = ("prefix", "threads", "redo", "alrt", "ufboot", "bnni", "bootstrap")
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


def _counted(
    told: Told | None, found: SearchResult, replicates: int | Literal["auto"]
) -> Callable[[int, int], None]:
    """What a bootstrap tells."""
    from phloem.inference.ml.search_state import Doing

    def tell(k: int, most: int) -> None:
        left: Literal["about", "at most"] = "at most" if replicates == "auto" else "about"
        if told is not None:
            doing = Doing("bootstrap", k, most, f"bootstrap {k} of {most}", left)
            told(doing, found.optimum.log_likelihood)

    return tell


def _support_settings(settings: MlSettings) -> SupportSettings:
    """InputError for numbers of replicates that mean nothing, and where no tree is searched."""
    from phloem.inference.ml.branch_tests import SupportSettings

    wanted = SupportSettings(settings.alrt, settings.ufboot, settings.bnni)
    if not settings.searches and (settings.alrt or settings.ufboot or settings.bootstrap):
        raise InputError("supports are of a tree, and --model MF searches none", hint="Say --model auto.")
    return wanted


def _replicates(settings: MlSettings) -> int | Literal["auto"] | None:
    if settings.bootstrap is None:
        return None
    if settings.bootstrap.lower() == "auto":
        return "auto"
    number = count_of(settings.bootstrap)
    if not 1 <= number <= 100_000:
        raise InputError(f"--bootstrap {settings.bootstrap}", hint="Give a number of replicates, or auto.")
    return number


def _write(result: MlResult) -> None:
    prefix, supports = result.settings.file_prefix, result.supports
    if result.found is not None:
        head = "" if supports is None else f"[branch labels, in percent: {'/'.join(supports.names)}]\n"
        write_file(f"{prefix}.tree", head + result.tree + "\n")
    if supports is not None and supports.replicates:
        write_trees(f"{prefix}.bootstrap.nwk", supports.replicates)
    if result.choice is not None:
        write_file(f"{prefix}.models.tsv", choice_table(result.choice))
    write_file(f"{prefix}.report", report_text(result))
    write_json(result.to_json(), f"{prefix}.json")  # last: with it all is there


def _provenance(settings: MlSettings, found: SearchResult | None) -> dict[str, Any]:
    selection = found.selection if found is not None else None
    return provenance(settings.inputs, selection) | {"seed": settings.seed}


def _choice_settings(settings: MlSettings) -> ChoiceSettings | None:
    """None where the model is given; InputError for options that would then not be obeyed."""
    from phloem.inference.ml.model_choice import ChoiceSettings

    usual = MlSettings(settings.alignment)
    if not settings.automatic:
        for name in ("model_set", "rate_set", "frequency_set", "criterion", "most_classes"):
            if getattr(settings, name) != getattr(usual, name):
                raise InputError(
                    f"--{name.replace('_', '-')} is about the choice of a model, and one is given",
                    hint="Add --model auto, or leave it out.",
                )
        return None
    return ChoiceSettings(
        _listed(settings.model_set),
        _listed(settings.frequency_set),
        _listed(settings.rate_set),
        settings.criterion,
        settings.most_classes,
    )


def _listed(text: str | None) -> tuple[str, ...] | None:
    """Names between commas, those in braces left alone."""
    if text is None:
        return None
    names, depth = [""], 0
    for c in text:
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            names.append("")
        else:
            names[-1] += c
    if not all(name.strip() for name in names):
        raise InputError(f"an empty name in '{text}'", hint="Separate names by single commas.")
    return tuple(name.strip() for name in names)


def output_files(settings: MlSettings) -> dict[str, str]:
    """File name → what it holds. Errors: InputError for a prefix that names no files."""
    prefix = settings.file_prefix
    if not Path(prefix).name or prefix.endswith(os.sep):
        raise InputError("the prefix names a folder", file=prefix, hint="Add how the files' names begin.")
    tree = {f"{prefix}.tree": "the tree, in substitutions per site"} if settings.searches else {}
    models = {f"{prefix}.models.tsv": "all models that were compared"} if settings.automatic else {}
    drawn = {f"{prefix}.bootstrap.nwk": "trees of resampled sites"} if settings.bootstrap else {}
    return (
        tree
        | drawn
        | models
        | {
            f"{prefix}.json": "the whole result, for programs",
            f"{prefix}.report": "the same, for people",
        }
    )


def _start(settings: MlSettings) -> tuple[Start | None, list[str]]:
    from phloem.inference.ml.tree_search import Start

    if settings.tree is None:
        return None, []
    trees = list(read_trees(settings.tree))
    more = [f"the tree file has {len(trees):,} trees: this starts from the first"] if len(trees) > 1 else []
    return Start(trees[0]), more


def _data(alignment: Alignment) -> dict[str, object]:
    return {
        "taxa": alignment.n_taxa,
        "sites": alignment.n_sites,
        "datatype": alignment.alphabet.kind,
        "states": alignment.alphabet.n_states,
        "alignment_settings": {key: plain(value) for key, value in alignment.settings.items()},
    }
