"""`phloem ml`: the likeliest tree of an alignment, with every length and parameter fitted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from phloem.analysis.likelihood import few_sites, optimum_record
from phloem.analysis.ml_adequacy import Adequacy, adequacy_of
from phloem.analysis.ml_choice import Chosen, choose
from phloem.analysis.ml_classes import class_records
from phloem.analysis.ml_constraint import assure, constraint_record, require_obeying
from phloem.analysis.ml_data import MlData, only_variable, read_ml_data, settings_of
from phloem.analysis.ml_device import device_identity, on_device
from phloem.analysis.ml_differences import (
    MlDifferences,
    run_differences,
    why_differences,
    write_differences,
)
from phloem.analysis.ml_files import write_result
from phloem.analysis.ml_held import fitted_held, held_record, held_start, require_held
from phloem.analysis.ml_merge import merge_settings, merging_record
from phloem.analysis.ml_outgroup import hung, outgroup_of, rooted
from phloem.analysis.ml_report import choice_record, model_text_of, parts_record
from phloem.analysis.ml_search import searched
from phloem.analysis.ml_settings import (
    MlSettings,
    checkpoint_of,
    choice_settings,
    many_trees,
    replicates_of,
    require_search,
    support_settings,
)
from phloem.analysis.ml_supports import BranchSupports, supports_of
from phloem.analysis.model_file import require_gamma_used
from phloem.analysis.negative_lengths import trees_to_fit
from phloem.analysis.outputs import alone, check_outputs
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import Part
from phloem.errors import InputError, in_file
from phloem.hardware.blas import one_blas_thread
from phloem.hardware.limits import require_threads
from phloem.hardware.notice import on_first_compilation
from phloem.hardware.ranks import Ranks, ranks
from phloem.io.trees import newick_text
from phloem.model.model import Model
from phloem.plot.terminal_tree import draw_tree
from phloem.pruning.select import Selection
from phloem.tree.constraint import Constraint
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.ml.branch_tests import SupportSettings
    from phloem.inference.ml.held import HeldTree
    from phloem.inference.ml.identical import Distinct
    from phloem.inference.ml.merging import Merging
    from phloem.inference.ml.model_choice import ChoiceSettings, ModelChoice
    from phloem.inference.ml.replicates import Replicates
    from phloem.inference.ml.search_result import SearchResult, SearchSettings
    from phloem.inference.ml.search_state import Checkpoint, Told
    from phloem.inference.ml.tree_starts import Start

_NEAR = (  # 59 taxa of ten genes: mean 90, where trees of 200 replicates have 52
    "UFBoot of resampled parts is too sure, as its trees are all near the best one; --bootstrap is not"
)
_NOT_CONVERGED = "the last fit of lengths and parameters did not converge"


@dataclass(frozen=True, eq=False)
class MlResult:
    """found: what the search found, on the distinct sequences. choices: of models, by name of the part ("" of
    one alignment). merging: of parts, and those that were given. tree: of all sequences, with
    its drawing for a terminal. outgroup: taxa that it is written and drawn from. supports: of the tree's
    branches, if any were asked for. replicates: their trees together, where files of them are wanted.
    adequacy: composition and symmetry of the data as they were given. files: name → what it holds. seconds:
    of choice, search and supports, without reading. selection: where it was searched, and why there. held:
    the tree that was not searched."""

    settings: MlSettings
    found: SearchResult | None
    choices: dict[str, ModelChoice]
    supports: BranchSupports | None
    rows: Distinct
    tree: Tree | None
    outgroup: tuple[str, ...]
    merging: tuple[Merging, tuple[Part, ...]] | None
    replicates: Replicates | None
    adequacy: Adequacy
    constraint: Constraint | None
    drawing: str
    data: dict[str, object]
    files: dict[str, str]
    seconds: float
    selection: Selection | None
    provenance: dict[str, Any]
    warnings: tuple[str, ...]
    held: HeldTree | None = None

    def __repr__(self) -> str:
        best = "" if self.found is None else f"log_likelihood={self.found.optimum.log_likelihood:.6f}, "
        return f"MlResult({best}{self.tree!r}, prefix={self.settings.file_prefix!r})"

    @property
    def choice(self) -> ModelChoice | None:
        """Of an alignment without parts."""
        return self.choices.get("")

    @property
    def newick(self) -> str:
        """The tree, with supports if there are any."""
        tree = self.tree if self.supports is None else self.supports.tree
        return "" if tree is None else newick_text([hung(tree, self.outgroup)]).strip()

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings, lists and dictionaries."""
        records = {name: choice_record(choice) for name, choice in self.choices.items()}
        several = {"model_choices": records} if records else {}
        chosen = {"model_choice": records[""]} if "" in records else several
        searched = {} if self.found is None else _search_record(self.found, self.newick, self.rows)
        supported = {} if self.supports is None else {"supports": self.supports.to_json()}
        return {
            **searched,
            **supported,
            **constraint_record(self.constraint if self.found is not None else None),
            **held_record(self.held),
            **chosen,
            **({} if self.merging is None else {"merging": merging_record(*self.merging)}),
            **self.adequacy.to_json(),
            "seconds": self.seconds,
            "data": self.data,
            "identical_sequences": self.rows.groups(),
            "warnings": list(self.warnings),
            "effort": self.settings.effort._asdict() if self.found is not None and not self.held else None,
            "settings": settings_of(self.settings),
            "provenance": self.provenance,
        }


