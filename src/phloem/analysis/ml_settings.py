"""What `phloem ml` and `phloem test-trees` can be told, and the files that follow from it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phloem import __version__
from phloem.analysis.auspice import AuspiceOptions
from phloem.analysis.draw import check_picture_name
from phloem.analysis.ml_classes import has_classes
from phloem.analysis.ml_effort import Effort, effort_of
from phloem.analysis.model_file import file_of_model
from phloem.analysis.reading import DataOptions
from phloem.density.parts import LengthLinkage
from phloem.errors import InputError, count_of, require_choice
from phloem.io.input_file import input_digest

if TYPE_CHECKING:
    from phloem.inference.ml.branch_tests import Sampling, SupportSettings
    from phloem.inference.ml.model_choice import ChoiceSettings
    from phloem.inference.ml.search_state import Checkpoint

DRAWN = {"site": "sites", "gene": "parts", "genesite": "parts and their sites"}  # for a replicate, in words
AUTOMATIC, ONLY_CHOICE = ("auto", "mfp"), "mf"  # in place of a model, in any case; IQ-TREE's names
_ASCERTAINED = "+asc"  # behind these: of all models that are compared
_CHOICES = ("TEST", "TESTNEW", "TESTONLY", "TESTNEWONLY", "TESTMERGE", "TESTMERGEONLY")  # IQ-TREE's others


@dataclass(frozen=True, kw_only=True)
class FitSettings(DataOptions):
    """What commands that fit trees share; field names are those of their options.

    model: a model string, @FILE for the numbers of a PREFIX.model, None for the usual one of the data.
    prefix: what the names of the files written begin with; by default the alignment's name. gamma: what +G
    means where the model string does not say. Existing files are replaced only with redo.
    """

    model: str | None = None
    prefix: str | None = None
    seed: int = 1
    threads: int | None = None
    gamma: Literal["mean", "median"] = "mean"
    redo: bool = False

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        return [*self.data_files, *file_of_model(self.model)]

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with; InputError for one that no file can have."""
        prefix = self.prefix or self.usual_prefix
        if not Path(prefix).name or prefix.endswith(os.sep):
            raise InputError("the prefix names a folder", file=prefix, hint="Add how the files' names begin.")
        return prefix


