"""One Metropolis-coupled run: its records, and many generations at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phloem.errors import NumericalError
from phloem.inference.mcmc.columns import TraceColumns, trace_columns
from phloem.inference.mcmc.moves import Move, chosen_moves
from phloem.inference.mcmc.observations import Observations
from phloem.inference.mcmc.records import ChainData, ChainState, ChainWork
from phloem.inference.mcmc.samples import Samples, draw, extended, no_samples
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import chain_data, chain_state, chain_work
from phloem.inference.mcmc.structure import ModelStructure
from phloem.tree.tree import Tree


@dataclass(frozen=True, eq=False)
class Run:
    """Records of one run; the arrays of state and work change in place, samples are replaced."""

    number: int
    settings: ChainSettings
    moves: tuple[Move, ...]
    columns: TraceColumns
    data: ChainData
    state: ChainState
    work: ChainWork
    samples: Samples

    @property
    def generation(self) -> int:
        return int(self.state.generation[0])


def new_run(
    number: int,
    observed: Observations,
    structure: ModelStructure,
    settings: ChainSettings,
    state=None,
    samples=None,
    start_tree: Tree | None = None,
) -> Run:
    """A run at its start, or where state and samples say that it was; its caches are filled.

    start_tree: one of observed.taxa, in their order, that the chains start near; None for random trees.
    Raises NumericalError where the start has no finite log-likelihood.
    """
    moves = chosen_moves(structure, len(observed.taxa), settings.move_weights)
    data = chain_data(
        observed.codes, observed.code_sets, observed.weights, observed.n_hidden, structure, settings, moves
    )
    fresh = state is None
    state = chain_state(data, structure, moves, settings, number, start_tree) if state is None else state
    columns = trace_columns(structure)
    run = Run(number, settings, moves, columns, data, state, chain_work(data, settings.n_chains), samples)
    _advance(run, 0, refresh=True)
    if not np.isfinite(state.log_likelihood).all():
        raise NumericalError("a starting tree has no finite log-likelihood")
    if fresh:
        empty = no_samples(len(columns.names), state.parent.shape[2])
        run = replace(run, samples=extended(empty, [draw(state, columns)]))
    return run


def advanced(run: Run, n_generations: int, stopped=lambda: False) -> Run:
    """The run after n_generations more (a multiple of sample_every, or the rest), sampled on the way.

    stopped: asked after every sample; True gives up.
    """
    every, end, drawn = run.settings.sample_every, run.generation + n_generations, []
    while run.generation < end and not stopped():
        _advance(run, min(every - run.generation % every, end - run.generation))
        if run.generation % every == 0:
            drawn.append(draw(run.state, run.columns))
    return replace(run, samples=extended(run.samples, drawn))


def _advance(run: Run, n_generations: int, refresh: bool = False) -> None:
    from phloem.inference.mcmc.compiled.run import advance  # numba takes a third of a second to load

    tuning = min(max(run.settings.tuning - run.generation, 0), n_generations)
    if tuning or refresh:
        advance(run.data, run.state, run.work, tuning, 1, int(refresh))
    if n_generations > tuning:
        advance(run.data, run.state, run.work, n_generations - tuning, 0, 0)