def _search_record(found: SearchResult, tree: str, rows: Distinct) -> dict[str, object]:
    """starts: none of a tree that was not searched."""
    optimum = found.optimum
    start = {"origin": found.origin, "log_likelihood": found.first} if found.starts else None
    return {
        "log_likelihood": optimum.log_likelihood,
        "model": model_text_of(optimum),
        "tree": tree,
        **parts_record(found.likelihood),
        **class_records(found.likelihood, rows),
        "optimum": optimum_record(optimum),
        "start": start,
        "starts": [one._asdict() for one in found.starts],
        "difficulty": None if found.difficulty is None else found.difficulty._asdict(),
        "tries": found.tries,
        "better_trees": [better._asdict() for better in found.found],
    }


@one_blas_thread()
def run_ml(
    settings: MlSettings,
    told: Told | None = None,
    compiling: Callable[[str], None] | None = None,
) -> MlResult | MlDifferences:
    """Read, choose a model if asked to, search, write the files. One process at a time works on a prefix.

    told: called with what is being done and the best log-likelihood so far. compiling: called with a sentence
    if kernels have to be compiled first. Errors: PhloemError of every kind.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    checked(settings)
    here = ranks()
    if (
        here.size > 1
        and settings.bootstrap is None
        and (settings.effort.starts == 1 or not settings.searches)
    ):
        raise InputError(
            f"{here.size} processes were started, and there is nothing here that they could share",
            hint="They share the searches of --starts, the replicates of --bootstrap and the alignments of "
            "--genes; else start one.",
        )
    with alone(settings.file_prefix, settings.inputs):
        return _run_alone(settings, told, compiling or (lambda _: None), here)


def _run_alone(
    settings: MlSettings, told: Told | None, say: Callable[[str], None], here: Ranks
) -> MlResult | MlDifferences:
    """run_ml, while no other process works on the same files."""
    check_outputs(settings.files, settings.inputs, settings.redo)
    given, said = why_differences(settings)
    for line in said:
        say(line)
    if given is not None:
        outbreak, kept = run_differences(settings, given, told, say)
        write_differences(outbreak)
        kept.remove()
        return outbreak
    result, data, checkpoint = analysed(settings, told, resumable=True, here=here, said=said)
    write_result(result, data)
    if checkpoint is not None:
        checkpoint.remove()
    return result


def checked(settings: MlSettings) -> tuple[ChoiceSettings | None, SupportSettings]:
    """What is to be chosen from, and supported; InputError for settings that mean nothing."""
    require_threads(settings.threads)
    require_search(settings)
    require_held(settings)
    replicates_of(settings)
    merge_settings(settings)
    return choice_settings(settings), support_settings(settings)


def analysed(
    settings: MlSettings,
    told: Told | None = None,
    resumable: bool = False,
    here: Ranks | None = None,
    said: Sequence[str] = (),
) -> tuple[MlResult, MlData, Checkpoint | None]:
    """run_ml without its files. resumable: searches go on from their checkpoints and keep some. here: the
    processes that share searches and replicates. said: warnings from before."""
    from phloem.inference.ml.search_result import SearchSettings

    of_choice, of_supports = checked(settings)
    data, selection = on_device(read_ml_data(settings))
    given, warnings = _start(data, rows := data.rows)
    require_obeying(data.constraint, given, settings.tree)
    outgroup = outgroup_of(settings.outgroup, data.alignment.taxa)
    warnings = [*said, *data.warnings, *warnings]
    tries = settings.radius, settings.effort.patience, settings.effort.starts
    of_search = SearchSettings(*tries, settings.seed, settings.threads)
    begin = time.perf_counter()
    start = given or _first_start(data, settings.seed)
    given_parts = data.parts
    checkpoint = checkpoint_of(settings, []) if resumable and of_choice is not None else None
    named = _models(data, start, of_choice, of_search, told, checkpoint)
    choices, texts, models, start, data, merging = named
    found = supports = tree = replicates = None
    if settings.searches:
        checkpoint = checkpoint_of(settings, [*texts, *device_identity(data)]) if resumable else None
        if data.held is not None:
            found, drawn = fitted_held(data, models, start, of_supports, told), None
        else:
            how = of_search, of_supports, told, here, checkpoint
            found, drawn, replicates = searched(data, (texts, models), start, *how)
        tree = rows.put_back(found.optimum.tree)
        assure(data.constraint, tree)
        warnings += rooted(tree, outgroup)[1] if outgroup else []
        warnings += _what_to_heed(data, models, found)
        supports = supports_of(found.optimum.tree, found.supports, drawn, rows)
    made = settings, found, choices, supports, rows, tree, outgroup
    result = MlResult(
        *made,
        merging=None if merging is None else (merging, given_parts),
        replicates=replicates,
        adequacy=adequacy_of(given_parts),
        constraint=data.constraint,
        drawing=draw_tree(hung(tree, outgroup), 80) if tree is not None else "",
        data=data.record(),
        files=settings.files,
        seconds=time.perf_counter() - begin,
        selection=selection,
        provenance=_provenance(settings, found, selection),
        warnings=tuple(warnings),
        held=data.held,
    )
    return result, data, checkpoint


def _models(
    data: MlData,
    start: Start,
    of_choice: ChoiceSettings | None,
    of_search: SearchSettings,
    told: Told | None,
    checkpoint: Checkpoint | None,
) -> Chosen:
    """Those chosen, or those given."""
    if of_choice is not None:
        journal = None if checkpoint is None else checkpoint.models()
        return choose(data, start, of_choice, of_search, told, journal)
    texts, models = data.texts(), data.models()
    require_gamma_used(data.settings.gamma, models)
    return Chosen({}, texts, models, start, data)


def _what_to_heed(data: MlData, models: Sequence[Model], found: SearchResult) -> list[str]:
    """Warnings of what the search found, and of its supports."""
    settings, optimum = data.settings, found.optimum
    said = only_variable([(part.name, part.alignment) for part in data.parts], models)
    said += [] if optimum.converged else [_NOT_CONVERGED]
    said += [_NEAR] if settings.ufboot and settings.sampling != "site" else []
    return [*said, *few_sites(optimum.n_free, sum(part.alignment.n_sites for part in data.parts))]


def _first_start(data: MlData, seed: int) -> Start:
    """BIONJ's tree of one alignment; of several parts, or under a constraint, one of few changes."""
    from phloem.clustering.parsimony import Parsimony
    from phloem.inference.ml.constrained import ConstrainedParsimony
    from phloem.inference.ml.tree_starts import bionj_start, parsimony_start

    if data.constraint is not None:
        return parsimony_start(ConstrainedParsimony(Parsimony(*data.distinct), data.constraint), seed)
    if data.partitioned:
        return parsimony_start(Parsimony(*data.distinct), seed)
    return bionj_start(data.distinct[0])


def _provenance(settings: MlSettings, found: SearchResult | None, where: Selection | None) -> dict[str, Any]:
    """The engine is that of the last fit."""
    selection = found.selection if found is not None else None
    search = {} if found is None or where is None else {"search": where.reason}
    return provenance(settings.inputs, selection) | search | {"seed": settings.seed}


def _start(data: MlData, rows: Distinct) -> tuple[Start | None, list[str]]:
    from phloem.inference.ml.tree_starts import Start

    if data.held is not None:
        return held_start(data.held), []
    file = data.settings.tree
    if file is None:
        return None, []
    trees = trees_to_fit(file)
    with in_file(file):
        return Start(rows.taken_out(trees[0])), many_trees(len(trees))
