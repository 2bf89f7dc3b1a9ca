"""The likelihood of several parts of the data on one tree, with lengths and parameters linked or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment, taxa_with_data
from phloem.density.parameterisation import BlockValues, Parameterisation, PartGradient, parameterise
from phloem.density.parts import Linkage, PartModel
from phloem.density.space import Block
from phloem.errors import InputError, PhloemError
from phloem.likelihood.parts import (
    EngineOptions,
    Part,
    in_part,
    make_parts,
    part_models,
)
from phloem.likelihood.problem import refuse_along_sites, require_possible
from phloem.likelihood.state import (
    Branches,
    ModelPoint,
    PointGroups,
    by_element,
    require_root,
    updated_values,
)
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.model.record import ParameterValue, SiteModel
from phloem.pruning.grid import OnRanks
from phloem.pruning.parts import parts_evaluator
from phloem.pruning.select import Selection
from phloem.tree.layout import TreeLayout, tree_layout
from phloem.tree.tree import Tree

PartBranches = Branches | Mapping[str, Branches]
_MEAN_ONE = 1e-6


@dataclass(frozen=True, eq=False)
class PartitionedGradient:
    """The log-likelihood and its derivatives, from one backward pass of every part.

    part_log_likelihoods: (L,). branch_lengths: (B,) d/d length where the parts share lengths, else (L, B).
    partition_rates: (L,) d/d rate of every part, the rates taken as independent. parameters: by element, with
    the names of the parts in braces unless all that have it share it (alpha{gene1}); those of a simplex in
    softmax coordinates. Without parameters asked for, parameters is empty.
    """

    log_likelihood: float
    part_log_likelihoods: np.ndarray
    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    partition_rates: np.ndarray
    parameters: dict[str, float]


class PartitionedLikelihood:
    """Log-likelihood of the parts of an alignment on one tree, each with its own model, and its derivatives.

    parts: name → (alignment, model), of any data types together; a model is a Model or a string, as in
    TreeLikelihood. Every part has the taxa of the tree. linkage: what the parts share (Linkage): branch
    lengths linked, proportional or unlinked, and parameters, which are the part's own unless linked. Other
    arguments as in TreeLikelihood.

    Branch lengths are expected changes per character; where codons stand beside other data they are per
    nucleotide, and a codon is three. The part rates of proportional lengths have mean 1 over characters.
    Errors: as TreeLikelihood, with the name of the part.
    """

    def __init__(
        self,
        parts: Mapping[str, tuple[Alignment, Model | str]],
        tree: Tree,
        linkage: Linkage | None = None,
        engine: Literal["auto", "reference", "cpu", "gpu"] | OnRanks = "auto",
        precision: Literal["float64", "float32"] = "float64",
        threads: int | None = None,
        *,
        repeats: bool = True,
        multifurcations: bool = False,
    ) -> None:
        if not parts:
            raise InputError("there are no parts", hint="Give at least one alignment and its model.")
        self.linkage = linkage or Linkage()
        self._options = options = EngineOptions(engine, precision, threads, repeats)
        first = next(iter(parts.values()))[0]
        self._layout: TreeLayout = tree_layout(tree, first.taxa, multifurcations)
        self.parts: tuple[Part, ...] = make_parts(parts, first.taxa, self._layout, options)
        self.part_models: tuple[PartModel, ...] = part_models(self.parts)
        lengths = self._layout.tree.lengths[:-1]
        block = Block("lengths", "positive", np.maximum(lengths, 1e-8), 1e-8, 100.0)
        self._names: Parameterisation = parameterise(self.part_models, block, self.linkage)
        self._lengths = {name: lengths.copy() for name in self._names.lengths}
        self._rates = np.ones(len(self.parts))
        self._points = [ModelPoint(p.model, _fixed_values(p.model)) for p in self.parts]
        self._groups = PointGroups([p.model for p in self.parts])
        self._evaluator = parts_evaluator([p.problem for p in self.parts], engine, threads)

    @cached_property
    def part_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parts)

    @cached_property
    def _elements(self) -> list[list[tuple[str, tuple[str, ...]]]]:
        """Of every part: its parameters, and what their elements are called among all parts."""
        block = self._names.space.block
        return [[(r.parameter.name, block(r.block).elements) for r in own] for own in self._names.readings]

    @property
    def selections(self) -> dict[str, Selection]:
        """What runs for every part, and why."""
        return dict(zip(self.part_names, self._evaluator.selections))

    @property
    def n_sites(self) -> int:
        """Characters of all parts."""
        return sum(p.n_sites for p in self.part_models)

    @property
    def length_unit(self) -> str:
        """What branch lengths count expected changes per: nucleotides where codons or doublets stand beside
        others."""
        kinds = {p.alignment.alphabet.kind for p in self.parts}
        if any(p.site_length != 1 for p in self.part_models):
            words = {"codon": "a codon is three", "doublet": "a doublet is two"}
            return "; ".join(["nucleotide site", *(told for kind, told in words.items() if kind in kinds)])
        return kinds.pop() if kinds in ({"codon"}, {"doublet"}) else "site"

    @property
    def branch_names(self) -> tuple[str, ...]:
        """B names; a branch's number is that of the node below it in tree."""
        return self._layout.names

    @property
    def branch_lengths(self) -> np.ndarray:
        """(B,) a copy where the parts share lengths, else (L, B)."""
        sets = [self._lengths[name] for name in self._names.lengths]
        return np.array(sets if len(self._lengths) > 1 else sets[0])

    @property
    def partition_rates(self) -> np.ndarray:
        """(L,) a copy; their mean over characters is 1."""
        return self._rates.copy()

    @property
    def tree(self) -> Tree:
        """The tree with the current lengths; of unlinked ones, with their mean over characters."""
        sets = np.array([self._lengths[name] for name in self._names.lengths])
        return self._with_lengths(self._names.site_shares @ sets if len(self._lengths) > 1 else sets[0])

    @property
    def taxa_with_data(self) -> np.ndarray:
        """(parts, T) bool: taxa with a character in the part that says anything."""
        return np.stack([taxa_with_data(part.alignment) for part in self.parts])

    @property
    def part_trees(self) -> dict[str, Tree]:
        """The tree of every part, lengths in expected changes per character of that part."""
        return {name: self._with_lengths(self._effective(i)) for i, name in enumerate(self.part_names)}

    @property
    def parts_are_independent(self) -> bool:
        """Whether no two parts share a number, so that each has a maximum of its own."""
        shared = self.linkage.parameters or self.linkage.together
        return self.linkage.lengths == "unlinked" and not shared

    def alone(self, name: str) -> TreeLikelihood:
        """The likelihood of one part on its own tree (part_trees), at its current values."""
        part, options = self.parts[self.part_names.index(name)], self._options
        found = TreeLikelihood(
            part.alignment,
            self.part_trees[name],
            part.model,
            options.engine,  # type: ignore[arg-type]
            options.precision,  # type: ignore[arg-type]
            options.threads,
            repeats=options.repeats,
            multifurcations=True,
        )
        found.set(parameters=self.parameters[name])
        return found

    @property
    def parameters(self) -> dict[str, dict[str, ParameterValue]]:
        """Values by part and parameter name; parameters without a value are missing."""
        return {name: dict(point.values) for name, point in zip(self.part_names, self._points)}

    @property
    def parameters_by_element(self) -> dict[str, float]:
        """One number by element, named as in gradient().parameters."""
        found: dict[str, float] = {}
        for readings, point in zip(self._names.readings, self._points):
            for r in readings:
                own = by_element([r.parameter], point.values)
                found |= dict(zip(self._names.space.block(r.block).elements, own.values()))
        return found

    @property
    def model_texts(self) -> dict[str, str]:
        """The model string of every part with the current values."""
        return {p.name: p.model.text(point.values) for p, point in zip(self.parts, self._points)}

    @property
    def root_is_free(self) -> bool:
        """Whether the likelihood is the same wherever the root is put."""
        return all(point.reversible for point in self._points)

    def log_likelihood(self) -> float:
        """The sum over the parts."""
        return float(self.part_log_likelihoods().sum())

    def part_log_likelihoods(self) -> np.ndarray:
        """(L,) of every part, evaluated from scratch at the current lengths and parameters."""
        return self._possible(self._evaluator.log_likelihoods(*self._ready()))

    def site_log_likelihoods(self) -> dict[str, np.ndarray]:
        """Of every character of every part; they sum to log_likelihood(), ascertainment included."""
        for part in self.parts:
            refuse_along_sites(part.model, "a site's own log-likelihood")
        self.part_log_likelihoods()
        found = {}
        for i, part in enumerate(self.parts):
            by_pattern = self._evaluator.site_log_likelihoods(i)
            hidden = np.exp(by_pattern[part.problem.ascertained]).sum()
            found[part.name] = by_pattern[part.patterns.site_pattern] - np.log1p(-hidden)
        return found

    def gradient(self, parameters: bool = True) -> PartitionedGradient:
        """Derivatives with respect to everything; parameters=False: branch lengths and part rates only."""
        values, gradients = self.part_gradients(parameters)
        lengths = {name: np.zeros(len(self.branch_names)) for name in self._lengths}
        rates, by_name = np.zeros(len(self.parts)), dict[str, float]()
        for i, (part, g) in enumerate(zip(self.part_models, gradients)):
            block = self._names.lengths[i]
            lengths[block] += g.lengths * (self._rates[i] * part.site_length)
            rates[i] = g.lengths @ self._lengths[block] * part.site_length
            for name, elements in self._elements[i] if parameters else ():
                slopes = g.parameters[name]
                for element, slope in zip(
                    elements, [slopes] if isinstance(slopes, float) else slopes.tolist()
                ):
                    by_name[element] = by_name.get(element, 0.0) + slope
        shared = np.array(list(lengths.values()))
        return PartitionedGradient(
            log_likelihood=float(values.sum()),
            part_log_likelihoods=values,
            branch_names=self.branch_names,
            branch_lengths=shared if len(lengths) > 1 else shared[0],
            partition_rates=rates,
            parameters=by_name,
        )

    def part_gradients(self, parameters: bool = True) -> tuple[np.ndarray, list[PartGradient]]:
        """Log-likelihoods (L,), and the derivatives of every part by its effective lengths and parameters."""
        found = self._evaluator.gradients(*self._ready(), parameters)
        values = self._possible(np.array([g.log_likelihood for g in found]))
        lengths = self._layout.to_branches(np.array([g.branch_lengths for g in found]))
        slopes: list[Mapping[str, ParameterValue]] = [{}] * len(found)
        by_model = [g.site_model for g in found if g.site_model is not None]
        if by_model:
            slopes = self._groups.backpropagate(self._points, by_model)
        return values, [PartGradient(own, slope) for own, slope in zip(lengths, slopes)]

    def set(
        self,
        branch_lengths: PartBranches | None = None,
        parameters: Mapping[str, Mapping[str, ParameterValue]] | None = None,
        partition_rates: Sequence[float] | np.ndarray | None = None,
    ) -> None:
        """Change values, without evaluating anything yet.

        branch_lengths: all (B,), or some by branch name; where they are unlinked, those by name of the part.
        parameters: by part, then by name; one that is linked changes in every part that shares it.
        partition_rates: (L,) of mean 1 over characters, only where branch lengths are proportional.
        """
        lengths = self._lengths if branch_lengths is None else self._changed_lengths(branch_lengths)
        points = self._points if parameters is None else self._changed_points(parameters)
        rates = self._rates if partition_rates is None else self._checked_rates(partition_rates)
        self._lengths, self._points, self._rates = lengths, points, rates

    def place(self, parameterisation: Parameterisation, values: BlockValues) -> None:
        """Take the values of free blocks over, of a parameterisation of part_models."""
        for i, name in enumerate(self._names.lengths):
            self._lengths[name] = np.array(values[parameterisation.lengths[i]])
            self._rates[i] = parameterisation.rate(values, i)
            old, new = self._points[i].values, parameterisation.model_values(values, i)
            if any(key not in old or not np.array_equal(old[key], x) for key, x in new.items()):
                self._points[i] = ModelPoint(self.parts[i].model, {**old, **new})

    def _effective(self, part: int) -> np.ndarray:
        factor = self._rates[part] * self.part_models[part].site_length
        return self._lengths[self._names.lengths[part]] * factor

    def _with_lengths(self, lengths: np.ndarray) -> Tree:
        tree = self._layout.tree
        return replace(tree, lengths=np.append(lengths, tree.lengths[-1]))

    def _ready(self) -> tuple[list[np.ndarray], list[SiteModel]]:
        """Effective lengths (2T-1,) and the model's numbers of every part."""
        self._groups.evaluate(self._points)
        models: list[SiteModel] = []
        try:
            for point in self._points:
                require_root(self._layout.tree, point)
                models.append(point.site_model)
        except PhloemError:
            with in_part(self.parts[len(models)].name):
                raise
        return list(self._layout.to_nodes(np.array([self._effective(k) for k in range(len(models))]))), models

    def _possible(self, values: np.ndarray) -> np.ndarray:
        if not np.isfinite(values).all():
            for i, (part, value) in enumerate(zip(self.parts, values)):
                with in_part(part.name):
                    require_possible(value, partial(self._evaluator.site_log_likelihoods, i), part.patterns)
        return values

    def _changed_lengths(self, change: PartBranches) -> dict[str, np.ndarray]:
        if len(self._lengths) == 1:
            ((name, old),) = self._lengths.items()
            return {name: self._layout.updated(old, change, "branch length")}  # type: ignore[arg-type]
        if not isinstance(change, Mapping) or not set(change) <= set(self.part_names):
            raise InputError(
                "branch lengths are unlinked, and lengths are given without their part",
                hint=f"Give them by part: {', '.join(self.part_names)}.",
            )
        new = dict(self._lengths)
        for part, own in change.items():
            block = self._names.lengths[self.part_names.index(part)]
            new[block] = self._layout.updated(new[block], own, "branch length")  # type: ignore[arg-type]
        return new

    def _changed_points(self, change: Mapping[str, Mapping[str, ParameterValue]]) -> list[ModelPoint]:
        points, changed = list(self._points), dict[str, tuple[str, ParameterValue]]()
        for name, values in change.items():
            if name not in self.part_names:
                raise InputError(
                    f"there is no part '{name}'", hint=f"Parts are: {', '.join(self.part_names)}."
                )
            part = self.part_names.index(name)
            with in_part(name):
                new = updated_values(self.parts[part].model.parameters, self._points[part].values, values)
            for r in self._names.readings[part]:
                old, now = self._points[part].values.get(r.parameter.name), new.get(r.parameter.name)
                if now is None or now is old or (old is not None and np.array_equal(old, now)):
                    continue
                if r.block in changed and not np.array_equal(changed[r.block][1], now):
                    raise InputError(
                        f"'{r.parameter.name}' is shared by '{changed[r.block][0]}' and '{name}', and two "
                        "values are given"
                    )
                changed[r.block] = (name, now)
        for i, readings in enumerate(self._names.readings if changed else ()):
            own = {r.parameter.name: changed[r.block][1] for r in readings if r.block in changed}
            if own:
                points[i] = ModelPoint(points[i].model, {**points[i].values, **own})
        return points

    def _checked_rates(self, rates: Sequence[float] | np.ndarray) -> np.ndarray:
        new = np.array(rates, np.float64)
        if self.linkage.lengths != "proportional":
            raise InputError(f"branch lengths are {self.linkage.lengths}: parts have no rates of their own")
        if new.shape != self._rates.shape or not (np.isfinite(new).all() and (new > 0).all()):
            raise InputError(f"{len(self._rates)} positive rates are needed, one a part")
        mean = float(self._names.site_shares @ new)
        if abs(mean - 1) > _MEAN_ONE:
            raise InputError(
                f"the rates of the parts have mean {mean:.6g} over characters, not 1",
                hint="Divide them by it, and multiply the branch lengths with it.",
            )
        return new


def _fixed_values(model: Model) -> dict[str, ParameterValue]:
    return {p.name: p.value for p in model.parameters if p.value is not None}
