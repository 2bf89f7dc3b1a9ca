"""What the chains see of an alignment, and how the compiled loop makes a partition's model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.patterns import SitePatterns, site_patterns, with_unrecorded
from phloem.data.translation import distances
from phloem.data.unseen import Unseen, could_be_unseen, unseen_patterns
from phloem.density.parameterisation import PARTITION_RATES, Reading
from phloem.errors import InputError, in_file
from phloem.inference.mcmc.records import (
    ALPHA,
    BY_MODEL,
    CHOICE,
    COMPILED,
    FORM,
    FREQUENCIES,
    GAMMA_MEANS,
    GAMMA_MEDIANS,
    INVARIABLE,
    KIND,
    LOG_NORMAL,
    MATRIX,
    MORE_SHARES,
    RATE,
    RHO,
    SHARES,
    Recipes,
)
from phloem.inference.mcmc.structure import ChainModel
from phloem.model.model import Model
from phloem.model.site_rates import LogNormalRates
from phloem.pruning.site_order import SiteOrder

# What the chains see of an alignment: patterns as rows of the codes that occur.


@dataclass(frozen=True)
class Observations:
    """taxa: T names. codes: (T, P) rows of code_sets (n_codes, S). weights: (P,). The first n_hidden
    patterns are those that an ascertained data set cannot show (weight 0). sites: (P,) the number
    in the file of the first site that shows a pattern, 0 where none does; None where nobody knows.
    order: of the sites, for models under which neighbours depend on each other."""

    taxa: tuple[str, ...]
    codes: np.ndarray
    code_sets: np.ndarray
    weights: np.ndarray
    n_hidden: int = 0
    sites: np.ndarray | None = None
    order: SiteOrder | None = None


def observations(
    alignment: Alignment, unseen: Unseen = (), unrecorded: int = 0, sites: np.ndarray | None = None,
    along: bool = False,
) -> Observations:  # fmt: skip
    """Site patterns of an alignment with only the codes that occur.

    unseen: as Model's. unrecorded: characters of which nothing is known, but that they were seen. along: the
    order of the sites matters. Raises
    InputError for fewer than three taxa, and for a site that could be one that is never seen.
    """
    if alignment.n_taxa < 3:
        raise InputError(
            f"an unrooted tree needs at least three taxa, and this alignment has {alignment.n_taxa}",
            file=alignment.source,
        )
    patterns = with_unrecorded(site_patterns(alignment), unrecorded)
    codes, sets, weights, n_hidden = patterns.codes, patterns.state_sets, patterns.weights, 0
    if len(unseen):
        hidden = _hidden(alignment, patterns, unseen)
        n_hidden = hidden.shape[1]
        codes = np.hstack([hidden.astype(codes.dtype), codes])
        weights = np.concatenate([np.zeros(n_hidden), weights])
    used, compact = np.unique(codes, return_inverse=True)
    return Observations(
        alignment.taxa,
        compact.reshape(codes.shape).astype(np.int32),
        sets[used].astype(np.float64),
        weights,
        n_hidden,
        None if sites is None else _first_sites(patterns.site_pattern, sites, len(weights), n_hidden),
        SiteOrder(patterns.site_pattern.astype(np.int64), distances(alignment)) if along else None,
    )


def _first_sites(site_pattern: np.ndarray, sites: np.ndarray, n: int, n_hidden: int) -> np.ndarray:
    """(n,) of every pattern, those that are hidden first, the number of the first of its sites (L,)."""
    found = np.zeros(n, np.int64)
    shown, first = np.unique(site_pattern[: len(sites)], return_index=True)
    found[n_hidden + shown] = sites[first]
    return found


def _hidden(alignment: Alignment, patterns: SitePatterns, unseen: Unseen) -> np.ndarray:
    """(T, n_hidden) patterns that are never seen; InputError for a site that could be one."""
    with in_file(alignment.source):
        found = unseen_patterns(alignment.n_taxa, patterns.alphabet.n_states, unseen)
    possible = could_be_unseen(patterns.codes, patterns.state_sets, unseen)
    sites = np.flatnonzero(possible[patterns.site_pattern])
    if len(sites):
        kind = "uninformative" if unseen == "uninformative" else "constant"
        raise InputError(
            f"{len(sites)} site(s) could be {kind}, and the model says that such sites are never seen",
            file=alignment.source,
            site=int(sites[0]) + 1,
            hint="Leave out these sites, or use a model without ascertainment correction.",
        )
    return found


# How the compiled loop makes the model of a partition from a chain's numbers, where it can.
#
# It can where the process is fixed, or is one reversible process of few states whose exchangeabilities are
# fixed ones times shares, and where rates are fixed or a discrete gamma's. Which share multiplies which entry
# is found by asking the model itself: doubling one rate doubles, relative to the others, the entries it
# multiplies. So no family needs a twin here, and what the sampler builds is what the likelihood uses.
# Everything else is evaluated by the model when its numbers change.


@dataclass(frozen=True, eq=False)
class _Process:
    """base (S, S), share_of (2, S, S), frequencies (S,) of one matrix, as in Recipes; shares: names of up to
    two blocks; frequency: of a block, or ''."""

    base: np.ndarray
    share_of: np.ndarray
    frequencies: np.ndarray
    shares: tuple[str, ...]
    frequency: str


def recipes_of(structure: ChainModel) -> Recipes:
    """The recipes of all partitions."""
    space, n_parts = structure.space, len(structure.parts)
    start = space.start()
    models = [structure.site_model(i, start) for i in range(n_parts)]
    states = max(2, *(len(m.invariant_frequencies) for m in models))
    categories = max(m.n_categories for m in models)
    rates, shares = structure.parameterisation.rates, structure.parameterisation.rate_shares
    ends = np.cumsum([_n_choices(_choice(structure, i)) for i in range(n_parts)])
    recipes = Recipes(
        rows=np.full((n_parts, 11), -1, np.int64),
        reads=np.array([structure.reads(i) for i in range(n_parts)], np.uint8).reshape(n_parts, space.size),
        base=np.zeros((ends[-1], states, states)),
        share_of=np.zeros((n_parts, 2, states, states), np.int64),
        frequencies=np.zeros((ends[-1], states)),
        rates=np.zeros((n_parts, categories)),
        weights=np.zeros((n_parts, categories)),
        invariable=np.zeros(n_parts),
        site_share=np.array([shares[entry] if entry >= 0 else 1.0 for entry in rates]),
        unit=np.array([part.site_length for part in structure.parts], np.float64),
    )
    recipes.rows[:, MATRIX] = [0, *ends[:-1]]
    for i in range(n_parts):
        _fill(recipes, structure, i)
    return recipes


def _choice(structure: ChainModel, part: int) -> Reading | None:
    """What reads the number of a part's matrix, where it is the chain's."""
    own = [r for r in structure.parameterisation.readings[part] if r.parameter.kind == "choice"]
    return own[0] if own and own[0].block in structure.space else None


def _n_choices(reading: Reading | None) -> int:
    return 1 if reading is None else int(reading.parameter.upper) + 1


def _fill(recipes: Recipes, structure: ChainModel, i: int) -> None:
    model, row, space = structure.parts[i].model, recipes.rows[i], structure.space
    row[KIND], row[FORM] = BY_MODEL, 0
    free = {r.parameter.name: r for r in structure.parameterisation.readings[i] if r.block in space}
    shape, proportion = free.pop("alpha", free.pop("sigma", None)), free.pop("p_invariable", None)
    categories = model.site_rates.categories
    rho = free.pop("rho", None)
    if any(p.name in free for p in categories.term.parameters):
        return
    if shape is not None and len(model.evaluate(model.start_values()).processes) > 1:
        return  # every process has all categories
    choice, models = _choice(structure, i), [model]
    if choice is not None:
        name = choice.parameter.name
        models = [model.with_values({name: float(k)}) for k in range(_n_choices(choice))]
        del free[name]
    found = [_process(own, free) for own in models] if free or choice is not None else []
    processes = [own for own in found if own is not None]
    if len(processes) < len(found):
        return
    row[KIND] = COMPILED
    for k, process in enumerate(processes, row[MATRIX]):
        s = len(process.base)
        recipes.base[k, :s, :s], recipes.share_of[i, :, :s, :s] = process.base, process.share_of
        recipes.frequencies[k, :s] = process.frequencies
        for column, block in zip((SHARES, MORE_SHARES), process.shares):
            row[column] = space.place(block).start
        if process.frequency:
            row[FREQUENCIES] = space.place(process.frequency).start
        if choice is not None:
            row[CHOICE] = space.place(choice.block).start
        elif not process.shares and not process.frequency:
            row[KIND] = BY_MODEL
    if shape is not None:
        row[ALPHA] = space.place(shape.block).start
        row[FORM] = GAMMA_MEDIANS if getattr(categories, "kind", "mean") == "median" else GAMMA_MEANS
    numbers = model.evaluate(model.start_values())
    rates, weights, fixed = numbers.rates, numbers.weights, numbers.invariant
    if proportion is not None:
        row[INVARIABLE] = space.place(proportion.block).start
    else:
        recipes.invariable[i] = fixed
    if rho is not None:
        row[RHO] = space.place(rho.block).start
    if structure.parameterisation.rates[i] >= 0:
        row[RATE] = space.place(PARTITION_RATES).start + structure.parameterisation.rates[i]
    recipes.rates[i, : len(rates)] = rates * (1 - fixed)
    if shape is not None and isinstance(categories, LogNormalRates):
        row[FORM], recipes.rates[i, : len(rates)] = LOG_NORMAL, categories.scores
    recipes.weights[i, : len(weights)] = weights / (1 - fixed)


def _process(model: Model, free: dict[str, Reading]) -> _Process | None:
    """The free process, if it has the form above; None else."""
    start = model.start_values()
    evaluated = model.evaluate(start)
    s = len(evaluated.invariant_frequencies)
    if len(evaluated.processes) > 1 or len(set(model.observed_state.tolist())) < s:
        return None
    if model.n_length_classes > 1:
        return None
    frequency = free.get("frequencies")
    if frequency is not None and frequency.parameter.size != s:
        return None
    if not (evaluated.processes[0].frequencies > 0).all():
        return None
    rates = {name: r for name, r in free.items() if r is not frequency}
    blocks = sorted({r.block for r in rates.values()})
    if len(blocks) > 2 or not all(r.over_first for r in rates.values()):
        return None
    values = dict(start)
    for name, r in rates.items():
        values[name] = np.ones(r.parameter.size) if r.parameter.elements else 1.0
    base, share_of = _exchangeabilities(model, values), np.zeros((2, s, s), np.int64)
    changing = base > 0
    for name, r in rates.items():
        of_block = share_of[blocks.index(r.block)]
        for k in range(r.parameter.size):
            doubled = np.ones(r.parameter.size)
            doubled[k] = 2.0
            ratio = np.zeros((s, s))
            value = doubled if r.parameter.elements else 2.0
            ratio[changing] = _exchangeabilities(model, {**values, name: value})[changing] / base[changing]
            mine = changing & (ratio > 1.5 * ratio[changing].min())
            two = np.allclose(ratio[mine], 2 * ratio[changing].min())
            if not two or (of_block[mine] > 0).any() or not mine.any():
                return None
            of_block[mine] = r.first + k
    if not _multiply(model, rates, blocks, (base, share_of), values):
        return None
    pi = evaluated.processes[0].frequencies
    return _Process(base, share_of, pi, tuple(blocks), frequency.block if frequency is not None else "")


def _multiply(model: Model, rates: dict[str, Reading], blocks, found, values) -> bool:
    """Whether shares of two blocks multiply entries that both of them change: seen at other values."""
    base, share_of = found
    product, values = base.copy(), dict(values)
    for name, r in rates.items():
        ratios = 1.5 + 0.25 * (r.first + np.arange(r.parameter.size))
        values[name] = ratios if r.parameter.elements else ratios[0]
        for k, ratio in enumerate(ratios):
            product[share_of[blocks.index(r.block)] == r.first + k] *= ratio
    return np.allclose(_exchangeabilities(model, values), product / product.max(), rtol=1e-9)


def _exchangeabilities(model: Model, values) -> np.ndarray:
    """Q_ij / π_j with a zero diagonal, scaled to a largest entry of 1."""
    process = model.substitution.evaluate(values)
    e = process.rate_matrix / process.frequencies
    np.fill_diagonal(e, 0.0)
    return (e + e.T) / (2 * e.max())
