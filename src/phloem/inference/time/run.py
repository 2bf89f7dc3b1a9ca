"""One run over dated trees: its records, and many generations at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.density import clocks
from phloem.density.space import Space
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.records import COMPILED, KIND
from phloem.inference.mcmc.run import Device, as_parts
from phloem.inference.mcmc.samples import Samples, extended, no_samples
from phloem.inference.mcmc.spread import Columns
from phloem.inference.time.ancestors.larger.memory import CodedMemory
from phloem.inference.time.ancestors.sequences import Memory
from phloem.inference.time.ancestors.start import SUMMED, addresses, ancestral_memory, can_walk
from phloem.inference.time.draws import Columns as TraceColumns
from phloem.inference.time.draws import draw, trace_columns
from phloem.inference.time.field import field_of
from phloem.inference.time.move_table import ChainMove, chosen_moves
from phloem.inference.time.records import (
    CENTRE,
    COUNT,
    FOR_MODEL,
    LAST_PRIOR,
    LOG_MEAN,
    LOG_STEP,
    NOTHING,
    RATIO,
    SHORTFALL,
    SLOPES,
    WAITING,
    TimeData,
    TimeScratch,
    TimeState,
)
from phloem.inference.time.seen import DatedSeen, dated_seen
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.start import (
    Cells,
    Origin,
    time_cells,
    time_data,
    time_scratch,
    time_state,
)
from phloem.inference.time.structure import TimeModel
from phloem.pruning.cpu.cell_records import ForestTrees

if TYPE_CHECKING:
    from phloem.inference.time.device import DeviceLikelihood

WINDOWS = (0.1, 0.2, 0.35, 0.6, 0.9)
"""Shares of the warm-up at which a window of learning ends: its scales are then used, and another begins."""
MELTED = 0.25
"""The power of the likelihood while a chain of the warm-up is melted (decision 0032)."""
MELTING, CYCLES, HOT, SETTLED = (0.1, 0.6), 5, 0.3, 0.7
"""Between which shares of the warm-up chains melt and set, how often, for what share of a cycle they are hot,
and at what share of it they have set, so that places of subtrees may be learnt."""
LEAST_MELTING = 1000  # moves of the warm-up for every tip, below which there is no time to set
STONE_WINDOWS = (0.5,)
"""The same, of those of a stone in which moves adapt."""
PRIOR_DRAWS = 5.0  # how many draws the usual variance counts as


@dataclass(frozen=True, eq=False)
class Run:
    """Records of one run; arrays of state, scratch and cells change in place, samples are replaced.
    on_device: its likelihood, where a GPU has it; ancestral: its ancestors, where they are sampled;
    columns_of: where other ranks have some cells."""

    number: int
    settings: TimeSettings
    model: TimeModel
    moves: tuple[ChainMove, ...]
    columns: TraceColumns
    cells: Cells
    data: TimeData
    state: TimeState
    scratch: TimeScratch
    samples: Samples
    on_device: DeviceLikelihood | None = None
    ancestral: Memory | CodedMemory | None = None
    columns_of: Columns | None = None

    @property
    def generation(self) -> int:
        return int(self.state.generation[0])

    @property
    def space(self) -> Space:
        return self.model.space

    def holding(self, number: int, state: TimeState, samples: Samples) -> Run:
        """The same of another run, to be looked at, not advanced."""
        return replace(self, number=number, state=state, samples=samples)

    @property
    def chains(self) -> list[Run]:
        """As coupled.CoupledRun has them."""
        return [self]

    @property
    def by_rank(self) -> list[Run]:
        return [self]

    @property
    def cold(self) -> Run:
        return self


def new_run(
    number: int,
    observed: Observations | Sequence[Observations] | DatedSeen,
    model: TimeModel,
    settings: TimeSettings,
    stored: tuple[TimeState, Samples] | None = None,
    origin: Origin | None = None,
    device: Device = "cpu",
    chain: int = 0,
    beside: Ranks | None = None,
) -> Run:
    """A run at its start, or where it was stored; its caches are filled. origin: what it starts from, else
    random. device: where its likelihood is. observed: of the only part, or of every one, or what was
    sent of them (seen.py). chain: which of several it is, that have random numbers and trees of their own.
    beside: ranks that share the columns.

    Raises NumericalError where the start has no finite log-likelihood or prior."""
    from phloem.inference.time.compiled.run import REFRESH

    there_on_device = device == "gpu" and settings.use_data
    parts = () if isinstance(observed, DatedSeen) else as_parts(observed)
    beside = beside or Ranks()
    seen = dated_seen(parts, model, settings, beside.size, there_on_device) if parts else observed
    assert isinstance(seen, DatedSeen)
    columns_of = Columns(beside, seen.dealt) if beside.size > 1 else None
    cells = time_cells(seen.cells, seen.dealt[beside.number], model)
    ancestors = settings.use_data and settings.ancestors == "sampled"
    there = _there(model) | {"model": cells.apart, "characters": len(seen.characters.blocks) > 0}
    there |= {"ancestors": ancestors, "categories": len(cells.forest.parts[0].process) > 1}
    there["walks"] = ancestors and can_walk(model)
    chosen = chosen_moves(model, there, settings.move_weights, seen.costs)
    by_ancestors = addresses(model) if ancestors else SUMMED
    moves, data = chosen[0], time_data(cells, model, settings, chosen, there_on_device, by_ancestors)
    columns = trace_columns(model, settings.working is not None)
    state = stored[0] if stored else time_state(model, settings, moves, (number, chain), origin)
    ancestral = None
    if ancestors:
        ancestral, state = ancestral_memory(parts[0], model, state, stored is not None)
    samples = stored[1] if stored else no_samples(len(columns.names), state.parent.shape[1], columns.n_sets)
    field = field_of(model, data.tree_density, data.tree_settings)
    run = Run(
        number, settings, model, tuple(moves), columns, cells, data, state,
        time_scratch(cells, data, state, seen.characters, ancestral, field), samples, ancestral=ancestral,
        columns_of=columns_of,
    )  # fmt: skip
    _write_model(run, int(state.slot[0]), proposed=False)
    if there_on_device:
        from phloem.inference.time.device import DeviceLikelihood

        own = DeviceLikelihood(model, cells, state, run.scratch, settings.n_runs * settings.n_chains)
        run = replace(run, on_device=own, data=data._replace(on_device=own.address(columns_of is None)))
    run.scratch.last[LAST_PRIOR] = np.nan  # which stays where the state is impossible
    if run.generation > 0:
        run.scratch.trait.power[0] = stretch_after(settings, model.n_tips, run.generation - 1).power
    _turns(run, 1, REFRESH)
    if not np.isfinite(state.log_likelihood + state.log_prior).all():
        from phloem.inference.time.plain_prior import why_impossible

        raise why_impossible(run)
    return run if stored else replace(run, samples=extended(samples, [drawn(run)]))


def _there(model: TimeModel) -> dict[str, bool]:
    """What moves may need (move_table.Move.needs)."""
    kind, held = model.clock, model.clock in clocks.INDEPENDENT
    along = kind in clocks.FROM_PARENTS
    free = not model.fixed.issuperset(model.spread_names)
    fixed = [clade for clade in model.clades if isinstance(clade.age, float)]
    return {
        "held": held,
        "rates": kind in (*clocks.SMOOTH, clocks.SHRINKAGE),
        "spread": free and not along,
        "jumps": kind == clocks.RANDOM,
        "inherited": kind in (clocks.RANDOM, clocks.SHRINKAGE),
        "peaked": kind == clocks.SHRINKAGE,
        "noise": free and kind == clocks.WHITE_NOISE,
        "autocorrelated": free and along,
        "rate": not model.fixed.issuperset(model.rate_names),
        "dates": bool((model.tip_bounds[:, 0] < model.tip_bounds[:, 1]).any()),
        "root": not any(len(c.taxa) == model.n_tips for c in fixed),
        "ages": not fixed,
        "groups": model.parameters.n_groups > 1,
        "fossils": model.samples_ancestors,
        "field": model.tree_prior.field and "pop_size" not in model.fixed,
    }


def drawn(run: Run) -> Samples:
    """The present state. Where ancestors are sampled, its log-likelihood is that summed over them, found from
    scratch."""
    sample = draw(run.state, run.columns, float(run.scratch.trait.power[0]))
    if run.ancestral is not None:
        s = slice(int(run.state.slot[0]), int(run.state.slot[0]) + 1)
        state = run.state
        tree = state.left[s], state.right[s], state.parent[s], state.order[s], state.lengths[s]
        sample.numbers[0, 0] = run.cells.forest.from_scratch(ForestTrees(*tree))[0].sum()
    return sample


def ancestral_bytes(run: Run) -> int:
    """Memory of sampled ancestors, besides what the state holds."""
    if run.ancestral is None:
        return 0
    arrays = {a.ctypes.data: a.nbytes for a in (*run.ancestral[:-1], *run.ancestral.near)}
    return sum(arrays.values()) - run.state.sequences.nbytes - run.state.category.nbytes


@dataclass(frozen=True)
class Stretch:
    """Generations that are alike: the power of the likelihood, from when to when moves adapt, which windows
    of learning end within that, where the stretch ends, and whether places of subtrees are learnt."""

    power: float
    begin: int
    adapts_until: int
    windows: tuple[float, ...]
    end: float
    watched: bool = False

    @property
    def edges(self) -> list[int]:
        """Where windows end."""
        return [self.begin + int(share * (self.adapts_until - self.begin)) for share in self.windows]


def stretch_after(settings: TimeSettings, n_tips: int, generation: int) -> Stretch:
    """That of the generation after this one, of chains over trees with so many tips."""
    tuning = settings.tuning
    if generation < tuning:
        melts = settings.use_data and settings.ancestors == "summed" and tuning >= LEAST_MELTING * n_tips
        pieces = ((power, round(end * tuning), own) for power, end, own in _pieces_of_warm_up(melts))
        power, end, watched = next(piece for piece in pieces if generation < piece[1])
        return Stretch(power, 0, tuning, WINDOWS, end, watched)
    if not settings.stones:
        return Stretch(1.0, tuning, tuning, (), np.inf)
    stones = settings.ladder
    power, adapts, end = stones.of(generation)
    if adapts:
        return Stretch(power, end - stones.left_out, end, STONE_WINDOWS, end)
    return Stretch(power, generation, generation, (), end)


def _pieces_of_warm_up(melts: bool) -> list[tuple[float, float, bool]]:
    """Power of the likelihood, the share of the warm-up until which all is so, and whether places of subtrees
    are learnt: not on the way from the start or from a melt."""
    first, last = MELTING
    pieces, cycle = [(1.0, first, False)], (last - first) / CYCLES
    for begin in first + cycle * np.arange(CYCLES) if melts else ():
        pieces += [(MELTED, begin + HOT * cycle, False), (1.0, begin + SETTLED * cycle, False)]
        pieces += [(1.0, begin + cycle, True)]
    return [*pieces, (1.0, WINDOWS[-1], True), (1.0, 1.0, False)]


def advanced(run: Run, n_generations: int, stopped=lambda: False) -> Run:
    """The run after n_generations more, sampled on the way. stopped: asked at every sample; True gives up."""
    every, end, draws = run.settings.sample_every, run.generation + n_generations, []
    while run.generation < end and not stopped():
        here, until = next_piece(run, end)
        begin_piece(run, here)
        work(run, until - run.generation, here)
        end_piece(run, here)
        if run.generation % every == 0:
            draws.append(drawn(run))
    return replace(run, samples=extended(run.samples, draws))


def next_piece(run: Run, end: int) -> tuple[Stretch, int]:
    """The stretch that a run is in, and until when nothing has to be done but moves: a sample, the end of a
    window or of the stretch, or the end."""
    generation, every = run.generation, run.settings.sample_every
    here = stretch_after(run.settings, run.data.n_tips, generation)
    ahead = [edge for edge in (*here.edges, here.end) if edge > generation]
    return here, int(min((generation // every + 1) * every, end, *ahead))


def begin_piece(run: Run, here: Stretch) -> None:
    """What is to be done before the moves of a piece."""
    if 0 < run.generation == here.begin < here.adapts_until:
        seek_steps(run.state)


def end_piece(run: Run, here: Stretch) -> None:
    """And after them."""
    if run.generation in here.edges:
        end_window(run.state)


def work(run: Run, n: int, here: Stretch, heat: float = 1.0) -> None:
    """n moves at a power of the posterior."""
    from phloem.inference.time.compiled.run import LEARN, REFRESH, SAMPLE, TUNE, WATCH

    task = TUNE if run.generation < here.adapts_until else SAMPLE
    task = LEARN if here.windows and run.generation < here.edges[-1] else task
    task = WATCH if here.watched else task
    run.scratch.power[:] = run.settings.powers(here.power, heat)
    if run.model.trait is not None and run.scratch.trait.power[0] != here.power:
        run.scratch.trait.power[0] = here.power
        _turns(run, 1, REFRESH)  # the prior that is carried along has the trait's likelihood to this power
    _turns(run, n, task)
    run.state.generation[0] += n


def _turns(run: Run, n: int, task: int) -> None:
    """n moves of the compiled loop, and what it waits for."""
    from phloem.inference.time.compiled.run import FINISHED, advance

    done, there = run.scratch.done, run.on_device
    done[:] = 0, -1, NOTHING, 0
    with nullcontext() if there is None else there.on_stream():
        while advance(run.data, run.state, run.scratch, n, task) != FINISHED:
            if done[WAITING] == FOR_MODEL:
                _write_model(run, 1 - int(run.state.slot[0]), proposed=True)
            elif there is not None:
                there.answer(run.data, run.state, run.scratch)
                if run.columns_of is not None:
                    _ask_others(run)
            elif run.columns_of is not None:
                _ask_others(run)
            else:
                raise AssertionError("a move changed the neighbours of too many ancestors")


def _ask_others(run: Run) -> None:
    """What cells of other ranks come to, which have drawn the same."""
    assert run.columns_of is not None
    state, scratch, new = run.state, run.scratch, 1 - int(run.state.slot[0])
    slopes = int(scratch.asked[SLOPES])
    lengths, values = state.lengths[new].sum(), state.values[new].sum()
    drawn = scratch.pending[RATIO], scratch.last[LAST_PRIOR], lengths, values, slopes
    run.columns_of.gather(scratch.of_cells if slopes else scratch.of_cells[:, :1], drawn)


def _write_model(run: Run, slot: int, proposed: bool) -> None:
    """Models at the numbers in a slot of the state, into the cells' model slot in use, or the other."""
    if not run.settings.use_data:
        return
    forest, engine, recipes = run.cells.forest, run.model.engine, run.cells.recipes
    values = run.model.engine_values(run.state.values[slot])
    before = run.model.engine_values(run.state.values[1 - slot])
    for part in range(len(engine.parts)):
        if proposed:  # compiled code has made the others
            differs = ((values != before) & (recipes.reads[part] != 0)).any()
            if recipes.rows[part, KIND] == COMPILED or not differs:
                continue
        cell = int(np.searchsorted(run.data.part_of, part))  # its first, whose model the others share
        if cell == len(run.data.part_of) or run.data.part_of[cell] != part:
            continue  # another rank has it
        used = int(forest.cells[0][cell].slot[0])
        forest.set_model(0, cell, 1 - used if proposed else used, engine.site_model(part, values))


