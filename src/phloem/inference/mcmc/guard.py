"""A watch over the sampler: what the chains carry along must be the likelihood and the prior.

A wrong posterior looks like a right one. So log-likelihoods and log priors of every run are computed once
more by the plain path, NumPy, which shares no numbering of classes, no cache and no compiled code with the
chains (the one place where production calls the reference): of every chain where it starts, is resumed and
ends, and of the first sample after every GUARD_EVERY chain-generations. It looks at samples, whatever engine
drew them. A difference, or a log-likelihood that stays the same while trees change, stops the run with a
report; a start that is impossible is explained term by term. Which samples are looked at depends on their
generation alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from phloem import __version__
from phloem.data.alignment import Alignment
from phloem.data.patterns import site_patterns, with_unrecorded
from phloem.errors import NumericalError
from phloem.inference.mcmc.priors import number_priors
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.settings import ChainSettings, Priors
from phloem.inference.mcmc.structure import ChainModel
from phloem.io.newick_text import write_newick
from phloem.io.output_file import write_file
from phloem.likelihood.problem import engine_problem, site_distances
from phloem.model.families import default_states
from phloem.model.record import SiteModel
from phloem.pruning.along_sites import AlongSites
from phloem.pruning.interface import Problem
from phloem.pruning.reference.evaluator import ReferenceEvaluator
from phloem.pruning.reference.neighbours import sites_together
from phloem.tree.layout import tree_layout
from phloem.tree.tree import Tree

GUARD_EVERY = 100_000  # chain-generations of a run: less than 1 % of the time for any data (docs/mcmc.md)
ENOUGH_SAMPLES = 20  # with one log-likelihood and several trees

MOST_IN_VAIN = 50_000  # proposals; tuned moves have a tenth accepted and more

BLOCK_BYTES = 1 << 28  # of messages at once


class Carried(NamedTuple):
    """What samples hold, in this order: what it is called, by people and in reports, and how much two ways to
    add it up may differ, relative."""

    name: str
    key: str
    allowed: float


LOG_LIKELIHOOD = Carried("log-likelihood", "log_likelihood", 1e-8)
IN_FLOAT32 = LOG_LIKELIHOOD._replace(allowed=1e-5)
LOG_PRIOR = Carried("log prior", "log_prior", 1e-6)  # which may hold large powers
LOG_WORKING = Carried("log working density", "log_working", 1e-8)
CARRIED = LOG_LIKELIHOOD, LOG_PRIOR, LOG_WORKING
BY_PRECISION = {"float64": CARRIED, "float32": (IN_FLOAT32, *CARRIED[1:])}
COLUMNS = 0, 1, -1  # of samples, in which they are


class Counts(Protocol):
    """Of proposals of moves, (M,) or (H, M) by rank of heat: a state of either sampler."""

    tried: np.ndarray
    accepted: np.ndarray


Plain = Callable[[np.ndarray, np.ndarray, Mapping[str, float]], float]


def plain_likelihood(
    alignments: Sequence[Alignment], structure: ChainModel, unrecorded: Sequence[int] = ()
) -> Plain:
    """A function (parent, lengths, numbers) → log-likelihood from scratch, in NumPy, summed over partitions.

    alignments: of every part of structure; unrecorded: see recipes.observations. parent: (2T-2,) of an
    unrooted tree in the order of phloem.tree; lengths: (G, 2T-2) of every set, as they are sampled, or
    (2T-2,) of the only one. numbers: those of a trace by their names there, all free parameters among them.
    """
    counts = unrecorded or (0,) * len(alignments)
    patterns = [with_unrecorded(site_patterns(a), n) for a, n in zip(alignments, counts)]
    apart = [site_distances(part.model, a) for part, a in zip(structure.parts, alignments)]
    taxa = alignments[0].taxa

    def log_likelihood(parent: np.ndarray, lengths: np.ndarray, numbers: Mapping[str, float]) -> float:
        sets = np.atleast_2d(lengths)
        layout, total = tree_layout(Tree(taxa, parent, sets[0], rooted=False), taxa), 0.0
        by_node = layout.to_nodes(sets[:, :-1])
        values = structure.values_of(numbers)
        for part, own in enumerate(patterns):
            model, factor = structure.parts[part].model, structure.rate_factor(part, values)
            problem = engine_problem(own, model, layout.children, repeats=False, distance=apart[part])
            site_model = model.evaluate(structure.model_values(part, values))
            own_sets = structure.sets[part]
            effective = by_node[own_sets.start : own_sets.stop] * factor
            effective = effective if len(own_sets) > 1 else effective[0]
            total += _by_blocks(problem, effective, site_model)
        return total

    return log_likelihood


def plain_prior(structure: ChainModel, priors: Priors) -> Plain:
    """A function (parent, lengths, numbers), as plain_likelihood's → log prior density, in NumPy; uniform
    topologies add a constant, which is left out."""
    own = number_priors(structure, priors)

    def log_prior(parent: np.ndarray, lengths: np.ndarray, numbers: Mapping[str, float]) -> float:
        blocks, n_tips = structure.space.unpack(structure.values_of(numbers)), (len(parent) + 2) // 2
        of_numbers = [float(prior.family.log_density(blocks[prior.block])) for prior in own]
        sets = np.atleast_2d(lengths)[:, :-1]
        return math.fsum([*of_numbers, *priors.branch_lengths.log_density(sets, n_tips).tolist()])

    return log_prior


def _by_blocks(problem: Problem, lengths: np.ndarray, model: SiteModel) -> float:
    """The reference's log-likelihood, a block of patterns after the other, so that it needs little memory
    beside the chains. Patterns that cannot be observed concern all others: then in one piece, and so are
    neighbours that depend on each other."""
    n_patterns = problem.tip_codes.shape[1]
    column = 8 * problem.n_categories * problem.state_sets.shape[1] * 2 * problem.tip_codes.shape[0]
    if problem.order is not None:
        return AlongSites(problem, ReferenceEvaluator, sites_together).log_likelihood(lengths, model)
    size = n_patterns if problem.ascertained.any() else max(1, BLOCK_BYTES // column)
    return math.fsum(
        ReferenceEvaluator(
            replace(
                problem,
                tip_codes=problem.tip_codes[:, first : first + size],
                pattern_weights=problem.pattern_weights[first : first + size],
                ascertained=problem.ascertained[first : first + size],
            )
        ).log_likelihood(lengths, model)
        for first in range(0, n_patterns, size)
    )


@dataclass(frozen=True, eq=False)
class Guard:
    """observed: what the chains were given, every part of it. n_chains: of a run. names: of a trace's columns
    after LnL and LnPr. plain: as plain_likelihood makes it; None (chains that ignore the data) compares no
    likelihood. prior: as plain_prior makes it; None compares none. prefix: of the report; None writes
    none. precision: of the chains' likelihoods. working: as plain_working makes it. still: by run and
    rank of heat how much had been accepted when last looked at, and tried when that was so for the first
    time."""

    observed: Sequence[Observations]
    n_chains: int
    names: tuple[str, ...]
    plain: Plain | None
    prior: Plain | None
    prefix: str | None
    precision: str = "float64"
    working: Plain | None = None
    still: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def check_chains(self, run: int, chains: Mapping[int, Samples]) -> None:
        """The present state of chains of a run, by rank of heat. NumericalError where one is wrong."""
        for rank, chain in chains.items():
            self._compare(run, rank, chain, 0)

    def check_samples(self, run: int, samples: Samples, first: int, state: Counts) -> None:
        """The cold chain's samples from number `first` (at least 1) on: those whose turn it is, and that they
        change; and that proposals are accepted. NumericalError where one is wrong, or none differs, or a
        chain has accepted none of its last MOST_IN_VAIN proposals."""
        self._check_moves(run, state)
        period = samples.generation * self.n_chains // GUARD_EVERY
        for i in range(first, samples.n):
            if period[i] != period[i - 1]:
                self._compare(run, 0, samples, i)
        if self.plain is not None and first < samples.n and self._constant(samples):
            for i in range(samples.n - ENOUGH_SAMPLES, samples.n):  # far apart nothing depends on lengths
                self._compare(run, 0, samples, i, "the log-likelihood stays the same while trees change")

    def _check_moves(self, run: int, state: Counts) -> None:
        counts = zip(np.atleast_2d(state.tried).sum(axis=1), np.atleast_2d(state.accepted).sum(axis=1))
        for rank, (tried, accepted) in enumerate(counts):
            before = self.still.get((run, rank))
            if before is None or before[0] != accepted:
                self.still[run, rank] = int(accepted), int(tried)
            elif tried - before[1] >= MOST_IN_VAIN:
                raise NumericalError(
                    f"run {run + 1}: the chain of heat rank {rank} has accepted none of its last "
                    f"{tried - before[1]:,} proposals, and the run was stopped. Samples up to the last "
                    "checkpoint are kept. If no number has a prior that is next to fixed, send the alignment "
                    "and the command to phloem's authors."
                )

    def _compare(self, run: int, rank: int, samples: Samples, i: int, what: str = "") -> None:
        """what: what is odd about the log-likelihood; else that it is not the reference's."""
        drawn = samples.tree_and_numbers(i, self.names)
        plains = (self.plain, what), (self.prior, ""), (self.working, "")
        for k, ((plain, told), carried) in enumerate(zip(plains, BY_PRECISION[self.precision])):
            if plain is not None:
                expected = plain(*drawn)
                if differs(float(samples.numbers[i, COLUMNS[k]]), expected, carried.allowed):
                    told = told or f"the {carried.name} is not that of the reference"
                    self._stop((run, rank, k), samples, i, told, expected)

    def _constant(self, samples: Samples) -> bool:
        """One log-likelihood in the last samples, whose trees or numbers differ, where data could tell."""
        last = slice(-ENOUGH_SAMPLES, None)
        numbers = samples.numbers[last]
        still = len(numbers) == ENOUGH_SAMPLES and (numbers[:, 0] == numbers[0, 0]).all()
        return bool(
            still and (numbers[:, 2:] != numbers[0, 2:]).any() and any(map(informative, self.observed))
        )

    def _stop(
        self, of: tuple[int, int, int], samples: Samples, i: int, what: str, expected: float
    ) -> NoReturn:
        """of: the run, the rank of heat, and which of what is carried differs."""
        run, rank, k = of
        generation, found = int(samples.generation[i]), float(samples.numbers[i, COLUMNS[k]])
        tree = Tree(self.observed[0].taxa, samples.parent[i], samples.lengths[i], rooted=False)
        report = {
            "what": what,
            "run": run + 1,
            "heat_rank": rank,
            "generation": generation,
            CARRIED[k].key: _number(found),
            f"reference_{CARRIED[k].key}": _number(expected),
            "tree": write_newick(tree, precision=17),
            "trees_of_sets": [write_newick(replace(tree, lengths=x), precision=17) for x in samples.sets[i]],
            "numbers": samples.tree_and_numbers(i, self.names)[2],
            "phloem": __version__,
        }
        told = ""
        if self.prefix:
            file = report_path(self.prefix)
            write_file(file, json.dumps(report, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
            told = (
                f" {file} holds the tree and the parameters: send it with the alignment to phloem's authors."
            )
        where = f"run {run + 1}, heat rank {rank}, generation {generation:,}"
        raise stopped(f"{what} ({where}: {found!r}, by the reference {expected!r})", told)


def differs(found: float, expected: float, allowed: float, slack: float = 0.0) -> bool:
    """Whether what is carried along is not what the plain path finds, but for a share of it and slack."""
    return not abs(found - expected) <= allowed * max(abs(expected), 1.0) + slack


def stopped(what: str, told: str = "") -> NumericalError:
    """The error of a run that carries along what is wrong. told: where more is said."""
    return NumericalError(
        f"this is an error in phloem, and the run was stopped: {what}. Samples up to the last checkpoint are "
        f"kept.{told}"
    )


def report_path(prefix: str) -> Path:
    """Where the report of a stopped run lies."""
    return Path(f"{prefix}.report.json")


def informative(observed: Observations) -> bool:
    """Whether some pattern has two taxa or more whose characters leave out a state."""
    says = ~np.all(np.asarray(observed.code_sets, bool), axis=1)
    return bool((says[observed.codes].sum(axis=0)[observed.weights > 0] > 1).any())


def _number(x: float) -> float | str:
    return x if np.isfinite(x) else str(x)  # JSON has no other numbers


# Why chains cannot start where they were to.


def why_impossible(
    observed: Sequence[Observations], structure: ChainModel, settings: ChainSettings, state: ChainState
) -> NumericalError:
    """An error that names every term that is 0, or no number, of the first chain that cannot start."""
    h = int(np.flatnonzero(~np.isfinite(state.log_likelihood + state.log_prior))[0])
    slot = int(state.slot[h])
    values, lengths = state.values[h, slot], state.lengths[h, slot]
    blocks, told = structure.space.unpack(values), list[str]()
    for prior in number_priors(structure, settings.priors):
        if not np.isfinite(density := float(prior.family.log_density(blocks[prior.block]))):
            at = ", ".join(f"{x:g}" for x in blocks[prior.block])
            told.append(f"log prior of {prior.block} = {density} at {at}")
    root = lengths.shape[1] - 1
    own = np.delete(np.arange(root), max(state.left[h, slot, root], state.right[h, slot, root]))
    n_tips = len(observed[0].taxa)
    of_sets = settings.priors.branch_lengths.log_density(lengths[:, own], n_tips)
    told += [f"log prior of the branch lengths = {x}" for x in of_sets[~np.isfinite(of_sets)].tolist()]
    if settings.use_data and not np.isfinite(state.log_likelihood[h]):
        told.append(f"log-likelihood = {state.log_likelihood[h]}")
        for i, own_data in enumerate(observed):
            told += _impossible_states(structure, i, own_data, values)
    remedy = "Correct the values in the model string, choose other priors, or another --start."
    if not told:
        told.append(f"log prior = {state.log_prior[h]}, where NumPy has a number")
        remedy = "This is an error in phloem: send the alignment and the command to its authors."
    return NumericalError(f"chain {h + 1} cannot start: {'; '.join(told)}. {remedy}")


def _impossible_states(
    structure: ChainModel, part: int, data: Observations, values: np.ndarray
) -> Iterator[str]:
    """The first character of a part that no state of positive frequency explains, and how many patterns have
    one."""
    model, sets = structure.parts[part].model, np.asarray(data.code_sets, bool)
    possible = np.zeros(sets.shape[1], bool)
    for process in structure.site_model(part, values).processes:
        possible[model.observed_state[process.root_frequencies > 0]] = True
    explained = np.asarray(sets[:, possible].any(axis=1))
    unseen = ~explained[data.codes]
    patterns = np.flatnonzero((unseen & (data.weights > 0)).any(axis=0))
    if len(patterns):
        names = default_states(model.datatype, sets.shape[1]) if model.datatype != "codon" else ()
        first = patterns[0] if data.sites is None else patterns[np.argmin(data.sites[patterns])]
        taxon = int(np.flatnonzero(unseen[:, first])[0])
        states = np.flatnonzero(sets[data.codes[taxon, first]])
        shown = "/".join(names[s] if names else f"state {s + 1}" for s in states)
        where = "" if data.sites is None else f" at site {data.sites[first]} of the file"
        yield (
            f"{len(patterns)} of {len(data.weights)} site patterns of part '{structure.parts[part].name}' "
            f"have states of frequency 0, such as {shown} of {data.taxa[taxon]}{where}"
        )
