"""Posterior predictive checks: what the data would look like if the model were right, beside what they do.

Gelman, Meng and Stern 1996 (Statistica Sinica 6:733). For draws of the posterior, an alignment is evolved
down the drawn tree with the drawn numbers, and loses the characters that the data miss (Bollback 2002, Mol.
Biol. Evol. 19:1171); and where the tree prior is a coalescent, a genealogy of the same tips is drawn from it,
to be held against the drawn tree (Duchêne et al. 2019, Mol. Biol. Evol. 36:2608).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from phloem.data.alignment import Alignment
from phloem.inference.mcmc.samples import Samples
from phloem.inference.time.draws import HEIGHTS, Columns, lengths_by_clock
from phloem.inference.time.structure import TimeModel
from phloem.likelihood.simulation import evolved_like
from phloem.summary.predictive import Check, check_of, site_statistics
from phloem.tree.tree import Tree

STREAM = 0x9E  # of the random numbers, beside those of starts and chains
SIMULATED = ("constant", "exponential", "skyline", "skyride", "skygrid")
"""Tree priors that genealogies are drawn from."""


def predictive_checks(
    columns: Columns, draws: Sequence[Samples], first: int, alignments: Sequence[Alignment], n: int, seed: int
) -> tuple[Check, ...]:
    """Of n draws of all runs from sample `first` on, evenly chosen; of as many as there are at most.
    alignments: of every part."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
    model, names = columns.model, ("LnL", "LnPr", *columns.names)
    there = [(r, i) for r, samples in enumerate(draws) for i in range(first, samples.n)]
    chosen = [there[k] for k in np.linspace(0, len(there) - 1, min(n, len(there))).astype(int)]
    data = [site_statistics(own.codes, own.alphabet.n_states) for own in alignments]
    of_parts = [f"{{{part.name}}}" if len(alignments) > 1 else "" for part in model.engine.parts]
    found: dict[str, list[tuple[float, float]]] = {}
    for r, i in chosen:
        samples = draws[r]
        numbers = dict(zip(names, samples.numbers[i]))
        for part, (own, of_part) in enumerate(zip(alignments, of_parts)):
            codes = _evolved(columns, (samples, i), part, own, rng)
            for name, value in site_statistics(codes, own.alphabet.n_states).items():
                found.setdefault(name + of_part, []).append((data[part][name], value))
        if model.tree_prior.name in SIMULATED and not model.clades:
            heights = samples.sets[i, HEIGHTS]
            new = joinings(heights[: model.n_tips], waiting_of(model, numbers), rng)
            pairs = zip(tree_statistics(heights, model.n_tips), tree_statistics(new, model.n_tips))
            for name, pair in zip(("tree_length", "root_height"), pairs):
                found.setdefault(name, []).append(pair)
    return tuple(check_of(name, np.array(pairs)) for name, pairs in found.items())


def _evolved(
    columns: Columns, draw: tuple[Samples, int], part: int, alignment: Alignment, rng: np.random.Generator
) -> np.ndarray:
    """(T, L) codes of a simulated alignment of a part, in the order of its taxa. draw: of samples which."""
    (samples, i), model = draw, columns.model
    engine, parent = model.engine, samples.parent[i].astype(np.int64)
    lengths = lengths_by_clock(model, parent, samples.sets[i])[engine.sets[part].start]
    numbers = dict(zip(columns.names, samples.numbers[i, 2:]))
    site_model = engine.site_model(part, engine.values_of(numbers))
    tree, own = Tree(model.taxa, parent, lengths), engine.parts[part].model
    return evolved_like(alignment, tree, lengths, site_model, own.observed_state, rng, own.unseen)


# Genealogies of a coalescent.

Waiting = Callable[[float, int, int, float], float]
"""Height, pairs of lineages, which joining (from 0), a standard exponential number → how long until it."""


def tree_statistics(heights: np.ndarray, n_tips: int) -> tuple[float, float]:
    """Length and root height of a tree in time: the sum of lineages between events is its joinings' heights,
    the root's twice, less the tips'."""
    root = float(heights[n_tips:].max())
    return float(heights[n_tips:].sum()) + root - float(heights[:n_tips].sum()), root


def joinings(tips: np.ndarray, waiting: Waiting, rng: np.random.Generator) -> np.ndarray:
    """(2T - 1,) heights of tips, then of the joinings of lineages that are drawn backwards in time."""
    arriving, found, t, k = np.sort(tips).tolist()[::-1], list(tips), 0.0, 0
    while arriving or k > 1:
        pairs = k * (k - 1) // 2
        after = t + waiting(t, pairs, len(found) - len(tips), rng.exponential()) if pairs else np.inf
        if arriving and arriving[-1] <= after:
            t, k = arriving.pop(), k + 1
        else:
            t, k = after, k - 1
            found.append(t)
    return np.array(found)


def waiting_of(model: TimeModel, numbers: Mapping[str, float]) -> Waiting:
    """Of a tree prior in SIMULATED at a draw's numbers."""
    name = model.tree_prior.name
    if name in ("constant", "exponential"):
        size, growth = numbers["pop_size"], numbers.get("growth_rate", 0.0)
        return lambda t, pairs, joining, e: _while_growing(size * np.exp(-growth * t), growth, e / pairs)
    sizes = [value for key, value in numbers.items() if key.startswith("pop_size_")]
    if name == "skygrid":
        spacing = float(model.parameters.settings[0])
        return lambda t, pairs, joining, e: _over_cells(np.array(sizes), spacing, t, e / pairs)
    groups = [int(value) for key, value in numbers.items() if key.startswith("group_size_")]
    of_joining = np.repeat(sizes, groups) if groups else np.array(sizes)
    return lambda t, pairs, joining, e: of_joining[joining] * e / pairs


def _while_growing(size: float, growth: float, area: float) -> float:
    """How long until ∫ e^(growth s) / size ds is `area`; never, where the population was large enough."""
    if abs(growth * size * area) < 1e-12:
        return size * area
    inside = 1.0 + growth * size * area
    return float(np.log(inside) / growth) if inside > 0.0 else np.inf


def _over_cells(sizes: np.ndarray, spacing: float, t: float, area: float) -> float:
    """The same where sizes are constant in cells of a width, the last one open."""
    now, cell = t, min(int(t / spacing), len(sizes) - 1)
    while cell < len(sizes) - 1 and area * sizes[cell] > (cell + 1) * spacing - now:
        area -= ((cell + 1) * spacing - now) / sizes[cell]
        now, cell = (cell + 1) * spacing, cell + 1
    return now + area * sizes[cell] - t
