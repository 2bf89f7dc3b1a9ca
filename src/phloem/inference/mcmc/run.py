"""One Metropolis-coupled run: its records, and many generations at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from phloem.density.space import Space
from phloem.errors import InputError, NumericalError
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.learning import EVERY as LOOK_EVERY
from phloem.inference.mcmc.learning import learn, looked_at
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.records import (
    LIKELIHOOD,
    OF_TOPOLOGY,
    PRIOR,
    WORK,
    WORKING,
    ChainData,
    ChainScratch,
    ChainShared,
    ChainState,
)
from phloem.inference.mcmc.samples import Samples, TraceColumns, draw, extended, no_samples, trace_columns
from phloem.inference.mcmc.seen import Seen, seen_of
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Columns, Swaps, own_state
from phloem.inference.mcmc.stones import stretches
from phloem.inference.mcmc.structure import ChainModel
from phloem.pruning.cpu.forest import Forest
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.inference.mcmc.device import DeviceChains
    from phloem.inference.mcmc.move_table import ChainMove
    from phloem.inference.mcmc.start import Downs

Device = Literal["cpu", "gpu"]

SMALL_RUN = 400_000  # message entries at all tips: below, a second thread waits more than it works


@dataclass(frozen=True, eq=False)
class Run:
    """Records of one run; the arrays of state, shared and the forest's cells change in place, samples are
    replaced. forest: the cells of all chains. scratches: one a thread; what
    happens does not depend on their number. on_device: the chains' likelihood, where a GPU has it. downs:
    where a move asks for gradients. swaps: where other ranks have chains of this run; records are then of
    those here, and samples of the generations in which the cold chain is. columns_of: where other ranks have
    cells of the chains here."""

    number: int
    settings: ChainSettings
    moves: tuple[ChainMove, ...]
    columns: TraceColumns
    forest: Forest
    data: ChainData
    state: ChainState
    shared: ChainShared
    scratches: tuple[ChainScratch, ...]
    samples: Samples
    on_device: DeviceChains | None = None
    downs: Downs | None = None
    swaps: Swaps | None = None
    columns_of: Columns | None = None

    @property
    def generation(self) -> int:
        return int(self.state.generation[0])

    def holding(self, number: int, state: ChainState, samples: Samples) -> Run:
        """The same of another run, to be looked at, not advanced."""
        return replace(self, number=number, state=state, samples=samples)

    @property
    def structure(self) -> ChainModel:
        return self.columns.structure

    @property
    def space(self) -> Space:
        return self.structure.space


def new_run(
    number: int,
    observed: Observations | Sequence[Observations] | Seen,
    structure: ChainModel,
    settings: ChainSettings,
    begin: ChainState | Tree | None = None,
    samples: Samples | None = None,
    threads: int = 1,
    device: Device = "cpu",
    swaps: Swaps | None = None,
) -> Run:
    """A run at its start, or where its state and samples say that it was; its caches are filled.

    observed: of every part of structure, or of its only one; or what was sent of it (seen.py). begin: the
    state of all chains; or a tree of their taxa, in their order, that the chains start near; None for random
    trees. threads: that share the run's chains. device: cpu, or gpu for the likelihood of all chains. swaps:
    where other ranks have some of the chains, or columns of those here. Raises NumericalError where the start
    has no finite log-likelihood.
    """
    from phloem.inference.mcmc import start  # numba takes a third of a second to load
    from phloem.inference.mcmc.move_table import chosen_moves

    parts = () if isinstance(observed, Seen) else as_parts(observed)
    beside = swaps.beside if swaps else Ranks()
    seen = seen_of(parts, structure, settings, beside.size, device == "gpu") if parts else observed
    assert isinstance(seen, Seen)
    cells = seen.cells
    moves = chosen_moves(structure, seen.n_tips, settings.move_weights, settings.fixed_topology)
    here = range(settings.n_chains) if swaps is None else swaps.own
    there = settings.use_data and device == "gpu"
    if there and settings.working is not None:
        told = "chains from a working distribution are on the CPU only"
        raise InputError(told, hint="Choose --device cpu.")
    columns_of = Columns(beside, seen.dealt) if beside.size > 1 else None
    own = range(len(cells)) if columns_of is None else columns_of.own
    forest = start.chain_forest(cells, own, len(here), settings.use_data and device == "cpu")
    data = start.chain_data(forest, structure, settings, moves, own.start)
    if begin is None and settings.fixed_topology:
        raise InputError("no tree says which topology is fixed", hint="Start from a tree.")
    if fresh := not isinstance(begin, ChainState):
        begin = start.chain_state(data, structure, moves, settings, number, begin)
    state = begin if swaps is None else own_state(begin, here)
    rows = settings.sample_every if there else 0  # its helpers keep these arrays from one call to the next
    shared = start.chain_shared(data, len(here), structure.n_sets, len(cells), rows)
    columns = trace_columns(structure, settings.priors, settings.working is not None)
    useful = min(max(threads, settings.gpus), len(here) * len(forest.parts))
    if not there and sum(cell.values.size // 4 for cell in forest.cells[0]) < SMALL_RUN:
        useful = 1
    room = data, structure.n_sets, seen.characters
    scratches = tuple(start.chain_scratch(forest, *room) for _ in range(useful))
    if samples is None:
        samples = no_samples(len(columns.names), state.parent.shape[2] - 1, len(structure.set_names))
    run = Run(number, settings, moves, columns, forest, data, state, shared, scratches, samples, swaps=swaps)
    run = replace(run, columns_of=columns_of)
    if data.moves.gradients.any():
        _require_gradients(settings, device)
        run = replace(run, downs=start.chain_downs(forest, useful))
    run = _evaluated(run, there, parts)
    return replace(run, samples=extended(samples, [draw(state, columns)])) if fresh and is_cold(run) else run


def _require_gradients(settings: ChainSettings, device: Device) -> None:
    """InputError where chains have none."""
    if device == "gpu":
        raise InputError("moves that ask for gradients are made on the CPU only", hint="Choose --device cpu.")
    if settings.working is not None:
        told = "moves that ask for gradients know none of a working distribution"
        raise InputError(told, hint="Leave them out of the moves' weights.")


def _evaluated(run: Run, on_device: bool, parts: Sequence[Observations]) -> Run:
    """The run with every chain's state evaluated from scratch."""
    from phloem.inference.mcmc.compiled.run import REFRESH

    data, state, shared = run.data, run.state, run.shared
    if on_device:
        from phloem.inference.mcmc.device import chains_on_device

        more = (data, state, shared), run.scratches, run.settings, run.number, run.columns_of
        run = replace(run, on_device=chains_on_device(run.forest, run.structure, *more))
    elif run.settings.precision == "float32":
        raise InputError("chains of float32 are on a GPU only", hint="Choose --device gpu, or float64.")
    else:
        if run.settings.use_data:
            for chain in range(len(state.slot)):
                _write_models(run, chain, int(state.slot[chain]), 0)
        _work(run, shared, 1, REFRESH, 0)
    if not np.isfinite(state.log_likelihood + state.log_prior).all():
        from phloem.inference.mcmc.guard import why_impossible

        if not parts:
            raise NumericalError("a chain cannot start; the first process that has it says why")
        raise why_impossible(parts, run.structure, run.settings, state)
    return run