@dataclass(frozen=True, kw_only=True)
class MlSettings(FitSettings):
    """Everything that `phloem ml` can be told; field names are those of its options.

    model: also of AUTOMATIC, the best by the criterion (inference/ml/model_choice.py), ONLY_CHOICE without a
    search. model_set, rate_set, frequency_set: separated by commas; with criterion and most_classes they say
    what is chosen from. tree: a file with a tree to begin from; fixed_tree: with one that is held, and
    lengths: what becomes of its own (analysis/ml_held.py). starts, radius, patience:
    inference/ml/tree_search.py; fast, thorough: numbers for starts and patience (analysis/ml_effort.py).
    keep_identical: search with all sequences, equal ones too. picture: a file for the tree, .svg, .png or
    .pdf. outgroup: taxa between commas, beside which the tree is written and drawn. ancestral: write the
    states at inner nodes (analysis/ml_ancestral.py). iqtree_files: the results under IQ-TREE's names as well
    (analysis/ml_iqtree.py). auspice: the tree for Nextstrain (analysis/ml_auspice.py), with columns of a
    table, metadata, of its tips. constraint: a file with a tree whose splits are obeyed. linkage: what branch
    lengths of parts have in common, None for proportional; link: parameters that parts share, as
    analysis.partitioned_likelihood.read_linkage has them.
    engine: on patterns, or on differences of very many nearly equal genomes (analysis/ml_differences.py),
    which has supports of its own, sprta. device: of a search on patterns (analysis/ml_device.py). merge,
    merge_percent: of parts before models are chosen (inference/ml/merging.py), None for none, 10. genes: this
    is one of many genes (analysis/ml_genes.py), whose tree has the taxa that it knows anything of.
    """

    linkage: LengthLinkage | None = None
    link: tuple[str, ...] = ()
    model_set: str | None = None
    rate_set: str | None = None
    frequency_set: str | None = None
    criterion: Literal["bic", "aicc", "aic"] = "bic"
    most_classes: int = 10
    merge: Literal["greedy", "relaxed"] | None = None
    merge_percent: float | None = None
    tree: str | None = None
    fixed_tree: str | None = None
    lengths: Literal["fitted", "scaled", "given"] | None = None
    starts: int | None = None
    radius: int = 5
    patience: int | None = None
    fast: bool = False
    thorough: bool = False
    keep_identical: bool = False
    alrt: int = 0
    abayes: bool = False
    parametric_alrt: bool = False
    lbp: int = 0
    ufboot: int = 0
    bnni: bool = False
    bootstrap: int | str | None = None
    sampling: Sampling = "site"
    engine: Literal["auto", "patterns", "differences"] = "auto"
    sprta: bool = False
    picture: str | None = None
    outgroup: str | None = None
    ancestral: bool = False
    iqtree_files: bool = False
    auspice: bool = False
    metadata: str | None = None
    metadata_column: tuple[str, ...] = ()
    constraint: str | None = None
    device: Literal["auto", "cpu", "gpu"] = "auto"
    genes: bool = False

    @property
    def automatic(self) -> bool:
        """Whether the model is to be chosen."""
        return _word(self.model) in (*AUTOMATIC, ONLY_CHOICE)

    @property
    def ascertained(self) -> bool:
        """Whether all models to choose from have +ASC."""
        return self.automatic and (self.model or "").lower().endswith(_ASCERTAINED)

    @property
    def effort(self) -> Effort:
        """InputError for words and numbers that contradict each other."""
        return effort_of(self.fast, self.thorough, self.starts, self.patience)

    @property
    def searches(self) -> bool:
        return _word(self.model) != ONLY_CHOICE

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        others = self.tree, self.fixed_tree, self.constraint, self.auspice_options.table()
        return [*super().inputs, *(file for file in others if file is not None)]

    @property
    def auspice_options(self) -> AuspiceOptions:
        """What is written for Nextstrain, and with it."""
        file = f"{self.file_prefix}.auspice.json" if self.auspice else None
        return AuspiceOptions(file, self.metadata, self.metadata_column)

    @property
    def files(self) -> dict[str, str]:
        """Name → what is written there. InputError for a picture of no known kind, or of no tree."""
        prefix = self.file_prefix
        files = {f"{prefix}.tree": "the tree, in substitutions per site"} if self.searches else {}
        if self.bootstrap:
            files[f"{prefix}.bootstrap.nwk"] = f"trees of resampled {DRAWN[self.sampling]}"
        if self.automatic:
            files[f"{prefix}.models.tsv"] = "all models that were compared"
        if self.merge is not None:
            files[f"{prefix}.scheme"] = f"parts as they were merged, for --partitions {prefix}.scheme"
        if self.searches:
            files[f"{prefix}.model"] = f"the model with its numbers, for --model @{prefix}.model"
            files[f"{prefix}.sites"] = "log-likelihood and rate of every site"
            if not self.partitioned and has_classes(self.model):
                files[f"{prefix}.classes.nwk"] = "a tree a class of sites, in its own branch lengths"
            if self.ancestral:
                files[f"{prefix}.state"] = "states at all inner nodes, with probabilities"
                files[f"{prefix}.ancestral.tree"] = "the tree with the nodes' names"
            if self.auspice:
                files[f"{prefix}.auspice.json"] = "the tree as a dataset of Auspice (Nextstrain)"
            if self.partitioned and self.linkage != "linked":
                files[f"{prefix}.parts.nwk"] = "a tree a part, in its own branch lengths"
        if self.picture is not None:
            check_picture_name(self.picture)
            if not self.searches:
                raise InputError("a picture is of a tree, and --model MF searches none", hint=SEARCH)
            where = "the middle of its longest path" if self.outgroup is None else "its outgroup"
            files[self.picture] = f"the tree drawn from {where}"
        if self.iqtree_files:
            files |= _iqtree_names(self)
        return files | {
            f"{prefix}.json": "the whole result, for programs",
            f"{prefix}.report": "the same, for people",
        }


SEARCH = "Say --model auto."


def _word(model: str | None) -> str:
    """In small letters, without the +ASC of all models of a choice."""
    return (model or "").lower().removesuffix(_ASCERTAINED)


def _iqtree_names(settings: MlSettings) -> dict[str, str]:
    """Name → what is written there."""
    prefix = settings.file_prefix
    names = {".iqtree": "the report, with lines as IQ-TREE's", ".log": "the course of the analysis, so too"}
    if settings.automatic and settings.partitioned:
        names[".best_scheme.nex"] = "parts and their models, in NEXUS"
    if settings.searches:
        names |= {
            ".treefile": "the tree, as IQ-TREE names it",
            ".sitelh": "log-likelihoods of sites in a line",
            ".rate": "rates of sites, and their likeliest categories",
        }
        if settings.ufboot or settings.bootstrap:
            names[".contree"] = "the extended consensus of the replicates' trees"
            names[".splits.nex"] = "splits of the replicates' trees, with percentages"
        if settings.bootstrap:
            names[".boottrees"] = f"trees of resampled {DRAWN[settings.sampling]}"
    return {f"{prefix}{ending}": f"{what} (IQ-TREE's name)" for ending, what in names.items()}


