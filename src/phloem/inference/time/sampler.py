"""All runs of an analysis of dated trees: threads, checkpoints, traces for Tracer and FigTree, stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from phloem.data.alignment import Alignment
from phloem.density.tree_priors.tree_prior import LEVEL
from phloem.errors import NumericalError
from phloem.hardware.blas import one_blas_thread
from phloem.inference.mcmc.checkpoint import KEPT, Checkpoint
from phloem.inference.mcmc.convergence import (
    ENOUGH_TRIES,
    Diagnosis,
    diagnose,
    heat_warnings,
    looks_at,
    swap_shares,
)
from phloem.inference.mcmc.guard import Guard, Plain, plain_likelihood
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import as_parts
from phloem.inference.mcmc.sampler import (
    Progress,
    Where,
    advance_all,
    expected_end,
    gathered,
    nothing_of,
    reporter,
    threads_of,
)
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.seen import sent
from phloem.inference.mcmc.spread import Spread
from phloem.inference.mcmc.stones import NO_POSTERIOR
from phloem.inference.mcmc.undefined import check_undefined, undefined_warnings
from phloem.inference.time.ancestors.reference import check_memory
from phloem.inference.time.coupled import (
    CoupledRun,
    CoupledState,
    Coupling,
    coupled_advanced,
    new_coupled_run,
)
from phloem.inference.time.draws import RATES, STATES, lengths_by_clock, trace_columns
from phloem.inference.time.plain_prior import check_prior
from phloem.inference.time.records import JOINT, OF_HAMILTON, TimeState
from phloem.inference.time.run import Run, advanced, drawn, new_run
from phloem.inference.time.seen import dated_seen
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.start import Origin
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.traits import PER_ROUTE
from phloem.io.annotations import annotation_key, format_annotation
from phloem.io.newick_text import newick_name
from phloem.io.output_file import appended_text, replaced_text
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree, branch_name

AnyRun = Run | CoupledRun
_FAR = 1e6  # times what the dates span

# PREFIX.run1.log and PREFIX.run1.trees as BEAST writes them.


def paths(prefix: str, number: int) -> tuple[Path, Path]:
    """The .log and the .trees file of run `number` (from 0)."""
    return Path(f"{prefix}.run{number + 1}.log"), Path(f"{prefix}.run{number + 1}.trees")


def write_trace(prefix: str, run: AnyRun, done: int) -> int:
    """Write samples done … n of a run, headers first if done is 0, as on a resume, when lines that a kill cut
    are gone so; returns n."""
    names = "\t".join(["state", "LnL", "LnPr", *run.columns.names])
    taxa = ",\n".join(f"      {i + 1:2d} {newick_name(name)}" for i, name in enumerate(run.model.taxa))
    of_numbers, of_trees = (f"# {NO_POSTERIOR}\n", f"[{NO_POSTERIOR}]\n") if run.settings.stones else ("", "")
    headers = f"{of_numbers}{names}\n", f"#NEXUS\n{of_trees}begin trees;\n   translate\n{taxa};\n"
    for path, header, line in zip(paths(prefix, run.number), headers, (_numbers_line, _tree_line)):
        with appended_text(path, KEPT) if done else replaced_text(path, kept=KEPT) as file:
            file.write("" if done else header)
            file.writelines(line(run.samples, i, run.model) for i in range(done, run.samples.n))
    return run.samples.n


def _numbers_line(samples: Samples, i: int, model: TimeModel) -> str:
    numbers = "\t".join(f"{x:.10g}" for x in samples.numbers[i])
    return f"{samples.generation[i]}\t{numbers}\n"


def _note(fields: list[str]) -> str:
    return f"[&{','.join(fields)}]" if fields else ""


def _tree_line(samples: Samples, i: int, model: TimeModel) -> str:
    trait, names = model.trait, [annotation_key(name) for name in model.rate_traits]
    parent, lengths, rates = samples.parent[i], samples.lengths[i], samples.sets[i, RATES:]
    n_tips = (len(parent) + 1) // 2
    inside: list[list[str]] = [[] for _ in parent]
    said: list[list[str]] = [[] for _ in parent]
    if trait is not None:
        words = [format_annotation({trait.tips.name: state})[2:-1] for state in trait.tips.states]
        said = [[words[int(k)]] for k in samples.sets[i, STATES]]
    for x in range(len(parent) - 1):
        text = str(x + 1) if x < n_tips else f"({','.join(inside[x])})"
        if lengths[x] > 0.0:  # an ancestor's branch, which lasts no time, has no rate
            said[x] = [*(f"{name}={rate:.6e}" for name, rate in zip(names, rates[:, x])), *said[x]]
        inside[parent[x]].append(f"{text}{_note(said[x])}:{lengths[x]:.10g}")
    root = _note(said[-1])
    note = f"[&lnP={samples.numbers[i, :2].sum():.6f}]"
    return f"tree STATE_{samples.generation[i]} {note} = [&R] ({','.join(inside[-1])}){root};\n"


def close_trace(prefix: str, run: AnyRun) -> None:
    """End the TREES block."""
    with appended_text(paths(prefix, run.number)[1], KEPT) as file:
        file.write("end;\n")


# The likelihood by the plain path, for the guard.


def plain_time_likelihood(
    alignments: Sequence[Alignment], model: TimeModel, unrecorded: Sequence[int] = ()
) -> Plain:
    """A function (parent, (heights, rates), numbers of a trace) → log-likelihood from scratch, in NumPy.
    unrecorded: of every part, see recipes.observations."""
    plain = plain_likelihood(alignments, model.engine, unrecorded)

    def log_likelihood(parent: np.ndarray, sets: np.ndarray, numbers: Mapping[str, float]) -> float:
        trees = [unroot(Tree(model.taxa, parent, own)) for own in lengths_by_clock(model, parent, sets)]
        return plain(trees[0].parent, np.stack([tree.lengths for tree in trees]), numbers)

    return log_likelihood


# All runs.


@dataclass(frozen=True, eq=False)
class Sampled:
    """runs with their samples; the last diagnosis; seconds and generations of this call, over all chains of
    all runs; resumed_at: the generation it resumed at, or None."""

    runs: tuple[AnyRun, ...]
    diagnosis: Diagnosis
    seconds: float
    generations: int
    resumed_at: int | None


@one_blas_thread()
def sample(
    observed: Observations | Sequence[Observations],
    model: TimeModel,
    settings: TimeSettings,
    prefix: str | None = None,
    identity: dict | None = None,
    progress: Callable[[Progress], None] | None = None,
    plain: Plain | None = None,
    origin: Origin | None = None,
    where: Where | None = None,
) -> Sampled:
    """Run the chains to the end of settings.generations, or until they have converged; arguments and errors
    as of inference.mcmc.sampler.sample; origin: of all runs, None for a random one each. Every run has a
    thread, and of several ranks each has whole runs, or some columns of one."""
    where, parts, plain = where or Where(), as_parts(observed), plain if settings.use_data else None
    spread = where.spread(settings.n_runs, 1)
    prefix = prefix if spread.ranks.number == 0 else None
    checkpoint: Checkpoint | None = None
    state_type = TimeState if settings.n_chains == 1 else CoupledState
    if prefix:
        checkpoint = Checkpoint(prefix, (identity or {}) | {"n_runs": settings.n_runs}, state_type)
    stored = checkpoint.load() if checkpoint else None
    runs = _new_runs((parts, model, settings, origin, where.device), spread, stored)
    names = trace_columns(model, settings.working is not None).names
    guard = Guard(parts, settings.n_chains, names, plain if spread.speaks else None, None, prefix)
    start = at = spread.ranks.broadcast(max((int(s.generation.flat[0]) for s, _ in stored or ()), default=0))
    runs = [any_advanced(run, at - run.generation) for run in runs]  # one may have been stopped before others
    for run in runs:
        guard.check_chains(run.number, _checked_draws(run))
    whole, runs = gathered(spread, runs, [samples for _, samples in stored or ()])
    if checkpoint and not stored:
        checkpoint.save(whole)
    written = [write_trace(prefix, run, 0) if prefix else 0 for run in whole]
    begun, each = time.monotonic(), settings.n_runs * settings.n_chains
    diagnosis = spread.ranks.broadcast(diagnosis_of(whole) if whole else None)
    stops, every, end = settings.until_converged, settings.check_every, settings.generations
    while at < end and not (stops and diagnosis.met and looks_at(at, every, end)):
        block, before = min(every - at % every, end - at), [run.samples for run in whole]
        goal = each, expected_end(settings, diagnosis)
        report = reporter(progress, [run.cold for run in runs], goal, (begun, start), diagnosis)
        keep = checkpoint.save if checkpoint and spread.alone else None
        threads = threads_of(settings, spread.ranks)
        runs = advance_all(any_advanced, runs, block, threads, report, keep, spread.alone)
        last = (at := at + block) >= end
        for run in runs if last else ():
            guard.check_chains(run.number, _checked_draws(run))
        whole, runs = gathered(spread, runs, before)
        for run, former in zip(whole, before):
            guard.check_samples(run.number, run.samples, former.n, run.cold.state)
        _check_whole(whole, prefix)
        if prefix and checkpoint:
            checkpoint.save(whole)
            written = [write_trace(prefix, run, n) for run, n in zip(whole, written)]
        if looks_at(at, every, end) and whole:
            diagnosis = diagnosis_of(whole)
        diagnosis = spread.ranks.broadcast(diagnosis)
    for run in whole if prefix else ():
        close_trace(str(prefix), run)
    done = (at - start) * each
    return Sampled(tuple(whole), diagnosis, time.monotonic() - begun, done, start if stored else None)


def check_runaway(runs: Sequence[AnyRun]) -> None:
    """NumericalError where the dates do not hold the ages of a run any more.

    The clock's CTMC reference prior and an open level of population sizes together do not change when all
    ages are multiplied and rates divided by one number: the dates alone hold the ages. Where data hardly show
    a rate, a chain sooner or later crosses to ages beside which the dates are as one, from where nothing
    leads it back."""
    for run in runs:
        model, state = run.cold.model, run.cold.state
        free = model.has_open_level and all(model.reference)
        free = free and all(clade.age is None or clade.of_tip for clade in model.clades)
        root = float(state.heights[int(state.slot[0])].max())
        if free and root > _FAR * model.scale.time:
            raise NumericalError(
                f"run {run.number + 1} has lost the dates: its root is {root:.3g} old, and they span "
                f"{model.scale.time:.4g}. These data hardly show a rate (phloem temporal-signal says how "
                f"little), and under the tree prior {model.tree_prior.name} with the clock's CTMC reference "
                "prior no age is too old: the posterior is no distribution, and earlier samples are none of "
                f"it. Leave --prior {LEVEL}=jeffreys out, or say what is known, as in --prior "
                "'clock_rate=lognormal(-7,1)' or --calibrate 'root=uniform(1,100)', with --redo."
            )


def _check_whole(runs: Sequence[AnyRun], prefix: str | None) -> None:
    """Errors of check_runaway, and of check_undefined, which it may end in."""
    check_runaway(runs)
    check_undefined(runs, prefix)


def check_ancestors(run: Run) -> None:
    """NumericalError where the log-likelihood that the run carries along is not that of its ancestors."""
    if run.ancestral is not None:
        state, s = run.state, int(run.state.slot[0])
        model = run.model.engine.site_model(0, run.model.engine_values(state.values[s]))
        value = float(state.log_likelihood[0])
        check_memory(run.ancestral, (state.parent[s], state.lengths[s, 0]), model, value)


def any_advanced(run: AnyRun, n_generations: int, stopped: Callable[[], bool] = lambda: False) -> AnyRun:
    """run.advanced or coupled.coupled_advanced."""
    if isinstance(run, CoupledRun):
        return coupled_advanced(run, n_generations, stopped)
    return advanced(run, n_generations, stopped)


def _checked_draws(run: AnyRun) -> dict[int, Samples]:
    """The present state of every chain by its rank of heat, priors held against the reference, and ancestors
    where they are sampled."""
    for chain in run.chains:
        check_prior(chain)
        check_ancestors(chain)
    return {rank: drawn(chain) for rank, chain in enumerate(run.by_rank)}


def _new_runs(made_from: tuple, spread: Spread, stored: list | None) -> list[AnyRun]:
    """Every run of this rank at its start, or where it is stored; rank 0 alone keeps former samples."""
    observed, model, settings, origin, device = made_from
    if not spread.alone:
        without = [(state, nothing_of(samples)) for state, samples in stored or ()]
        stored = spread.ranks.broadcast(without)
    beside = spread.beside
    if shared := beside.size > 1 and bool(spread.own.runs):
        on_device = device == "gpu" and settings.use_data
        made = partial(dated_seen, observed, model, settings, beside.size, on_device)
        observed = sent(beside, spread.own_speeds, made)
    new = [
        (r, observed, model, settings, stored[r] if stored else None, origin, device) for r in spread.own.runs
    ]
    if settings.n_chains == 1:
        return [new_run(*own, beside=beside) for own in new]
    threads = 1 if shared else max(1, threads_of(settings, spread.ranks) // max(1, len(new)))
    return [new_coupled_run(*own, min(threads, settings.n_chains), beside) for own in new]


def first_kept(run: AnyRun) -> int:
    """Index of the first sample after the warm-up."""
    return int(np.searchsorted(run.samples.generation, run.settings.tuning, side="right"))


def diagnosis_of(runs: Sequence[AnyRun]) -> Diagnosis:
    """Convergence of numbers and clades after the warm-up; of a trait without those of single routes."""
    names = ("LnL", "LnPr", *runs[0].columns.names)
    kept = [i for i, name in enumerate(names) if not name.startswith(PER_ROUTE)]
    samples = [replace(run.samples, numbers=run.samples.numbers[:, kept]) for run in runs]
    names = tuple(names[i] for i in kept)
    return diagnose(samples, names, runs[0].model.taxa, first_kept(runs[0]), runs[0].settings.convergence)


MOST_DIVERGED = 0.02  # of the joint trajectories


def warnings_of(runs: Sequence[AnyRun]) -> list[str]:
    """Moves that the cold chain tried often and never saw accepted, and its joint trajectories that left
    their range after the warm-up, with the node where that happened most; ranks of heat where nothing is
    accepted, and runs whose cold chain never swapped; and those with proposals that nobody can judge."""
    found = []
    for run in runs:
        cold, label = run.cold, f"run {run.number + 1}"
        state = cold.state
        for m, move in enumerate(run.moves):
            tried = int(state.tried[m])
            if tried >= ENOUGH_TRIES and state.accepted[m] == 0:
                found.append(f"{label}: move {move.name} was tried {tried:,} times and never accepted")
            if move.on == OF_HAMILTON and state.diverged[JOINT] > MOST_DIVERGED * tried:
                found.append(
                    f"{label}: {state.diverged[JOINT]:,} of {tried:,} Hamiltonian trajectories left their "
                    f"range, most at {_worst_node(cold)}"
                )
        if isinstance(run, CoupledRun):
            ranks = [chain.state for chain in run.by_rank]
            of_moves = np.array([s.tried for s in ranks]), np.array([s.accepted for s in ranks])
            swaps = run.coupling.swaps_tried, run.coupling.swaps_accepted
            found += heat_warnings(label, *of_moves, *swaps)
    return [*found, *undefined_warnings(runs)]


def swaps_of(runs: Sequence[AnyRun]) -> tuple[float, ...]:
    """Accepted shares of swaps between neighbouring ranks of heat, of all runs; none of single chains."""
    of = [run.coupling for run in runs if isinstance(run, CoupledRun)]
    if not of:
        return ()
    tried, accepted = (np.sum([getattr(one, name) for one in of], axis=0) for name in Coupling._fields[2:])
    return swap_shares(tried, accepted)


def _worst_node(run: Run) -> str:
    """The node of the last tree whose slope was largest most often when a trajectory left its range."""
    s = int(run.state.slot[0])
    place = np.argsort(run.state.order[s], kind="stable")
    node, inner = int(np.argmax(run.state.diverged_at)), place[run.model.n_tips :]
    last = drawn(run).tree_sample(run.model.taxa).tree(0)
    return branch_name(last, run.model.n_tips + int((inner < place[node]).sum()))