def is_cold(run: Run) -> bool:
    """Whether the chain at temperature 1 is here."""
    return bool((run.state.rank == 0).any())


def as_parts(observed: Observations | Sequence[Observations]) -> tuple[Observations, ...]:
    """One part or several as a tuple of them."""
    return (observed,) if isinstance(observed, Observations) else tuple(observed)


def advanced(run: Run, n_generations: int, stopped=lambda: False) -> Run:
    """The run after n_generations more (a multiple of sample_every, or the rest), sampled on the way.

    stopped: asked after every sample; True gives up.
    """
    every, end, drawn = run.settings.sample_every, run.generation + n_generations, []
    while run.generation < end and not stopped():
        _advance(run, min(every - run.generation % every, end - run.generation))
        if run.generation % every == 0 and is_cold(run):
            drawn.append(draw(run.state, run.columns))
    return replace(run, samples=extended(run.samples, drawn))


def _advance(run: Run, n_generations: int) -> None:
    from phloem.inference.mcmc.compiled.run import SAMPLE, TUNE

    heat, powers = run.data.heat, run.state.powers
    for n, tunes, power in stretches(run.settings, run.generation, n_generations):
        heat[:, PRIOR], heat[:, LIKELIHOOD] = powers, power * powers
        if run.settings.working is not None:  # (prior · likelihood)^power · working^(1 - power)
            heat[:, PRIOR], heat[:, WORKING] = power * powers, (1.0 - power) * powers
        pair, log_uniform, task = np.full((n, 2), -1), np.zeros(n), TUNE if tunes else SAMPLE
        _draw_swaps(run, pair, log_uniform)
        before = run.state.jumps[:, WORK].copy()
        if run.swaps is None:
            _work_all(run, pair, log_uniform, task)
        else:
            _work_among_ranks(run, pair, log_uniform, task)
        if tunes and run.columns_of is not None and run.on_device is None:  # on devices proposals cost alike
            run.state.jumps[:, WORK] = before + run.columns_of.summed(run.state.jumps[:, WORK] - before)
        run.state.generation[0] += n
        if tunes:
            _learn(run)


