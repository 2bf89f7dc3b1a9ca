"""Which block every part of the data reads its numbers from: parameters and branch lengths, linked or not.

A part is data with a model of their own. Its model's parameters are read from blocks, which several parts can
share; so can branch lengths. The same blocks serve a fit and a sampler. Where they differ is a choice made
here: rates that are multiples of a reference rate (kappa, exchangeabilities, omega) are blocks of positive
numbers, which is what fits take ("ratios"), or shares of a simplex that has the reference rate first, on
which priors do not depend on what is called the reference ("shares", as in MrBayes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from phloem.density.parts import Linkage, PartModel, check_links
from phloem.density.space import Block, Space
from phloem.density.terms.tied_dirichlet import code_of
from phloem.errors import InputError
from phloem.model.model import Model, many_models
from phloem.model.record import Parameter, ParameterValue

RelativeRates = Literal["ratios", "shares"]
BlockValues = Mapping[str, np.ndarray]

LENGTHS, PARTITION_RATES = "lengths", "partition_rates"
SUBMODEL = "gtrsubmodel"  # which rates are equal, as MrBayes calls it
_TINY = 1e-300  # in place of an entry of 0 of a simplex, where one divides by it


@dataclass(frozen=True)
class Reading:
    """A model's parameter is entries first … first + size of a block, times `scale`, over the block's entry 0
    if over_first."""

    parameter: Parameter
    block: str
    first: int = 0
    scale: float = 1.0
    over_first: bool = False

    def value(self, values: BlockValues) -> ParameterValue:
        x = values[self.block]
        found = self.scale * x[self.first : self.first + self.parameter.size]
        found = found / x[0] if self.over_first else found
        return found if self.parameter.elements else float(found[0])

    def put(self, value: ParameterValue, x: np.ndarray) -> None:
        """Write the entries of the block x (k,), known up to a factor where they are shares."""
        if self.over_first:
            x /= x[0]
        x[self.first : self.first + self.parameter.size] = value

    def pull_back(self, values: BlockValues, slope: ParameterValue, out: dict[str, np.ndarray]) -> None:
        """Add d/d entries of the block to out, from d/d parameter (of a simplex: in softmax coordinates)."""
        x, g = values[self.block], self.scale * np.atleast_1d(slope)
        own = slice(self.first, self.first + self.parameter.size)
        if self.parameter.kind == "simplex":
            g = g / np.maximum(x[own], _TINY)
        if self.over_first:
            g = g / x[0]
            out[self.block][0] -= g @ x[own] / x[0]
        out[self.block][own] += g


@dataclass(frozen=True)
class PartGradient:
    """d log L of one part / d its effective branch lengths (B,), and / d its model's parameters by name, as
    Model.backpropagate has them."""

    lengths: np.ndarray
    parameters: Mapping[str, ParameterValue]


@dataclass(frozen=True, eq=False)
class Parameterisation:
    """space: all blocks, branch lengths first. free: names of the blocks whose values are to be found; the
    others hold the values that model strings fix. readings: of every part. lengths: the block of every part's
    branch lengths. rates: the entry of the partition rates that every part has, -1 where its rate is 1."""

    space: Space
    free: frozenset[str]
    parts: tuple[PartModel, ...]
    readings: tuple[tuple[Reading, ...], ...]
    lengths: tuple[str, ...]
    rates: tuple[int, ...]

    @property
    def free_space(self) -> Space:
        """The free blocks alone."""
        return Space(tuple(b for b in self.space.blocks if b.name in self.free))

    def fixed_values(self) -> dict[str, np.ndarray]:
        """Values by block of what is not free."""
        return {b.name: b.start.copy() for b in self.space.blocks if b.name not in self.free}

    def model_values(self, values: BlockValues, part: int) -> dict[str, ParameterValue]:
        """The parameters of a part's model; those whose block has no value are missing."""
        return {r.parameter.name: r.value(values) for r in self.readings[part] if r.block in values}

    def block_values(self, by_part: Sequence[Mapping[str, ParameterValue]]) -> dict[str, np.ndarray]:
        """Values of the blocks from those of every part's parameters; lengths and part rates at their start.

        A shared block has the values of the last part that reads it.
        """
        out = {b.name: b.start.copy() for b in self.space.blocks}
        for readings, given in zip(self.readings, by_part):
            for r in readings:
                if r.parameter.name in given:
                    r.put(given[r.parameter.name], out[r.block])
        for b in self.space.blocks:
            if b.support == "simplex":
                out[b.name] /= out[b.name].sum()
        return out

    def rate(self, values: BlockValues, part: int) -> float:
        """The part's rate, 1 unless lengths are proportional; their mean over sites is 1."""
        entry = self.rates[part]
        return 1.0 if entry < 0 else float(values[PARTITION_RATES][entry] / self.rate_shares[entry])

    @cached_property
    def rate_shares(self) -> np.ndarray:
        """(R,) shares of the sites of all parts whose rates vary, of those with the same rate."""
        return _rate_shares(self.parts, self.rates)

    @property
    def site_shares(self) -> np.ndarray:
        """(L,) the parts' shares of all sites."""
        sites = np.array([p.weight for p in self.parts], np.float64)
        return sites / sites.sum()

    def effective_lengths(self, values: BlockValues, part: int) -> np.ndarray:
        """(B,) branch lengths in expected changes per character of the part."""
        factor = self.rate(values, part) * self.parts[part].site_length
        return values[self.lengths[part]] * factor

    def pull_back(self, values: BlockValues, gradients: Sequence[PartGradient]) -> dict[str, np.ndarray]:
        """d/d natural values of every block in values, entries independent, from those of every part."""
        out = {name: np.zeros(len(x)) for name, x in values.items()}
        shares = self.rate_shares
        for part, gradient in enumerate(gradients):
            unit = self.parts[part].site_length
            block = self.lengths[part]
            out[block] += gradient.lengths * (self.rate(values, part) * unit)
            entry = self.rates[part]
            if PARTITION_RATES in out and entry >= 0:
                out[PARTITION_RATES][entry] += gradient.lengths @ values[block] * unit / shares[entry]
            for r in self.readings[part]:
                if r.block in values and r.parameter.name in gradient.parameters:
                    r.pull_back(values, gradient.parameters[r.parameter.name], out)
        return out