def end_window(state: TimeState) -> None:
    """Take over the scales that a window has learnt, and begin another one and the search for a step."""
    seen = state.seen
    for row in range(len(state.usual)):
        enough = (seen > 20) & (state.square[row] > 0.0)
        if enough.any():
            own = state.square[row, enough] / (seen[enough] - 1)
            own = np.maximum(own, 1e-12)
            state.usual[row] = np.exp((np.log(own) * seen[enough]).sum() / seen[enough].sum())
        known = (seen > 4) & (state.square[row] > 0.0)
        learnt = state.square[row] / np.maximum(seen - 1, 1)
        mixed = (seen * learnt + PRIOR_DRAWS * state.usual[row]) / (seen + PRIOR_DRAWS)
        state.variance[row] = np.where(known, mixed, 0.0)
    n = state.number_seen[0]
    if n > 4:
        learnt = state.number_square / (n - 1)
        state.number_variance[:] = (n * learnt + PRIOR_DRAWS * 1e-3) / (n + PRIOR_DRAWS)
    for array in (seen, state.mean, state.square, state.number_seen, state.number_mean, state.number_square):
        array[:] = 0.0
    seek_steps(state)


def seek_steps(state: TimeState) -> None:
    """Begin the search for lengths of Hamiltonian steps, from those in use."""
    for own in state.steps:
        step = own[LOG_MEAN]
        own[LOG_STEP], own[CENTRE] = step, step + np.log(2.0)
        own[SHORTFALL] = own[COUNT] = 0.0