def _learn(run: Run) -> None:
    """What chains learn while moves adapt, at the generation they have come to: how hot they are to be and
    how numbers vary together, before the last quarter or half, so that steps and weights adapt to how good
    that is for what comes after; what splits there are; and how often to try each move, from the second
    quarter and then from the second half."""
    from phloem.inference.mcmc import heating, split_memory, weights
    from phloem.inference.mcmc.move_table import NUMBERS

    data, state, at, settings = run.data, run.state, run.generation, run.settings
    shared = (lambda rows: rows) if run.swaps is None else run.swaps.shared
    explored, settled = heating.exploring(settings), heating.frozen_from(settings)
    has_set = heating.in_cycle(settings, at) >= heating.SET
    learns = has_set and at <= settled and any(move.move.on == NUMBERS for move in run.moves)
    if settings.learns_heating and at <= settled and at % heating.EVERY == 0:
        heating.learn_powers(state, settings, shared(heating.looked_at(state)))
    if learns and at % LOOK_EVERY == 0:
        learn(data, state, shared(looked_at(data, state)))
    if at % split_memory.EVERY == 0 and any(move.move.splits for move in run.moves):
        if not explored and at == settings.tuning // 4 // split_memory.EVERY * split_memory.EVERY:
            split_memory.forget(state)
        if has_set:
            split_memory.note(state, data.n_tips, shared(split_memory.looked_at(data, state)))
    if settings.learns_weights:
        if at % weights.EVERY == 0:
            weights.watch(state, shared(weights.looked_at_cold(data, state)))
        quarter, half = (settings.tuning // k // weights.EVERY * weights.EVERY for k in (4, 2))
        if at in (quarter, half, settings.tuning):
            rows = np.zeros((len(state.rank), state.jumps.size))
            rows[0] = state.jumps.ravel()
            jumps = shared(rows).sum(0).reshape(state.jumps.shape)
            usual = np.array([move.weight for move in run.moves]) if at > quarter else None
            of_topology, kept = data.moves.on == OF_TOPOLOGY, weights.not_starved(data)
            weights.learn_weights(state, usual, of_topology, jumps, kept)


def _work_among_ranks(run: Run, pair: np.ndarray, log_uniform: np.ndarray, task: int) -> None:
    """All chains here by a generation for every swap drawn, pausing where one of them may swap with a chain
    of another rank."""
    swaps = run.swaps
    assert swaps is not None
    local, pauses = swaps.local(pair)
    begun = 0
    for g in [*pauses.tolist(), None]:
        end = len(pair) if g is None else g + 1
        if end > begun:
            _work_all(run, local[begun:end], log_uniform[begun:end], task)
        if g is not None:
            swaps.swap(run.state, run.data.heat, pair[g], log_uniform[g])
        begun = end


def _work_all(run: Run, pair: np.ndarray, log_uniform: np.ndarray, task: int) -> None:
    """All chains here by a generation for every swap: (n, 2) chains, -1 where none may, and (n,) what
    decides."""
    if run.on_device is not None:
        from phloem.inference.mcmc.device import work_on_device

        run.shared.pair[: len(pair)], run.shared.log_uniform[: len(pair)] = pair, log_uniform
        records = run.data, run.state, run.shared
        work_on_device(run.on_device, run.structure, *records, len(pair), task, run.columns_of)
    else:
        _work_on_cpu(run, run.shared._replace(pair=pair, log_uniform=log_uniform), len(pair), task)


def _draw_swaps(run: Run, pair: np.ndarray, log_uniform: np.ndarray) -> None:
    """Of the generations to come: (n, 2) chains that may swap, -1 where none may, and (n,) what decides."""
    from phloem.inference.mcmc.compiled.run import draw_swaps

    if run.settings.n_chains > 1:
        first, every = run.generation, min(run.settings.swap_every, 1 << 62)
        draw_swaps(run.state.swap_rng, run.settings.n_chains, pair, log_uniform)
        if every > 1:
            pair[(np.arange(first, first + len(pair)) + 1) % every != 0] = -1


def _work_on_cpu(run: Run, shared: ChainShared, n: int, task: int) -> None:
    shared.done[:], shared.swapped[:] = 0, 0
    if len(run.scratches) == 1:
        return _work(run, shared, n, task, 0)
    with ThreadPoolExecutor(len(run.scratches)) as pool:
        others = [pool.submit(_work, run, shared, n, task, t) for t in range(len(run.scratches))]
    for other in others:
        other.result()


def _work(run: Run, shared: ChainShared, n_generations: int, task: int, thread: int) -> None:
    """One thread's part: compiled, but for models that only Python can evaluate."""
    from phloem.inference.mcmc.compiled.run import FINISHED, advance

    resume, first = -1, thread * len(run.state.slot) // len(run.scratches)
    try:
        while True:
            resume = advance(
                run.data, run.state, shared, run.scratches[thread], n_generations, task, resume, first
            )
            if resume == FINISHED:
                return
            if shared.asks[resume]:
                _ask_others(run, shared, resume)
                continue
            if run.downs is not None and run.data.moves.gradients[shared.move[resume]] > 0:
                from phloem.inference.mcmc.compiled.gradient import propose_by_gradients

                own = run.scratches[thread], run.downs.table, run.downs.rooms[thread]
                propose_by_gradients(run.data, run.state, shared, *own, resume)
                continue
            _write_models(run, resume, 1 - int(run.state.slot[resume]), 1)
    except BaseException:
        shared.stop[0] = 1  # the chain stays locked, and other threads would wait for it
        raise


def _ask_others(run: Run, shared: ChainShared, chain: int) -> None:
    """What cells of a chain's proposal come to on other ranks, which have drawn the same."""
    assert run.columns_of is not None
    new, state = 1 - int(run.state.slot[chain]), run.state
    drawn = shared.ratio[chain], state.lengths[chain, new].sum(), state.values[chain, new].sum()
    run.columns_of.gather(shared.cell_values[chain], drawn)


def _write_models(run: Run, chain: int, slot: int, proposed: int) -> None:
    """Models of chain's cells at the numbers in a slot of the state: all of them into the slots in use, or,
    proposed, those that a proposal changes and the compiled loop cannot make into the others."""
    from phloem.inference.mcmc.records import BY_MODEL, KIND

    values, recipes = run.state.values[chain], run.data.recipes
    for part in range(len(run.structure.parts)):
        if proposed:
            differs = (values[0] != values[1]) & (recipes.reads[part] != 0)
            if recipes.rows[part, KIND] != BY_MODEL or not differs.any():
                continue
        cell = int(np.searchsorted(run.data.part_of, part))  # its first, whose model the others share
        if cell == len(run.data.part_of) or run.data.part_of[cell] != part:
            continue  # another rank has it
        used = int(run.forest.cells[chain][cell].slot[0])
        model = run.structure.site_model(part, values[slot])
        run.forest.set_model(chain, cell, 1 - used if proposed else used, model)