def parameterise(
    parts: Sequence[PartModel],
    lengths: Block,
    linkage: Linkage | None = None,
    relative_rates: RelativeRates = "ratios",
) -> Parameterisation:
    """The blocks of some parts on one tree.

    lengths: the block of one set of branch lengths, whose start, bounds and names are taken for every set.
    A block is called as its parameter, with the names of its parts in braces unless all parts that have such
    a parameter share it: alpha, alpha{gene1}, alpha{gene1,gene2}. Errors: InputError for links of what is not
    there or not alike.
    """
    linkage = linkage or Linkage()
    check_links(parts, linkage)
    for own in parts:
        if relative_rates == "ratios" and any(p.averaged for p in own.model.parameters):
            raise many_models(own.model.name)
    blocks, names, rates = _length_blocks(parts, lengths, linkage)
    free = {b.name for b in blocks}
    readings: list[list[Reading]] = [[] for _ in parts]
    for group in _groups(parts, linkage, relative_rates):
        block = group.block(parts)
        blocks.append(block)
        if group.parameters[0].is_free:
            free.add(block.name)
        for part in group.members:
            readings[part] += group.readings(block.name, parts[part].model)
    return Parameterisation(
        Space(tuple(blocks)), frozenset(free), tuple(parts), tuple(map(tuple, readings)), names, rates
    )


def _length_blocks(
    parts: Sequence[PartModel], lengths: Block, linkage: Linkage
) -> tuple[list[Block], tuple[str, ...], tuple[int, ...]]:
    """Blocks of lengths and of rates; of every part the block of its lengths and the entry of its rate."""
    groups: dict[tuple[str, ...], None] = {}
    for p in parts:
        groups[next((g for g in linkage.together if p.name in g), (p.name,))] = None
    group_of = {name: group for group in groups for name in group}
    labels = {group: ",".join(p.name for p in parts if p.name in group) for group in groups}
    constant, several = (-1,) * len(parts), len(groups) > 1
    if linkage.lengths == "unlinked" and several:
        block = {group: f"{LENGTHS}{{{label}}}" for group, label in labels.items()}
        own = tuple(block[group_of[p.name]] for p in parts)
        return [replace(lengths, name=name) for name in block.values()], own, constant
    blocks, shared = [replace(lengths, name=LENGTHS)], (LENGTHS,) * len(parts)
    varying = [group for group in groups if not set(group) & set(linkage.unit_rates)]
    if linkage.lengths != "proportional" or len(varying) < 2:
        return blocks, shared, constant
    entry = {group: i for i, group in enumerate(varying)}
    rates = tuple(entry.get(group_of[p.name], -1) for p in parts)
    names = tuple(f"rate{{{labels[group]}}}" for group in varying)
    start = _rate_shares(parts, rates)
    return [*blocks, Block(PARTITION_RATES, "simplex", start, 1e-6, 1.0, names)], shared, rates


def _rate_shares(parts: Sequence[PartModel], rates: Sequence[int]) -> np.ndarray:
    """(R,) the shares of sites of the parts of every rate."""
    sites = np.bincount(np.array(rates) + 1, [part.weight for part in parts])[1:]
    return sites / sites.sum() if len(sites) else sites


