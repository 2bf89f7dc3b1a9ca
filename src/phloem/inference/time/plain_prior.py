"""The prior of a dated chain's present state once more, term by term in Python: what its compiled loop
carries along is held against it, as likelihoods are against the reference (inference.mcmc.guard)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from phloem.density import clocks, traits
from phloem.density.calibrations import set_ancestors
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.errors import NumericalError
from phloem.inference.mcmc.guard import LOG_PRIOR, LOG_WORKING, differs, stopped
from phloem.inference.time.clades import calibrations
from phloem.inference.time.run import Run
from phloem.inference.time.start import DEVIATIONS
from phloem.inference.time.structure import TimeModel

_TREE = "the tree"
_SHOWN = 8


def check_prior(run: Run) -> None:
    """NumericalError where the log prior that a chain carries along is not that of its state."""
    found, expected = float(run.state.log_prior[0]), plain_log_prior(run)
    if differs(found, expected, LOG_PRIOR.allowed):
        where = f"run {run.number + 1}, generation {run.generation:,}"
        what = f"the {LOG_PRIOR.name} is not that of the reference"
        raise stopped(f"{what} ({where}: {found!r}, by the reference {expected!r})")
    if (working := run.settings.working) is not None:
        state, s = run.state, int(run.state.slot[0])
        at = state.parent[s], state.heights[s], state.deviations[s], state.values[s]
        found, expected = float(state.log_working[0]), working.log_density(*at)
        if differs(found, expected, LOG_WORKING.allowed):
            what = f"the {LOG_WORKING.name} is not that of the reference"
            raise stopped(f"{what} (run {run.number + 1}: {found!r}, by the reference {expected!r})")


def why_impossible(run: Run) -> NumericalError:
    """An error that names every term of a start that is 0, or no number."""
    model, values = run.model, run.state.values[int(run.state.slot[0])]
    with np.errstate(all="ignore"):
        terms = [(name, value) for name, value in _terms(run) if not math.isfinite(value)]
    told = []
    for name, value in terms:
        here = values[model.space.place(name)] if name in model.space else ()
        at = f" at {', '.join(f'{x:g}' for x in here)}" if len(here) else ""
        if name == _TREE and model.parameters.blocks:
            at = f" at {', '.join(_of_tree(model, values))}"
        told.append(f"the log prior of {name} is {value}{at}")
    remedy = "Choose other priors, or another --start."
    if not told:
        told = ["the tree has no finite log-likelihood"]
        remedy = "Correct the values in the model string, or choose another --start."
    return NumericalError(f"run {run.number + 1} cannot start: {'; '.join(told)}. {remedy}")


def _of_tree(model: TimeModel, values: np.ndarray) -> list[str]:
    """The first numbers of the tree prior and what they are, those that are held before others."""
    names = sorted((b.name for b in model.parameters.blocks), key=lambda name: name not in model.fixed)
    known = [f"{name} {x:.4g}" for name in names for x in values[model.space.place(name)]]
    return [*known[:_SHOWN], "…"] if len(known) > _SHOWN else known


def plain_log_prior(run: Run) -> float:
    """Of numbers, tree, clocks, ages of clades and of the trait, whose likelihood is one of the terms."""
    return math.fsum(value for _, value in _terms(run))


def _terms(run: Run) -> Iterator[tuple[str, float]]:
    """What each is of, and it."""
    model, state, s = run.model, run.state, int(run.state.slot[0])
    values, heights = state.values[s], state.heights[s]
    for own in model.priors:
        yield own.block, float(own.family.log_density(values[model.space.place(own.block)]))
    parameters = model.parameters
    x = np.concatenate([np.zeros(0), *(values[model.space.place(b.name)] for b in parameters.blocks)])
    allowed, ancestors, dated = _known_clades(run, s)
    if not allowed:
        yield "the clades", -math.inf
    g = Genealogy(heights, state.order[s], model.n_tips, state.groups[s], state.parent[s], dated)
    yield _TREE, float(model.tree_prior.log_density(g, x, parameters.settings))
    yield from (("the branches' rates", value) for value in _of_clocks(run, s))
    for clade, node in zip(model.clades, ancestors):
        age = heights[node] + model.above(clade, values)
        yield f"the age {age:g} of '{clade.name}' ({clade.age_text})", clade.log_density(age)
    if model.trait is not None:
        tree = traits.Lineage(state.parent[s], state.left[s], state.right[s], state.order[s], heights)
        record = model.trait.record(model.space, model.trait_reference)
        yield "the trait", traits.log_prior(record, tree, values)
        yield "the trait's states", run.scratch.trait.power[0] * traits.log_likelihood(record, tree, values)


def _of_clocks(run: Run, s: int) -> Iterator[float]:
    """Of every clock's deviations, and of its rate where that has the CTMC reference prior, Gamma(½) with the
    tree's length as its rate."""
    model, state = run.model, run.state
    parent, heights = state.parent[s], state.heights[s]
    length = float((heights[parent[:-1]] - heights[:-1]).sum())
    density = DEVIATIONS.get(model.clock)
    for c, name in enumerate(model.rate_names):
        first, deviations = model.space.place(name).start, state.deviations[s, c]
        if density is not None:
            numbers, slopes = (
                state.values[s, first : first + 1 + bool(model.spread_names)],
                np.zeros(len(parent)),
            )
            yield density(parent, heights, deviations, numbers, slopes, slopes, np.zeros(len(numbers)))
        elif model.clock in clocks.SMOOTH:
            e = deviations[:-1]
            yield float(-0.5 * (e @ e) - 0.5 * len(e) * math.log(2 * math.pi))
        if model.reference[c]:
            rate = float(state.values[s, first])
            yield 0.5 * math.log(length / rate) - rate * length - 0.5 * math.log(math.pi)


def _known_clades(run: Run, s: int) -> tuple[bool, np.ndarray, np.ndarray]:
    """Whether taxa that must be together are, the common ancestors of all clades, and Genealogy.dated."""
    model, state = run.model, run.state
    order, ancestors = state.order[s], np.zeros(len(model.clades), np.int64)
    if not model.clades:
        return True, ancestors, ancestors
    known, counts = calibrations(model)[0], np.zeros((2, len(order)), np.int64)
    allowed = set_ancestors(state.left[s], state.right[s], order, known, model.n_tips, counts, ancestors)
    return allowed, ancestors, np.where(known.dated == 1, ancestors, -1)
