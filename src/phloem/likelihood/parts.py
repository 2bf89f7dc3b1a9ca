"""The parts of a partitioned alignment, each with its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from phloem.data.alignment import Alignment
from phloem.data.alphabet import columns_of
from phloem.data.patterns import SitePatterns, site_patterns
from phloem.data.translation import columns_of_site
from phloem.density.parts import PartModel
from phloem.errors import InputError, ModelError, NumericalError, in_file
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem, site_distances
from phloem.model.model import Model
from phloem.pruning.grid import Engine, OnRanks
from phloem.pruning.interface import Problem
from phloem.tree.layout import TreeLayout


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the data. alignment: its taxa in the order of the tree's tips. problem: for an engine."""

    name: str
    alignment: Alignment
    patterns: SitePatterns
    model: Model
    problem: Problem


@dataclass(frozen=True)
class EngineOptions:
    """engine: auto, reference, cpu or gpu, here or on several processes. precision: of the messages, as in
    TreeLikelihood. threads: None lets phloem choose. repeats: False computes every pattern at every node."""

    engine: Engine | OnRanks = "auto"
    precision: str = "float64"
    threads: int | None = None
    repeats: bool = True


@contextmanager
def in_part(name: str) -> Iterator[None]:
    """Errors raised inside say in which part."""
    try:
        yield
    except InputError as error:
        error.message = f"part '{name}': {error.message}"
        raise
    except NumericalError as error:
        raise NumericalError(f"part '{name}': {error}") from error


def make_parts(
    given: Mapping[str, tuple[Alignment, Model | str]],
    taxa: tuple[str, ...],
    layout: TreeLayout,
    options: EngineOptions,
) -> tuple[Part, ...]:
    """Every part with its patterns and its engine's problem. taxa: in the order of the tree's tips.

    Errors: InputError or ModelError that name the part, for other taxa than the tree's and models that do not
    fit the data.
    """
    made = []
    for name, (alignment, model) in given.items():
        with in_part(name), in_file(alignment.source):
            ordered = _in_order(alignment, taxa)
            own = model_for_alignment(model, ordered) if isinstance(model, str) else model
            _require_one_length_class(own)
            patterns = site_patterns(ordered)
            told = options.precision, options.repeats, site_distances(own, ordered)
            problem = engine_problem(patterns, own, layout.children, *told)
        made.append(Part(name, ordered, patterns, own, problem))
    return tuple(made)


def part_models(parts: Sequence[Part]) -> tuple[PartModel, ...]:
    """What the blocks of the parts follow from.

    Where codons or doublets stand beside other data, a shared branch length is per nucleotide: a codon is
    three, a doublet two. In means over sites every character counts as the columns that it takes.
    """
    lengths = part_lengths([p.alignment.alphabet.kind for p in parts])
    return tuple(
        PartModel(p.name, p.model, p.alignment.n_sites, x, columns_of_site(p.alignment))
        for p, x in zip(parts, lengths)
    )


def part_lengths(kinds: Sequence[str]) -> list[float]:
    """How long a character of parts of these data types is, in the unit of branch lengths."""
    columns = [columns_of(kind) for kind in kinds]
    return [float(n) if len(set(columns)) > 1 else 1.0 for n in columns]


def _in_order(alignment: Alignment, taxa: tuple[str, ...]) -> Alignment:
    """The alignment with its rows in the order of taxa."""
    if alignment.taxa == taxa:
        return alignment
    row = {taxon: i for i, taxon in enumerate(alignment.taxa)}
    differing = sorted(set(taxa) ^ set(row))
    if differing:
        where = "is in other parts and not in this one" if differing[0] in taxa else "is in this part only"
        raise InputError(
            f"taxon '{differing[0]}' {where}",
            hint="Give every part the same taxa; write missing ones as '?'.",
        )
    return replace(alignment, taxa=taxa, codes=alignment.codes[[row[t] for t in taxa]])


def _require_one_length_class(model: Model) -> None:
    if model.n_length_classes > 1:
        raise ModelError(
            f"{model.name} has {model.n_length_classes} sets of branch lengths, and a part shares one",
            hint="Choose another model, or analyse the part alone.",
        )
