"""What `phloem test-trees` tests trees on: an alignment or its parts, and their models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from phloem.analysis.ml_data import columns_of, require_parts
from phloem.analysis.model_file import holds_parts, model_of, require_gamma_used
from phloem.analysis.partitioned_likelihood import dropped_columns, read_linkage
from phloem.analysis.reading import Part, alignment_of, of_part, parts_of, without_data
from phloem.data.patterns import SitePatterns, site_patterns
from phloem.density.parts import Linkage
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.pruning.select import Selection
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.analysis.tree_tests import TreeTestsSettings
    from phloem.inference.ml.searched import Fit, Likelihood
    from phloem.inference.ml.tree_tests import TreeSites


@dataclass(frozen=True, eq=False)
class TestedData:
    """models: of the parts. linkage: what these share, None of an alignment without parts, which is one."""

    parts: tuple[Part, ...]
    models: tuple[Model, ...]
    linkage: Linkage | None
    warnings: tuple[str, ...]

    @cached_property
    def patterns(self) -> list[SitePatterns]:
        return [site_patterns(part.alignment) for part in self.parts]

    def likelihood(self, tree: Tree, threads: int | None) -> Likelihood:
        if self.linkage is None:
            given = self.parts[0].alignment, tree, self.models[0]
            return TreeLikelihood(*given, "cpu", threads=threads, multifurcations=True)
        named = {part.name: (part.alignment, model) for part, model in zip(self.parts, self.models)}
        return PartitionedLikelihood(named, tree, self.linkage, "cpu", threads=threads, multifurcations=True)

    def by_pattern(self, by_site: np.ndarray) -> TreeSites:
        """by_site: (n, L) of n trees, parts one behind the other."""
        from phloem.inference.ml.tree_tests import TreeSites

        columns, begin = [], 0
        for own in self.patterns:
            columns.append(begin + np.unique(own.site_pattern, return_index=True)[1])
            begin += len(own.site_pattern)
        ends = np.cumsum([len(own) for own in columns]).tolist()
        weights = np.concatenate([own.weights for own in self.patterns])
        return TreeSites(by_site[:, np.concatenate(columns)], weights, tuple(ends))

    def site_names(self) -> Iterator[tuple[str, ...]]:
        """Of every site its number; of parts which part, and its column in the file."""
        for part in self.parts:
            for column in columns_of(part).tolist():
                yield (str(column),) if self.linkage is None else (part.name, str(column))


def read_tested_data(settings: TreeTestsSettings) -> TestedData:
    """Errors: PhloemError, as reading and models."""
    require_parts(settings.partitioned, settings.linkage, settings.link)
    if not settings.partitioned:
        alignment = alignment_of(settings)
        model = model_of(settings.model, alignment, settings.gamma)
        require_gamma_used(settings.gamma, [model])
        return TestedData((Part("", alignment, settings.model),), (model,), None, without_data([alignment]))
    scheme, parts = parts_of(settings, settings.model)
    if holds_parts(settings.model):
        parts = tuple(replace(part, model_text=settings.model) for part in parts)
    models = []
    for part in parts:
        with of_part(part):
            models.append(model_of(part.model_text, part.alignment, settings.gamma, part.name))
    require_gamma_used(settings.gamma, models)
    named = {part.name: model for part, model in zip(parts, models)}
    linkage = read_linkage(settings.linkage or "proportional", settings.link, named)
    said = (*dropped_columns(scheme.dropped), *without_data([part.alignment for part in parts]))
    return TestedData(parts, tuple(models), linkage, said)


def by_site_of(likelihood: Likelihood) -> np.ndarray:
    """(L,) log-likelihoods, parts one behind the other."""
    if isinstance(likelihood, TreeLikelihood):
        return likelihood.site_log_likelihoods()
    return np.concatenate(list(likelihood.site_log_likelihoods().values()))


def selection_of(likelihood: Likelihood) -> Selection:
    """Of parts, of the one with most patterns."""
    if isinstance(likelihood, TreeLikelihood):
        return likelihood.selection
    largest = max(likelihood.parts, key=lambda part: len(part.patterns.weights))
    return likelihood.selections[largest.name]


def texts_of(fit: Fit) -> dict[str, str]:
    """The fitted models by the name of the part, "" of an alignment without parts."""
    from phloem.inference.ml.optimum import OptimizeResult

    return {"": fit.model_text} if isinstance(fit, OptimizeResult) else dict(fit.model_texts)
