"""What a tree prior is: its parameters, and its density on a genealogy, in NumPy and in compiled form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

import numpy as np

import phloem.density.tree_priors as folder
from phloem.density.space import Block
from phloem.density.terms.term import Family
from phloem.errors import InputError, require_choice


class Genealogy(NamedTuple):
    """What a tree prior sees of a tree. heights: (N,), tips first; order: (N,) nodes by height, children
    before parents; n_tips: T; groups: (K,) int64 numbers of joinings that share a population size, from the
    youngest on, of priors that have such; parent: (N,), -1 of the root. dated: nodes whose ages are given,
    of clades that must be such and have an age; -1: none. pieces: (3N,) int64, for the compiled form to work
    in."""

    heights: np.ndarray
    order: np.ndarray
    n_tips: int
    groups: np.ndarray
    parent: np.ndarray
    dated: np.ndarray = np.zeros(0, np.int64)
    pieces: np.ndarray = np.zeros(0, np.int64)


LEVEL = "pop_size_1"
"""Of several sizes whose smoothing says nothing of their level: a prior of the youngest stands for 1 / N₁."""


REMOVAL = "removal_probability"
"""Of an epidemic, that a sample infects no more: a number where it has a prior, else 1."""

ORIGIN_GAP = "origin_gap"
"""Of a process with a beginning: how far above the root that is."""


class Scale(NamedTuple):
    """What parameters start from. time: a span that is typical of the tree's age; n_tips: T; n_pieces: how
    many population sizes, of priors that have several."""

    time: float
    n_tips: int
    n_pieces: int


@dataclass(frozen=True)
class Parameters:
    """blocks: of numbers. priors: by name of a block, those that the tree prior's density does not hold.
    settings: what the compiled density is told besides. n_groups: K, 0 without groups. shifts: name of a
    number → the ages at which it changes."""

    blocks: tuple[Block, ...]
    priors: Mapping[str, Family]
    settings: np.ndarray
    n_groups: int = 0
    shifts: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def shifts_text(self) -> tuple[str, ...]:
        """Each of the shifts in words."""
        return tuple(_shift_text(name, ages) for name, ages in self.shifts.items() if len(ages))


def _shift_text(name: str, ages: np.ndarray) -> str:
    widths = np.diff(ages, prepend=0.0)
    if len(ages) > 1 and np.allclose(widths, widths[0], rtol=1e-9):
        return f"{name} in {len(ages) + 1} cells of {widths[0]:.4g}, the oldest from {ages[-1]:.4g} on"
    return f"{name} shifts at {', '.join(f'{age:.4g}' for age in ages)}"


@dataclass(frozen=True)
class TreePrior:
    """A density of trees with dated tips, one file of the folder.

    name: on the command line. parameters: Scale and options by name (option → value) → Parameters.
    log_density: (Genealogy, x (n,) the blocks' numbers, settings) → float, plainly, in NumPy: the
    specification. density: (genealogy, x, settings, by_height (N,), by_number (n,)) → the same, and adds its
    derivatives by heights, of tips too, and by the numbers: a plain function that the samplers
    compile. contemporaneous: True if all tips must have height 0. options: names of those it takes;
    LEVEL and REMOVAL are given as True where those numbers have a prior. joining: where the density is a
    product over joinings and intervals of functions of time, (t, x, settings, out) → 0.0, out[0] the log
    density of a joining but the last at t, out[1] the intensity of a pair from 0 to t; a plain function that
    the samplers compile, for moves that change few heights. needs_root: whether it is a density given the
    root's age, which then has one of its own: a calibration. samples: options → what a dated sample may be,
    one of fossils.KINDS or nothing, of priors that let one be an ancestor of others, its parent as old as it.
    log_mass: T → log of what the density adds up to over all trees of T tips, where that is the same whatever
    the numbers and dates; None where only sampling tells.
    field: whether its first block is population sizes of neighbouring times
    (inference/time/compiled/field.py), a precision alone after them, if anything. stepped: whether such sizes
    are constant between multiples of settings[0].
    """

    name: str
    parameters: Callable[[Scale, Mapping[str, Any]], Parameters]
    log_density: Callable[[Genealogy, np.ndarray, np.ndarray], float]
    density: Callable[..., float]
    contemporaneous: bool = False
    options: tuple[str, ...] = ()
    joining: Callable[..., float] | None = None
    needs_root: bool = False
    samples: Callable[[Mapping[str, Any]], str] | None = None
    log_mass: Callable[[int], float] | None = None
    field: bool = False
    stepped: bool = False


@cache
def registered() -> Mapping[str, TreePrior]:
    """Name → prior, in the order of the names of the files, which is that of the compiled dispatch."""
    modules = [
        import_module(f"{folder.__name__}.{m.name}") for m in sorted(iter_modules(folder.__path__), key=_name)
    ]
    found = [m.PRIOR for m in modules if hasattr(m, "PRIOR")]
    return {prior.name: prior for prior in found}


def _name(module: Any) -> str:
    return module.name


def chosen(name: str, options: Mapping[str, Any]) -> TreePrior:
    """A prior by its name; InputError where there is none, or where it does not take an option."""
    require_choice("tree prior", name, tuple(registered()))
    prior = registered()[name]
    for option in options:
        if option not in prior.options:
            having = ", ".join(own.name for own in registered().values() if option in own.options)
            hint = f"Leave it out, or choose {having}." if having else "Leave it out."
            raise InputError(f"the tree prior '{name}' has no option '{option}'", hint=hint)
    return prior


def positive(name: str, start: float, size: int = 1) -> Block:
    """A block of positive numbers, wide bounds around any that make sense."""
    elements = tuple(f"{name}_{i + 1}" for i in range(size)) if size > 1 else ()
    return Block(name, "positive", np.full(size, start), 1e-300, 1e300, elements)


def adds_up(n_tips: int) -> float:
    """TreePrior.log_mass of a density that adds up to 1."""
    return 0.0


def without_histories(n_tips: int) -> float:
    """TreePrior.log_mass of births alone, or births and deaths, given T and without the coefficient of
    labelled histories: there are T! (T-1)! / 2^(T-1) of these, and each has the mass 1 / T!."""
    return math.lgamma(n_tips) - (n_tips - 1) * math.log(2.0)


def spans(g: Genealogy) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of the N - 1 intervals between consecutive nodes: begin, end, pairs of lineages k(k-1)/2, and whether a
    joining ends it."""
    t = g.heights[g.order]
    joins = g.order >= g.n_tips
    k = np.cumsum(np.where(joins, -1, 1))[:-1]
    return t[:-1], t[1:], k * (k - 1) / 2, joins[1:]
