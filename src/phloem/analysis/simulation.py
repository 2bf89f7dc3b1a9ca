"""`phloem simulate`: an alignment drawn from a tree and a model, the tree given or random."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from phloem.analysis.model_file import file_of_model, model_string, require_gamma_used
from phloem.analysis.outputs import STDOUT, check_outputs, write_json
from phloem.analysis.provenance import provenance
from phloem.data.alignment import Alignment
from phloem.data.alphabet import STANDARD_SYMBOLS, Alphabet, alphabet, canonical_kind, columns_of
from phloem.data.given_fields import settle_fields
from phloem.errors import InputError, in_file, require_seed
from phloem.hardware.limits import require_memory
from phloem.io.alignment_text import Format, format_fasta, format_of, format_phylip
from phloem.io.nexus_characters import format_nexus
from phloem.io.output_file import write_file
from phloem.io.trees import read_tree, write_trees
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.families import datatypes_of
from phloem.model.model_string import split_model
from phloem.tree.random import coalescent, scaled_to_height, uniform_unrooted, yule
from phloem.tree.tree import Tree

Shape = Literal["yule", "coalescent", "uniform"]
HEIGHT = 0.5  # of a random rooted tree, substitutions per site
MEAN_LENGTH = 0.1  # of the branches of a random unrooted one
TIP_BYTES = 200  # of a random tree, at least: names, nodes, edges
_TREE = 1  # stream of the random tree; the sites' is the seed itself


@dataclass(frozen=True)
class SimulationSettings:
    """Everything that `phloem simulate` can be told.

    model: a model string with all its values, or @FILE (model_file.py). sites: characters (codons, for a
    codon model). tree: a file, or None for a random tree of `tips` tips. shape: yule and coalescent trees are
    ultrametric and `height` deep (0.5 substitutions per site), uniform ones unrooted with exponential lengths
    of mean `mean_length` (0.1). datatype: None for that of the model's name. states: number of states of
    standard data. out: None keeps the alignment in memory; format None goes by the ending of out, else FASTA.
    out_tree: where a random tree goes, None: beside out as .nwk. json: where the record goes. redo: replace
    files that exist.
    """

    model: str
    sites: int
    seed: int = 1
    tree: str | None = None
    tips: int | None = None
    shape: Shape = "yule"
    height: float | None = None
    mean_length: float | None = None
    datatype: str | None = None
    genetic_code: int = 1
    states: int | None = None
    gamma: Literal["mean", "median"] = "mean"
    out: str | None = None
    format: Format | None = None
    out_tree: str | None = None
    json: str | None = None
    redo: bool = False

    def __post_init__(self) -> None:
        settle_fields(self)

    @property
    def written_format(self) -> Format:
        return self.format or format_of(self.out or "")

    @property
    def tree_file(self) -> str | None:
        """Where the random tree is written; None where a tree was given, or there is no file at all."""
        if self.tree is not None:
            return None
        return self.out_tree or (str(Path(self.out).with_suffix(".nwk")) if self.out else None)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """alignment; the tree it was drawn from; model: the string with all values; seconds: of drawing."""

    settings: SimulationSettings
    alignment: Alignment
    tree: Tree
    model: str
    seconds: float
    provenance: dict[str, Any]

    def to_json(self) -> dict[str, object]:
        """A record of plain numbers, strings and dictionaries."""
        return {
            "taxa": self.alignment.n_taxa,
            "sites": self.alignment.n_sites,
            "datatype": self.alignment.alphabet.kind,
            "model": self.model,
            "seconds": self.seconds,
            "settings": asdict(self.settings),
            "provenance": self.provenance,
        }


def run_simulation(settings: SimulationSettings) -> SimulationResult:
    """Read or draw the tree, draw the sites, write what the settings name.

    Errors: InputError and ModelError; see simulate_alignment.
    """
    inputs = [*([] if settings.tree is None else [settings.tree]), *file_of_model(settings.model)]
    settings = replace(settings, model=model_string(settings.model))
    _check(settings)
    printable = [settings.out or STDOUT, settings.json]
    check_outputs([settings.tree_file], inputs, settings.redo, printable)
    states = _alphabet(settings)
    model = model_for_alphabet(settings.model, states, settings.gamma)
    require_gamma_used(settings.gamma, [model])
    if settings.tips is not None:
        require_memory(f"{settings.tips:,} tips", settings.tips * TIP_BYTES, "Ask for fewer --tips.")
    tree = _random_tree(settings) if settings.tree is None else read_tree(settings.tree)
    _require_memory(tree, settings.sites, states)
    start = time.perf_counter()
    with in_file(settings.tree or "random tree"):
        alignment = simulate_alignment(tree, model, settings.sites, settings.seed, states)
    seconds = time.perf_counter() - start
    if settings.out is not None:
        write_file(settings.out, alignment_text(alignment, settings.written_format))
    if settings.tree_file is not None:
        write_trees(settings.tree_file, tree)
    record = provenance(inputs) | {"seed": settings.seed}
    result = SimulationResult(settings, alignment, tree, model.text(), seconds, record)
    write_json(result.to_json(), settings.json)
    return result


def _require_memory(tree: Tree, sites: int, states: Alphabet) -> None:
    """InputError where the sites do not fit: states of all nodes, codes and text of the tips, two numbers
    a site."""
    width = columns_of(states.kind)
    need = sites * (tree.n_nodes + (1 + width) * tree.n_tips + 16)
    require_memory(f"{sites:,} sites of {tree.n_tips:,} taxa", need, "Ask for fewer --sites, several times.")


def alignment_text(alignment: Alignment, format: Format) -> str:
    """The alignment as the text of a file."""
    if format == "nexus":
        return format_nexus(alignment)
    return format_phylip(alignment) if format == "phylip" else format_fasta(alignment)


def _check(settings: SimulationSettings) -> None:
    """InputError for settings that contradict each other: none is ignored."""
    if (settings.tree is None) == (settings.tips is None):
        raise InputError("give a tree file, or --tips for a random tree, and not both")
    require_seed(settings.seed)
    if settings.tree is not None and settings.out_tree is not None:
        raise InputError("--out-tree is for random trees, and a tree is given", hint="Leave it out.")
    if settings.tree is None and settings.tree_file is None:
        raise InputError("the random tree has no file to go to", hint="Add --out-tree FILE, or --out FILE.")
    rooted = settings.tree is None and settings.shape != "uniform"
    if settings.height is not None and not rooted:
        raise InputError("--height is of random yule and coalescent trees", hint="Leave it out.")
    if settings.mean_length is not None and (settings.tree is not None or rooted):
        raise InputError("--mean-length is of random uniform trees", hint="Leave it out.")


def _alphabet(settings: SimulationSettings) -> Alphabet:
    """The data type asked for, else the first that has a model of that name."""
    name = split_model(settings.model)[0].name
    kind = canonical_kind(settings.datatype or next(iter(datatypes_of(name)), "dna"))
    if (settings.states is not None) != (kind in ("standard", "custom")):
        raise InputError(f"--states is needed by standard data, and only there; these are {kind} data")
    if settings.states is None:
        return alphabet(kind, settings.genetic_code)
    if not 2 <= settings.states <= len(STANDARD_SYMBOLS):
        raise InputError(f"--states lies in 2 … {len(STANDARD_SYMBOLS)}, not {settings.states}")
    return alphabet("standard", symbols=STANDARD_SYMBOLS[: settings.states])


def _random_tree(settings: SimulationSettings) -> Tree:
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(_TREE,)))
    tips = settings.tips or 0
    if settings.shape == "uniform":
        mean = MEAN_LENGTH if settings.mean_length is None else settings.mean_length
        if not 0 <= mean < float("inf"):
            raise InputError(f"the mean branch length is a finite number of 0 or more, not {mean:g}")
        return uniform_unrooted(tips, rng, mean)
    tree = (yule if settings.shape == "yule" else coalescent)(tips, rng)
    return scaled_to_height(tree, HEIGHT if settings.height is None else settings.height)