@dataclass(frozen=True)
class _Group:
    """Parameters of one model that make one block, and the parts (numbers) that share it. of: how many parts
    have such a block."""

    parameters: tuple[Parameter, ...]
    members: tuple[int, ...]
    of: int
    relative_rates: RelativeRates

    @property
    def _shares(self) -> bool:
        first = self.parameters[0]
        return first.is_free and first.reference is not None and self.relative_rates == "shares"

    def block(self, parts: Sequence[PartModel]) -> Block:
        label = ""
        if len(self.members) < self.of:
            label = "{" + ",".join(parts[m].name for m in self.members) + "}"
        first = self.parameters[0]
        name = _title(tuple(p.name for p in self.parameters)) + label
        elements = tuple(e + label for p in self.parameters for e in (p.elements or (p.name,)))
        given = [np.atleast_1d(p.start if p.value is None else p.value) for p in self.parameters]
        start = np.concatenate(given).astype(np.float64)
        if self._shares:
            start = np.append(1.0, start)
            elements = (f"{first.reference}{label}", *elements)
            if first.tied:  # groups of one share each
                tied = np.append(start / start.sum(), code_of(range(len(start))))
                return Block(name, "tied", tied, 1e-6, 1.0, (*elements, f"{SUBMODEL}{label}"))
            return Block(name, "simplex", start / start.sum(), 1e-6, 1.0, elements)
        if first.relative:
            return Block(name, "simplex", start / start.sum(), 1e-6, 1.0, elements)
        return Block(name, first.kind, start, first.lower, first.upper, elements)

    def readings(self, block: str, model: Model) -> list[Reading]:
        found, at = [], int(self._shares)
        for p in self.parameters:
            scale = float(p.size) if p.relative else 1.0
            found.append(Reading(model.parameter(p.name), block, at, scale, self._shares))
            at += p.size
        return found


def _groups(parts: Sequence[PartModel], linkage: Linkage, relative_rates: RelativeRates) -> list[_Group]:
    """The blocks of parameters, in the order of the parts and of their models' parameters."""
    bundles = [_bundles(part.model, relative_rates) for part in parts]
    titles = [_title(key) for own in bundles for key in own]
    found: list[_Group] = []
    done: set[tuple[int, tuple[str, ...]]] = set()
    for i, own in enumerate(bundles):
        for key, parameters in own.items():
            if (i, key) in done:
                continue
            members = _members(parts, i, key, linkage)
            for m in members:
                if key not in bundles[m]:
                    raise InputError(
                        f"'{key[0]}' cannot be linked: it is free in part '{parts[i].name}' only, or one of "
                        f"other rates in part '{parts[m].name}'",
                        hint="Give both parts the same model, and the same values or none.",
                    )
            done |= {(m, key) for m in members}
            _check_alike(parts, key, members)
            found.append(_Group(parameters, members, titles.count(_title(key)), relative_rates))
    return found


def _title(names: tuple[str, ...]) -> str:
    """What a block of parameters of these names is called."""
    if len(names) == 1:
        return names[0]
    _, dot, component = names[0].partition(".")  # of a mixture: rate_AC.2
    return f"relative_rates{dot}{component}"


def _bundles(model: Model, relative_rates: RelativeRates) -> dict[tuple[str, ...], tuple[Parameter, ...]]:
    """Names of the parameters that make one block → the parameters."""
    together: dict[object, list[Parameter]] = {}
    for p in model.parameters:
        shared = p.is_free and p.reference is not None and relative_rates == "shares"
        together.setdefault(("reference", p.reference) if shared else p.name, []).append(p)
    return {tuple(p.name for p in ps): tuple(ps) for ps in together.values()}


def _members(
    parts: Sequence[PartModel], part: int, key: tuple[str, ...], linkage: Linkage
) -> tuple[int, ...]:
    """Numbers of the parts that share a block with this one, itself included."""
    number = {p.name: i for i, p in enumerate(parts)}
    found = []
    for name in key:
        groups = linkage.parameters.get(name, ())
        mine = [g for g in groups if parts[part].name in g]
        found.append(tuple(sorted(number[p] for p in mine[0])) if mine else (part,))
    if len(set(found)) > 1:
        raise InputError(
            f"{', '.join(key)} are shares of one whole, and only some of them are linked",
            hint="Link all of them over the same parts, or none.",
        )
    return found[0]


def _check_alike(parts: Sequence[PartModel], key: tuple[str, ...], members: tuple[int, ...]) -> None:
    for name in key:
        first, *others = (parts[m].model.parameter(name) for m in members)
        for other, m in zip(others, members[1:]):
            same = (other.kind, other.elements, other.tied) == (first.kind, first.elements, first.tied)
            if first.value is None or other.value is None:
                same &= first.value is other.value
            else:
                same &= bool(np.array_equal(first.value, other.value))
            if not same:
                raise InputError(
                    f"'{name}' is not the same thing in parts '{parts[members[0]].name}' and "
                    f"'{parts[m].name}', so they cannot share it",
                    hint="Give both parts the same model, and the same values or none.",
                )
