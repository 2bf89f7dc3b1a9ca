"""One point in the space of trees and parameters: what accept and reject swap, and its values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from phloem.errors import InputError, ModelError
from phloem.model.model import Model, ModelNumbers
from phloem.model.record import Parameter, ParameterValue, SiteModel, SiteModelGradient, is_reversible
from phloem.model.together import adjoint_together, evaluate_together, form_of
from phloem.tree.layout import TreeLayout
from phloem.tree.tree import Tree

# Values of a model's parameters: changing some of them by name, and one flat list of them.


def updated_values(
    parameters: Sequence[Parameter],
    values: Mapping[str, ParameterValue],
    changes: Mapping[str, ParameterValue],
) -> dict[str, ParameterValue]:
    """values with some changed, by parameter name (alpha, frequencies) or by element (rate_2).

    Errors: ModelError for an unknown name, a value that is not allowed, or a single entry of a simplex
    (change the whole simplex, so that it still sums to 1).
    """
    new = dict(values)
    by_name = {p.name: p for p in parameters} | {alias: p for p in parameters for alias in p.aliases}
    by_element = {element: (p, i) for p in parameters for i, element in enumerate(p.elements)}
    for name, value in changes.items():
        if name in by_name:
            new[by_name[name].name] = by_name[name].checked(value)
        elif name in by_element:
            parameter, i = by_element[name]
            new[parameter.name] = parameter.checked(_with_entry(parameter, new, i, value))
        else:
            known = ", ".join(p.name for p in parameters) or "none"
            raise ModelError(f"the model has no parameter '{name}'", hint=f"Its parameters: {known}.")
    return new


def _with_entry(parameter: Parameter, values: Mapping[str, ParameterValue], i: int, value: ParameterValue):
    if parameter.kind == "simplex":
        raise ModelError(
            f"one entry of '{parameter.name}' cannot change alone", hint="Give all entries, summing to 1."
        )
    whole = np.array(values.get(parameter.name, parameter.start), np.float64)
    whole[i] = value
    return whole


def by_element(parameters: Sequence[Parameter], values: Mapping[str, ParameterValue]) -> dict[str, float]:
    """A flat dictionary element name → number."""
    flat: dict[str, float] = {}
    for p in parameters:
        if p.name in values:
            flat.update(zip(p.elements or (p.name,), np.atleast_1d(values[p.name]).tolist()))
    return flat


# One point in the space of trees and parameters: what accept and reject swap.


Branches = Mapping[str, float] | Sequence[float] | np.ndarray


@dataclass(frozen=True, eq=False)
class ModelPoint:
    """A model at given values; its numbers are worked out once, when first needed."""

    model: Model
    values: dict[str, ParameterValue]

    @cached_property
    def numbers(self) -> ModelNumbers:
        """ModelError where a parameter has no value."""
        return self.model.numbers(self.values)

    @cached_property
    def site_model(self) -> SiteModel:
        """Errors as numbers."""
        return self.model.site_model(self.numbers)

    def backpropagate(self, gradient: SiteModelGradient) -> dict[str, ParameterValue]:
        """Derivatives by parameter name, as Model.backpropagate gives them."""
        return self.model.adjoint(self.numbers, gradient)

    @cached_property
    def reversible(self) -> bool:
        """Whether the position of the root is free."""
        return all(bool(is_reversible(p)) for p in self.site_model.processes)


class PointGroups:
    """The points of many parts: those whose models have one form are evaluated together."""

    def __init__(self, models: Sequence[Model]) -> None:
        by_form: dict[tuple, list[int]] = {}
        for i, model in enumerate(models):
            form = form_of(model)
            if form is not None:
                by_form.setdefault(form, []).append(i)
        self._groups = [group for group in by_form.values() if len(group) > 1]

    def evaluate(self, points: Sequence[ModelPoint]) -> None:
        """Work out the site models that points do not have yet, as far as that can be done together."""
        for group in self._groups:
            new = [points[i] for i in group if "site_model" not in vars(points[i])]
            if len(new) < 2:
                continue
            found = evaluate_together([p.model for p in new], [p.values for p in new])
            for point, (model, reversible) in zip(new, found or ()):
                vars(point).update(site_model=model, reversible=reversible)  # what cached properties would do

    def backpropagate(
        self, points: Sequence[ModelPoint], gradients: Sequence[SiteModelGradient]
    ) -> list[Mapping[str, ParameterValue]]:
        """ModelPoint.backpropagate of each."""
        result: dict[int, Mapping[str, ParameterValue]] = {}
        for group in self._groups:
            own = [points[i] for i in group]
            found = adjoint_together(
                [p.model for p in own], [p.values for p in own], [gradients[i] for i in group]
            )
            result |= zip(group, found or ())
        return [
            result[i] if i in result else point.backpropagate(gradient)
            for i, (point, gradient) in enumerate(zip(points, gradients))
        ]


@dataclass(frozen=True, eq=False)
class State:
    """layout: the tree; point: the model's parameters; rates: (B,) by branch; lengths: (B,), or (K, B) where
    the model has K > 1 sets of branch lengths (+H)."""

    layout: TreeLayout
    lengths: np.ndarray
    rates: np.ndarray
    point: ModelPoint

    def effective(self) -> np.ndarray:
        """(2T-1,) or (K, 2T-1) effective length of the branch above every node of the binary tree."""
        return self.layout.to_nodes(self.lengths * self.rates)

    def require_root(self) -> None:
        """InputError if the model needs a root that the tree does not have."""
        require_root(self.layout.tree, self.point)

    def with_layout(self, layout: TreeLayout) -> State:
        """On another tree, with that tree's lengths in all sets, and branch rates of 1."""
        return _at_first(layout, self.point)

    def changed(
        self,
        branch_lengths: Branches | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        branch_rates: Branches | None = None,
    ) -> State:
        """With other values, all or some by name; InputError or ModelError where they are not allowed."""
        new = self
        if branch_lengths is not None:
            new = replace(new, lengths=self.layout.updated(self.lengths, branch_lengths, "branch length"))
        if branch_rates is not None:
            new = replace(new, rates=self.layout.updated(self.rates, branch_rates, "branch rate"))
        if parameters:
            values = updated_values(self.point.model.parameters, self.point.values, parameters)
            new = replace(new, point=ModelPoint(self.point.model, values))
        return new


def require_root(tree: Tree, point: ModelPoint) -> None:
    """InputError if the model needs a root that the tree does not have."""
    if not tree.rooted and not point.reversible:
        raise InputError(
            f"model {point.model.name} is not reversible, so its likelihood depends on the root, "
            "and the tree is unrooted",
            hint="Give a rooted tree: two branches at the base (or [&R]).",
        )


def initial_state(layout: TreeLayout, model: Model) -> State:
    """The tree's lengths, branch rates of 1, and the model's fixed values."""
    values = {p.name: p.value for p in model.parameters if p.value is not None}
    return _at_first(layout, ModelPoint(model, values))


def _at_first(layout: TreeLayout, point: ModelPoint) -> State:
    lengths, n_sets = layout.tree.lengths[:-1].copy(), point.model.n_length_classes
    in_sets = np.tile(lengths, (n_sets, 1)) if n_sets > 1 else lengths
    return State(layout, in_sets, np.ones_like(lengths), point)
