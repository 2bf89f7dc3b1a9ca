"""The parts of a partitioned alignment, each with its model, and what evaluates all of them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.patterns import SitePatterns, site_patterns
from phloem.density.parameterisation import PartModel
from phloem.errors import InputError, ModelError, NumericalError, in_file
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.model.model import Model
from phloem.model.record import SiteModel
from phloem.pruning.interface import EngineGradient, Evaluator, Problem
from phloem.pruning.select import Selection, select_parts
from phloem.tree.layout import TreeLayout

if TYPE_CHECKING:
    from phloem.pruning.cpu.part_cells import PartCells
    from phloem.pruning.gpu.part_cells import GpuPartCells

_CODON_SITES = 3.0


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
    """engine: auto, reference, cpu or gpu. precision: of the messages, as in TreeLikelihood. threads:
    None lets phloem choose. repeats: False computes every pattern at every node."""

    engine: str = "auto"
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
            problem = engine_problem(patterns, own, layout.children, options.precision, options.repeats)
        made.append(Part(name, ordered, patterns, own, problem))
    return tuple(made)


def part_models(parts: Sequence[Part]) -> tuple[PartModel, ...]:
    """What the blocks of the parts follow from.

    Where codons stand beside other data, a shared branch length is per nucleotide: a codon is three.
    """
    lengths = part_lengths([p.alignment.alphabet.kind for p in parts])
    return tuple(PartModel(p.name, p.model, p.alignment.n_sites, x) for p, x in zip(parts, lengths))


def part_lengths(kinds: Sequence[str]) -> list[float]:
    """How long a character of parts of these data types is, in the unit of branch lengths."""
    codons = [kind == "codon" for kind in kinds]
    mixed = any(codons) and not all(codons)
    return [_CODON_SITES if mixed and codon else 1.0 for codon in codons]


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


class PartsEvaluator:
    """Evaluates all parts on one topology. Parts on a CPU are the cells of one forest, evaluated in one
    compiled call in which threads take cells; very large ones, and what cells do not know (single precision,
    complex eigensystems), have an evaluator of their own. Which one it is does not depend on the threads.
    Parts of one layout on a GPU share launches; those that do not fit into its memory beside the others have
    an evaluator of their own.

    Lengths are effective, (2T-1,) by node of the binary tree for every part; models one a part.
    """

    def __init__(self, problems: Sequence[Problem], options: EngineOptions) -> None:
        self._problems = tuple(problems)
        self.selections: list[Selection] = select_parts(options.engine, problems, options.threads)
        self._evaluators: dict[int, Evaluator] = {}
        self._on_its_own = [False] * len(problems)  # in the last evaluation
        self._cells: PartCells | None = None
        self._gpu_cells: GpuPartCells | None = None
        self._known: tuple[SiteModel, ...] = ()

    def log_likelihoods(self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel]) -> np.ndarray:
        """(L,) of every part."""
        values = np.zeros(len(models))
        for cells in self._cells_of(models):
            values[list(cells.parts)] = cells.log_likelihoods(lengths, models)
        for i in self._alone():
            values[i] = self._evaluator(i).log_likelihood(lengths[i], models[i])
        return values

    def gradients(
        self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel], parameters: bool
    ) -> list[EngineGradient]:
        """Of every part; parameters: also by the models' numbers."""
        found = dict[int, EngineGradient]()
        for cells in self._cells_of(models):
            found |= dict(zip(cells.parts, cells.gradients(lengths, models, parameters)))
        for i in self._alone():
            found[i] = self._evaluator(i).gradient(lengths[i], models[i], parameters)
        return [found[i] for i in range(len(models))]

    def site_log_likelihoods(self, part: int) -> np.ndarray:
        """(P,) of every pattern of a part, of the last evaluation."""
        if self._on_its_own[part]:
            return self._evaluator(part).site_log_likelihoods()
        (cells,) = (c for c in (self._cells, self._gpu_cells) if c is not None and part in c.parts)
        return cells.site_log_likelihoods(part)

    def _cells_of(self, models: Sequence[SiteModel]) -> list[PartCells | GpuPartCells]:
        """What evaluates parts together, made at the first evaluation."""
        on_cpu, on_gpu = self._cells_on_cpu(models), self._cells_on_gpu(models)
        self._on_its_own = [
            not (on_gpu is not None and i in on_gpu.parts) and alone
            for i, alone in enumerate(self._on_its_own)
        ]
        return [cells for cells in (on_cpu, on_gpu) if cells is not None]

    def _cells_on_gpu(self, models: Sequence[SiteModel]) -> GpuPartCells | None:
        parts = [i for i, selection in enumerate(self.selections) if selection.engine == "gpu"]
        if parts and self._gpu_cells is None:
            from phloem.pruning.gpu.part_cells import GpuPartCells  # PyTorch: only where it is used

            self._gpu_cells = GpuPartCells(self._problems, models, parts)
        return self._gpu_cells

    def _cells_on_cpu(self, models: Sequence[SiteModel]) -> PartCells | None:
        """The forest of the parts whose models it can have."""
        if all(selection.engine != "cpu" for selection in self.selections):
            self._on_its_own = [True] * len(models)
            return None
        from phloem.pruning.cpu.part_cells import PartCells, suits_a_cell  # Numba: only where it is used

        if self._cells is None:
            parts = [
                i
                for i, (problem, model) in enumerate(zip(self._problems, models))
                if self.selections[i].engine == "cpu" and suits_a_cell(problem, model)
            ]
            if len(parts) > 1:
                self._cells = PartCells(self._problems, models, parts, self.selections[parts[0]].threads)
        if len(self._known) == len(models) and all(map(operator.is_, self._known, models)):
            return self._cells
        self._known, known = tuple(models), () if self._cells is None else self._cells.parts
        self._on_its_own = [
            i not in known or not suits_a_cell(problem, model)
            for i, (problem, model) in enumerate(zip(self._problems, models))
        ]
        return self._cells

    def _alone(self) -> list[int]:
        return [i for i, alone in enumerate(self._on_its_own) if alone]

    def _evaluator(self, part: int) -> Evaluator:
        if part not in self._evaluators:
            self._evaluators[part] = self.selections[part].make(self._problems[part])
        return self._evaluators[part]