def require_search(settings: MlSettings) -> None:
    """InputError for what is about a search or its tree, where the model alone is chosen."""
    if settings.searches:
        return
    for name in ("fast", "thorough", "starts", "patience", "outgroup", "ancestral", "auspice"):
        given = getattr(settings, name)
        if given is not None and given is not False:
            what = "a tree" if name in ("outgroup", "ancestral", "auspice") else "the search"
            raise InputError(f"--{name} is about {what}, and --model MF searches none", hint=SEARCH)


def choice_settings(settings: MlSettings) -> ChoiceSettings | None:
    """None where the model is given; InputError for options that would then not be obeyed."""
    from phloem.inference.ml.model_choice import ChoiceSettings

    usual = MlSettings(settings.alignment)
    if not settings.automatic:
        _require_no_choice(settings.model or "")
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
        settings.ascertained,
    )


def _require_no_choice(model: str) -> None:
    """InputError for words by which IQ-TREE chooses a model, and which are not read."""
    head, *others = model.upper().split("+")
    if head not in _CHOICES and not (head in ("AUTO", "MFP", "MF") and others):
        return
    merged = "MERGE" in model.upper()
    hint = "Say auto, which chooses and searches, or MF, which only chooses; auto+ASC, MF+ASC: with +ASC."
    if head in _CHOICES:
        hint += " Without +R: --rate-set E,I,G4,I+G4."
    if merged:
        hint += " Parts are merged by --merge greedy."
    raise InputError(f"--model {model} is no model, and no choice that is read", hint=hint)


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


def support_settings(settings: MlSettings) -> SupportSettings:
    """InputError for numbers of replicates that mean nothing, and where no tree is searched."""
    from phloem.inference.ml.branch_tests import SupportSettings

    wanted = SupportSettings(
        settings.alrt,
        settings.ufboot,
        settings.bnni,
        settings.sampling,
        settings.abayes,
        settings.parametric_alrt,
        settings.lbp,
    )
    if not settings.searches and (wanted.any or settings.bootstrap):
        raise InputError("supports are of a tree, and --model MF searches none", hint=SEARCH)
    if settings.sampling != "site":
        require_choice("--sampling", settings.sampling, DRAWN)
        if not (settings.alrt or settings.lbp or settings.ufboot or settings.bootstrap):
            more = "" if settings.fixed_tree is not None else ", --ufboot 1000 or --bootstrap 100"
            raise InputError("--sampling is about replicates", hint=f"Add --alrt 1000{more}.")
        if not settings.partitioned:
            raise InputError(
                f"--sampling {settings.sampling} draws parts, and the data have none",
                hint="Add --partitions FILE, or leave it out.",
            )
    return wanted


def replicates_of(settings: MlSettings) -> int | Literal["auto"] | None:
    if settings.bootstrap is None:
        return None
    if str(settings.bootstrap).lower() == "auto":
        return "auto"
    number = count_of(str(settings.bootstrap))
    if not 1 <= number <= 100_000:
        raise InputError(f"--bootstrap {settings.bootstrap}", hint="Give a number of replicates, or auto.")
    return number


def many_trees(n: int) -> list[str]:
    """What is said of a file of several trees to begin from."""
    return [f"the tree file has {n:,} trees: this starts from the first"] if n > 1 else []


def checkpoint_of(
    settings: MlSettings, models: Sequence[str], from_json: Callable[[dict[str, Any]], Any] | None = None
) -> Checkpoint:
    """Of this search: what decides its numbers is part of its identity, threads and supports are not.
    models: of the parts. from_json: makes a state that is not the usual one."""
    from phloem.inference.ml.search_state import Checkpoint, SearchState

    others = (
        "prefix", "threads", "redo", "alrt", "parametric_alrt", "lbp", "abayes", "ufboot", "bnni",
        "bootstrap", "picture", "engine", "sprta", "outgroup", "ancestral", "iqtree_files", "fast",
        "thorough", "starts", "patience", "device", "auspice", "metadata", "metadata_column",
    )  # fmt: skip
    chosen = {k: v for k, v in asdict(settings).items() if k not in others}
    chosen |= {"starts": settings.effort.starts, "patience": settings.effort.patience}
    files = [input_digest(file) for file in settings.inputs if file != settings.metadata]
    text = json.dumps([__version__, models, chosen, files], sort_keys=True, default=str)
    identity = hashlib.sha256(text.encode()).hexdigest()
    return Checkpoint(
        f"{settings.file_prefix}.checkpoint",
        identity,
        settings.redo,
        from_json=from_json or SearchState.from_json,
    )
