"""What is known of clades, as compiled code has it, and whether it can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phloem.density.calibrations import APART, FREE, IN, OUT, TOGETHER, Calibrations
from phloem.density.space import Block, Space
from phloem.density.terms.compiled.dispatch import PriorTable, block_table
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.term import BlockPrior
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.time.settings import Clade

if TYPE_CHECKING:
    from phloem.inference.time.structure import TimeModel


def calibrations(model: TimeModel) -> tuple[Calibrations, PriorTable]:
    """The record of all clades, and the densities of the ages that have one."""
    clades = model.clades
    dated = [c.age is not None and not (c.above or c.stem) and _wanted(c) == TOGETHER for c in clades]
    limits = np.array([_limits(c) for c in clades], np.float64).reshape(-1, 2).T.copy()
    record = Calibrations(
        member=np.array([_kinds(c, model.taxa) for c in clades], np.uint8).reshape(-1, model.n_tips),
        size=np.array([len(c.taxa) for c in clades], np.int64),
        together=np.array([_wanted(c) for c in clades], np.uint8),
        fixed=np.array([c.age if isinstance(c.age, float) else np.nan for c in clades]),
        shift=np.array([c.offset for c in clades]),
        above=np.array([model.space.place(c.above).start if c.above else -1 for c in clades], np.int64),
        dated=np.array(dated, np.uint8),
        stem=np.array([c.stem for c in clades], np.uint8),
        least=limits[0],
        most=limits[1],
    )
    ages = Space(tuple(Block(c.name, "positive", np.ones(1), 1e-300, 1e300) for c in clades))
    own = [(c.name, c.age) for c in clades if c.age is not None and not isinstance(c.age, float)]
    return record, block_table(ages, [BlockPrior(*one) for one in own])


def _kinds(clade: Clade, taxa: tuple[str, ...]) -> np.ndarray:
    """(T,) of Calibrations.member."""
    inside = np.isin(np.array(taxa), clade.taxa)
    return IN * inside + OUT * (np.isin(np.array(taxa), clade.outside) if clade.outside else ~inside)


def _limits(clade: Clade) -> tuple[float, float]:
    """Calibrations.least and most."""
    if isinstance(clade.age, float):
        return clade.age, clade.age
    if clade.age is None or clade.above or clade.of_tip:
        return -np.inf, np.inf
    if not isinstance(clade.age, Uniform | LogUniform):
        return clade.offset, np.inf
    return clade.offset + max(clade.age.lower, 0.0), clade.offset + clade.age.upper


def _wanted(clade: Clade) -> int:
    return TOGETHER if clade.together or clade.clock else APART if clade.apart else FREE


def check_clade(clade: Clade, taxa: Sequence[str]) -> None:
    """InputError for what no tree can have."""
    for name in (*clade.taxa, *clade.outside):
        if name not in taxa:
            raise InputError(f"clade '{clade.name}' has a taxon that the data lack: '{name}'", taxon=name)
    if len(clade.taxa) < 2 and not clade.of_tip:
        raise InputError(f"clade '{clade.name}' needs at least two taxa")
    if both := set(clade.taxa) & set(clade.outside):
        name = min(both)
        raise InputError(f"partial constraint '{clade.name}' has a taxon on both sides: '{name}'", taxon=name)
    if clade.clock and (clade.outside or clade.apart):
        hint = "Name its taxa: --clock-clade name=taxon,taxon."
        raise InputError(f"'{clade.name}' has a clock of its own, and need not be a clade", hint=hint)
    if isinstance(clade.age, float) and (clade.apart or clade.outside or clade.above or clade.stem):
        raise InputError(f"'{clade.name}' needs a density of its age", hint="A fixed one is of a clade.")
    if isinstance(clade.age, float) and not (clade.together or clade.clock or len(clade.taxa) == len(taxa)):
        hint = f"Say that it is a clade, --monophyletic {clade.name}, or give its age a density."
        raise InputError(f"'{clade.name}' has a fixed age and need not be a clade", hint=hint)
    if clade.stem and len(set(clade.taxa)) == len(taxa):
        hint = "Calibrate the root, or where the tree prior has one the origin."
        raise InputError(f"'{clade.name}': there is no stem above all taxa", hint=hint)
    if clade.apart and len(set(clade.taxa)) == len(taxa):
        raise InputError(f"'{clade.name}' may be no clade, and has all taxa, which every tree has together")
